//! Every movement of the account with each broker, as the broker signed it.

use crate::context::{Context, unexpected};
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::printer::{Column, Listing, Row};
use crate::view::{clock_time, rfc3339};
use protocol::ids::{BrokerId, LeaseId, PublicKey};
use protocol::message::{BrokerReply, BrokerRequest};
use protocol::units::MicroUsd;
use protocol::usage::{AccountStatement, StatementLine};
use serde_json::json;
use std::collections::BTreeMap;

/// Most pages of one broker; far more than anybody reads, and a bound for a broker that never ends.
const PAGES: usize = 200;

/// Shows the statements of all brokers.
pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    for broker in context.session().await?.brokers() {
        let mut taken = Taken::default();
        for line in lines(context, broker.id).await? {
            rows.push(row(broker.id, &line, taken.after(&line)));
        }
    }
    context.printer.list(&Listing {
        schema: "feira.statement/1",
        columns: vec![
            Column::left("WHEN"),
            Column::right("EVENT").rank(3),
            Column::left("WHAT"),
            Column::right("AMOUNT"),
            Column::right("AVAILABLE"),
            Column::left("LEASE").rank(1),
            Column::right("TAKEN").rank(2),
            Column::left("BROKER").rank(4),
        ],
        rows,
        empty: "Nothing has moved yet.".to_owned(),
        next: None,
    })?;
    context.printer.hint(
        "TAKEN: what that lease has of your money so far; behind its last release, what it cost.",
    );
    Ok(Exit::Done)
}

/// What each lease has taken of the available balance: all that its lines moved. What is left of that when it
/// is over is what was charged, whether a broker shows charges as lines of their own or releases the rest.
#[derive(Debug, Default)]
struct Taken(BTreeMap<LeaseId, MicroUsd>);

impl Taken {
    /// What the lease of this line has taken with it; nothing for a line about no lease.
    fn after(&mut self, line: &StatementLine) -> Option<MicroUsd> {
        let taken = self.0.entry(line.lease?).or_insert(MicroUsd::ZERO);
        *taken = taken.saturating_sub(line.amount);
        Some(*taken)
    }
}

/// All lines of one broker, page by page, each page with its signature checked.
async fn lines(context: &Context, broker: BrokerId) -> Result<Vec<StatementLine>, Failure> {
    let session = context.session().await?;
    let mut lines = Vec::new();
    let mut after = 0;
    for _ in 0..PAGES {
        let reply = session
            .ask(broker, &BrokerRequest::Statement(after))
            .await?;
        let BrokerReply::Statement(signed) = reply else {
            return Err(unexpected(broker));
        };
        let page = signed
            .verify()
            .map_err(|error| wrong(broker, &error.to_string()))?;
        if page.signer() != PublicKey::from(broker) {
            return Err(wrong(broker, "somebody else signed it"));
        }
        if PublicKey::from(page.body().renter) != context.identity()?.public() {
            return Err(wrong(broker, "it is somebody else's"));
        }
        let AccountStatement {
            lines: new, next, ..
        } = page.into_body();
        lines.extend(new.into_vec());
        match next.filter(|next| *next > after) {
            Some(next) => after = next,
            None => break,
        }
    }
    Ok(lines)
}

fn wrong(broker: BrokerId, reason: &str) -> Failure {
    let what = format!(
        "the statement of broker {} is not right: {reason}",
        broker.short()
    );
    Failure::new(Code::ReceiptWrong, what)
}

fn row(broker: BrokerId, line: &StatementLine, taken: Option<MicroUsd>) -> Row {
    Row {
        id: line.event.to_string(),
        cells: vec![
            clock_time(line.at),
            line.event.to_string(),
            line.what.to_string(),
            line.amount.to_string(),
            line.balance.to_string(),
            line.lease
                .map_or_else(|| "-".to_owned(), |lease| lease.short()),
            taken.map_or_else(|| "-".to_owned(), |amount| amount.to_string()),
            broker.short(),
        ],
        json: json!({
            "broker": broker.to_string(),
            "event": line.event,
            "at": rfc3339(line.at),
            "lease": line.lease.map(|lease| lease.to_string()),
            "what": line.what.as_str(),
            "amount_usd": line.amount.decimal(),
            "balance_usd": line.balance.decimal(),
            "taken_usd": taken.map(MicroUsd::decimal),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::bounded::Text;
    use protocol::units::Timestamp;

    #[test]
    fn behind_the_last_release_stands_what_was_charged() {
        let line = |what: &str, lease: Option<u8>, amount: i64| StatementLine {
            event: 1,
            at: Timestamp(0),
            lease: lease.map(|byte| LeaseId::from_bytes([byte; 16])),
            what: Text::new(what).unwrap(),
            amount: MicroUsd(amount),
            balance: MicroUsd(0),
        };
        let mut taken = Taken::default();
        let mut after = |what, lease, amount| taken.after(&line(what, lease, amount));
        assert_eq!(after("deposit", None, 10_000_000), None);
        assert_eq!(after("hold", Some(1), -406_944), Some(MicroUsd(406_944)));
        assert_eq!(after("hold", Some(2), -100), Some(MicroUsd(100)));
        assert_eq!(after("hold", Some(1), -203_472), Some(MicroUsd(610_416)));
        // 610 416 were held; 200 000 come back: 410 416 were charged.
        assert_eq!(after("release", Some(1), 200_000), Some(MicroUsd(410_416)));
        // The same in two lines: all comes back, and what it cost goes.
        assert_eq!(after("release", Some(2), 100), Some(MicroUsd(0)));
        assert_eq!(after("charge", Some(2), -60), Some(MicroUsd(60)));
    }
}
