//! What the facts of a portion are in the columns of the index, and what the terms of a filter are there.
//!
//! Every field that a filter knows has a column, beginnings of ids aside. Numbers, versions, flags and words of a
//! fixed list are numbers as they are; names are numbered as they come ([`Names`]), and a term about them is put to
//! each name once, not to each row. Must not keep any row.

use super::index::{Layout, Order, Query, Range, Subject, Test, UNKNOWN};
use super::names::Names;
use protocol::filter::{
    Comparison, Direction, Fact, Facts, Field, Filter, Kind, SortKey, Term, Test as Condition,
    Value, fields,
};
use protocol::terms::Need;

/// The columns of prices of what an hour may cost beside the GPUs: see `extra` of the book.
pub(super) const EXTRAS: [Field; 3] = [Field::StorageCost, Field::UploadCost, Field::DownloadCost];

const EXTRA_COLUMNS: [usize; 3] = [column(EXTRAS[0]), column(EXTRAS[1]), column(EXTRAS[2])];

/// Numbers at which a part of a version counts as too large for its place: a term about one is put to each row.
const PARTS_END: [u32; 4] = [0x7fff, 0xffff, 0xffff, 0xffff];

/// The column that says whether somebody would have to go for the row: 1 if so, 0 if it is free.
pub(super) fn pushes_out() -> usize {
    fields().len()
}

/// The column that says whether the row is a slice: 1 if so, 0 if it is whole.
pub(super) fn is_slice() -> usize {
    fields().len() + 1
}

/// The columns of the book.
pub(super) fn layout() -> Layout {
    Layout {
        columns: fields().len() + 2,
        model: column(Field::GpuName),
        count: column(Field::NumGpus),
        price: column(Field::DphBase),
        extras: &EXTRA_COLUMNS,
    }
}

/// The column of a field.
pub(super) const fn column(field: Field) -> usize {
    field as usize
}

/// What a portion has, by column; its names are numbered anew where they are new.
pub(super) fn values(facts: &Facts, pushes_out: bool, names: &mut Names) -> Vec<i64> {
    let value = |field: Field| match field.info().kind {
        Kind::Words | Kind::Model | Kind::Profile => names.number(field, facts),
        Kind::Number(_)
        | Kind::Flag
        | Kind::Version
        | Kind::Capability
        | Kind::Choice(_)
        | Kind::Id(_) => plain_value(facts, field),
    };
    let mut values: Vec<i64> = fields().iter().map(|info| info.field).map(value).collect();
    // It depends on what is asked; the index works it out.
    if let Some(total) = values.get_mut(column(Field::DphTotal)) {
        *total = UNKNOWN;
    }
    values.push(pushes_out.into());
    values.push(facts.is_slice().into());
    values
}

/// What a portion has in a field that is no name.
pub(super) fn plain_value(facts: &Facts, field: Field) -> i64 {
    match facts.fact(field, Need::default()) {
        Fact::Number(number) => number.clamp(UNKNOWN + 1, i64::MAX - 1),
        Fact::Version(version) => packed(version),
        Fact::Flag(flag) => flag.into(),
        Fact::Choice(word) => place_of(field, word).unwrap_or(UNKNOWN),
        Fact::Words(_) | Fact::Model(_) | Fact::Id(_) | Fact::Unknown => UNKNOWN,
    }
}

/// What rows of the same price are ordered by: reliability, then age.
pub(super) fn tie(facts: &Facts) -> u64 {
    const AGE_BITS: u32 = 44;
    let (_, reliability, listed_at, _, _) = facts.rank(Need::default());
    let unreliable = u64::from(1_000_000_u32.saturating_sub(reliability.0));
    unreliable << AGE_BITS | listed_at.0.min((1 << AGE_BITS) - 1)
}

/// A query for a filter, over all rows that are shown.
pub(super) fn query(filter: &Filter, need: Need, names: &Names) -> Query {
    Query {
        scope: Vec::new(),
        sees_all: false,
        tests: filter
            .terms
            .iter()
            .map(|term| test(term, need, names))
            .collect(),
        order: Order::Outside,
        wanted: usize::MAX,
    }
}

/// That a field is known.
pub(super) fn is_known(field: Field) -> Test {
    Test {
        subject: Subject::Column(column(field)),
        ranges: vec![(UNKNOWN + 1, i64::MAX)],
    }
}

/// That a column has a value.
pub(super) fn is(column: usize, value: i64) -> Test {
    Test {
        subject: Subject::Column(column),
        ranges: vec![(value, value)],
    }
}

/// The order of an answer, where the index can keep it without asking about each row.
pub(super) fn order(sort: &[SortKey]) -> Order {
    let [key] = sort else {
        return if sort.is_empty() {
            Order::Total
        } else {
            Order::Outside
        };
    };
    let is_descending = key.direction == Direction::Descending;
    if key.field == Field::DphTotal {
        return if is_descending {
            Order::Outside
        } else {
            Order::Total
        };
    }
    match key.field.info().kind {
        Kind::Number(_) | Kind::Flag => Order::Column {
            column: column(key.field),
            is_descending,
        },
        Kind::Version
        | Kind::Capability
        | Kind::Choice(_)
        | Kind::Model
        | Kind::Words
        | Kind::Profile
        | Kind::Id(_) => Order::Outside,
    }
}

fn test(term: &Term, need: Need, names: &Names) -> Test {
    let field = term.field();
    let ranges = match field.info().kind {
        Kind::Model | Kind::Words | Kind::Profile => Some(points(names.meant_by(term, need))),
        Kind::Number(_) | Kind::Flag | Kind::Version | Kind::Capability | Kind::Choice(_) => {
            ranges(term)
        }
        Kind::Id(_) => None,
    };
    let subject = match ranges {
        None => Subject::Outside,
        Some(_) if field == Field::DphTotal => Subject::Total,
        Some(_) => Subject::Column(column(field)),
    };
    Test {
        subject,
        ranges: ranges.unwrap_or_default(),
    }
}

/// The values that meet a term about a field that is no name; nothing where the column cannot tell.
pub(super) fn ranges(term: &Term) -> Option<Vec<Range>> {
    let number = |value: &Value| number(term.field(), value);
    let (comparison, values) = match term.test() {
        Condition::Compare(comparison, value) => (*comparison, vec![number(value)?]),
        Condition::In(values) => {
            let values: Option<Vec<i64>> = values.iter().map(number).collect();
            (Comparison::Equal, values?)
        }
        Condition::NotIn(values) => {
            let values: Option<Vec<i64>> = values.iter().map(number).collect();
            (Comparison::NotEqual, values?)
        }
    };
    let value = values.first().copied()?;
    Some(match comparison {
        Comparison::Less => vec![(UNKNOWN + 1, value - 1)],
        Comparison::AtMost => vec![(UNKNOWN + 1, value)],
        Comparison::AtLeast => vec![(value, i64::MAX)],
        Comparison::More => vec![(value + 1, i64::MAX)],
        Comparison::Equal => points(values),
        Comparison::NotEqual => around(&points(values)),
    })
}

/// These values, as ranges: those in a row as one.
fn points(mut values: Vec<i64>) -> Vec<Range> {
    values.sort_unstable();
    values.dedup();
    let mut ranges: Vec<Range> = Vec::new();
    for value in values {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == value => *last = value,
            _ => ranges.push((value, value)),
        }
    }
    ranges
}

/// All that is known and in none of these ranges.
fn around(ranges: &[Range]) -> Vec<Range> {
    let mut around = Vec::new();
    let mut next = UNKNOWN + 1;
    for (first, last) in ranges {
        if next < *first {
            around.push((next, first - 1));
        }
        next = last + 1;
    }
    around.push((next, i64::MAX));
    around
}

/// A value as its column has it; nothing where the column has it together with others.
fn number(field: Field, value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Flag(flag) => Some((*flag).into()),
        Value::Version(version) => {
            let mut parts = version.iter().zip(PARTS_END);
            parts
                .all(|(part, end)| *part < end)
                .then(|| packed(*version))
        }
        Value::Text(word) => place_of(field, word),
    }
}

/// A version as one number, in the same order; parts that are too large count as the largest that is not.
fn packed(version: [u32; 4]) -> i64 {
    let parts = version.into_iter().zip(PARTS_END);
    parts.fold(0, |packed, (part, end)| {
        packed << 16 | i64::from(part.min(end))
    })
}

fn place_of(field: Field, word: &str) -> Option<i64> {
    match field.info().kind {
        Kind::Choice(words) => {
            let place = words.iter().position(|known| *known == word)?;
            i64::try_from(place).ok()
        }
        Kind::Number(_)
        | Kind::Flag
        | Kind::Version
        | Kind::Capability
        | Kind::Model
        | Kind::Words
        | Kind::Profile
        | Kind::Id(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wanted: &[Range]) {
        let filter = text.parse::<Filter>().unwrap();
        assert_eq!(ranges(&filter.terms[0]).as_deref(), Some(wanted), "{text}");
    }

    #[test]
    fn terms_become_ranges_of_known_values() {
        const FIRST: i64 = UNKNOWN + 1;
        check("num_gpus>=2", &[(2, i64::MAX)]);
        check("num_gpus>2", &[(3, i64::MAX)]);
        check("num_gpus<2", &[(FIRST, 1)]);
        check("num_gpus<=2", &[(FIRST, 2)]);
        check("num_gpus=2", &[(2, 2)]);
        check("num_gpus!=2", &[(FIRST, 1), (3, i64::MAX)]);
        check("num_gpus in [8,1,2,4]", &[(1, 2), (4, 4), (8, 8)]);
        check("num_gpus notin [4,5]", &[(FIRST, 3), (6, i64::MAX)]);
        check("has_avx=true", &[(1, 1)]);
        check("gpu_arch=amd", &[(1, 1)]);
        check("compute_cap>=8.9", &[(8 << 48 | 9 << 32, i64::MAX)]);
    }

    #[test]
    fn a_version_too_large_for_its_column_is_left_to_each_row() {
        let filter = "kernel>=6.99999".parse::<Filter>().unwrap();
        assert_eq!(ranges(&filter.terms[0]), None);
        assert!(packed([6, 99_999, 0, 0]) > packed([6, 65_534, 9, 9]));
        assert!(packed([6, 99_999, 0, 0]) < packed([7, 0, 0, 0]));
    }
}
