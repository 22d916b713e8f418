//! What the operator sees of the market: counts, hosts, accounts, all leases. Nothing here changes anything.
//!
//! Must not be reachable for anybody else.

use crate::core::desk::Desk;
use crate::core::payment::Note;
use protocol::bounded::Text;
use protocol::ids::{HostId, RenterId};
use protocol::lease::LeaseView;
use protocol::message::LeaseScope;
use protocol::units::{MicroUsd, Timestamp};
use protocol::usage::Balance;
use std::collections::{BTreeMap, BTreeSet};

/// What there is, for metrics and `status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Offers shown now.
    pub offers: u64,
    /// Hosts that announce themselves.
    pub hosts_heard: u64,
    /// Leases by phase, in one word.
    pub leases: BTreeMap<&'static str, u64>,
    /// Money by kind of account, as its holders see it.
    pub money: BTreeMap<&'static str, MicroUsd>,
    /// Renters who ever had money here.
    pub renters: u64,
    /// Statements in the replay window.
    pub remembered: u64,
    /// The number of the journal's last event.
    pub events: u64,
    /// When that happened.
    pub last_at: Timestamp,
}

/// A host, as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    /// Its key.
    pub host: HostId,
    /// Where it can be dialled directly.
    pub addresses: Vec<Text<256>>,
    /// How many offers it has here now.
    pub offers: u64,
    /// When it announced itself last.
    pub heard_at: Option<Timestamp>,
    /// Its leases that are not over.
    pub open_leases: u64,
    /// Why it may take no leases; nothing when it may.
    pub suspended: Option<Note>,
}

/// A renter's account, as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRow {
    /// Whose.
    pub renter: RenterId,
    /// Free to spend.
    pub available: MicroUsd,
    /// Held for open leases.
    pub held: MicroUsd,
    /// Spent in all so far.
    pub spent: MicroUsd,
}

impl Desk {
    /// All leases, newest first.
    #[must_use]
    pub fn all_leases(&self, now: Timestamp, scope: LeaseScope) -> Vec<LeaseView> {
        let view = |lease| self.view_of(now, lease);
        let mut leases: Vec<LeaseView> = match scope {
            LeaseScope::Open => self.market.live_leases().map(view).collect(),
            LeaseScope::All => self.market.leases().map(view).collect(),
        };
        let rests = self.market.rests().filter(|rest| match scope {
            LeaseScope::Open => rest.ended.is_none(),
            LeaseScope::All => true,
        });
        leases.extend(rests.map(|rest| self.rest_view(now, rest)));
        leases.sort_by_key(|lease| (std::cmp::Reverse(lease.ordered_at), lease.id));
        leases
    }

    /// What there is.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            offers: count(self.book.offer_count()),
            hosts_heard: count(self.book.host_count()),
            renters: count(self.market.renters().len()),
            remembered: count(self.market.seen.len()),
            events: self.market.events(),
            last_at: self.market.last_at(),
            ..Counts::default()
        };
        for lease in self.market.leases() {
            *counts.leases.entry(lease.state.word()).or_insert(0) += 1;
        }
        for rest in self.market.rests() {
            let phase = crate::core::rest::rest_phase(rest);
            *counts.leases.entry(phase.word()).or_insert(0) += 1;
        }
        for (account, _) in self.market.ledger().iter() {
            let held = counts.money.entry(account.kind()).or_insert(MicroUsd::ZERO);
            *held = held.saturating_add(self.market.ledger().balance(account));
        }
        counts
    }

    /// The hosts that are heard, and those that may take no leases.
    #[must_use]
    pub fn hosts(&self, now: Timestamp) -> Vec<HostRow> {
        let row = |host: HostId| HostRow {
            host,
            addresses: self.book.addresses(host).to_vec(),
            offers: count(self.book.host_offers(host, self.wall(now)).count()),
            heard_at: self.book.heard_at(host),
            open_leases: count(self.market.live_leases_of(host.into()).count()),
            suspended: self.market.suspended(host).cloned(),
        };
        let heard: BTreeSet<HostId> = self.book.hosts().collect();
        let suspended = self.market.suspended_hosts();
        heard
            .iter()
            .copied()
            .chain(suspended.filter(|host| !heard.contains(host)))
            .map(row)
            .collect()
    }

    /// The renters who ever had money here.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountRow> {
        let row = |renter: &RenterId| {
            let Balance {
                available,
                held,
                spent,
                ..
            } = self.balance(*renter);
            AccountRow {
                renter: *renter,
                available,
                held,
                spent,
            }
        };
        self.market.renters().iter().map(row).collect()
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
