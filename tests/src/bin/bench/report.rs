//! The rows of the bench: which there are, and how their results are shown.
//!
//! Must not measure anything itself.

use std::io::Write as _;

use serde::Serialize;

use crate::rounds::{Medians, ROUNDS};
use crate::{
    Outcome, book, gpu_hang, machine, memory, mig, orders, orders_mixed, proof, search, simulate,
    start,
};

/// One figure beside another one from the same run.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: String,
    ours: f64,
    unit: &'static str,
    baseline: f64,
    baseline_name: &'static str,
    /// Ours divided by the baseline.
    ratio: f64,
    /// In words; absent where the figure is only told.
    goal: Option<&'static str>,
    holds: Option<bool>,
    rounds: usize,
    /// What else is to be known, as the shares of a start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl Row {
    /// A row of medians in `unit`, with no goal yet.
    pub(crate) fn new(name: impl Into<String>, unit: &'static str, medians: Medians) -> Self {
        Self {
            name: name.into(),
            ours: medians.ours,
            unit,
            baseline: medians.baseline,
            baseline_name: "",
            ratio: medians.ours / medians.baseline,
            goal: None,
            holds: None,
            rounds: ROUNDS,
            notes: Vec::new(),
        }
    }

    /// What the baseline is.
    pub(crate) fn beside(mut self, baseline_name: &'static str) -> Self {
        self.baseline_name = baseline_name;
        self
    }

    /// What is to be reached, and whether it is.
    pub(crate) fn goal(mut self, goal: &'static str, holds: impl Fn(&Self) -> bool) -> Self {
        self.holds = Some(holds(&self));
        self.goal = Some(goal);
        self
    }

    /// Measured once: the figure does not vary from round to round.
    pub(crate) fn once(mut self) -> Self {
        self.rounds = 1;
        self
    }

    pub(crate) fn note(mut self, note: String) -> Self {
        self.notes.push(note);
        self
    }

    pub(crate) const fn ours(&self) -> f64 {
        self.ours
    }

    pub(crate) const fn ratio(&self) -> f64 {
        self.ratio
    }
}

/// A name that can be asked for, and what measures it.
type Measure = (&'static str, fn() -> Outcome<Vec<Row>>);

const MEASURES: [Measure; 20] = [
    ("start", start::measure),
    ("search_client", search::measure_client),
    ("search_broker", search::measure_broker),
    ("search_1m", book::measure_large),
    ("search_100k", book::measure_small),
    ("search_why", book::measure_why),
    ("book_memory", book::measure_memory),
    ("book_update", book::measure_update),
    ("match_bids", book::resting::measure),
    ("orders", orders::measure),
    ("orders_mixed", orders_mixed::measure),
    ("simulate", simulate::measure),
    ("mig_exact", mig::measure_exact),
    ("mig_pool", mig::measure_pool),
    ("mig_place", mig::measure_place),
    ("audit", proof::measure),
    ("version", memory::measure_version),
    ("memory", memory::measure_sizes),
    ("cpu_bench", machine::measure),
    ("gpu_hang", gpu_hang::measure),
];

/// Measures the named rows, or all of them, and prints them as they come or, as JSON, together.
pub(crate) fn run(names: &[String], json: bool) -> Outcome<()> {
    if let Some(unknown) = names
        .iter()
        .find(|name| MEASURES.iter().all(|(known, _)| known != *name))
    {
        let known: Vec<&str> = MEASURES.iter().map(|(known, _)| *known).collect();
        return Err(format!(
            "there is no row '{unknown}'; there are: {}",
            known.join(" ")
        )
        .into());
    }
    let mut out = std::io::stdout().lock();
    let mut rows = Vec::new();
    if !json {
        writeln!(out, "{}", heading())?;
    }
    for (name, measure) in MEASURES {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        let measured = measure().map_err(|error| format!("{name}: {error}"))?;
        if !json {
            for row in &measured {
                writeln!(out, "{}", line(row))?;
                for note in &row.notes {
                    writeln!(out, "    {note}")?;
                }
            }
        }
        rows.extend(measured);
    }
    if json {
        serde_json::to_writer_pretty(&mut out, &rows)?;
        writeln!(out)?;
    }
    Ok(())
}

fn heading() -> String {
    format!(
        "{:<24} {:>10} {:<9} {:>10}  {:>7}  {:<6} {:<44} BASELINE",
        "NAME", "OURS", "UNIT", "BASELINE", "RATIO", "HOLDS", "GOAL"
    )
}

fn line(row: &Row) -> String {
    let holds = match row.holds {
        Some(true) => "yes",
        Some(false) => "MISSED",
        None => "-",
    };
    format!(
        "{:<24} {:>10} {:<9} {:>10}  {:>7.3}  {:<6} {:<44} {}",
        row.name,
        short(row.ours),
        row.unit,
        short(row.baseline),
        row.ratio,
        holds,
        row.goal.unwrap_or("-"),
        row.baseline_name
    )
}

/// Three places for small figures, none for large ones.
fn short(value: f64) -> String {
    if value.abs() < 100.0 {
        format!("{value:.3}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_knows_its_ratio_and_whether_it_holds() {
        let medians = Medians {
            ours: 3.0,
            baseline: 2.0,
        };
        let row = Row::new("start", "ms", medians)
            .beside("docker run")
            .goal("ratio at most 1.4", |row| row.ratio() <= 1.4);
        assert!((row.ratio() - 1.5).abs() < f64::EPSILON);
        assert_eq!(row.holds, Some(false));
        assert!(line(&row).contains("MISSED"));
    }

    #[test]
    fn an_unknown_row_is_refused_by_name() {
        let refused = run(&["strat".to_owned()], true).unwrap_err().to_string();
        assert!(refused.contains("'strat'") && refused.contains("start"));
    }
}
