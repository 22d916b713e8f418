//! What programs did to the machine since it booted: kept in a file beside the scenario, one program at a
//! time, so that all of them see the same.

use crate::scenario::Scenario;
use crate::tables::{Row, Table};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Everything that changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    boot: u64,
    /// Starts of the library that came too early.
    pub(crate) early_starts: u32,
    /// By UUID.
    divided: BTreeMap<String, Divided>,
}

/// How a GPU is divided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Divided {
    /// Whether it is.
    pub(crate) current: bool,
    /// Whether it will be.
    pub(crate) pending: bool,
    /// Into what.
    pub(crate) instances: Vec<Slice>,
}

/// A GPU instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Slice {
    /// Its id.
    pub(crate) id: u32,
    /// Its profile's.
    pub(crate) profile: u32,
    /// Its first memory slice.
    pub(crate) start: u32,
    /// Its compute instances: id and profile.
    pub(crate) compute: Vec<(u32, u32)>,
}

impl State {
    fn fresh(scenario: &Scenario) -> Self {
        let divided = scenario.gpus.iter().map(|gpu| {
            let divided = Divided {
                current: gpu.mig_at_boot,
                pending: gpu.mig_at_boot,
                instances: Vec::new(),
            };
            (gpu.uuid.clone(), divided)
        });
        Self {
            boot: scenario.boot,
            early_starts: 0,
            divided: divided.collect(),
        }
    }

    /// How the GPU of that UUID is divided.
    pub(crate) fn of(&mut self, uuid: &str) -> &mut Divided {
        self.divided.entry(uuid.to_owned()).or_default()
    }
}

impl Divided {
    /// Makes an instance where nothing is, or says that there is no room.
    pub(crate) fn cut(&mut self, table: &Table, row: &Row, start: u32) -> Option<u32> {
        if !self.has_room(table, row, start) {
            return None;
        }
        let id = self.free_id(row.compute_slices)?;
        self.instances.push(Slice {
            id,
            profile: row.profile_id,
            start,
            compute: Vec::new(),
        });
        Some(id)
    }

    /// Whether an instance fits: its memory, its multiprocessors, and as many of its kind as there may be.
    pub(crate) fn has_room(&self, table: &Table, row: &Row, start: u32) -> bool {
        let rows = || {
            self.instances
                .iter()
                .filter_map(|slice| Some((slice, table.by_id(slice.profile)?)))
        };
        let free = rows().all(|(slice, other)| {
            slice.start + other.mem_slices <= start || start + row.mem_slices <= slice.start
        });
        let used: u32 = rows().map(|(_, other)| other.compute_slices).sum();
        let alike = rows()
            .filter(|(_, other)| other.profile_id == row.profile_id)
            .count();
        let alike = u32::try_from(alike).unwrap_or(u32::MAX);
        free && used + row.compute_slices <= table.compute_slices && alike < row.max_instances
    }

    /// Ids as the hardware gives them: large instances have the small ids.
    fn free_id(&self, compute_slices: u32) -> Option<u32> {
        let first = match compute_slices {
            7 => 0,
            3 | 4 => 1,
            2 => 3,
            _ => 7,
        };
        (first..15).find(|id| self.instances.iter().all(|slice| slice.id != *id))
    }
}

/// Reads the state of this boot, lets `change` look at it or change it, and keeps what it changed.
pub(crate) fn with<T>(
    path: &Path,
    scenario: &Scenario,
    change: impl FnOnce(&mut State) -> T,
) -> io::Result<T> {
    let file = state_file(path);
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(file.with_extension("lock"))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let kept = fs::read(&file)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<State>(&bytes).ok())
        .filter(|state| state.boot == scenario.boot);
    let before = kept.unwrap_or_else(|| State::fresh(scenario));
    let mut state = before.clone();
    let answer = change(&mut state);
    if state != before {
        fs::write(&file, serde_json::to_vec(&state)?)?;
    }
    Ok(answer)
}

fn state_file(scenario: &Path) -> PathBuf {
    scenario.with_extension("state")
}
