//! Whole GPUs and slices of them, rented, bid for, stopped, resumed and ended in any order: nothing is ever let twice,
//! nothing that is free is refused, and a slice goes where the tables say.

use super::{ONE, PROFILES, WHOLE, World, world};
use crate::core::lease::{Lease, State};
use crate::core::tests::parties::chip;
use mig::layout::{Layout, Placement};
use mig::name::{SliceName, excludes};
use proptest::prelude::*;
use protocol::ids::LeaseId;
use protocol::message::Rejection;
use protocol::order::LeaseAction;
use protocol::terms::Deal;
use std::collections::BTreeMap;

const GPUS: u16 = 2;

#[derive(Debug, Clone)]
enum Step {
    OnDemand { offered: usize, gpus: u16 },
    Bid { offered: usize, bid: u64 },
    Act(usize, LeaseAction),
    Refuse(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let action = prop_oneof![
        1 => Just(LeaseAction::Stop),
        1 => Just(LeaseAction::Resume),
        3 => Just(LeaseAction::End)
    ];
    prop_oneof![
        5 => (WHOLE..=PROFILES.len(), 1..=GPUS).prop_map(|(offered, gpus)| Step::OnDemand { offered, gpus }),
        4 => (WHOLE..=PROFILES.len(), 10_u64..900).prop_map(|(offered, bid)| Step::Bid { offered, bid: bid * 1000 }),
        5 => (any::<usize>(), action).prop_map(|(lease, action)| Step::Act(lease, action)),
        1 => any::<usize>().prop_map(Step::Refuse),
        3 => (1_u64..70).prop_map(|tens| Step::Pass(tens * 10)),
    ]
}

struct Play {
    world: World,
    leases: Vec<LeaseId>,
}

impl Play {
    fn live(&self) -> impl Iterator<Item = &Lease> {
        self.world.desk.market().live_leases()
    }

    /// What leases have, or have next.
    fn had(&self) -> Vec<&str> {
        let has = |lease: &&Lease| {
            lease.state.holds_resources() || matches!(lease.state, State::Clearing { .. })
        };
        let names = self.live().filter(has);
        let names = names.flat_map(|lease| lease.contract.share.resources.iter());
        names.map(|name| name.as_str()).collect()
    }

    /// Where the tables put a slice; nothing while some of it is not to be told by what stands there alone.
    fn best(&self, offered: usize) -> Option<Option<String>> {
        let profile = chip().find(PROFILES[offered - ONE]).unwrap();
        let had = self.had();
        let mut layouts: BTreeMap<usize, Layout> = BTreeMap::new();
        for gpu in 0..usize::from(GPUS) {
            let name = format!("GPU-h-{gpu:02}");
            if had.contains(&name.as_str()) {
                continue;
            }
            let slices = had.iter().filter_map(|it| SliceName::parse(it).ok());
            let placements: Vec<Placement> = slices
                .filter(|slice| slice.gpu() == name)
                .map(|slice| Placement {
                    start: slice.start(),
                    profile: chip().find(slice.profile()).unwrap(),
                })
                .collect();
            layouts.insert(gpu, Layout::of(chip(), &placements).ok()?);
        }
        let pool = layouts.iter().map(|(gpu, layout)| (*gpu, layout));
        let spot = chip().place(pool, profile);
        Some(spot.map(|spot| {
            let size = chip().profile(profile).unwrap().size;
            let (gpu, start) = (spot.gpu, spot.placement.start);
            format!("GPU-h-{gpu:02}/{}@{start}+{size}", PROFILES[offered - ONE])
        }))
    }

    fn order(&mut self, offered: usize, deal: Deal, gpus: u16) -> Result<(), TestCaseError> {
        let is_firm = deal == Deal::OnDemand;
        let is_slice = offered != WHOLE;
        let wanted = if is_slice { 1 } else { gpus };
        let best = if is_slice { self.best(offered) } else { None };
        let order = self.world.deal(offered, deal, wanted);
        let placed = self.world.place(0, order);
        match (&placed, &best) {
            (Ok(lease), Some(Some(place))) => {
                let lease = self.world.desk.market().lease(*lease).unwrap();
                let has = lease.contract.share.resources[0].as_str();
                prop_assert_eq!(has, place.as_str());
            }
            (Err(reason), Some(Some(place))) if is_firm => {
                prop_assert!(false, "{} is free and was refused: {:?}", place, reason);
            }
            (Err(reason), _) => prop_assert_eq!(reason, &Rejection::OfferTaken),
            (Ok(_), _) => {}
        }
        self.leases.extend(placed.ok());
        Ok(())
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::OnDemand { offered, gpus } => self.order(offered, Deal::OnDemand, gpus)?,
            Step::Bid { offered, bid } => {
                let deal = self.world.interruptible(bid);
                self.order(offered, deal, 1)?;
            }
            Step::Act(n, action) => {
                if let Some(lease) = self.pick(n) {
                    let _ = self.world.act(lease, action);
                }
            }
            Step::Refuse(n) => {
                let lease = self.pick(n);
                let lease = lease.filter(|lease| self.world.desk.market().lease(*lease).is_some());
                if let Some(lease) = lease {
                    let _ = self.world.refuse(lease);
                }
            }
            Step::Pass(seconds) => self.world.pass(seconds),
        }
        self.check()?;
        self.world.follow();
        self.check()
    }

    fn pick(&self, n: usize) -> Option<LeaseId> {
        (!self.leases.is_empty()).then(|| self.leases[n % self.leases.len()])
    }

    /// No two leases have what excludes each other now, and no two have it next.
    fn check(&self) -> Result<(), TestCaseError> {
        let having = |has: fn(&State) -> bool| -> Vec<(LeaseId, &str)> {
            let leases = self.live().filter(|lease| has(&lease.state));
            leases
                .flat_map(|lease| {
                    let names = lease.contract.share.resources.iter();
                    names.map(|name| (lease.id, name.as_str()))
                })
                .collect()
        };
        for had in [
            having(State::holds_resources),
            having(|state| matches!(state, State::Clearing { .. })),
        ] {
            for (n, (lease, name)) in had.iter().enumerate() {
                for (other, beside) in &had[n + 1..] {
                    let clash = excludes(name, beside);
                    prop_assert!(!clash, "{lease} has {name} and {other} has {beside}");
                }
            }
        }
        let staying = self.live().filter(|lease| lease.state.holds_resources());
        let cpu: u32 = staying.map(|it| it.contract.share.cpu_millicores).sum();
        prop_assert!(cpu <= 4000 * u32::from(GPUS), "{cpu} thousandths of a core");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    // Threat 6: a whole GPU and its slices are never let together.
    #[test]
    fn nothing_is_let_twice(steps in prop::collection::vec(step(), 1..40)) {
        let mut play = Play { world: world(GPUS), leases: Vec::new() };
        for step in steps {
            play.take(step)?;
        }
        prop_assert!(*play.world.desk.market() == play.world.replayed());
    }
}
