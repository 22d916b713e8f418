//! `feira receipt`: what a lease cost, signed by the broker; and the check of such a paper by anybody, offline.

pub(crate) mod paper;

use crate::args::ReceiptArgs;
use crate::context::{Context, unexpected};
use crate::exit::Exit;
use crate::failure::{Code, Failure, file_failed};
use crate::printer::Object;
use paper::Paper;
use protocol::ids::PublicKey;
use protocol::message::{BrokerReply, BrokerRequest};
use std::fs;
use std::io::{self, Read};
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

async fn show(context: &Context, name: &str, save: Option<&Path>) -> Result<Exit, Failure> {
    let held = context.lease(name).await?;
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
    context.printer.object(&object(&paper))?;
    if let Some(file) = save {
        fs::write(file, format!("{:#}\n", paper.json()))
            .map_err(|error| file_failed("write", file, &error))?;
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
    let paper = Paper::read(&text_of(file)?)?;
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

fn text_of(file: &Path) -> Result<String, Failure> {
    let failed = |error: &io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            return Failure::new(
                Code::NoSuchFile,
                format!("there is no file {}", file.display()),
            );
        }
        file_failed("read", file, error)
    };
    let not = |what: &str| {
        let what = format!("{} is {what}", file.display());
        Failure::new(Code::NotAReceipt, what)
    };
    let opened = fs::File::open(file).map_err(|error| failed(&error))?;
    // A device says that it is empty and never ends: what is read is counted, not what it says of itself.
    let mut bytes = Vec::new();
    opened
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error))?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > FILE_BYTES_MAX) {
        return Err(not("too large for a receipt"));
    }
    String::from_utf8(bytes).map_err(|_| not("not a text"))
}

fn object(paper: &Paper) -> Object {
    Object {
        id: paper.receipt().lease.to_string(),
        lines: paper.lines(),
        json: paper.json(),
    }
}
