//! The operator's socket and the metrics page of a running broker.

use crate::fake::{Party, Stand};
use crate::rental::Market;
use broker::admin::wire::{AdminReply, AdminRequest, Deposit};
use broker::clock::Stopwatch;
use protocol::bounded::Text;
use protocol::ids::DepositId;
use protocol::message::BrokerRequest;
use protocol::units::MicroUsd;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

/// Sends lines as they are and reads as many answers.
async fn say(stand: &Stand, lines: &str) -> Vec<String> {
    let (socket, text) = (stand.server().admin_socket().to_owned(), lines.to_owned());
    let talk = move || {
        let mut stream = UnixStream::connect(socket).unwrap();
        // A broker that has heard enough hangs up in the middle.
        let _ = stream.write_all(text.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        BufReader::new(stream)
            .lines()
            .map_while(Result::ok)
            .collect()
    };
    tokio::task::spawn_blocking(talk).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_known_questions_are_answered() {
    let stand = Stand::new("").await;
    let mode = std::fs::metadata(stand.server().admin_socket())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let answers = say(
        &stand,
        "hello\n{\"ask\":\"accounts\"}\n{\"ask\":\"stop\"}\n",
    )
    .await;
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert!(
        answers[0].starts_with(r#"{"answer":"refused""#),
        "{}",
        answers[0]
    );
    assert_eq!(answers[1], r#"{"answer":"accounts","with":[]}"#);
    assert!(answers[2].contains("unknown variant"), "{}", answers[2]);
    // A line without an end costs 64 KiB and the connection, nothing more.
    let endless = say(&stand, &"x".repeat(200_000)).await;
    assert!(endless.len() <= 1, "{endless:?}");
    assert!(matches!(
        stand.operate(AdminRequest::Accounts).await,
        AdminReply::Accounts(_)
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_is_credited_once() {
    let stand = Stand::new("").await;
    let renter = Party::renter(&stand).await;
    let deposit = Deposit {
        id: DepositId::from_bytes([5; 16]),
        renter: renter.renter_id(),
        amount: MicroUsd(10_000_000),
        memo: Text::new("cash").unwrap(),
        stranger: true,
    };
    for _ in 0..3 {
        let reply = stand.operate(AdminRequest::Deposit(deposit.clone())).await;
        let AdminReply::Deposited(deposited) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!(deposited.available, MicroUsd(10_000_000));
    }
    let other = Deposit {
        amount: MicroUsd(1),
        ..deposit.clone()
    };
    assert!(matches!(
        stand.operate(AdminRequest::Deposit(other)).await,
        AdminReply::Refused(_)
    ));
    let nothing = Deposit {
        id: DepositId::from_bytes([6; 16]),
        amount: MicroUsd::ZERO,
        ..deposit
    };
    assert!(matches!(
        stand.operate(AdminRequest::Deposit(nothing)).await,
        AdminReply::Refused(_)
    ));
    stand.check_ledger().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_status_say_what_there_is() {
    let market = Market::new("name = \"eu1\"").await;
    let lease = market.order("brave-otter").await;
    let stand = &market.stand;
    let AdminReply::Status(status) = stand.operate(AdminRequest::Status).await else {
        panic!("no status")
    };
    assert_eq!(
        (status.name.as_str(), status.broker, status.fee_bps),
        ("eu1", stand.id(), 300)
    );
    assert_eq!(
        (status.hosts, status.renters, status.leases["offered"]),
        (1, 1, 1)
    );
    assert_eq!(status.addresses[0], stand.addresses()[0].to_string());
    let AdminReply::Accounts(accounts) = stand.operate(AdminRequest::Accounts).await else {
        panic!("none")
    };
    assert_eq!(accounts.len(), 1);
    assert_eq!(
        (accounts[0].available, accounts[0].held),
        (MicroUsd(6_400_000), MicroUsd(3_600_000))
    );
    let AdminReply::Hosts(hosts) = stand.operate(AdminRequest::Hosts).await else {
        panic!("none")
    };
    assert_eq!(
        (hosts[0].host, hosts[0].connected, hosts[0].leases),
        (market.host.party.host_id(), true, 1)
    );
    let AdminReply::Leases(leases) = stand.operate(AdminRequest::Leases { all: false }).await
    else {
        panic!("none")
    };
    assert_eq!(
        (leases[0].lease, leases[0].phase.as_str()),
        (lease.id, "offered")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_say_how_it_is() {
    let mut market = Market::new("").await;
    let _ = market.order("brave-otter").await;
    let _ = market.renter.ask(BrokerRequest::Info).await;
    let stand = &market.stand;
    assert_eq!(
        stand.page("/healthz").await,
        ("HTTP/1.1 200 OK".to_owned(), "ok\n".to_owned())
    );
    assert_eq!(stand.page("/readyz").await.1, "ready\n");
    assert!(stand.page("/").await.0.contains("404"));
    assert_eq!(stand.metric("broker_offers").await, 1);
    assert_eq!(stand.metric("broker_leases{state=\"offered\"}").await, 1);
    assert_eq!(stand.metric("broker_requests_total{ask=\"info\"}").await, 1);
    assert!(stand.metric("broker_net_connections").await >= 2);
    assert!(stand.metric("broker_goals_total{result=\"noted\"}").await >= 1);
    let (_, page) = stand.page("/metrics").await;
    let amount = |line: &str| -> i64 { line.rsplit(' ').next().unwrap().parse().unwrap() };
    let ledger: Vec<&str> = page
        .lines()
        .filter(|l| l.starts_with("broker_ledger_micro_usd{"))
        .collect();
    assert_eq!(
        ledger.iter().map(|line| amount(line)).sum::<i64>(),
        0,
        "{ledger:?}"
    );
    // Nothing that tells one party from another stands on the page.
    for id in [
        market.renter.renter_id().short(),
        market.host.party.host_id().short(),
    ] {
        assert!(!page.contains(&id[2..]), "{id}");
    }
    market.stand.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_is_answered_when_the_broker_stops() {
    let mut market = Market::new("").await;
    let lease = market.order("brave-otter").await;
    let watch = BrokerRequest::Watch {
        lease: lease.id,
        seen: u64::MAX,
        wait: protocol::units::Seconds(20),
    };
    let watching = market.renter.ask(watch);
    let stopping = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let since = Stopwatch::start();
        market.stand.stop().await;
        since.elapsed()
    };
    let (reply, took) = tokio::join!(watching, stopping);
    assert_eq!(Party::view(reply).id, lease.id);
    assert!(took < std::time::Duration::from_secs(8), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_ahead_of_the_clock_is_not_passed_over() {
    let market = Market::new("").await;
    let _ = market.order("brave-otter").await;
    assert_eq!(market.stand.page("/readyz").await.1, "ready\n");
    // What a machine does whose clock was an hour ahead and is put right.
    market
        .stand
        .clock
        .set_back(protocol::units::Millis(3_600_000));
    let (status, said) = market.stand.page("/readyz").await;
    assert!(status.contains("503"), "{status}");
    assert_eq!(said, "the journal is ahead of the clock\n");
}
