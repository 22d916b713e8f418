//! The MIG profiles of each model, from the project's table of what hardware printed.

use serde::Deserialize;
use std::sync::OnceLock;

/// A model that can be divided.
#[derive(Debug, Deserialize)]
pub(crate) struct Table {
    id: String,
    /// Compute slices in all.
    pub(crate) compute_slices: u32,
    /// What it can be cut into.
    #[serde(default, rename = "profile")]
    pub(crate) profiles: Vec<Row>,
}

/// One profile.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    /// Like `3g.40gb`.
    pub(crate) name: String,
    /// The number that instances are created by.
    pub(crate) profile_id: u32,
    /// `NVML_GPU_INSTANCE_PROFILE_…`
    nvml: String,
    /// Compute slices.
    pub(crate) compute_slices: u32,
    /// Memory slices: what a placement covers.
    pub(crate) mem_slices: u32,
    /// Memory.
    pub(crate) memory_mib: u64,
    /// How many at most.
    pub(crate) max_instances: u32,
    /// First memory slices that it may have.
    pub(crate) placements: Vec<u32>,
    /// Multiprocessors.
    pub(crate) sm: u32,
}

#[derive(Debug, Deserialize)]
struct File {
    gpu: Vec<Table>,
}

/// Names of the library's numbers of profiles, from 0.
const NUMBERS: [&str; 17] = [
    "1_SLICE",
    "2_SLICE",
    "3_SLICE",
    "4_SLICE",
    "7_SLICE",
    "8_SLICE",
    "6_SLICE",
    "1_SLICE_REV1",
    "2_SLICE_REV1",
    "1_SLICE_REV2",
    "1_SLICE_GFX",
    "2_SLICE_GFX",
    "4_SLICE_GFX",
    "1_SLICE_NO_ME",
    "2_SLICE_NO_ME",
    "1_SLICE_ALL_ME",
    "2_SLICE_ALL_ME",
];

impl Table {
    /// The table of that name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
        let tables = TABLES.get_or_init(|| {
            let text = include_str!("../../../protocol/mig/data/mig_profiles.toml");
            // A table that cannot be read leaves nothing to be divided, and every test of it fails.
            toml::from_str::<File>(text).map_or_else(|_| Vec::new(), |file| file.gpu)
        });
        tables.iter().find(|table| table.id == name)
    }

    /// The profile that the library knows under that number.
    pub(crate) fn numbered(&self, number: u32) -> Option<&Row> {
        let name = NUMBERS.get(usize::try_from(number).ok()?)?;
        self.profiles.iter().find(|row| row.nvml == *name)
    }

    /// The profile that instances are created by.
    pub(crate) fn by_id(&self, id: u32) -> Option<&Row> {
        self.profiles.iter().find(|row| row.profile_id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_those_of_the_hardware() {
        let table = Table::named("H100-80").unwrap();
        let row = table.numbered(2).unwrap();
        assert_eq!(
            (row.name.as_str(), row.profile_id, row.mem_slices),
            ("3g.40gb", 9, 4)
        );
        assert_eq!(row.placements, [0, 4]);
        assert_eq!(table.by_id(19).unwrap().max_instances, 7);
        assert!(table.numbered(5).is_none());
        assert!(Table::named("RTX-4090").is_none());
    }
}
