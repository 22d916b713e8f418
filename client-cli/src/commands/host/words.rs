//! A host's score and its reasons, for people and for programs.

use super::proof::Proof;
use crate::view::{clock_time, rfc3339};
use protocol::ids::HostId;
use protocol::lease::Party;
use protocol::reliability::{Counted, Interval, Outcome, Score, Start, decay};
use protocol::units::{Seconds, Timestamp};
use serde_json::{Value, json};

/// Most leases that people are shown; JSON has all.
const SHOWN_MAX: usize = 20;

/// The score and what it is made of.
pub(super) fn lines(proof: &Proof, now: Timestamp) -> Vec<(String, String)> {
    let line = |label: &str, value: String| (label.to_owned(), value);
    let score = &proof.score;
    let heard = match proof.heard_at {
        Some(at) => format!("{} ago", now.since(at).seconds()),
        None => format!(
            "not now; this is how it stood on {}",
            clock_time(proof.as_of)
        ),
    };
    vec![
        line("broker", proof.broker.to_string()),
        line("heard", heard),
        line(
            "score",
            format!(
                "{}: a lease runs in time, and then for a day",
                percent(score.start_probability * score.survives_24h)
            ),
        ),
        line(
            "starts",
            format!(
                "{} in time, {} not: {}",
                score.starts,
                score.starts_failed,
                percent(score.start_probability)
            ),
        ),
        line(
            "without a fault",
            format!(
                "{} for an hour, {} for a day, {} for a week",
                percent(score.survives_1h),
                percent(score.survives_24h),
                percent(score.survives_168h)
            ),
        ),
        line(
            "a fault every",
            format!(
                "{:.0} h: {:.2} faults in {:.1} h that count",
                1.0 / score.hazard_per_hour,
                score.faults,
                score.exposure_hours
            ),
        ),
        line("hours", hours(score)),
    ]
}

fn hours(score: &Score) -> String {
    let leased = match score.renters {
        0 => "none leased".to_owned(),
        1 => format!("{:.1} leased by one renter", score.leased_hours),
        renters => format!("{:.1} leased by {renters} renters", score.leased_hours),
    };
    format!(
        "{leased} (at most {:.0} of one count), {:.1} idle (a quarter counts)",
        score.renter_hours_max, score.idle_hours
    )
}

/// The evidence, the latest first.
pub(super) fn reasons(proof: &Proof) -> Vec<(String, String)> {
    let evidence = &proof.evidence;
    let mut reasons = Vec::new();
    let faults = evidence.counted();
    let faults = faults
        .iter()
        .rev()
        .map(|counted| fault(counted, proof.as_of));
    section(&mut reasons, "faults", faults, "none");
    let mut outcomes: Vec<&Outcome> = evidence.outcomes.values().collect();
    outcomes.sort_by_key(|outcome| std::cmp::Reverse((outcome.asked_at, outcome.lease)));
    let more = outcomes.len().saturating_sub(SHOWN_MAX);
    let shown = outcomes.into_iter().take(SHOWN_MAX).map(lease);
    let rest = (more > 0).then(|| format!("and {more} more: --json or --save has all"));
    section(&mut reasons, "leases", shown.chain(rest), "none");
    let away = evidence.excluded.iter().rev().map(stretch);
    section(&mut reasons, "broker away", away, "never");
    let carried = &evidence.carried;
    if carried.until > Timestamp(0) {
        let left = format!(
            "before {}: {} starts in time, {} not, {} renters, {:.2} faults",
            clock_time(carried.until),
            carried.starts,
            carried.starts_failed,
            carried.leased.len(),
            faults_of(carried.faults_ppm),
        );
        section(&mut reasons, "older", [left], "nothing");
    }
    reasons
}

fn section(
    reasons: &mut Vec<(String, String)>,
    label: &str,
    values: impl IntoIterator<Item = String>,
    none: &str,
) {
    let before = reasons.len();
    for value in values {
        // What belongs to one label stands under it.
        let label = if reasons.len() == before { label } else { "" };
        reasons.push((label.to_owned(), value));
    }
    if reasons.len() == before {
        reasons.push((label.to_owned(), none.to_owned()));
    }
}

fn fault(counted: &Counted, as_of: Timestamp) -> String {
    let weight = counted.weight.faults();
    let seen = if counted.seen > 1 {
        format!(", seen by {} leases", counted.seen)
    } else {
        String::new()
    };
    let counts = if counted.is_excluded {
        "counts nothing: the broker was away".to_owned()
    } else if weight > 0.0 {
        let now = weight * decay(counted.incident.at, as_of);
        format!("counted {weight}, and {now:.2} by now")
    } else {
        "counts nothing".to_owned()
    };
    let at = clock_time(counted.incident.at);
    format!("{at}  {}{seen}; {counts}", counted.incident.fault.words())
}

fn lease(outcome: &Outcome) -> String {
    let ran: u64 = outcome
        .runs
        .iter()
        .map(|run| run.to.since(run.from).0)
        .sum();
    let ran = Seconds(ran / 1000);
    let how = match (outcome.start, outcome.ended) {
        (Start::Failed(party), _) => format!("did not start: {}", blamed(party)),
        (Start::Pending, _) => "starts".to_owned(),
        (Start::Ran(_), None) => format!("ran {ran} so far"),
        (Start::Ran(_), Some((_, party))) => format!("ran {ran}; ended: {}", blamed(party)),
    };
    format!(
        "{}  {}  {how}",
        clock_time(outcome.asked_at),
        outcome.lease.short()
    )
}

fn stretch(interval: &Interval) -> String {
    let length = interval.to.since(interval.from).seconds();
    format!("{} for {length}", clock_time(interval.from))
}

/// To whom something is put down.
const fn blamed(party: Party) -> &'static str {
    match party {
        Party::Renter => "by its renter",
        Party::Host => "the host's doing",
        Party::Broker => "the broker's doing",
        Party::Market => "nobody's doing",
    }
}

/// Rounded down, so that 100 % is said of nothing that is less.
fn percent(part: f64) -> String {
    format!("{:.2} %", (part * 10_000.0).floor() / 100.0)
}

fn faults_of(millionths: u64) -> f64 {
    std::time::Duration::from_micros(millionths).as_secs_f64()
}

/// All about a host, for programs.
pub(super) fn json(host: HostId, proofs: &[Proof]) -> Value {
    json!({
        "schema": "feira.host/1",
        "host": host.to_string(),
        "brokers": proofs.iter().map(of_broker).collect::<Vec<_>>(),
    })
}

fn of_broker(proof: &Proof) -> Value {
    let (score, evidence) = (&proof.score, &proof.evidence);
    let interval = |interval: &Interval| json!([rfc3339(interval.from), rfc3339(interval.to)]);
    json!({
        "broker": proof.broker.to_string(),
        "as_of": rfc3339(proof.as_of),
        "heard_at": proof.heard_at.map(rfc3339),
        "score": f64::from(score.ppm) / 1e6,
        "score_millionths": score.ppm,
        "start_probability": score.start_probability,
        "starts": score.starts,
        "starts_failed": score.starts_failed,
        "survives_1h": score.survives_1h,
        "survives_24h": score.survives_24h,
        "survives_168h": score.survives_168h,
        "faults_decayed": score.faults,
        "exposure_hours": score.exposure_hours,
        "leased_hours": score.leased_hours,
        "idle_hours": score.idle_hours,
        "renter_hours_max": score.renter_hours_max,
        "renters": score.renters,
        "hazard_per_hour": score.hazard_per_hour,
        "faults": evidence.counted().iter().map(|counted| json!({
            "at": rfc3339(counted.incident.at),
            "fault": counted.incident.fault.words(),
            "weight": counted.weight.faults(),
            "seen": counted.seen,
            "excluded": counted.is_excluded,
        })).collect::<Vec<_>>(),
        "leases": evidence.outcomes.values().map(of_outcome).collect::<Vec<_>>(),
        "heard": evidence.heard.iter().map(interval).collect::<Vec<_>>(),
        "broker_away": evidence.excluded.iter().map(interval).collect::<Vec<_>>(),
    })
}

fn of_outcome(outcome: &Outcome) -> Value {
    let (started_at, not_started) = match outcome.start {
        Start::Pending => (None, None),
        Start::Ran(at) => (Some(rfc3339(at)), None),
        Start::Failed(party) => (None, Some(blamed(party))),
    };
    json!({
        "lease": outcome.lease.to_string(),
        "part": outcome.part,
        "asked_at": rfc3339(outcome.asked_at),
        "started_at": started_at,
        "not_started": not_started,
        "runs": outcome.runs.iter().map(|run| json!([rfc3339(run.from), rfc3339(run.to)])).collect::<Vec<_>>(),
        "paid_usd": outcome.paid.decimal(),
        "ended_at": outcome.ended.map(|(at, _)| rfc3339(at)),
        "ended_by": outcome.ended.map(|(_, party)| blamed(party)),
        "order": outcome.order.to_string(),
        "grant": outcome.grant.map(|digest| digest.to_string()),
        "report": outcome.report.map(|digest| digest.to_string()),
    })
}
