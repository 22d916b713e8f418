//! The same market in SQLite, with the two covering indexes that were the best set found: what a broker would take
//! that builds no index of its own.
//!
//! It answers with the first 20 and counts nothing. Must not use the index.

use broker::core::book::index::{Query, Subject};
use rusqlite::Connection;
use rusqlite::types::Value;

use super::workload::{
    COLUMNS, CORES, COUNT, COUNTRY, CUDA, DATACENTER, DAYS, DISK, DOWN, MODEL, Offered, PRICE, RAM,
    RELIABILITY, UP, VERIFIED, VRAM,
};
use crate::Outcome;

/// The columns that demands filter by, beside model, count and price.
const FILTERED: [usize; 12] = [
    VRAM,
    CORES,
    RAM,
    DISK,
    UP,
    DOWN,
    RELIABILITY,
    CUDA,
    DAYS,
    COUNTRY,
    VERIFIED,
    DATACENTER,
];

/// A table of offers in memory.
pub(crate) struct Database {
    connection: Connection,
}

impl Database {
    /// A table of `offers`, with its indexes.
    pub(crate) fn new(offers: &[Offered]) -> Outcome<Self> {
        let mut connection = Connection::open_in_memory()?;
        let columns: Vec<String> = (0..COLUMNS)
            .map(|column| format!("c{column} INTEGER"))
            .collect();
        let table = format!(
            "CREATE TABLE offers(id INTEGER PRIMARY KEY, {})",
            columns.join(", ")
        );
        connection.execute_batch(&table)?;
        let write = connection.transaction()?;
        {
            let places = vec!["?"; COLUMNS + 1].join(", ");
            let mut insert = write.prepare(&format!("INSERT INTO offers VALUES({places})"))?;
            for (id, offer) in offers.iter().enumerate() {
                let id = std::iter::once(i64::try_from(id)?);
                insert.execute(rusqlite::params_from_iter(id.chain(*offer)))?;
            }
        }
        write.commit()?;
        let filtered = FILTERED.map(|column| format!("c{column}")).join(", ");
        connection.execute_batch(&format!(
            "CREATE INDEX v1 ON offers(c{COUNT}, c{MODEL}, c{PRICE}, id, {filtered});
             CREATE INDEX v2 ON offers(c{COUNT}, c{PRICE}, id, {filtered});
             ANALYZE;"
        ))?;
        connection.set_prepared_statement_cache_capacity(256);
        Ok(Self { connection })
    }

    /// The first matches by price and id.
    pub(crate) fn search(&self, query: &Query) -> Outcome<Vec<usize>> {
        let (condition, values) = condition(query);
        let mut select = self.connection.prepare_cached(&format!(
            "SELECT id FROM offers WHERE {condition} ORDER BY c{PRICE}, id LIMIT {}",
            query.wanted
        ))?;
        let found = select.query_map(rusqlite::params_from_iter(values), |row| row.get(0))?;
        let found: Result<Vec<i64>, _> = found.collect();
        found?
            .into_iter()
            .map(|id| Ok(usize::try_from(id)?))
            .collect()
    }

    /// Changes the prices of these offers, in one transaction that is then undone.
    pub(crate) fn reprice(&mut self, prices: &[(usize, i64)]) -> Outcome<()> {
        let write = self.connection.transaction()?;
        {
            let update = format!("UPDATE offers SET c{PRICE} = ? WHERE id = ?");
            let mut update = write.prepare_cached(&update)?;
            for (id, price) in prices {
                update.execute((*price, i64::try_from(*id)?))?;
            }
        }
        Ok(write.rollback()?)
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> Outcome<usize> {
        let pragma = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row.get(0))
        };
        let (pages, page): (i64, i64) = (pragma("page_count")?, pragma("page_size")?);
        Ok(usize::try_from(pages * page)?)
    }
}

/// The conditions of a query in SQL, with their values.
fn condition(query: &Query) -> (String, Vec<Value>) {
    let mut conditions = vec!["1".to_owned()];
    let mut values = Vec::new();
    for test in &query.tests {
        let column = match test.subject {
            Subject::Column(column) => column,
            Subject::Total => PRICE,
            Subject::Outside => continue,
        };
        let is_list = test.ranges.iter().all(|(low, high)| low == high);
        match &*test.ranges {
            ranges if is_list => {
                let places = vec!["?"; ranges.len()].join(", ");
                conditions.push(format!("c{column} IN ({places})"));
                values.extend(ranges.iter().map(|(value, _)| Value::Integer(*value)));
            }
            [(low, i64::MAX)] => {
                conditions.push(format!("c{column} >= ?"));
                values.push(Value::Integer(*low));
            }
            ranges => {
                let high = ranges.last().map_or(i64::MAX, |(_, high)| *high);
                conditions.push(format!("c{column} <= ?"));
                values.push(Value::Integer(high));
            }
        }
    }
    (conditions.join(" AND "), values)
}
