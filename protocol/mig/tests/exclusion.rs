//! One thing is never sold twice: whatever is asked for and given back, in whatever order, no two leases
//! hold the same memory, and a whole GPU is held by one lease alone.

#![expect(
    clippy::unwrap_used,
    reason = "what is around the tests is test code too"
)]

use std::collections::BTreeMap;

use mig::board::{Cut, boards};
use mig::chip::Chip;
use mig::layout::Layout;
use mig::lost::Spot;
use mig::name::{SliceName, WHOLE_MACHINE, excludes, is_well_formed};
use proptest::prelude::*;

const GPUS: usize = 3;

fn chips() -> Vec<&'static Chip> {
    let known = |cut: &'static Cut| match cut {
        Cut::Known(chip) => Some(chip),
        Cut::Named { .. } => None,
    };
    boards()
        .iter()
        .filter_map(|board| known(&board.cut))
        .collect()
}

fn gpu_name(gpu: usize) -> String {
    format!("GPU-0000000{gpu}-0000-0000-0000-000000000000")
}

fn slice_name(chip: &Chip, spot: Spot) -> String {
    let (gpu, profile) = (
        gpu_name(spot.gpu),
        chip.profile(spot.placement.profile).unwrap(),
    );
    let slice = SliceName::new(&gpu, &profile.name, spot.placement.start, profile.size);
    slice.unwrap().to_string()
}

/// What a renter or a host does.
#[derive(Debug, Clone)]
enum Act {
    /// Asks for a slice of a profile.
    Slice(usize),
    /// Asks for a slice even if others have to go for it.
    Evict(usize),
    /// Asks for a whole GPU.
    Whole(usize),
    /// Asks for the machine.
    Machine,
    /// Gives back one of the leases.
    End(usize),
}

fn an_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0_usize..16).prop_map(Act::Slice),
        2 => (0_usize..16).prop_map(Act::Evict),
        2 => (0_usize..GPUS).prop_map(Act::Whole),
        1 => Just(Act::Machine),
        4 => (0_usize..16).prop_map(Act::End),
    ]
}

/// A broker's and an agent's view of one host at once: what is leased by name, and the layouts.
struct Host {
    chip: &'static Chip,
    layouts: Vec<Layout>,
    leases: BTreeMap<String, Option<Spot>>,
}

impl Host {
    fn is_free(&self, name: &str) -> bool {
        self.leases.keys().all(|held| !excludes(held, name))
    }

    /// The GPUs that are not held whole.
    fn pool(&self) -> Vec<(usize, &Layout)> {
        let whole = |gpu: usize| self.leases.contains_key(&gpu_name(gpu));
        let all = !self.leases.contains_key(WHOLE_MACHINE);
        self.layouts
            .iter()
            .enumerate()
            .filter(|(gpu, _)| all && !whole(*gpu))
            .collect()
    }

    fn take(&mut self, spot: Spot) {
        let name = slice_name(self.chip, spot);
        assert!(self.is_free(&name), "{name} is held already");
        self.layouts[spot.gpu]
            .add(self.chip, spot.placement)
            .unwrap();
        self.leases.insert(name, Some(spot));
    }

    fn end(&mut self, name: &str) {
        if let Some(Some(spot)) = self.leases.remove(name) {
            assert!(self.layouts[spot.gpu].remove(self.chip, spot.placement));
        }
    }

    fn act(&mut self, act: &Act) {
        let count = self.chip.profiles().count();
        let profile = |asked: usize| self.chip.profiles().nth(asked % count).unwrap().0;
        match act {
            Act::Slice(asked) => {
                if let Some(spot) = self.chip.place(self.pool(), profile(*asked)) {
                    self.take(spot);
                }
            }
            Act::Evict(asked) => {
                let found = self
                    .chip
                    .evict(self.pool(), profile(*asked), |_, p| Some(p.start.into()));
                if let Some(eviction) = found {
                    for placement in eviction.evicted {
                        let gpu = eviction.spot.gpu;
                        self.end(&slice_name(self.chip, Spot { gpu, placement }));
                    }
                    self.take(eviction.spot);
                }
            }
            Act::Whole(gpu) => self.take_plain(&gpu_name(*gpu)),
            Act::Machine => self.take_plain(WHOLE_MACHINE),
            Act::End(lease) => {
                if let Some(name) = self.leases.keys().nth(*lease).cloned() {
                    self.end(&name);
                }
            }
        }
    }

    fn take_plain(&mut self, name: &str) {
        if self.is_free(name) {
            self.leases.insert(name.to_owned(), None);
        }
    }
}

proptest! {
    #[test]
    fn no_two_leases_have_the_same_memory(
        board in 0_usize..16, acts in prop::collection::vec(an_act(), 1..60),
    ) {
        let chips = chips();
        let chip = chips[board % chips.len()];
        let layouts = vec![Layout::default(); GPUS];
        let mut host = Host { chip, layouts, leases: BTreeMap::new() };
        for act in &acts {
            host.act(act);
            let names: Vec<&String> = host.leases.keys().collect();
            for (place, name) in names.iter().enumerate() {
                prop_assert!(is_well_formed(name));
                for other in &names[place + 1..] {
                    prop_assert!(!excludes(name, other), "{} and {}", name, other);
                }
            }
            for (gpu, layout) in host.layouts.iter().enumerate() {
                // Legal in the order of starts too, and no slice of a GPU that is held whole.
                prop_assert_eq!(&Layout::of(chip, layout.placements()).unwrap(), layout);
                let whole = host.leases.contains_key(&gpu_name(gpu));
                prop_assert!(layout.is_empty() || !whole);
            }
        }
    }
}

/// Three slices of one unit stand at 4, 5 and 6 of the upper half; the whole lower half is one lease.
#[test]
fn the_cheapest_window_is_cleared() {
    let board = boards().iter().find(|board| board.id == "H100-80").unwrap();
    let Cut::Known(chip) = &board.cut else {
        panic!("names only");
    };
    let at = |name: &str, start| mig::layout::Placement {
        start,
        profile: chip.find(name).unwrap(),
    };
    let standing = [
        at("4g.40gb", 0),
        at("1g.10gb", 4),
        at("1g.10gb", 5),
        at("1g.10gb", 6),
    ];
    let layout = Layout::of(chip, &standing).unwrap();
    let three = chip.find("3g.40gb").unwrap();
    let cost = |large: u64, small: u64| {
        let value =
            move |_, p: mig::layout::Placement| Some(if p.start == 0 { large } else { small });
        let found = chip.evict([(7, &layout)], three, value).unwrap();
        (
            found.spot.gpu,
            found.spot.placement.start,
            found.evicted.len(),
            found.cost,
        )
    };
    assert_eq!(cost(10, 3), (7, 4, 3, 9));
    assert_eq!(cost(8, 3), (7, 0, 1, 8));
    // What must stay, stays.
    let fixed = |_, p: mig::layout::Placement| (p.start == 0).then_some(100);
    assert_eq!(chip.evict([(0, &layout)], three, fixed).unwrap().cost, 100);
    assert_eq!(chip.evict([(0, &layout)], three, |_, _| None), None);
}
