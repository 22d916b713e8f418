//! `feira audit`: proofs of hardware, from the brokers that made them, and judged again by anybody.

mod fetch;
mod file;
mod words;

use crate::args::{AuditArgs, AuditCheckArgs, AuditCommand, AuditShowArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::files::{is_standard, save, text_of};
use crate::printer::Object;
use audit::class;
use audit::judge::confirm;
use file::{File, Proof};
use protocol::ids::{HostId, PublicKey};
use protocol::verify::Verdict;

/// Largest file: 64 transcripts of 2 MiB, two digits a byte, and room.
const FILE_BYTES_MAX: u64 = 320 << 20;

/// Runs the command.
pub(crate) async fn run(context: &Context, arguments: &AuditArgs) -> Result<Exit, Failure> {
    match &arguments.command {
        AuditCommand::Show(arguments) => show(context, arguments).await,
        AuditCommand::Check(arguments) => check(context, arguments),
    }
}

async fn show(context: &Context, arguments: &AuditShowArgs) -> Result<Exit, Failure> {
    let host = super::host::find(context, &arguments.host).await?;
    let known = fetch::verdicts(context, host).await?;
    if known.is_empty() {
        let what = format!("no broker of yours has a proof of the hardware of {host}");
        return Err(Failure::new(Code::NoSuchHost, what)
            .help("whether it can be put to the proof: feira host show HOST --why"));
    }
    let Some(to) = &arguments.save else {
        let verdicts = known
            .iter()
            .map(|(broker, verdict)| (*broker, verdict.body()));
        let shown = object(host, verdicts.map(words::line), words::json(&known));
        context.printer.object(&shown)?;
        let hint = format!("\nTo judge again: feira audit show {host} --save FILE");
        context.printer.hint(&hint);
        return Ok(Exit::Done);
    };
    let mut proofs = Vec::new();
    for (broker, verdict) in known {
        let digest = verdict.body().transcript;
        match fetch::transcript(context, broker, digest).await? {
            Some(transcript) => proofs.push(Proof::new(broker, verdict, transcript)),
            None => context.printer.warn(&format!(
                "{broker} does not have the transcript of {} any more",
                verdict.body().device
            )),
        }
    }
    let text = File::of(host, &proofs)?.text();
    if is_standard(to) {
        context.printer.line(text.trim_end())?;
        return Ok(Exit::Done);
    }
    save(to, &text)?;
    let lines = proofs
        .iter()
        .map(|proof| words::line((proof.broker, proof.verdict())));
    let shown = object(
        host,
        lines,
        words::json(proofs.iter().map(Proof::signed_by)),
    );
    context.printer.object(&shown)?;
    let saved = format!("saved in {}", to.display());
    context.printer.done(&saved);
    let hint = format!("  judge it again: feira audit check {}", to.display());
    context.printer.hint(&hint);
    Ok(Exit::Done)
}

fn check(context: &Context, arguments: &AuditCheckArgs) -> Result<Exit, Failure> {
    let of = (Code::NotEvidence, "proofs of hardware");
    let text = text_of(context, &arguments.file, FILE_BYTES_MAX, of)?;
    let (host, proofs) = File::read(&text)?.proofs()?;
    for proof in &proofs {
        let verdict = proof.verdict();
        confirm(verdict, proof.transcript()).map_err(|error| {
            let what = format!("the proof of {} is not right: {error}", verdict.device);
            Failure::new(Code::EvidenceWrong, what)
        })?;
    }
    let lines = proofs
        .iter()
        .map(|proof| words::line((proof.broker, proof.verdict())));
    let shown = object(
        host,
        lines,
        words::json(proofs.iter().map(Proof::signed_by)),
    );
    context.printer.object(&shown)?;
    for proof in &proofs {
        say_checked(context, proof);
    }
    Ok(Exit::Done)
}

/// What of a proof anybody can know, and what remains the broker's word.
fn say_checked(context: &Context, proof: &Proof) {
    let known = &context.settings.brokers;
    let is_known = known
        .iter()
        .any(|broker| PublicKey::from(broker.id) == proof.broker.into());
    let who = if is_known {
        "a broker of yours"
    } else {
        "a broker that you have not configured"
    };
    let Verdict {
        device,
        class,
        parameters,
        ..
    } = proof.verdict();
    context.printer.done(&format!(
        "{device}: every row, key and hash was computed again; the verdict of {}, {who}, follows. The times are its word",
        proof.broker
    ));
    match class::named(class) {
        Some(own) if own.parameters() == *parameters => {}
        Some(_) => context.printer.warn(&format!(
            "{device} was held to other numbers than those that this program has for {class}"
        )),
        None => context.printer.warn(&format!(
            "this program does not know the class {class}: the numbers are its broker's own"
        )),
    }
}

fn object(
    host: HostId,
    lines: impl Iterator<Item = (String, String)>,
    proofs: serde_json::Value,
) -> Object {
    let first = ("host".to_owned(), host.to_string());
    Object {
        id: host.to_string(),
        lines: std::iter::once(first).chain(lines).collect(),
        json: serde_json::json!({
            "schema": file::SCHEMA,
            "host": host.to_string(),
            "proofs": proofs,
        }),
    }
}
