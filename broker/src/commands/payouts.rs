//! `feira-broker payouts export | paid | drop`: what hosts are paid, as a table for whoever makes the transfers.

use super::{Place, payments};
use crate::admin::wire::{AdminReply, AdminRequest, PaymentRow, PayoutNote};
use crate::args;
use protocol::net::named_file::STANDARD;
use protocol::operator::{Exit, Failure};
use protocol::units::MicroUsd;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Makes, lists and closes payouts.
pub(super) fn payouts(place: &Place, typed: args::Payouts) -> Result<Exit, Failure> {
    match typed {
        args::Payouts::Export { file, minimum } => export(place, file.as_deref(), minimum),
        args::Payouts::Paid(note) => {
            let request = AdminRequest::PayoutPaid(payout_note(&note)?);
            payments::done(place, &request, "payout")
        }
        args::Payouts::Drop(note) => {
            let request = AdminRequest::PayoutDropped(payout_note(&note)?);
            payments::done(place, &request, "payout")
        }
    }
}

fn payout_note(typed: &args::PayoutNote) -> Result<PayoutNote, Failure> {
    Ok(PayoutNote {
        id: typed.payout,
        note: payments::note(&typed.note)?,
    })
}

/// The file is made before the payouts are: a full disk must not leave payouts that nobody saw. What is open
/// already is in it again, with the same ids.
fn export(place: &Place, file: Option<&Path>, minimum: MicroUsd) -> Result<Exit, Failure> {
    let file = file.filter(|file| file.as_os_str() != STANDARD);
    let mut out = file.map(new_file).transpose()?;
    let AdminReply::Payouts(rows) = place.ask(&AdminRequest::Payouts { minimum })? else {
        return Err(place.unexpected());
    };
    if place.printer.is_json() && out.is_none() {
        let said = serde_json::json!({ "schema": "feira.payouts/1", "payouts": rows });
        place.printer.document(&said);
        return Ok(Exit::Done);
    }
    let table = csv_of(&rows).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    let Some((path, out)) = file.zip(out.as_mut()) else {
        for line in table.lines() {
            place.printer.line(line);
        }
        return Ok(Exit::Done);
    };
    out.write_all(table.as_bytes())
        .and_then(|()| out.sync_all())
        .map_err(|error| unwritten(path, &error))?;
    let total = rows
        .iter()
        .fold(MicroUsd::ZERO, |sum, row| sum.saturating_add(row.amount));
    place.printer.line(&format!(
        "{} payouts of {total} in all written to {}",
        rows.len(),
        path.display()
    ));
    place.printer.note(&format!(
        "When one is paid: {}",
        place.command("payouts paid PAYOUT --note TRANSFER")
    ));
    Ok(Exit::Done)
}

fn new_file(path: &Path) -> Result<std::fs::File, Failure> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Failed,
        format!("cannot write {}: {error}", path.display()),
    )
    .help("name a file that does not exist yet, in a folder with room; the payouts are kept")
}

fn csv_of(rows: &[PaymentRow]) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["payout", "host", "amount_usd", "made_at"])?;
    for row in rows {
        let at = jiff::Timestamp::from_millisecond(i64::try_from(row.at.0).unwrap_or(i64::MAX))
            .map_or_else(|_| String::new(), |at| at.to_string());
        writer.write_record([&*row.payment, &*row.about, &*row.amount.decimal(), &*at])?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::units::Timestamp;

    #[test]
    fn payouts_are_a_table() {
        let row = PaymentRow {
            payment: "p-1".to_owned(),
            kind: "payout".to_owned(),
            about: "h-1".to_owned(),
            amount: MicroUsd(660_485),
            at: Timestamp(1_764_547_200_000),
            status: "open".to_owned(),
            note: String::new(),
            before: false,
        };
        assert_eq!(
            csv_of(&[row]).unwrap(),
            "payout,host,amount_usd,made_at\np-1,h-1,0.660485,2025-12-01T00:00:00Z\n"
        );
    }
}
