//! The book beside a look at every portion: whatever hosts announce and lease, and whatever is asked, both answer the
//! same.

use super::offers::{BROKER, NOW, gpu, host, offer, signed_at, text};
use crate::core::available::Available;
use crate::core::book::{Book, BookLimits, Listing};
use proptest::prelude::*;
use protocol::bounded::List;
use protocol::filter::{Explanation, Facts, compare, parse_sort};
use protocol::ids::{HostId, OfferId};
use protocol::machine::Gpu;
use protocol::message::{Found, Search};
use protocol::offer::{Isolation, Offer, Partition, offer_id};
use protocol::terms::{ContractKind, Need};
use protocol::units::{BasisPoints, Bytes, PricePerGb, PricePerGbMonth, PricePerHour, Timestamp};
use std::collections::BTreeMap;

/// Hosts of the test.
const HOSTS: u32 = 12;

/// What can be had of a host: its free GPUs, those that a firm lease can take from others, and those of them that a
/// bid can.
type Room = (u16, u16, u16);

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    Announce(u32, Vec<Made>),
    Withdraw(u32),
    Lease(u32, Room),
    Settle(u32),
    Rate(u32, u32),
    Wait(u64),
    Search(Box<Search>),
}

/// An offer as its host makes it.
#[derive(Debug, Clone)]
struct Made {
    model: usize,
    gpus: usize,
    price: u64,
    storage: u64,
    upload: u64,
    floor: Option<u64>,
    discount: Option<u16>,
    ram: u64,
    listed_at: u64,
    kernel: usize,
    system: usize,
    is_sliced: bool,
}

const MODELS: [&str; 3] = [
    "NVIDIA GeForce RTX 4090",
    "NVIDIA H100 80GB HBM3",
    "AMD Instinct MI300X",
];
const KERNELS: [&str; 4] = ["6.1.0-18-amd64", "6.1.99999", "6.1.99998", "own"];
const SYSTEMS: [&str; 3] = ["Debian GNU/Linux 12", "Ubuntu 22.04.4 LTS", "Ubuntu 24.04"];

fn made() -> impl Strategy<Value = Made> {
    let names = (0..3_usize, 1..4_usize, 0..4_usize, 0..3_usize);
    let prices = (1..40_u64, 0..3_u64, 0..3_u64);
    let sales = (prop::option::of(1..30_u64), prop::option::of(1..4000_u16));
    let odds = (0..3_u64, any::<bool>());
    (names, prices, sales, 1..60_u64, odds).prop_map(
        |(
            (model, gpus, kernel, system),
            (price, storage, upload),
            (floor, discount),
            ram,
            (listed_at, is_sliced),
        )| Made {
            model,
            gpus,
            price: price * 10_000,
            storage: storage * 72_000,
            upload: upload * 1000,
            floor: floor.map(|floor| floor * 10_000),
            discount,
            ram,
            listed_at,
            kernel,
            system,
            is_sliced,
        },
    )
}

fn made_offer(number: u32, index: usize, made: &Made) -> Offer {
    let mut offer = offer(number, "GPU-0", made.price);
    let gpus: Vec<_> = (0..made.gpus)
        .map(|card| gpu(MODELS[made.model], &format!("GPU-{index}-{card}")))
        .collect();
    let mut resources: Vec<_> = gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
    // Only the H100 can be cut.
    if made.is_sliced && made.model == 1 {
        let places = |gpu: &Gpu| [0, 4].map(|at| text(&format!("{}/3g.40gb@{at}+4", gpu.uuid)));
        resources = gpus.iter().flat_map(places).collect();
        offer.partition = Some(Partition {
            profile: text("3g.40gb"),
            vram: Bytes(12 << 30),
            multiprocessors: (60, 132),
            memory_slices: (4, 8),
            isolation: Isolation::Hardware,
        });
    }
    offer.machine.gpus = List::new(gpus.clone()).unwrap();
    offer.machine.kernel = text(KERNELS[made.kernel]);
    offer.machine.system = text(SYSTEMS[made.system]);
    offer.share.gpus = List::new(gpus).unwrap();
    offer.share.ram = Bytes::from_gb(made.ram);
    offer.share.resources = List::new(resources).unwrap();
    offer.id = offer_id(host(number), &offer.share.resources);
    offer.prices.storage = PricePerGbMonth(made.storage);
    offer.prices.upload = PricePerGb(made.upload);
    offer.sales.floor = made.floor.map(PricePerHour);
    offer.sales.discount_max = made.discount.map(BasisPoints);
    offer.listed_at = Timestamp(made.listed_at);
    offer
}

const TERMS: [&str; 30] = [
    "partition=any",
    "partition=3g.40gb",
    "partition!=none",
    "verified=false",
    "gpu=rtx4090",
    "gpu!=4090",
    "gpu in [H100,MI300X]",
    "gpu=rtx5090",
    "num_gpus=2",
    "num_gpus!=1",
    "num_gpus>=3",
    "num_gpus in [1,3]",
    "dph<0.15",
    "dph<=0.3",
    "dph>=0.05",
    "dph_base<0.2",
    "cpu_ram>=20",
    "cpu_ram<=10",
    "kernel>=6.1.99999",
    "kernel<6.2",
    "kernel=6.1",
    "ubuntu_version>=24",
    "os=debian",
    "os!=ubuntu",
    "gpu_arch=amd",
    "min_bid<=0.1",
    "discount_max>=0.2",
    "reliability>=0.6",
    "duration>=30",
    "storage_cost=0",
];
const SORTS: [&str; 8] = [
    "",
    "price",
    "price-",
    "num_gpus-",
    "cpu_ram",
    "reliability-",
    "min_bid",
    "num_gpus,cpu_ram-",
];

fn searches() -> impl Strategy<Value = Search> {
    let terms = prop::collection::vec(0..TERMS.len(), 0..5);
    let need = (0..3_u64, 0..3_u64);
    (terms, need, 0..4_usize, 0..SORTS.len(), 0..8_u16).prop_map(
        |(terms, need, kind, sort, limit)| {
            let words: Vec<&str> = terms.into_iter().map(|term| TERMS[term]).collect();
            let kinds = [
                ContractKind::OnDemand,
                ContractKind::Bid,
                ContractKind::Interruptible,
                ContractKind::Reserved,
            ];
            Search {
                filter: words.join(" ").parse().unwrap(),
                sort: parse_sort(SORTS[sort]).unwrap_or_default(),
                need: Need {
                    upload: Bytes::from_gb(need.1 * 10),
                    ..Need::disk(Bytes::from_gb(need.0 * 100))
                },
                kind: kinds[kind],
                limit,
                job: None,
            }
        },
    )
}

fn steps() -> impl Strategy<Value = Step> {
    let hosts = 0..HOSTS;
    prop_oneof![
        3 => (hosts.clone(), prop::collection::vec(made(), 0..3)).prop_map(|(at, made)| Step::Announce(at, made)),
        1 => hosts.clone().prop_map(Step::Withdraw),
        2 => (hosts.clone(), (0..4_u16, 0..3_u16, 0..2_u16)).prop_map(|(at, room)| Step::Lease(at, room)),
        4 => hosts.clone().prop_map(Step::Settle),
        1 => (hosts, 0..1_000_001_u32).prop_map(|(at, ppm)| Step::Rate(at, ppm)),
        1 => (0..40_000_u64).prop_map(Step::Wait),
        5 => searches().prop_map(|search| Step::Search(Box::new(search))),
    ]
}

struct World {
    book: Book,
    now: Timestamp,
    sequence: u64,
    rooms: BTreeMap<HostId, Room>,
}

impl World {
    fn available(&self, kind: ContractKind, listing: &Listing, gpus: u16) -> Option<Available> {
        let offer = listing.offer();
        let (free, firm, by_bid) = self
            .rooms
            .get(&listing.host())
            .copied()
            .unwrap_or((9, 0, 0));
        let price = match kind {
            ContractKind::OnDemand | ContractKind::Bid => offer.prices.compute,
            ContractKind::Interruptible => offer.sales.floor?,
            ContractKind::Reserved => offer.sales.discount_max.map(|_| offer.prices.compute)?,
        };
        let others = if kind == ContractKind::Interruptible {
            by_bid.min(firm)
        } else {
            firm
        };
        let pushes_out = gpus > free;
        (gpus <= free + others).then_some(Available { price, pushes_out })
    }

    fn settle(&mut self, number: u32) {
        let mut known: Vec<(OfferId, u16, bool)> = Vec::new();
        for listing in self.book.host_offers(host(number), self.now) {
            for gpus in listing.offer().counts() {
                let available = self.available(ContractKind::OnDemand, listing, gpus);
                known.extend(available.map(|it| (listing.offer().id, gpus, it.pushes_out)));
            }
        }
        self.book.settle(host(number), &known);
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Announce(number, made) => {
                self.sequence += 1;
                let offers = made.iter().enumerate().map(|(index, made)| {
                    let mut offer = made_offer(number, index, made);
                    offer.sequence = self.sequence;
                    signed_at(number, offer, self.now)
                });
                let offers = offers.collect();
                let announced = self
                    .book
                    .announce(self.now, host(number), offers, List::default());
                prop_assert!(announced.is_ok(), "{announced:?}");
            }
            Step::Withdraw(number) => self.book.withdraw(host(number)),
            Step::Lease(number, room) => {
                self.rooms.insert(host(number), room);
                self.book.unsettle(host(number));
            }
            Step::Settle(number) => self.settle(number),
            Step::Rate(number, ppm) => {
                let score = protocol::reliability::Score {
                    ppm,
                    ..protocol::reliability::Score::unknown()
                };
                self.book.rate(host(number), &score);
            }
            Step::Wait(time) => {
                self.now = Timestamp(self.now.0 + time);
                // Sometimes what expired is still there when it is searched.
                if time % 2 == 0 {
                    self.book.expire(self.now);
                }
            }
            Step::Search(search) => {
                let found = self.book.search(&search, self.now, |listing, gpus| {
                    self.available(search.kind, listing, gpus)
                });
                prop_assert_eq!(found, self.looked_up(&search), "{:?}", search);
                self.check_matching(&search)?;
            }
        }
        Ok(())
    }

    fn portions(&self) -> Vec<(&Listing, &Facts)> {
        let hosts = (0..HOSTS).flat_map(|number| self.book.host_offers(host(number), self.now));
        hosts
            .flat_map(|listing| listing.portions.iter().map(move |facts| (listing, facts)))
            .collect()
    }

    /// The answer by a look at every portion.
    fn looked_up(&self, search: &Search) -> Found {
        let filter = search.filter.prepare(search.need);
        let available =
            |listing: &Listing, facts: &Facts| self.available(search.kind, listing, facts.gpus());
        let mut shown = self.portions();
        shown.retain(|(listing, facts)| {
            filter.looks_at(facts) && available(listing, facts).is_some()
        });
        let mut matching = shown.clone();
        matching.retain(|(_, facts)| filter.matches(facts));
        matching.sort_by(|left, right| compare(&search.sort, search.need, left.1, right.1));
        let mut found = Found {
            matching: u32::try_from(matching.len()).unwrap(),
            of: u32::try_from(shown.len()).unwrap(),
            ..Found::default()
        };
        if matching.is_empty() {
            let mut explanation = Explanation::new(search.filter.terms.len(), search.need);
            for (_, facts) in &shown {
                explanation.add(facts, filter.failed(facts));
            }
            found.eliminated = explanation.eliminations();
            found.nearest = explanation.nearest().map(|(id, gpus)| {
                let is_it = |(listing, facts): &&(&Listing, &Facts)| {
                    listing.offer().id == id && facts.gpus() == gpus
                };
                let (listing, facts) = shown.iter().find(is_it).unwrap();
                listing.found(facts, None)
            });
        }
        let first = matching.into_iter().take(search.limit.into());
        found.offers = List::first(
            first.map(|(listing, facts)| listing.found(facts, available(listing, facts))),
        );
        found
    }

    fn check_matching(&self, search: &Search) -> Result<(), TestCaseError> {
        let filter = search.filter.prepare(search.need);
        for gpus in 1..4 {
            let found = self
                .book
                .matching(&search.filter, search.need, gpus, self.now);
            let mut found: Vec<OfferId> = found.iter().map(|listing| listing.offer().id).collect();
            found.sort_unstable();
            let mut wanted: Vec<OfferId> = self
                .portions()
                .into_iter()
                .filter(|(_, facts)| facts.gpus() == gpus && filter.matches(facts))
                .map(|(listing, _)| listing.offer().id)
                .collect();
            wanted.sort_unstable();
            prop_assert_eq!(found, wanted);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_index_answers_as_a_look_at_every_portion_does(steps in prop::collection::vec(steps(), 1..80)) {
        let mut world = World {
            book: Book::new(BROKER, BookLimits::default()),
            now: NOW,
            sequence: 0,
            rooms: BTreeMap::new(),
        };
        for step in steps {
            world.take(step)?;
        }
    }
}
