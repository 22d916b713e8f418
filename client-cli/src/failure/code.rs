//! The catalogue of errors: each with a stable number, its exit status, one line and an explanation.
//!
//! Numbers are never used again for something else. `feira help errors` and `feira help E0307` print this.

use crate::exit::Exit;
use std::fmt;

macro_rules! catalogue {
    ($($name:ident $number:literal $exit:ident $summary:literal $explanation:literal;)*) => {
        /// What kind of failure it was.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Code { $(#[doc = $summary] $name),* }

        impl Code {
            /// Every code, in order of number.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];

            /// `E0307`.
            pub(crate) const fn number(self) -> &'static str {
                match self { $(Self::$name => $number),* }
            }

            /// How the program ends with it.
            pub(crate) const fn exit(self) -> Exit {
                match self { $(Self::$name => Exit::$exit),* }
            }

            /// One line.
            pub(crate) const fn summary(self) -> &'static str {
                match self { $(Self::$name => $summary),* }
            }

            /// A paragraph: how it comes about and what to do.
            pub(crate) const fn explanation(self) -> &'static str {
                match self { $(Self::$name => $explanation),* }
            }
        }
    };
}

catalogue! {
    ReaderGone "E0100" Done "the reader of the output went away"
        "Whatever read this program's output closed it, as `head` does. Nothing is wrong.";
    BadConfig "E0101" Usage "the configuration file cannot be used"
        "The file is not TOML, has a key that feira does not know, or a value of the wrong kind. The message names line and key. `feira doctor` says where the file is.";
    BadEnvironment "E0102" Usage "an environment variable cannot be used"
        "A variable that feira reads has a value it cannot use. `feira help environment` lists them all.";
    NoBrokers "E0103" Usage "no broker is configured"
        "feira asks brokers for offers and needs the address of at least one. `feira init --broker ADDRESS` keeps it; `--broker ADDRESS` or FEIRA_BROKER name one for a single command. The operator of a broker knows its address; it ends in /p2p/ and the broker's key.";
    FileFailed "E0104" Failed "a file could not be read or written"
        "The operating system refused; the message says which file and why.";
    UnknownField "E0201" Usage "a filter names a field that does not exist"
        "A search with a mistyped field is refused instead of being widened silently. `feira help fields` lists all fields.";
    BadExpression "E0202" Usage "a filter cannot be read"
        "A filter is a list of conditions like gpu_name=RTX_4090 num_gpus>=2 dph<0.5, all of which must hold. The message shows where reading stopped.";
    BadValue "E0203" Usage "a value cannot be used"
        "The message names the flag and what it takes. Amounts are dollars with at most six decimals, times are like 90s, 30m, 12h, 3d.";
    NeedsYes "E0204" Usage "a question that nobody could answer"
        "The command spends money or deletes something, and asks first. Without a terminal it cannot ask: pass --yes if that is what you want.";
    NeedsCeiling "E0205" Usage "renting without a terminal needs a price ceiling"
        "--yes alone never spends: name an offer, or a highest price an hour with --max-price.";
    NeedsBudget "E0206" Usage "renting without a terminal needs a budget"
        "--yes alone never spends: give --budget, or set limits.budget_usd in the configuration file (feira init does). The lease ends by itself when it has cost that much.";
    Ambiguous "E0207" Usage "a name or id could mean several things"
        "Type more of it; the message lists what it could mean.";
    BadImageName "E0208" Usage "the name of an image cannot be read"
        "An image is [REGISTRY/]NAME[:TAG][@sha256:DIGEST], as in `docker pull`.";
    ForeignWord "E0209" Usage "a word of another tool"
        "The message says what it is called here.";
    UnknownTopic "E0210" Usage "there is no help on that"
        "`feira help` lists commands and topics.";
    BadJob "E0211" Usage "a job file cannot be used"
        "A job file is TOML that says what a job needs, with the units in the names of its keys; `feira estimate --help` shows one. The message names line and key.";
    BadOffers "E0212" Usage "a file of offers cannot be used"
        "`feira search -o json` prints offers as `feira estimate --offers FILE` reads them. The message says where reading stopped.";
    NoSuchLease "E0301" NotFound "there is no such lease"
        "None of your brokers knows a lease of yours by that name or id. `feira ls --all` shows all, also those that are over.";
    NoSuchFile "E0303" NotFound "there is no such file"
        "The file named on the command line does not exist.";
    NoSuchHost "E0304" NotFound "there is no such host"
        "No broker of yours knows a host by that id. Hosts that offer something are found by the first characters of their id, others by all of it.";
    NothingMatches "E0307" NothingMatches "no offer matches"
        "Every offer fails at least one condition. The help lines say which condition keeps out how many. `feira search` with the same conditions shows the same.";
    NoKey "E0401" NotAuthorised "there is no key yet"
        "Your key is who you are: brokers know your balance and leases by it. `feira init` makes one.";
    KeyUnsafe "E0402" NotAuthorised "the key file cannot be used"
        "Others can read the key file or its folder, it belongs to someone else, or it is not an unencrypted Ed25519 key. The message says what to run. If others could read it, make a new key and move your money.";
    SignatureRefused "E0403" NotAuthorised "the broker refused the signature"
        "The broker could not verify what this key signed. That should not happen with matching versions.";
    ClockOff "E0404" NotAuthorised "the clocks differ too much"
        "What is signed says when, and may be at most 30 s in the future and two minutes old by the broker's clock. Set this machine's clock (for instance: timedatectl set-ntp true); the message shows both times.";
    OfferTaken "E0410" Gone "the offer was rented by someone else"
        "Two renters wanted the same machine and the other came first. Nothing was billed. Search again, or give conditions instead of an offer and let feira choose.";
    OfferGone "E0411" Gone "the offer is not there any more"
        "The host withdrew it, it is rented, or no broker of yours hears the host. Nothing was billed.";
    OfferChanged "E0412" Gone "the offer's terms changed"
        "The host changed price or limits after you saw them. Nothing was signed away: look at it again.";
    HostGone "E0413" Gone "the offer's host does not answer its broker"
        "The host was not heard from lately. Nothing was billed.";
    ResourceTaken "E0414" Gone "the machine of a stopped lease is rented by someone else"
        "Stopping frees the machine and keeps the disk. Try again later, or end this lease and rent elsewhere.";
    HostRefused "E0415" Gone "the host refused the lease"
        "The host has the last word on its own hardware. Nothing was billed; the message says why it refused.";
    HostSuspended "E0416" Gone "the broker suspended the host"
        "The operator of the broker takes no new leases for this host; the message says why. Nothing was billed.";
    NameTaken "E0420" Failed "you have an open lease of that name"
        "Names are unique among open leases. Choose another with --name, or leave it out.";
    WrongPhase "E0421" Failed "the lease is in a phase in which that cannot be done"
        "A lease that ended cannot be stopped, one that runs cannot be resumed. `feira show NAME` says where it stands.";
    OrderRefused "E0422" Failed "the broker refused the order"
        "The message says what it did not like. Nothing was billed.";
    BeyondOffer "E0423" NothingMatches "more than the offer allows"
        "The offer bounds disk and duration. `feira search` shows offers with more.";
    NotSold "E0424" NothingMatches "the offer is not sold that way"
        "Hosts decide in which portions they sell, whether to bidders, and whether for prepaid terms; the message says what this one does. `feira search --kind interruptible` or `--kind reserved` shows what is sold so.";
    CannotConvert "E0425" Failed "a lease cannot become one of that kind"
        "What can become what: a lease on demand becomes reserved, an interruptible one becomes one on demand, and so on; the message says why this one cannot. Nothing changed.";
    OwnMachine "E0426" Failed "the machine is your own"
        "The key that would pay is the key of the host. Nobody rents from himself: such leases would buy reputation.";
    PriceAboveLimit "E0501" NothingMatches "the price is above the ceiling"
        "The offer, with the asked disk, costs more an hour than --max-price allows.";
    BidTooLow "E0502" NothingMatches "the bid is too low"
        "It is under the host's floor, or under what has to be bid to run now. The message says how much is needed; `feira search --kind interruptible` shows it for every offer.";
    BidExpired "E0503" NothingMatches "the bid was not met in time"
        "The bid rested for the time given with --for, and no offer came down to it. Nothing was billed, and what was held is free again.";
    TunnelRefused "E0520" NotRun "the host refused the tunnel"
        "The host of the lease was reached and said no; the message says why.";
    NotRunning "E0521" NotRun "the container does not run"
        "exec and shell need a running container. `feira show NAME` says why it does not run; `feira resume NAME` starts a stopped one.";
    CommandUnknown "E0522" NotRun "the program is not in the image"
        "The container has no such program (exec then ends with 127), or it is there and cannot be run (126). Images without a shell can only run what they contain.";
    TunnelBroken "E0523" NotRun "the connection to the container broke"
        "The network, the host or the relay failed while the program ran. The container itself may still run: feira show NAME.";
    NotEnoughMoney "E0602" Money "the balance does not cover the start"
        "To start, the cost of one hour (or the whole budget if that is less) is held. `feira balance` shows what there is; give the operator of the broker your renter id (feira balance shows it) to top up.";
    BudgetTooSmall "E0603" Money "the budget does not cover what is prepaid"
        "A term is paid in advance, and counts towards the budget of its lease; disk and traffic are charged to the budget as they are used. Raise --budget, or take a shorter term.";
    ReceiptWrong "E0650" Failed "the receipt is not right"
        "The signature does not verify, a sum is wrong, or the readable part differs from the signed part. The message says which. Do not accept it; ask the broker with the lease's id.";
    NotAReceipt "E0651" Usage "the file is not a receipt"
        "`feira receipt NAME --save FILE` writes files that `feira receipt verify FILE` reads.";
    EvidenceWrong "E0652" Failed "the evidence on a host is not right"
        "A signature does not verify, a statement is missing or of another host, or the score does not follow from the statements. The message says which. Do not go by the score; another copy may be whole.";
    NotEvidence "E0653" Usage "the file is not evidence on a host"
        "`feira host show HOST --save FILE` writes files that `feira host score FILE` reads.";
    ImageUnknown "E0701" NotFound "the registry does not know the image"
        "Check spelling and tag. Registries also say this of private images. Nothing was billed: this was checked before signing.";
    ImageRefused "E0702" NotAuthorised "the registry wants a login for the image"
        "Hosts pull images without a login, so the image must be public, or in a registry that the host can reach without one. Nothing was billed: this was checked before signing.";
    RegistryDown "E0703" Unreachable "the registry does not answer"
        "The image's tag could not be turned into a digest. Try again, or name the image by digest: NAME@sha256:…. Nothing was billed.";
    DigestMismatch "E0704" Failed "the registry has something else under that digest"
        "What came does not match the digest that names it. Do not use this registry. Nothing was billed.";
    StartFailed "E0705" Failed "the lease could not be started"
        "The host tried and failed; the message says at which stage. Nothing was billed. If the image or its command is at fault, another host will fail the same way.";
    ImageTooBig "E0706" Failed "the image is larger than the lease's disk"
        "The layers alone, compressed, need more than --disk allows. Nothing was billed.";
    NoBrokerAnswers "E0801" Unreachable "no broker answers"
        "None of the configured brokers could be reached. `feira doctor` shows each with the reason.";
    BrokerFailed "E0802" Unreachable "a broker stopped answering"
        "The connection broke in the middle of a request. Requests can be repeated safely: the same order has one effect.";
    HostUnreachable "E0803" Unreachable "the host cannot be reached"
        "Neither directly nor through the broker's relay. The container may still run; the broker bills nothing while it does not hear the host.";
    TimedOut "E0804" Unreachable "it took longer than asked"
        "The time given with --timeout passed. What was started goes on: feira show NAME.";
    Busy "E0805" Unreachable "the broker is busy or stopping"
        "Try again in a moment.";
    BadReply "E0806" Failed "the broker's answer cannot be read"
        "Broker and feira are probably of different versions. `feira doctor` shows both.";
    NotStarted "E0807" Unreachable "the host did not start the lease in time"
        "Hosts promise how fast they start. This one broke its promise; nothing was billed. Take another offer.";
    LeaseEnded "E0808" Failed "the lease ended"
        "The message says why, and who caused it. `feira receipt NAME` shows what was billed.";
    MessageTooBig "E0809" Usage "too much for one message"
        "An order with its command and environment must stay below 64 KiB. Put files into the image, or fetch them from the container.";
    Declined "E0901" Declined "you answered no"
        "Nothing was done.";
    Interrupted "E0902" Interrupted "interrupted"
        "You pressed Ctrl-C. What had been ordered goes on unless the message says otherwise.";
    Bug "E0990" Bug "a fault in feira"
        "Something happened that the program did not expect. Please report it with the message.";
}

impl Code {
    /// The code with this number, in any case.
    pub(crate) fn of_number(typed: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.number().eq_ignore_ascii_case(typed))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_none_is_used_twice() {
        let numbers: Vec<_> = Code::ALL.iter().map(|code| code.number()).collect();
        assert!(
            numbers.windows(2).all(|pair| pair[0] < pair[1]),
            "{numbers:?}"
        );
    }

    #[test]
    fn the_numbers_that_transcripts_show_stay() {
        let shown = [
            ("E0307", Exit::NothingMatches),
            ("e0410", Exit::Gone),
            ("E0602", Exit::Money),
            ("E0702", Exit::NotAuthorised),
        ];
        for (number, exit) in shown {
            assert_eq!(
                Code::of_number(number).map(Code::exit),
                Some(exit),
                "{number}"
            );
        }
    }
}
