//! Who waits for which lease to change. One task owns the list; it wakes, it does not answer.

use crate::market::Notice;
use protocol::ids::LeaseId;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot};

/// Registrations on their way to the task.
const QUEUE: usize = 256;
/// How often the places of those who waited in vain are taken back.
const SWEEP: Duration = Duration::from_secs(10);

/// Where to register.
#[derive(Debug, Clone)]
pub(crate) struct Watches {
    registrations: mpsc::Sender<Registration>,
}

/// Resolves at the next change of a lease; also when the broker stops.
pub(crate) type Change = oneshot::Receiver<()>;

#[derive(Debug)]
struct Registration {
    lease: LeaseId,
    registered: oneshot::Sender<Change>,
}

/// The task that owns the list.
#[derive(Debug)]
pub(crate) struct WatchList {
    registrations: mpsc::Receiver<Registration>,
    notices: broadcast::Receiver<Notice>,
    waiting: BTreeMap<LeaseId, Vec<oneshot::Sender<()>>>,
}

impl Watches {
    /// Registers for the next change of `lease`. Every change after this returned is noticed; nothing when
    /// the broker stops.
    pub(crate) async fn register(&self, lease: LeaseId) -> Option<Change> {
        let (registered, answer) = oneshot::channel();
        self.registrations
            .send(Registration { lease, registered })
            .await
            .ok()?;
        answer.await.ok()
    }
}

impl WatchList {
    pub(crate) fn new(notices: broadcast::Receiver<Notice>) -> (Watches, Self) {
        let (sender, registrations) = mpsc::channel(QUEUE);
        let list = Self {
            registrations,
            notices,
            waiting: BTreeMap::new(),
        };
        (
            Watches {
                registrations: sender,
            },
            list,
        )
    }

    /// Wakes whoever waits until nobody can register any more.
    pub(crate) async fn run(mut self) {
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                notice = self.notices.recv() => match notice {
                    Ok(Notice::Lease { lease, .. }) => self.wake(lease),
                    Ok(Notice::Goal { .. }) => {}
                    // Some changes went by unseen: everybody looks for themselves.
                    Err(broadcast::error::RecvError::Lagged(_)) => self.waiting.clear(),
                    Err(broadcast::error::RecvError::Closed) => return,
                },
                registration = self.registrations.recv() => match registration {
                    Some(registration) => self.register(registration),
                    None => return,
                },
                _ = sweep.tick() => self.sweep(),
            }
        }
    }

    fn register(&mut self, Registration { lease, registered }: Registration) {
        let (wake, change) = oneshot::channel();
        if registered.send(change).is_ok() {
            self.waiting.entry(lease).or_default().push(wake);
        }
    }

    fn wake(&mut self, lease: LeaseId) {
        // Dropping a sender wakes its receiver.
        self.waiting.remove(&lease);
    }

    fn sweep(&mut self) {
        self.waiting.retain(|_, waiting| {
            waiting.retain(|wake| !wake.is_closed());
            !waiting.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::ids::{HostId, RenterId};

    fn changed(lease: LeaseId) -> Notice {
        let (renter, host) = (
            RenterId::from_bytes([1; 32]),
            Some(HostId::from_bytes([2; 32])),
        );
        Notice::Lease {
            lease,
            revision: 1,
            renter,
            host,
        }
    }

    #[tokio::test]
    async fn a_change_wakes_those_who_wait_for_that_lease_alone() {
        let (mine, other) = (LeaseId::from_bytes([1; 16]), LeaseId::from_bytes([2; 16]));
        let (notify, notices) = broadcast::channel(8);
        let (watches, list) = WatchList::new(notices);
        let task = tokio::spawn(list.run());
        let first = watches.register(mine).await.unwrap();
        let second = watches.register(mine).await.unwrap();
        let mut theirs = watches.register(other).await.unwrap();
        notify.send(changed(mine)).unwrap();
        let _ = first.await;
        let _ = second.await;
        assert!(
            theirs
                .try_recv()
                .is_err_and(|e| e == oneshot::error::TryRecvError::Empty)
        );
        drop(notify);
        let _ = theirs.await;
        task.await.unwrap();
        assert!(watches.register(mine).await.is_none());
    }
}
