//! Words that people bring from other tools: understood as questions, never executed.

use crate::failure::{Code, Failure};
use std::ffi::OsString;

/// Words, whose they are, what they are here.
const WORDS: [(&str, &str, &str); 46] = [
    ("search offers", "Vast", "feira search 'EXPRESSION'"),
    ("search benchmarks", "Vast", "feira search"),
    ("create instance", "Vast", "feira rent OFFER --image IMAGE"),
    (
        "launch instance",
        "Vast",
        "feira rent 'EXPRESSION' --image IMAGE --max-price USD",
    ),
    ("show instances", "Vast", "feira ls"),
    ("show instance", "Vast", "feira show NAME"),
    ("show invoices", "Vast", "feira balance --statement"),
    ("show invoices-v1", "Vast", "feira balance --statement"),
    ("show user", "Vast", "feira balance"),
    ("stop instance", "Vast", "feira stop NAME"),
    ("start instance", "Vast", "feira resume NAME"),
    ("destroy instance", "Vast", "feira end NAME"),
    ("destroy instances", "Vast", "feira end NAME…"),
    ("ssh-url", "Vast", "feira shell NAME"),
    ("scp-url", "Vast", "feira exec NAME -- cat FILE"),
    ("execute", "Vast", "feira exec NAME -- COMMAND"),
    ("set api-key", "Vast", "feira init"),
    ("change bid", "Vast", "feira bid set NAME --max-price USD"),
    ("create pod", "runpodctl", "feira rent --image IMAGE"),
    ("pod create", "runpodctl", "feira rent --image IMAGE"),
    ("pod list", "runpodctl", "feira ls"),
    ("get pod", "runpodctl", "feira ls"),
    ("stop pod", "runpodctl", "feira stop NAME"),
    ("pod stop", "runpodctl", "feira stop NAME"),
    ("start pod", "runpodctl", "feira resume NAME"),
    ("remove pod", "runpodctl", "feira end NAME"),
    ("gpu list", "runpodctl", "feira search"),
    ("ssh info", "runpodctl", "feira shell NAME"),
    ("availability list", "Prime's", "feira search"),
    ("pods create", "Prime's", "feira rent --image IMAGE"),
    ("pods list", "Prime's", "feira ls"),
    ("pods ssh", "Prime's", "feira shell NAME"),
    ("pods terminate", "Prime's", "feira end NAME"),
    (
        "launch",
        "SkyPilot's",
        "feira rent 'EXPRESSION' --image IMAGE",
    ),
    ("status", "SkyPilot's", "feira ls"),
    ("start", "SkyPilot's", "feira resume NAME"),
    ("gpus", "SkyPilot's", "feira search"),
    (
        "cost-report",
        "SkyPilot's",
        "feira balance (and feira receipt NAME)",
    ),
    ("autostop", "SkyPilot's", "feira rent … --for TIME"),
    ("apply", "dstack's", "feira rent 'EXPRESSION' --image IMAGE"),
    ("offer", "dstack's", "feira search"),
    (
        "attach",
        "dstack's",
        "feira shell NAME, or feira logs -f NAME",
    ),
    ("ps", "Docker's", "feira ls"),
    (
        "run",
        "Docker's",
        "feira rent 'EXPRESSION' --image IMAGE -- COMMAND",
    ),
    ("kill", "Docker's", "feira end NAME"),
    ("inspect", "Docker's", "feira show NAME -o json"),
];

/// Words for what is not here yet, and what does it meanwhile.
const NOT_YET: [(&str, &str); 11] = [
    ("ssh", "feira shell NAME"),
    ("scp", "feira exec NAME -- cat FILE"),
    ("cp", "feira exec NAME -- cat FILE"),
    ("rsync", "feira exec NAME -- tar c FOLDER"),
    ("forward", "feira exec NAME -- COMMAND"),
    ("port-forward", "feira exec NAME -- COMMAND"),
    ("cost", "feira balance --statement, or feira receipt NAME"),
    ("invoices", "feira balance --statement"),
    (
        "deposit",
        "feira balance, whose renter id the broker's operator credits",
    ),
    (
        "topup",
        "feira balance, whose renter id the broker's operator credits",
    ),
    (
        "withdraw",
        "feira balance, whose renter id the broker's operator pays out",
    ),
];

/// What to answer when the first words are another tool's.
pub(crate) fn question(words: &[OsString]) -> Option<Failure> {
    let typed: Vec<&str> = words
        .iter()
        .skip(1)
        .map_while(|word| word.to_str())
        .skip_while(|word| matches!(*word, "--json" | "-q" | "-v" | "--no-input"))
        .take_while(|word| !word.starts_with('-'))
        .take(2)
        .collect();
    let both = typed.join(" ");
    let first = typed.first()?;
    let Some((known, whose, ours)) = WORDS
        .iter()
        .find(|(known, ..)| *known == both || known == first)
    else {
        let (known, ours) = NOT_YET.iter().find(|(known, _)| known == first)?;
        return Some(answer(
            format!("'{known}' is not here yet; use: {ours}"),
            ours,
        ));
    };
    let possessive = if whose.ends_with("'s") {
        (*whose).to_owned()
    } else {
        format!("{whose}'s")
    };
    let what = format!("'{known}' is {possessive} word for: {ours}");
    Some(answer(what, ours))
}

fn answer(what: String, ours: &str) -> Failure {
    let topic = ours.split_whitespace().nth(1).unwrap_or_default();
    let topic = topic.trim_end_matches(',');
    Failure::new(Code::ForeignWord, what).help(format!("see: feira {topic} --help"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arguments;
    use clap::CommandFactory;

    fn ask(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        question(&words).map(|failure| failure.what().to_owned())
    }

    #[test]
    fn words_of_other_tools_are_answered() {
        let wanted = "'create instance' is Vast's word for: feira rent OFFER --image IMAGE";
        assert_eq!(
            ask("feira create instance 24494820 --image x").as_deref(),
            Some(wanted)
        );
        assert_eq!(
            ask("feira ps").as_deref(),
            Some("'ps' is Docker's word for: feira ls")
        );
        assert!(ask("feira --json destroy instance 7").is_some());
    }

    #[test]
    fn what_is_not_here_yet_says_what_does_it_meanwhile() {
        let wanted = "'ssh' is not here yet; use: feira shell NAME";
        assert_eq!(ask("feira ssh brave-otter").as_deref(), Some(wanted));
        for word in ["cp", "forward", "cost", "deposit", "ps", "run"] {
            assert!(ask(&format!("feira {word} x")).is_some(), "{word}");
        }
    }

    #[test]
    fn our_own_words_are_not() {
        for line in [
            "feira",
            "feira ls",
            "feira stop brave-otter",
            "feira destroy brave-otter",
            "feira -V",
        ] {
            assert_eq!(ask(line), None, "{line}");
        }
    }

    #[test]
    fn no_single_word_hides_a_command_and_every_answer_is_one() {
        let command = Arguments::command();
        let not_yet = NOT_YET.map(|(known, ours)| (known, "", ours));
        for (known, _, ours) in WORDS.into_iter().chain(not_yet) {
            assert!(
                known.contains(' ') || command.find_subcommand(known).is_none(),
                "{known}"
            );
            let word = ours.split_whitespace().nth(1).unwrap();
            let word = word.trim_end_matches(',');
            assert!(command.find_subcommand(word).is_some(), "{ours}");
        }
    }
}
