//! Writes events down as lines, applies them a second time, and looks at what must be true of each.

use super::city::{Broken, START};
use super::lines::{self, Line, Names};
use crate::core::event::{Event, Fact};
use crate::core::ledger;
use crate::core::market::Market;
use std::io::Write;

/// Writes events down, applies them a second time, and looks at what must be true of each.
pub(super) struct Recorder<'a> {
    shadow: &'a mut Market,
    names: &'a Names,
    entries: &'a mut u64,
    out: &'a mut dyn Write,
}

impl<'a> Recorder<'a> {
    pub(super) fn of(
        shadow: &'a mut Market,
        names: &'a Names,
        entries: &'a mut u64,
        out: &'a mut dyn Write,
    ) -> Self {
        Self {
            shadow,
            names,
            entries,
            out,
        }
    }

    pub(super) fn event(&mut self, event: &Event) -> Result<(), Broken> {
        let at_s = event.at.since(START).0 / 1000;
        let broken = |what: String| Broken::Invariant { at_s, what };
        let sum = ledger::sum(&event.entries);
        if sum != 0 {
            return Err(broken(format!("the entries of one event sum to {sum}")));
        }
        for line in lines::of(event, self.shadow, self.names, START) {
            write_line(self.out, &line)?;
        }
        *self.entries += u64::try_from(event.entries.len()).unwrap_or(0);
        self.shadow.apply(event.clone());
        let is_payer = |fact: &Fact| !matches!(fact, Fact::Deposited { .. });
        for entry in event.entries.iter().filter(|_| is_payer(&event.fact)) {
            let balance = self.shadow.ledger().balance(&entry.account);
            let may_owe = matches!(entry.account, ledger::Account::BrokerGoodwill);
            if balance.0 < 0 && !may_owe {
                let kind = entry.account.kind();
                return Err(broken(format!("an account of kind {kind} is at {balance}")));
            }
        }
        Ok(())
    }
}

pub(super) fn write_line(out: &mut dyn Write, line: &Line) -> Result<(), Broken> {
    let text = serde_json::to_string(line).map_err(std::io::Error::from)?;
    writeln!(out, "{text}")?;
    Ok(())
}
