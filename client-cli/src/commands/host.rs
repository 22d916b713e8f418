//! `feira host`: how reliable a host is, why, and the same computed again by anybody from what brokers signed.

mod fetch;
mod hardware;
mod proof;
mod words;

use crate::args::{HostArgs, HostCommand, HostScoreArgs, HostShowArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::files::{is_standard, save, text_of};
use crate::printer::Object;
pub(crate) use fetch::host as find;
use proof::{File, Proof};
use protocol::ids::{HostId, PublicKey};
use words::{json, lines, reasons};

/// Largest file of evidence: five hundred leases of a host with each of some brokers.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &HostArgs) -> Result<Exit, Failure> {
    match &arguments.command {
        HostCommand::Show(arguments) => show(context, arguments).await,
        HostCommand::Score(arguments) => score(context, arguments),
    }
}

async fn show(context: &Context, arguments: &HostShowArgs) -> Result<Exit, Failure> {
    let host = fetch::host(context, &arguments.host).await?;
    let proofs = fetch::proofs(context, host).await?;
    if proofs.iter().all(Proof::is_empty) {
        let what = format!("no broker of yours knows anything of {host}");
        return Err(Failure::new(Code::NoSuchHost, what)
            .help("the id of a host stands in: feira search -o wide"));
    }
    let mut shown = object(host, &proofs, arguments.why, context.now());
    if arguments.why {
        let hardware = hardware::of(context, host).await?;
        shown.lines.extend(hardware.iter().map(hardware::line));
        shown.json["hardware"] = hardware::json(&hardware);
    }
    if arguments.save.as_deref().is_some_and(is_standard) {
        let text = File::of(host, &proofs)?.text();
        context.printer.line(text.trim_end())?;
        return Ok(Exit::Done);
    }
    context.printer.object(&shown)?;
    if let Some(file) = &arguments.save {
        save(file, &File::of(host, &proofs)?.text())?;
        let saved = format!("saved in {}", file.display());
        context.printer.done(&saved);
        let check = format!("  compute it again: feira host score {}", file.display());
        context.printer.hint(&check);
    } else if !arguments.why {
        context
            .printer
            .hint(&format!("\nWhat it rests on: feira host show {host} --why"));
    }
    Ok(Exit::Done)
}

fn score(context: &Context, arguments: &HostScoreArgs) -> Result<Exit, Failure> {
    let file = &arguments.file;
    let wanted = (Code::NotEvidence, "evidence on a host");
    let text = text_of(context, file, FILE_BYTES_MAX, wanted)?;
    let (host, proofs) = File::read(&text)?.proofs()?;
    let shown = object(host, &proofs, arguments.why, context.now());
    context.printer.object(&shown)?;
    for proof in &proofs {
        let is_known = context
            .settings
            .brokers
            .iter()
            .any(|broker| PublicKey::from(broker.id) == proof.broker.into());
        let who = if is_known {
            "a broker of yours"
        } else {
            "a broker that you have not configured"
        };
        context.printer.done(&format!(
            "{} statements signed by {}, {who}; none is missing, and the score follows from them",
            proof.evidence.outcomes.len() + 1,
            proof.broker
        ));
    }
    Ok(Exit::Done)
}

fn object(host: HostId, proofs: &[Proof], why: bool, now: protocol::units::Timestamp) -> Object {
    let mut all = vec![("host".to_owned(), host.to_string())];
    for proof in proofs {
        all.extend(lines(proof, now));
        if why {
            all.extend(reasons(proof));
        }
    }
    Object {
        id: host.to_string(),
        lines: all,
        json: json(host, proofs),
    }
}
