//! Names of GPUs, CPUs and systems as numbers, so that they fit into a column.
//!
//! A name has its number while some row has it; then the number is another's. Must not know where rows are.

use protocol::filter::{Fact, Facts, Field, Filter, ModelName, Term};
use protocol::terms::Need;
use std::collections::BTreeMap;

/// What a row is called in one field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Model(ModelName),
    Words(String),
}

/// A name that some rows have.
#[derive(Debug)]
struct Named {
    number: i64,
    rows: usize,
    /// The facts of one of them: what a term about the name is put to.
    example: Facts,
}

/// The names of all rows, by field.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: BTreeMap<(Field, Name), Named>,
    /// Numbers that are nobody's, and the first that never was anybody's.
    free: Vec<i64>,
    next: i64,
}

/// The fields whose values are names.
const FIELDS: [Field; 8] = [
    Field::GpuName,
    Field::CpuName,
    Field::Os,
    Field::Runtime,
    Field::Partition,
    Field::Instructions,
    Field::Mainboard,
    Field::DiskName,
];

impl Names {
    /// The number of what a row is called in a field; [`Self::keep`] says that it is used.
    pub(super) fn number(&mut self, field: Field, facts: &Facts) -> i64 {
        let Self { known, free, next } = self;
        let named = known.entry((field, name(field, facts))).or_insert_with(|| {
            let number = free.pop().unwrap_or_else(|| {
                *next += 1;
                *next
            });
            Named {
                number,
                rows: 0,
                example: facts.clone(),
            }
        });
        named.number
    }

    /// One row more has the names of `facts`, which are numbered.
    pub(super) fn keep(&mut self, facts: &Facts) {
        for field in FIELDS {
            if let Some(named) = self.known.get_mut(&(field, name(field, facts))) {
                named.rows += 1;
            }
        }
    }

    /// One row less has the names of `facts`.
    pub(super) fn release(&mut self, facts: &Facts) {
        for field in FIELDS {
            let key = (field, name(field, facts));
            let Some(named) = self.known.get_mut(&key) else {
                continue;
            };
            named.rows = named.rows.saturating_sub(1);
            if named.rows == 0 {
                self.free.push(named.number);
                self.known.remove(&key);
            }
        }
    }

    /// The numbers of the names that meet a term about them.
    pub(super) fn meant_by(&self, term: &Term, need: Need) -> Vec<i64> {
        let Ok(filter) = Filter::of(vec![term.clone()]) else {
            return Vec::new();
        };
        let filter = filter.prepare(need);
        self.known
            .iter()
            .filter(|((field, _), named)| {
                // The example may be a slice, which no other term is about.
                *field == term.field() && !filter.failed(&named.example).has(0)
            })
            .map(|(_, named)| named.number)
            .collect()
    }
}

fn name(field: Field, facts: &Facts) -> Name {
    match facts.fact(field, Need::default()) {
        Fact::Words(words) => Name::Words(words.to_owned()),
        // What nobody said, which meets no term.
        Fact::Unknown => Name::Words(String::new()),
        Fact::Model(_)
        | Fact::Number(_)
        | Fact::Version(_)
        | Fact::Flag(_)
        | Fact::Choice(_)
        | Fact::Id(_) => Name::Model(facts.model().clone()),
    }
}
