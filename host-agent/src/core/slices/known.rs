//! What is in the journal of the instances that this host made: written before one is made and when it is, so that
//! after a crash or a reboot it is known which are this host's own. An instance that is not in it is foreign, and is
//! left alone.

use super::{Divisibles, Standing};
use protocol::bounded::Text;
use protocol::offer::{ResourceName, parent};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An instance of this host's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Made {
    /// The driver is being told to make it.
    Begun,
    /// It was made.
    Done {
        /// `MIG-…`.
        device: Text<64>,
    },
}

/// The instances of this host's own, by the slices that they are.
pub type Known = BTreeMap<ResourceName, Made>;

/// What changes in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownChange {
    /// It is this now.
    Set(ResourceName, Made),
    /// It is not there any more.
    Gone(ResourceName),
}

/// What the sight of the GPUs changes: an instance that was begun is done when it stands there, one that does not
/// stand there is gone (instances do not survive a reboot), and one with another device is not this host's own. `busy`
/// are GPUs on which something is being done, of which nothing is said.
#[must_use]
pub fn adopted(
    known: &Known,
    divisibles: &Divisibles,
    is_busy: impl Fn(&str) -> bool,
) -> Vec<KnownChange> {
    let of_one = |(resource, made): (&ResourceName, &Made)| {
        let gpu = divisibles
            .get(parent(resource))
            .filter(|it| !is_busy(&it.gpu))?;
        match (made, gpu.instance(resource)) {
            (_, None) => Some(KnownChange::Gone(resource.clone())),
            (Made::Begun, Some(Standing { device, .. })) => {
                let device = device.clone()?;
                Some(KnownChange::Set(resource.clone(), Made::Done { device }))
            }
            (Made::Done { device }, Some(standing)) => (standing.device.as_ref() != Some(device))
                .then(|| KnownChange::Gone(resource.clone())),
        }
    };
    known.iter().filter_map(of_one).collect()
}

/// Makes changes true.
pub fn apply(known: &mut Known, changes: &[KnownChange]) {
    for change in changes {
        match change {
            KnownChange::Set(resource, made) => {
                known.insert(resource.clone(), made.clone());
            }
            KnownChange::Gone(resource) => {
                known.remove(resource);
            }
        }
    }
}

/// The instances that stand on this host's GPUs and are not its own.
#[must_use]
pub fn foreign(known: &Known, divisibles: &Divisibles) -> Vec<ResourceName> {
    // Parts of a GPU that is divided into equal ones are nobody's: they are all there, or none is.
    let made = divisibles.values().filter(|gpu| gpu.uniform.is_none());
    let all = made.flat_map(|gpu| {
        gpu.standing
            .iter()
            // One of a profile that the chip does not have keeps the whole GPU out.
            .map(|standing| gpu.name_of(standing).unwrap_or_else(|| gpu.gpu.clone()))
    });
    all.filter(|name| !known.contains_key(name)).collect()
}
