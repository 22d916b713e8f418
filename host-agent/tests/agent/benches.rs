//! Benchmarks beside leases: what was measured is offered, and measuring again never takes a lease's machine.

use host_agent::bench::file::{Turn, load, save};
use host_agent::core::bench::Outcome;
use protocol::bounded::Text;
use protocol::machine::Quantity;
use protocol::units::Timestamp;

use crate::broker::{FakeBroker, wait};
use crate::world::Host;

/// A result of long ago, so that it is due again.
fn old(value: u64) -> Outcome {
    Outcome {
        quantity: Quantity::CpuAll,
        value,
        method: Text::cut("prime-10000-all"),
        version: 1,
        at: Timestamp(1),
        on: String::new(),
        software: false,
    }
}

#[tokio::test]
async fn results_are_offered_and_a_lease_ends_the_run_that_would_renew_them() {
    let broker = FakeBroker::start(1).await;
    let host = Host::new(&[&broker], 0);
    save(host.folder.path(), &[old(4_321)]).unwrap();
    let agent = host.start().await;
    let offered = wait("an offer with a result", || {
        let offers = broker.heard().offers;
        let mut offers = offers.into_iter().flatten();
        offers.find(|offer| !offer.measures.is_empty())
    })
    .await;
    let measure = &offered.measures[0];
    assert_eq!((measure.quantity, measure.value), (Quantity::CpuAll, 4_321));
    assert_eq!(measure.at, Timestamp(1));

    let lock = host.folder.path().join("bench.lock");
    wait("a run of its own accord", || {
        let text = std::fs::read_to_string(&lock).ok()?;
        (!text.is_empty()).then_some(())
    })
    .await;
    assert!(Turn::take(host.folder.path()).is_err());
    let goal = broker.matched(host.id, &offered, 1);
    broker.say(host.id, vec![goal.clone()]).await;
    broker.running(goal.lease).await;
    wait("its end", || Turn::take(host.folder.path()).ok()).await;
    // Twenty seconds of measuring did not pass: nothing whole came of it.
    assert_eq!(load(host.folder.path()).unwrap(), [old(4_321)]);
    agent.shutdown().await.unwrap();
}
