//! A verdict in words, and as JSON.

use crate::view::rfc3339;
use protocol::ids::BrokerId;
use protocol::signed::Verified;
use protocol::verify::{Finding, Verdict};
use serde_json::{Value, json};

/// The device, and what was found of it.
pub(crate) fn line((broker, verdict): (BrokerId, &Verdict)) -> (String, String) {
    let Verdict {
        device,
        class,
        at,
        resources,
        ..
    } = verdict;
    let found = match &verdict.finding {
        Finding::Accepted { fill, pass } => format!(
            "proved as {class}: filled in {} ms of {}, passed over in {} ms of {}",
            fill.0, verdict.parameters.fill_max.0, pass.0, verdict.parameters.pass_max.0
        ),
        Finding::Rejected(flaw) => format!("not proved as {class}: {flaw}"),
    };
    let together = match resources.len() {
        0 | 1 => String::new(),
        more => format!(", {more} at once"),
    };
    let text = format!("{found}{together}; {} by {}", rfc3339(*at), broker.short());
    (device.to_string(), text)
}

/// What some brokers found.
pub(crate) fn json<'a>(
    verdicts: impl IntoIterator<Item = &'a (BrokerId, Verified<Verdict>)>,
) -> Value {
    let one = |(broker, signed): &(BrokerId, Verified<Verdict>)| {
        let verdict = signed.body();
        let (finding, flaw, times) = match &verdict.finding {
            Finding::Accepted { fill, pass } => ("accepted", None, Some((fill.0, pass.0))),
            Finding::Rejected(flaw) => ("rejected", Some(flaw.to_string()), None),
        };
        json!({
            "broker": broker.to_string(),
            "device": verdict.device.as_str(),
            "together": verdict.resources.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
            "class": verdict.class.as_str(),
            "finding": finding,
            "flaw": flaw,
            "fill_ms": times.map(|(fill, _)| fill),
            "pass_ms": times.map(|(_, pass)| pass),
            "at": rfc3339(verdict.at),
            "verdict": signed.digest().to_string(),
            "transcript": verdict.transcript.to_string(),
        })
    };
    verdicts.into_iter().map(one).collect()
}
