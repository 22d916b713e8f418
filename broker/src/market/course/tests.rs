//! Each step of a lease is in the log once, with who and why, and what failed is counted once.

use super::Course;
use crate::core::settings::MarketSettings;
use crate::core::tests::world::{Ask, World, host_id, renter_id};
use crate::metrics::{Happenings, MarketNumbers, Metrics};
use protocol::ids::LeaseId;
use protocol::lease::{ContainerState, Detail, Problem, ProblemKind, Stage};
use protocol::net::NetCounters;
use protocol::order::LeaseAction;
use serde_json::Value;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Where the log of one test goes.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Runs `tell` and gives what it logged: as text, and as JSON.
    fn of(tell: impl Fn()) -> (String, Vec<Value>) {
        let (text, json) = (Self::default(), Self::default());
        let (to_text, to_json) = (text.clone(), json.clone());
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || to_text.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, &tell);
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_writer(move || to_json.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, &tell);
        let lines = json.text();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        (text.text(), lines.collect())
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn world() -> World {
    let mut world = World::new(MarketSettings::default());
    world.offer(0, Ask::default());
    world.deposit(0, 10_000_000);
    world
}

/// Tells all that happened in a world.
fn tell(world: &World, happenings: &Happenings) {
    let empty = crate::core::Market::new(crate::core::tests::world::broker_id());
    let mut course = Course::new(&empty, happenings.clone());
    for event in &world.journal {
        course.note(event);
    }
    course.commit();
    course.tell(world.desk.market());
}

/// The fields of lines that say what is asked of them.
fn said<'a>(lines: &'a [Value], field: &str) -> Vec<&'a str> {
    lines
        .iter()
        .map(|line| line[field].as_str().unwrap_or("-"))
        .collect()
}

fn page_of(happenings: Happenings) -> String {
    Metrics::of(happenings)
        .page(&NetCounters::default(), &MarketNumbers::default())
        .unwrap()
}

fn ran_and_ended() -> (World, LeaseId) {
    let mut world = world();
    let order = world.order(0);
    let lease = world.place(0, order).unwrap();
    world.wait(1);
    world.grant(lease).unwrap();
    world.wait(2);
    world.report(lease, ContainerState::Running, 0).unwrap();
    // Silent for longer than 90 s, then there again.
    world.wait(100);
    world.tick();
    world.report(lease, ContainerState::Running, 1_000).unwrap();
    world.act(lease, LeaseAction::End).unwrap();
    world.report(lease, ContainerState::Gone, 2_000).unwrap();
    (world, lease)
}

#[test]
fn every_transition_of_a_lease_is_logged_once_with_who_and_why() {
    let (world, lease) = ran_and_ended();
    let (text, lines) = Log::of(|| tell(&world, &Happenings::new()));
    assert_eq!(
        said(&lines, "message"),
        [
            "lease ordered",
            "lease accepted by its host",
            "lease runs",
            "the lease's host is not heard",
            "the lease's host is heard again",
            "lease ends",
            "lease ended",
        ]
    );
    let id = lease.to_string();
    assert!(said(&lines, "lease").iter().all(|said| *said == id));
    let host = host_id(0).short();
    assert!(said(&lines, "host").iter().all(|said| *said == host));
    let renter = renter_id(0).short();
    assert!(said(&lines, "renter").iter().all(|said| *said == renter));
    assert_eq!(said(&lines, "why")[..5], ["-"; 5]);
    assert_eq!(said(&lines, "why")[5..], ["renter"; 2]);
    assert!(lines.iter().all(|line| line["level"] == "INFO"));
    // The same as text.
    assert_eq!(text.lines().count(), 7);
    let last = text.lines().last().unwrap();
    for part in [" INFO ", "lease ended", &id, &host, "why=\"renter\""] {
        assert!(last.contains(part), "{part} is not in {last}");
    }
}

#[test]
fn the_seconds_of_a_start_are_counted_by_stage() {
    let (world, _) = ran_and_ended();
    let happenings = Happenings::new();
    tell(&world, &happenings);
    let page = page_of(happenings);
    for line in [
        "broker_lease_start_seconds_sum{stage=\"accepted\"} 1.0",
        "broker_lease_start_seconds_sum{stage=\"running\"} 3.0",
        "broker_lease_start_seconds_count{stage=\"running\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    assert!(!page.contains("broker_lease_failures_total{"), "{page}");
}

#[test]
fn a_failed_start_is_logged_with_its_reason_and_counted_once() {
    let mut world = world();
    let order = world.order(0);
    let lease = world.place(0, order).unwrap();
    world.grant(lease).unwrap();
    let problem = Problem {
        stage: Stage::Pulling,
        kind: ProblemKind::ImageUnknown,
        // A stranger's words must not look like another line of the log.
        detail: Detail::cut("no such\nimage"),
    };
    let failed = ContainerState::Failed(problem);
    world.report(lease, failed, 0).unwrap();
    world.report(lease, ContainerState::Gone, 0).unwrap();
    let happenings = Happenings::new();
    tell(&world, &happenings);
    let (text, lines) = Log::of(|| tell(&world, &Happenings::new()));
    let end: Vec<&Value> = lines
        .iter()
        .filter(|line| line["message"] == "lease ends" || line["message"] == "lease ended")
        .collect();
    assert_eq!(end.len(), 2, "{lines:?}");
    for line in end {
        assert_eq!(
            (&line["why"], &line["stage"], &line["detail"]),
            (
                &Value::from("image_unknown"),
                &Value::from("pulling"),
                &Value::from("no such\nimage")
            )
        );
    }
    assert_eq!(text.lines().count(), lines.len(), "{text}");
    let line = "broker_lease_failures_total{stage=\"pulling\",code=\"image_unknown\"} 1";
    let page = page_of(happenings);
    assert!(page.lines().any(|found| found == line), "{page}");
}
