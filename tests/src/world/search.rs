//! Searches, and a plain model of what they must find: every portion of every live offer is looked at, one by one.

use super::broker::Broker;
use super::clock;
use broker::core::lease::{Lease, State};
use protocol::filter::{Filter, parse_sort};
use protocol::ids::{HostId, OfferId};
use protocol::message::{FOUND_MAX, Found, Search};
use protocol::offer::{Offer, ResourceName};
use protocol::terms::{ContractKind, Need};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::collections::{BTreeMap, BTreeSet};

/// A filter in words, and what it means.
type Asked = (&'static str, fn(&Offer, u16) -> bool);

const FILTERS: [Asked; 9] = [
    ("", |_, _| true),
    ("gpu=rtx4090", |_, _| true),
    ("gpu=H100", |_, _| false),
    ("num_gpus>=2", |_, gpus| gpus >= 2),
    ("num_gpus in [1,4]", |_, gpus| gpus == 1 || gpus == 4),
    ("dph_base<0.4", |offer, gpus| ask(offer, gpus) < 400_000),
    ("min_bid<=0.08", |offer, _| {
        offer.sales.floor.is_some_and(|floor| floor.0 <= 80_000)
    }),
    ("num_gpus<=2 dph_base>=0.5", |offer, gpus| {
        gpus <= 2 && ask(offer, gpus) >= 500_000
    }),
    ("discount_max>=0.5", |_, _| false),
];

/// Searches at a broker, and compares the answer with the model's.
pub(super) fn compared(broker: &mut Broker, now: u64, random: &mut StdRng) -> Result<(), String> {
    // Which of two announcements is the later one is not known to a clock that went back.
    if broker.has_jumped {
        return Ok(());
    }
    let (words, fits) = FILTERS.choose(random).copied().unwrap_or(FILTERS[0]);
    let kinds = [
        ContractKind::OnDemand,
        ContractKind::Bid,
        ContractKind::Reserved,
    ];
    let search = Search {
        filter: words
            .parse::<Filter>()
            .map_err(|error| format!("{words}: {error}"))?,
        sort: parse_sort("price").map_err(|error| error.to_string())?,
        need: Need::default(),
        kind: kinds.choose(random).copied().unwrap_or(kinds[0]),
        limit: *[0_u16, 3, 64].choose(random).unwrap_or(&64),
        job: None,
    };
    let Some(found) = broker.search(now, &search) else {
        return Ok(());
    };
    let live = portions(broker, now);
    let fitting: Vec<(&Offer, u16)> = live
        .iter()
        .copied()
        .filter(|(it, gpus)| fits(it, *gpus))
        .collect();
    let kind = search.kind;
    let wrong = |what: &str| Err(format!("search '{words}' {kind:?}: {what}: {found:?}"));
    if (found.of, found.matching) != (number(live.len()), number(fitting.len())) {
        return wrong(&format!("{} of {} match", fitting.len(), live.len()));
    }
    if fitting.is_empty() && !live.is_empty() && found.nearest.is_none() {
        return wrong("nothing matches, and the nearest is not shown");
    }
    let limit = usize::from(search.limit).min(FOUND_MAX);
    let Some(shown) = shown(&found) else {
        return wrong("an offer that nobody signed");
    };
    let known: BTreeSet<(OfferId, u16)> = fitting.iter().map(|(it, gpus)| (it.id, *gpus)).collect();
    let named: BTreeSet<(OfferId, u16)> = shown.iter().map(|(it, gpus)| (it.id, *gpus)).collect();
    let mut prices: Vec<u64> = fitting.iter().map(|(it, gpus)| ask(it, *gpus)).collect();
    prices.sort_unstable();
    prices.truncate(limit);
    let in_order: Vec<u64> = shown.iter().map(|(it, gpus)| ask(it, *gpus)).collect();
    if named.len() != shown.len() || !named.is_subset(&known) || in_order != prices {
        return wrong(&format!("the cheapest are at {prices:?}"));
    }
    Ok(())
}

/// The offers that a search shows.
fn shown(found: &Found) -> Option<Vec<(Offer, u16)>> {
    let offers = found.offers.iter().map(|one| {
        let offer = one.offer.clone().reopen().ok()?;
        Some((offer.into_body(), one.gpus))
    });
    offers.collect()
}

/// What an hour of so many GPUs costs.
fn ask(offer: &Offer, gpus: u16) -> u64 {
    offer.prices.compute.0 * u64::from(gpus)
}

/// Every portion that a firm lease can have now.
fn portions(broker: &Broker, now: u64) -> Vec<(&Offer, u16)> {
    let mut portions = Vec::new();
    let mut leases: BTreeMap<HostId, Vec<&Lease>> = BTreeMap::new();
    for lease in broker.disk.live_leases() {
        leases.entry(lease.contract.host).or_default().push(lease);
    }
    for (host, offered) in &broker.offered {
        if broker.disk.suspended(*host).is_some() {
            continue;
        }
        let stand = offered.offers.iter();
        for (offer, _) in stand.filter(|(_, expires)| *expires > clock(now)) {
            let of_host = leases.get(host).map_or(&[][..], Vec::as_slice);
            let room = room(of_host, &offer.share.resources);
            let counts = offer.counts().filter(|gpus| usize::from(*gpus) <= room);
            portions.extend(counts.map(|gpus| (offer, gpus)));
        }
    }
    portions
}

/// How many of some resources are free, or are those of leases that a firm one pushes out; by the leases of their
/// host that are not over.
fn room(leases: &[&Lease], resources: &[ResourceName]) -> usize {
    let mut holders: BTreeMap<&ResourceName, &Lease> = BTreeMap::new();
    let holding = leases.iter().filter(|it| it.state.holds_resources());
    // Whoever has it next counts, and not whoever has it now.
    let clearing = leases
        .iter()
        .filter(|it| matches!(it.state, State::Clearing { .. }));
    for lease in holding.chain(clearing) {
        let taken = lease.contract.share.resources.iter();
        holders.extend(taken.map(|it| (it, *lease)));
    }
    let is_there = |resource: &&ResourceName| {
        let holder = holders.get(resource);
        holder.is_none_or(|lease| {
            let goes = match &lease.state {
                State::Running | State::Clearing { .. } => true,
                State::Preparing { .. } => lease.started_at.is_some(),
                State::Offered { .. }
                | State::Accepted { .. }
                | State::Noticed { .. }
                | State::Suspect { .. }
                | State::Paused { .. }
                | State::Closing { .. }
                | State::Closed { .. } => false,
            };
            goes && lease.contract.kind == ContractKind::Interruptible
        })
    };
    resources.iter().filter(is_there).count()
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
