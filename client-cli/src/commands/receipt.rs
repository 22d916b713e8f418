//! `feira receipt`: what a lease cost, signed by the broker; and the check of such a paper by anybody, offline.

pub(crate) mod paper;

use crate::args::ReceiptArgs;
use crate::context::{Context, unexpected};
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::files::{is_standard, save, text_of};
use crate::printer::Object;
use paper::Paper;
use protocol::ids::PublicKey;
use protocol::message::{BrokerReply, BrokerRequest};
use std::path::{Path, PathBuf};

/// Largest file that is taken for a receipt.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &ReceiptArgs) -> Result<Exit, Failure> {
    match (&arguments.verify, arguments.words.as_slice()) {
        (Some(file), _) => verify(context, file),
        (None, [word, file]) if word == "verify" => verify(context, &PathBuf::from(file)),
        (None, [name]) => show(context, name, arguments.save.as_deref()).await,
        (None, words) => {
            let what = format!("'{}' is not one lease", words.join(" "));
            Err(Failure::new(Code::BadValue, what)
                .help("feira receipt NAME      feira receipt verify FILE"))
        }
    }
}

async fn show(context: &Context, name: &str, to: Option<&Path>) -> Result<Exit, Failure> {
    let held = context.lease(name).await?;
    if held.view.place.is_none() {
        let what = format!(
            "{name} is a bid that never started: nothing was charged, so there is no receipt"
        );
        return Err(Failure::new(Code::WrongPhase, what)
            .help("every movement of your money: feira balance --statement"));
    }
    let request = BrokerRequest::Receipt(held.view.id);
    let reply = context
        .session_with(held.broker)
        .await?
        .ask(held.broker, &request)
        .await?;
    let BrokerReply::Receipt(signed) = reply else {
        return Err(unexpected(held.broker));
    };
    let paper = Paper::of(&signed)?;
    if paper.signer() != PublicKey::from(held.broker) {
        return Err(Failure::new(
            Code::ReceiptWrong,
            "somebody else than the broker signed it",
        ));
    }
    if paper.receipt().lease != held.view.id {
        return Err(Failure::new(Code::ReceiptWrong, "it is of another lease"));
    }
    if to.is_some_and(is_standard) {
        context.printer.line(&format!("{:#}", paper.json()))?;
        return Ok(Exit::Done);
    }
    context.printer.object(&object(&paper))?;
    if let Some(file) = to {
        save(file, &format!("{:#}\n", paper.json()))?;
        context
            .printer
            .done(&format!("saved in {}", file.display()));
        context.printer.hint(&format!(
            "  check it: feira receipt verify {}",
            file.display()
        ));
    }
    Ok(Exit::Done)
}

fn verify(context: &Context, file: &Path) -> Result<Exit, Failure> {
    let text = text_of(
        context,
        file,
        FILE_BYTES_MAX,
        (Code::NotAReceipt, "a receipt"),
    )?;
    let paper = Paper::read(&text)?;
    context.printer.object(&object(&paper))?;
    let signer = paper.signer();
    let is_known = context
        .settings
        .brokers
        .iter()
        .any(|broker| PublicKey::from(broker.id) == signer);
    let who = if is_known {
        "a broker of yours"
    } else {
        "a broker that you have not configured"
    };
    context.printer.done(&format!(
        "signed by {}, {who}",
        protocol::ids::BrokerId::from(signer)
    ));
    context
        .printer
        .done("every sum follows from usage and prices; the readable part is the signed one");
    if paper.receipt().ended.is_none() {
        context
            .printer
            .warn("it is an interim receipt: the lease went on after it");
    }
    Ok(Exit::Done)
}

fn object(paper: &Paper) -> Object {
    Object {
        id: paper.receipt().lease.to_string(),
        lines: paper.lines(),
        json: paper.json(),
    }
}
