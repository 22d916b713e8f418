//! A receipt as people read it: every product with all that was multiplied, so that it can be done again by
//! hand.

use super::Paper;
use crate::amounts::in_gigabytes;
use crate::failure::end_in_words;
use crate::view::clock_time;
use protocol::terms::ContractKind;
use protocol::units::{Bytes, MicroUsd, Millis, PricePerHour};
use protocol::usage::{Receipt, Term};

type Line = (String, String);

fn line(label: &str, value: String) -> Line {
    (label.to_owned(), value)
}

impl Paper {
    /// For people.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let receipt = self.receipt();
        let mut lines = head(receipt);
        let (amounts, prices, usage) = (&receipt.amounts, &receipt.prices, &receipt.usage);
        if let Some(term) = &receipt.term {
            lines.extend(term_lines(term));
        }
        lines.extend(compute(receipt));
        let disk = format!("{} GB × {}", in_gigabytes(receipt.disk), prices.storage);
        lines.push(line(
            "Disk",
            format!(
                "{} × {disk} = {}",
                time_in_words(usage.stored),
                in_full(amounts.storage)
            ),
        ));
        if usage.uploaded != Bytes(0) || usage.downloaded != Bytes(0) {
            let moved = |bytes, price: String, amount| {
                format!("{} GB × {price} = {}", in_gigabytes(bytes), in_full(amount))
            };
            let up = moved(usage.uploaded, prices.upload.to_string(), amounts.upload);
            lines.push(line("Upload", up));
            let price = prices.download.to_string();
            let down = moved(usage.downloaded, price, amounts.download);
            lines.push(line("Download", down));
        }
        lines.extend(totals(receipt));
        lines
    }
}

fn head(receipt: &Receipt) -> Vec<Line> {
    let gpus = match receipt.gpus {
        0 => String::new(),
        1 => ", 1 GPU".to_owned(),
        several => format!(", {several} GPUs"),
    };
    let mut lines = vec![
        line("Receipt", format!("{} ({})", receipt.name, receipt.lease)),
        line("Kind", format!("{}{gpus}", kind_in_words(receipt.kind))),
        line("Image", receipt.image.to_string()),
        line("Ordered", clock_time(receipt.ordered_at)),
    ];
    if let Some(started) = receipt.started_at {
        lines.push(line("Started", clock_time(started)));
    }
    lines.push(line(
        "Ended",
        match &receipt.ended {
            Some((at, cause)) => format!("{}: {}", clock_time(*at), end_in_words(cause)),
            None => "not yet: this is an interim receipt".to_owned(),
        },
    ));
    lines
}

const fn kind_in_words(kind: ContractKind) -> &'static str {
    match kind {
        ContractKind::OnDemand => "on demand",
        ContractKind::Bid => "on demand, bought by a bid",
        ContractKind::Interruptible => "interruptible, at your bid",
        ContractKind::Reserved => "reserved, prepaid",
    }
}

/// Running time by rate. The products are added before they are rounded down once, so the sum alone is an
/// amount.
fn compute(receipt: &Receipt) -> Vec<Line> {
    let (running, amount) = (receipt.usage.running, in_full(receipt.amounts.compute));
    let spans = spans(receipt);
    if receipt.term.is_some() && spans.iter().all(|(_, price)| price.0 == 0) {
        let time = time_in_words(running);
        return vec![line("Compute", format!("{time}, prepaid = {amount}"))];
    }
    let product = |(time, price): &(Millis, PricePerHour)| {
        if price.0 == 0 {
            let word = if receipt.term.is_some() {
                "prepaid"
            } else {
                "waived"
            };
            return format!("{} {word}", time_in_words(*time));
        }
        format!("{} × {price}", time_in_words(*time))
    };
    if let [one] = spans.as_slice() {
        return vec![line("Compute", format!("{} = {amount}", product(one)))];
    }
    let last = spans.len().saturating_sub(1);
    let of_span = |(index, span): (usize, &(Millis, PricePerHour))| {
        let label = if index == 0 { "Compute" } else { "" };
        let plus = if index == 0 { "" } else { "+ " };
        let sum = if index == last {
            format!(" = {amount}")
        } else {
            String::new()
        };
        line(label, format!("{plus}{}{sum}", product(span)))
    };
    spans.iter().enumerate().map(of_span).collect()
}

/// How long it ran at each rate, in order.
fn spans(receipt: &Receipt) -> Vec<(Millis, PricePerHour)> {
    let running = receipt.usage.running;
    let steps = receipt.rates.steps();
    let ends = steps.iter().skip(1).map(|step| step.from).chain([running]);
    let spans: Vec<_> = steps
        .iter()
        .zip(ends)
        .map(|(step, end)| {
            let span = end.min(running).0.saturating_sub(step.from.0);
            (Millis(span), step.price)
        })
        .filter(|(span, _)| span.0 > 0)
        .collect();
    if spans.is_empty() {
        return vec![(Millis(0), receipt.rates.current())];
    }
    spans
}

fn term_lines(term: &Term) -> Vec<Line> {
    let mut lines = vec![line(
        "Prepaid",
        format!(
            "{} for {} days, {} less than on demand",
            in_full(term.prepaid),
            term.days,
            term.discount
        ),
    )];
    let away = if term.down > Millis(0) {
        format!("; the host was away for {}", time_in_words(term.down))
    } else {
        String::new()
    };
    lines.push(line(
        "Earned",
        format!("{} of it{away}", in_full(term.earned)),
    ));
    let (host, broker) = term.clawed_back;
    if term.refunded > MicroUsd::ZERO || host > MicroUsd::ZERO || broker > MicroUsd::ZERO {
        let text = format!(
            "{} came back; {} to the host and {} to the broker as the price of ending early",
            in_full(term.refunded),
            in_full(host),
            in_full(broker)
        );
        lines.push(line("Refunded", text));
    }
    if term.from_bond > MicroUsd::ZERO {
        let text = format!("{} besides, since the host failed", in_full(term.from_bond));
        lines.push(line("Of its bond", text));
    }
    lines
}

fn totals(receipt: &Receipt) -> Vec<Line> {
    let prepaid = receipt.term.map_or(MicroUsd::ZERO, |term| term.prepaid);
    let most = receipt.budget.saturating_add(prepaid);
    let total = format!("{} of at most {}", in_full(receipt.total), in_full(most));
    let of_it = format!(
        "{} to the broker ({}), {} to host {}",
        in_full(receipt.fee),
        receipt.fee_rate,
        in_full(receipt.host_share),
        receipt.host.short()
    );
    let mut lines = vec![line("Total", total)];
    if receipt.refunded > MicroUsd::ZERO {
        let text = format!("{} by the operator", in_full(receipt.refunded));
        lines.push(line("Given back", text));
    }
    lines.push(line("Of it", of_it));
    lines
}

/// `5400.000 s (1h 30m)`.
fn time_in_words(time: Millis) -> String {
    let words = match time.seconds() {
        short if short.0 < 60 => String::new(),
        long => format!(" ({long})"),
    };
    format!("{}.{:03} s{words}", time.0 / 1000, time.0 % 1000)
}

/// With all six places: the amounts of a receipt are compared with each other.
fn in_full(amount: MicroUsd) -> String {
    format!("${}", amount.decimal())
}
