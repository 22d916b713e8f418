//! Slices against a driver that is made up, which refuses what a real one would.

mod driven;
mod equal;
mod goals;
mod planned;

use super::acts::{Act, Device, Wanted, acts, device};
use super::known::{Known, KnownChange, Made, adopted, apply, foreign};
use super::policy::{PREMIUM, PartitionLayout, SlicePolicy};
use super::*;
use crate::core::offer::{Listing, offers};
use crate::core::tests::{gpu as plain_gpu, listing as plain_listing, machine};
use crate::hardware::sim::SimDriver;
use mig::board::Cut;
use protocol::bounded::List;
use protocol::ids::HostId;
use protocol::machine::Machine;
use protocol::offer::{Offer, ProfileName};
use protocol::units::{Bytes, PricePerHour};
use std::collections::BTreeSet;

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).unwrap()
}

fn names(texts: &[&str]) -> BTreeSet<ResourceName> {
    texts.iter().map(|text| name(text)).collect()
}

fn chip() -> Chip {
    match &find_board("NVIDIA H100 80GB HBM3", 80 << 30).unwrap().cut {
        Cut::Known(chip) => chip.clone(),
        Cut::Named { .. } => panic!("an H100 is known"),
    }
}

fn divisible(gpu: &str, mode: Mode) -> Divisible {
    Divisible {
        gpu: name(gpu),
        mode,
        chip: chip(),
        standing: Vec::new(),
        in_use: false,
        uniform: None,
    }
}

fn divisibles(gpus: &[(&str, Mode)]) -> Divisibles {
    let all = gpus
        .iter()
        .map(|(gpu, mode)| (name(gpu), divisible(gpu, *mode)));
    all.collect()
}

fn profiles<const N: usize>(names: &[&str]) -> List<ProfileName, N> {
    List::first(names.iter().map(|name| ProfileName::new(*name).unwrap()))
}

fn fixed(names: &[&str]) -> PartitionLayout {
    PartitionLayout::Fixed(profiles(names))
}

fn dynamic(names: &[&str]) -> PartitionLayout {
    PartitionLayout::Dynamic(profiles(names))
}

fn policy(layouts: &[(&str, PartitionLayout)]) -> SlicePolicy {
    let layouts = layouts
        .iter()
        .map(|(gpu, layout)| (name(gpu), layout.clone()));
    SlicePolicy {
        layouts: List::first(layouts),
        premium: PREMIUM,
        ..SlicePolicy::default()
    }
}

/// A machine of these H100, 8 cores, 16 GiB and 100 GB for leases, at 2.25 $ for each GPU.
fn host(gpus: &[&str], slices: SlicePolicy) -> (Machine, Listing) {
    let gpus: Vec<Gpu> = gpus
        .iter()
        .map(|gpu| Gpu {
            model: Text::cut("NVIDIA H100 80GB HBM3"),
            vram: Bytes(80 << 30),
            multiprocessors: 132,
            ..plain_gpu(gpu)
        })
        .collect();
    let machine = machine(&gpus);
    let mut listing = plain_listing(&machine);
    listing.prices.compute = PricePerHour(2_250_000);
    listing.sales.floor = Some(PricePerHour(1_000_000));
    (machine, Listing { slices, ..listing })
}

fn offered(machine: &Machine, listing: &Listing, divisibles: &Divisibles) -> Vec<Offer> {
    let host = HostId::from_bytes([3; 32]);
    let listed = offers(host, machine, divisibles, listing, &[]).unwrap();
    listed.into_iter().map(|listed| listed.offer).collect()
}

#[test]
fn a_fixed_layout_stands_the_largest_first_and_each_as_high_as_it_fits() {
    let chip = chip();
    let places = |names: &[&str]| -> Result<Vec<String>, String> {
        let layout = fixed(names);
        let mut places = layout.places(&chip)?;
        places.sort_by_key(|(_, start)| *start);
        let text = |(profile, start): &(&Profile, u8)| format!("{}@{start}", profile.name);
        Ok(places.iter().map(text).collect())
    };
    assert_eq!(
        places(&["3g.40gb", "4g.40gb"]).unwrap(),
        ["4g.40gb@0", "3g.40gb@4"]
    );
    let balanced = places(&["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]).unwrap();
    assert_eq!(
        balanced,
        ["1g.10gb@0", "1g.10gb@1", "2g.20gb@2", "3g.40gb@4"]
    );
    let problem = places(&["4g.40gb", "4g.40gb"]).unwrap_err();
    assert!(
        problem.contains("there is no room for 4g.40gb"),
        "{problem}"
    );
    let media = dynamic(&["1g.10gb+me"]).places(&chip).unwrap_err();
    assert!(media.contains("in a fixed layout alone"), "{media}");
    let problem = places(&["5g.50gb"]).unwrap_err();
    assert!(
        problem.contains("no profile '5g.50gb'; it has 1g.10gb"),
        "{problem}"
    );
}

#[test]
fn some_dynamic_gpus_are_left_whole() {
    let slices = SlicePolicy {
        keep_whole: 1,
        ..policy(&[
            ("GPU-a", dynamic(&[])),
            ("GPU-b", fixed(&["3g.40gb"])),
            ("GPU-c", dynamic(&[])),
        ])
    };
    let cut = ["GPU-a", "GPU-b", "GPU-c", "GPU-d"].map(|gpu| slices.layout(gpu).is_some());
    assert_eq!(cut, [true, true, false, false]);
    let whole = ["GPU-a", "GPU-b", "GPU-c", "GPU-d"].map(|gpu| slices.is_whole(gpu, None));
    assert_eq!(whole, [false, false, true, true]);
}

/// The worked prices: 2 250 000 an hour and 15 %.
#[test]
fn a_slice_has_its_part_of_the_machine_at_its_price() {
    let (machine, listing) = host(
        &["GPU-a", "GPU-b"],
        policy(&[("GPU-a", dynamic(&[])), ("GPU-b", dynamic(&[]))]),
    );
    let divided = divisibles(&[("GPU-a", Mode::Divided), ("GPU-b", Mode::Divided)]);
    let offers = offered(&machine, &listing, &divided);
    let rows: Vec<(&str, usize, u64)> = offers
        .iter()
        .map(|offer| {
            let profile = offer.partition.as_ref().unwrap().profile.as_str();
            (profile, offer.share.resources.len(), offer.prices.compute.0)
        })
        .collect();
    let wanted = [
        ("1g.10gb", 14, 323_438),
        ("1g.20gb", 8, 646_875),
        ("2g.20gb", 6, 646_875),
        ("3g.40gb", 4, 1_293_750),
        ("4g.40gb", 2, 1_293_750),
        ("7g.80gb", 2, 2_250_000),
    ];
    assert_eq!(rows, wanted);
    // A half of the half of 8 cores, 16 GiB and 100 GB that one GPU has.
    let three = &offers[3];
    assert_eq!(
        (three.share.cpu_millicores, three.share.ram),
        (2000, Bytes(4 << 30))
    );
    assert_eq!(three.limits.disk_max, Bytes::from_gb(25));
    assert_eq!(three.share.gpus.len(), 2);
    assert_eq!(three.counts().collect::<Vec<_>>(), [1]);
    // ceil(1 000 000 × 1/2 × 1.15).
    assert_eq!(three.sales.floor, Some(PricePerHour(575_000)));
    let partition = three.partition.as_ref().unwrap();
    assert_eq!(partition.multiprocessors, (60, 132));
    assert_eq!(partition.memory_slices, (4, 8));
}

#[test]
fn an_owner_s_price_comes_before_the_rule() {
    let slices = SlicePolicy {
        prices: List::first([(ProfileName::cut("1g.10gb"), PricePerHour(500_000))]),
        ..policy(&[("GPU-a", dynamic(&["1g.10gb", "3g.40gb"]))])
    };
    let (machine, listing) = host(&["GPU-a"], slices);
    let offers = offered(&machine, &listing, &divisibles(&[("GPU-a", Mode::Divided)]));
    let prices: Vec<u64> = offers.iter().map(|offer| offer.prices.compute.0).collect();
    assert_eq!(prices, [500_000, 1_293_750]);
    // The floor of 1 000 000 for the GPU is by the rule, and never above what is asked.
    assert_eq!(offers[0].sales.floor, Some(PricePerHour(143_750)));
}

#[test]
fn a_gpu_is_offered_whole_or_cut_and_both_if_its_owner_says_so() {
    let cut = policy(&[("GPU-a", fixed(&["3g.40gb", "4g.40gb"]))]);
    let divided = divisibles(&[("GPU-a", Mode::Divided), ("GPU-b", Mode::Whole)]);
    let kinds = |slices: SlicePolicy, divisibles: &Divisibles| -> Vec<Vec<String>> {
        let (machine, listing) = host(&["GPU-a", "GPU-b"], slices);
        let offers = offered(&machine, &listing, divisibles);
        let texts = |offer: &Offer| {
            let names = offer.share.resources.iter();
            names.map(|name| name.as_str().to_owned()).collect()
        };
        offers.iter().map(texts).collect()
    };
    let slices = [vec!["GPU-a/3g.40gb@4+4"], vec!["GPU-a/4g.40gb@0+4"]];
    let mut wanted = vec![vec!["GPU-b"]];
    wanted.extend(slices.clone());
    assert_eq!(kinds(cut.clone(), &divided), wanted);
    let both = SlicePolicy {
        also_whole: true,
        ..cut.clone()
    };
    let mut wanted = vec![vec!["GPU-a", "GPU-b"]];
    wanted.extend(slices);
    assert_eq!(kinds(both, &divided), wanted);
    // What somebody else divided is not sold.
    let by_hand = divisibles(&[("GPU-a", Mode::Divided), ("GPU-b", Mode::Divided)]);
    let offers = kinds(cut.clone(), &by_hand);
    assert_eq!(offers, [["GPU-a/3g.40gb@4+4"], ["GPU-a/4g.40gb@0+4"]]);
    // Not divided yet: neither whole nor cut.
    let whole = divisibles(&[("GPU-a", Mode::Whole), ("GPU-b", Mode::Whole)]);
    assert_eq!(kinds(cut, &whole), [["GPU-b"]]);
}

/// One host at work: its driver, its journal, what leases have.
struct Host {
    driver: SimDriver,
    policy: SlicePolicy,
    known: Known,
    held: BTreeSet<ResourceName>,
}

impl Host {
    fn new(gpus: &[(&str, Mode)], policy: SlicePolicy) -> Self {
        let driver = SimDriver::default();
        for (gpu, mode) in gpus {
            driver.put(divisible(gpu, *mode));
        }
        Self {
            driver,
            policy,
            known: Known::new(),
            held: BTreeSet::new(),
        }
    }

    fn seen(&self) -> Divisibles {
        self.driver.seen()
    }

    fn sight(&mut self) {
        let changes = adopted(&self.known, &self.seen(), |_| false);
        apply(&mut self.known, &changes);
    }

    fn next(&self) -> Vec<Act> {
        let planned = BTreeSet::new();
        let wanted = Wanted {
            policy: &self.policy,
            held: &self.held,
            planned: &planned,
        };
        acts(wanted, &self.seen(), &self.known)
            .into_values()
            .collect()
    }

    /// Does one act, as the agent does; with a crash behind it nothing of it is recorded.
    fn act(&mut self, act: &Act, crashes: bool) {
        if let Act::Make { resource, .. } = act {
            let begun = KnownChange::Set(resource.clone(), Made::Begun);
            apply(&mut self.known, &[begun]);
        }
        let done = self.driver.told_to(act).unwrap();
        if crashes {
            return;
        }
        let change = match (act, done) {
            (Act::Make { resource, .. }, Some(device)) => {
                Some(KnownChange::Set(resource.clone(), Made::Done { device }))
            }
            (Act::End { resource, .. }, _) => Some(KnownChange::Gone(resource.clone())),
            (Act::Make { .. } | Act::SetMode { .. } | Act::Divide { .. }, _) => None,
        };
        apply(&mut self.known, change.as_slice());
    }

    /// Until there is nothing to do.
    fn settle(&mut self) -> Vec<Act> {
        let mut done = Vec::new();
        for _ in 0..100 {
            self.sight();
            let next = self.next();
            if next.is_empty() {
                return done;
            }
            for act in next {
                self.act(&act, false);
                done.push(act);
            }
        }
        panic!("there is always more to do: {done:?}");
    }

    fn standing(&self) -> Vec<String> {
        let gpus = self.seen();
        let all = gpus.values().flat_map(|gpu| {
            let names = gpu.standing.iter().filter_map(|it| gpu.name_of(it));
            names.map(|name| name.to_string()).collect::<Vec<_>>()
        });
        let mut all: Vec<String> = all.collect();
        all.sort();
        all
    }
}
