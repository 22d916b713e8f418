//! Seeded worlds: how many hours of brokers, hosts and renters, with faults and cheats and every invariant looked at
//! after every event, go by in a minute of CPU time.
//!
//! Each round is the world of another seed, so the median is that of worlds with all kinds of troubles. Must not
//! look at less than the tests do.

use feira_tests::world::{Outcome as World, Size, run};

use crate::report::Row;
use crate::rounds::by_turns;
use crate::{Outcome, clock};

/// What is measured: a market with some life in it.
const TOWN: Size = Size {
    brokers: 4,
    hosts: 50,
    renters: 200,
    hours: 8,
    idle_minutes: 120,
};

/// What it is measured beside: the worlds of the tests.
const VILLAGE: Size = Size {
    brokers: 2,
    hosts: 5,
    renters: 10,
    hours: 8,
    idle_minutes: 30,
};

/// One row: simulated hours for each minute of CPU time.
pub(crate) fn measure() -> Outcome<Vec<Row>> {
    let (mut towns, mut villages) = (0.., 0..);
    let (mut hours, mut events, mut leases) = (0.0, 0, 0);
    let medians = by_turns(
        || {
            let (rate, world) = pass(towns.next().ok_or("no seed")?, TOWN)?;
            hours += hours_of(&world)?;
            events += world.events;
            leases += world.leases;
            Ok(rate)
        },
        || Ok(pass(villages.next().ok_or("no seed")?, VILLAGE)?.0),
    )?;
    let row = Row::new("simulate", "hours/min", medians)
        .beside("worlds of 2 brokers, 5 hosts, 10 renters")
        .goal(
            "at least 1000 with 4 brokers, 50 hosts, 200 renters",
            |row| row.ours() >= 1000.0,
        )
        .note(format!(
            "in {hours:.0} hours {events} events of {leases} leases that ran"
        ));
    Ok(vec![row])
}

/// Lets the world of a seed happen: its hours for each minute of this thread's CPU time.
fn pass(seed: u64, size: Size) -> Outcome<(f64, World)> {
    let began = clock::on_cpu();
    let world = run(seed, size).map_err(|violation| violation.to_string())?;
    let minutes = clock::on_cpu().saturating_sub(began).as_secs_f64() / 60.0;
    Ok((hours_of(&world)? / minutes, world))
}

fn hours_of(world: &World) -> Outcome<f64> {
    Ok(f64::from(u32::try_from(world.simulated.0 / 1000)?) / 3600.0)
}
