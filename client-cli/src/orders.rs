//! Orders that were sent and whose outcome was not yet shown, each in a file of its own.
//!
//! The file is written before the order leaves and removed when its outcome was shown. Who finds one whose
//! writer is gone sends the same order again: the broker answers with the same lease, so a killed client that
//! is run again never rents twice.

use crate::failure::{Failure, file_failed};
use protocol::codec;
use protocol::ids::{BrokerId, Digest};
use protocol::order::Order;
use protocol::units::{Millis, Timestamp};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// An order this old is over or known: its file is removed.
const KEPT: Millis = Millis(24 * 3600 * 1000);

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// Digest of what was typed.
    typed: String,
    /// The broker it is sent to.
    broker: String,
    /// The order, hexadecimal.
    order: String,
    /// When it was placed, by this machine's clock.
    placed_at: u64,
}

/// An order whose outcome was not shown. Its file is locked while this lives.
#[derive(Debug)]
pub(crate) struct Pending {
    /// The order.
    pub order: Order,
    /// The broker it is sent to.
    pub broker: BrokerId,
    /// When it was placed.
    pub placed_at: Timestamp,
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

/// What was typed, as one digest: a run with the same one goes on with what the last left behind.
pub(crate) fn fingerprint(typed: &impl std::fmt::Debug) -> Digest {
    Digest::of(format!("{typed:?}").as_bytes())
}

impl Pending {
    /// Writes the order down, on disk when this returns.
    pub(crate) fn write(
        folder: &Path,
        typed: Digest,
        order: &Order,
        broker: BrokerId,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let record = Record {
            typed: typed.to_string(),
            broker: broker.to_string(),
            order: hexadecimal(&codec::encode(order)?),
            placed_at: now.0,
        };
        fs::create_dir_all(folder).map_err(|error| file_failed("create", folder, &error))?;
        let path = folder.join(format!("{}.json", order.id));
        let file = write_locked(&path, &record)
            .map_err(|error| file_failed("write the order to", &path, &error))?;
        Ok(Self {
            order: order.clone(),
            broker,
            placed_at: now,
            path,
            _file: file,
        })
    }

    /// The order that a run with the same words left behind, if its process is gone. Files of orders that are
    /// long over are removed on the way.
    pub(crate) fn left_behind(
        folder: &Path,
        typed: Digest,
        now: Timestamp,
    ) -> Result<Option<Self>, Failure> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file_failed("read", folder, &error)),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            // What cannot be read is another version's, or half-written before the order was ever sent.
            let Some((file, record)) = read_locked(&path) else {
                continue;
            };
            if now.since(Timestamp(record.placed_at)) > KEPT {
                let _ = fs::remove_file(&path);
            } else if record.typed == typed.to_string()
                && let Some((order, broker)) = contents(&record)
            {
                let placed_at = Timestamp(record.placed_at);
                return Ok(Some(Self {
                    order,
                    broker,
                    placed_at,
                    path,
                    _file: file,
                }));
            }
        }
        Ok(None)
    }

    /// The outcome was shown, or nothing was created.
    pub(crate) fn finish(self) {
        // A file that stays is found again and leads to the same lease.
        let _ = fs::remove_file(&self.path);
    }
}

fn write_locked(path: &Path, record: &Record) -> io::Result<File> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(serde_json::to_string(record)?.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

/// The record in a file that no living process holds.
fn read_locked(path: &Path) -> Option<(File, Record)> {
    let file = File::open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let record = serde_json::from_reader(&file).ok()?;
    Some((file, record))
}

fn contents(record: &Record) -> Option<(Order, BrokerId)> {
    let bytes = from_hexadecimal(&record.order)?;
    Some((codec::decode(&bytes).ok()?, record.broker.parse().ok()?))
}

/// Two digits a byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of two digits each.
pub(crate) fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::bounded::{List, Text};
    use protocol::ids::{OfferId, OrderId};
    use protocol::job::{Job, PinnedImage};
    use protocol::order::Target;
    use protocol::terms::Deal;
    use protocol::units::{Bytes, MicroUsd, PricePerHour};

    const NOW: Timestamp = Timestamp(1_796_047_364_000);
    const BROKER: BrokerId = BrokerId::from_bytes([5; 32]);

    fn order(byte: u8) -> Order {
        Order {
            id: OrderId::from_bytes([byte; 16]),
            target: Target::Offer {
                offer: OfferId::from_bytes([2; 16]),
                terms: Digest::of(b"terms"),
            },
            deal: Deal::OnDemand,
            gpus: 1,
            cpu_millicores: None,
            ram: None,
            name: Text::new("brave-otter").unwrap(),
            job: Job {
                image: PinnedImage {
                    name: Text::new("debian").unwrap(),
                    sha256: [4; 32],
                },
                entrypoint: None,
                command: None,
                environment: List::default(),
            },
            disk: Bytes::from_gb(10),
            price_max: PricePerHour(1),
            budget: MicroUsd(1),
            duration_max: None,
            access: List::default(),
        }
    }

    #[test]
    fn what_a_killed_run_left_is_found_by_the_same_words_only() {
        let folder = tempfile::tempdir().unwrap();
        let (same, other) = (fingerprint(&"same"), fingerprint(&"other"));
        let pending = Pending::write(folder.path(), same, &order(1), BROKER, NOW).unwrap();
        // Its process lives: nobody else may go on with it.
        assert!(
            Pending::left_behind(folder.path(), same, NOW)
                .unwrap()
                .is_none()
        );
        drop(pending);
        assert!(
            Pending::left_behind(folder.path(), other, NOW)
                .unwrap()
                .is_none()
        );
        let found = Pending::left_behind(folder.path(), same, NOW)
            .unwrap()
            .unwrap();
        assert_eq!(
            (found.order.clone(), found.broker, found.placed_at),
            (order(1), BROKER, NOW)
        );
        found.finish();
        assert!(
            Pending::left_behind(folder.path(), same, NOW)
                .unwrap()
                .is_none()
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_long_over_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let typed = fingerprint(&"same");
        drop(Pending::write(folder.path(), typed, &order(1), BROKER, NOW).unwrap());
        let later = NOW.after(Millis(KEPT.0 + 1));
        assert!(
            Pending::left_behind(folder.path(), typed, later)
                .unwrap()
                .is_none()
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_not_an_order_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x.json"), "{\"half\":").unwrap();
        assert!(
            Pending::left_behind(folder.path(), fingerprint(&1), NOW)
                .unwrap()
                .is_none()
        );
        let nowhere = folder.path().join("none");
        assert!(
            Pending::left_behind(&nowhere, fingerprint(&1), NOW)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn hexadecimal_there_and_back() {
        assert_eq!(hexadecimal(&[0, 171, 255]), "00abff");
        assert_eq!(from_hexadecimal("00abff"), Some(vec![0, 171, 255]));
        assert_eq!(from_hexadecimal("0"), None);
        assert_eq!(from_hexadecimal("+1"), None);
    }
}
