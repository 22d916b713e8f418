//! Whatever dies, and whenever it dies: at most one container for one order, and money exact to the
//! micro-dollar.

#![cfg(test)]

use feira_tests::market::Market;
use feira_tests::programs::{program, run_within, signal, wait_for};
use feira_tests::renter::containers_of_lease;
use feira_tests::stage::Stage;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
/// Moments of a start at which something is killed: from before the order arrives to after it runs.
const MOMENTS_MS: [u64; 6] = [5, 40, 90, 180, 350, 900];

#[test]
fn the_broker_is_killed_at_every_step_of_a_rental() {
    let mut market = Market::on(Stage::new(), &[]);
    for moment in MOMENTS_MS {
        let stage = format!("broker killed after {moment} ms");
        let mut rent = market.start_rent(&format!("b{moment}"));
        std::thread::sleep(Duration::from_millis(moment));
        market.broker.kill();
        std::thread::sleep(Duration::from_millis(300));
        market.broker.start();
        rent.wait().unwrap();
        market.settle(&stage);
        market.renter.wait_for_offers(1);
    }
}

#[test]
fn the_agent_is_killed_at_every_step_of_a_rental() {
    let mut market = Market::on(Stage::new(), &[]);
    for moment in MOMENTS_MS {
        let stage = format!("agent killed after {moment} ms");
        let mut rent = market.start_rent(&format!("a{moment}"));
        std::thread::sleep(Duration::from_millis(moment));
        market.host.kill();
        std::thread::sleep(Duration::from_millis(300));
        market.host.start();
        rent.wait().unwrap();
        market.settle(&stage);
        market.renter.wait_for_offers(1);
    }
}

#[test]
fn the_client_is_killed_at_every_step_of_a_rental() {
    let market = Market::on(Stage::new(), &[]);
    for moment in MOMENTS_MS {
        let stage = format!("client killed after {moment} ms");
        let mut rent = market.start_rent(&format!("c{moment}"));
        std::thread::sleep(Duration::from_millis(moment));
        rent.kill().unwrap();
        rent.wait().unwrap();
        market.settle(&stage);
        market.renter.wait_for_offers(1);
    }
}

#[test]
fn an_agent_that_restarts_adopts_what_runs() {
    let mut market = Market::on(Stage::new(), &[]);
    let lease = market.renter.rent("kept", &[]).ok().json();
    let id = lease["id"].as_str().unwrap();
    let before = containers_of_lease(id);
    let _ = market
        .renter
        .feira(&["exec", "kept", "--", "touch", "/mine"])
        .ok();
    market.host.kill();
    market.host.start();
    wait_for("the adopted container to be reachable", SOON, || {
        let said = market.renter.feira(&["exec", "kept", "--", "ls", "/mine"]);
        (said.code == 0).then_some(())
    });
    assert_eq!(
        containers_of_lease(id),
        before,
        "the same container, not another"
    );
    market.settle("restart");
}

#[test]
fn a_host_that_never_accepts_loses_the_lease_and_costs_nothing() {
    let market = Market::on(Stage::new(), &[("accept_within_s", "3")]);
    let pid = market.host.running.as_ref().unwrap().pid();
    signal(pid, "STOP");
    let said = market.renter.rent("silent", &[]);
    signal(pid, "CONT");
    assert!([1, 8].contains(&said.code), "{said}");
    assert_eq!(market.renter.balance(), (1_000_000_000, 0));
    market.settle("silent host");
}

/// An engine of the test's own, which it may restart.
struct Engine {
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl Engine {
    fn start() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("fe")
            .tempdir_in("/tmp")
            .unwrap();
        let mut engine = Self {
            folder,
            child: None,
        };
        engine.up();
        engine
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    fn up(&mut self) {
        let at = |name: &str| self.folder.path().join(name);
        let log = std::fs::File::create(at("log")).unwrap();
        let mut command = Command::new("dockerd");
        command
            .arg("--host")
            .arg(format!("unix://{}", self.socket().display()));
        command
            .arg("--data-root")
            .arg(at("data"))
            .arg("--exec-root")
            .arg(at("exec"));
        command
            .arg("--pidfile")
            .arg(at("pid"))
            // The machine's engine keeps its bridge: `none` would delete it under its feet.
            .args(["--iptables=false", "--ip-masq=false", "--bridge", &bridge()]);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.child = Some(command.spawn().expect("dockerd"));
        wait_for("the engine", SOON, || {
            (docker(&self.socket(), &["info"]) == 0).then_some(())
        });
    }

    /// Its containers, running or not.
    fn containers(&self) -> Vec<String> {
        let mut list = Command::new("docker");
        list.arg("-H")
            .arg(format!("unix://{}", self.socket().display()))
            .args(["ps", "-aq"]);
        let said = run_within(&mut list, SOON);
        said.out.lines().map(str::to_owned).collect()
    }

    fn down(&mut self) {
        if let Some(mut child) = self.child.take() {
            signal(child.id(), "TERM");
            let _ = child.wait();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for container in self.containers() {
            docker(&self.socket(), &["rm", "-f", &container]);
        }
        self.down();
    }
}

/// The default bridge of the machine's engine.
fn bridge() -> String {
    let name = r#"{{index .Options "com.docker.network.bridge.name"}}"#;
    let mut command = Command::new("docker");
    command.args(["network", "inspect", "bridge", "--format", name]);
    run_within(&mut command, SOON).ok().out.trim().to_owned()
}

fn docker(socket: &Path, arguments: &[&str]) -> i32 {
    let mut command = Command::new("docker");
    command
        .arg("-H")
        .arg(format!("unix://{}", socket.display()))
        .args(arguments);
    run_within(&mut command, SOON).code
}

#[test]
fn the_engine_is_restarted_under_a_lease() {
    let mut engine = Engine::start();
    let market = Market::on(Stage::on_engine(&engine.socket()), &[]);
    let _ = market.renter.rent("under", &["--disk", "1"]).ok();
    engine.down();
    engine.up();
    // Without live-restore the container ends with its engine; the lease is then stopped and can resume,
    // or the host is not reachable meanwhile. Either way it comes to rest and can be started again.
    let lease = wait_for("the lease to come to rest", SOON, || {
        let lease = market.renter.lease("under");
        ["running", "stopped"]
            .contains(&lease["state"].as_str()?)
            .then_some(lease)
    });
    if lease["state"] == "running" {
        let _ = market.renter.wait_for_phase("under", "stopped", SOON);
    }
    market.renter.wait_for_offers(1);
    let _ = market.renter.feira(&["resume", "under"]).ok();
    let _ = market.renter.wait_for_phase("under", "running", SOON);
    let said = market
        .renter
        .feira(&["exec", "under", "--", "echo", "alive"])
        .ok();
    assert_eq!(said.out, "alive\n");
    let _ = market.renter.feira(&["end", "under", "--yes"]).ok();
    market.broker.check_ledger();
}

#[test]
fn the_engine_is_restarted_while_a_lease_starts_stops_resumes_and_ends() {
    let mut engine = Engine::start();
    let market = Market::on(Stage::on_engine(&engine.socket()), &[]);
    for command in ["rent", "stop", "resume", "end"] {
        let name = format!("amid-{command}");
        market.renter.wait_for_offers(1);
        let mut child = if command == "rent" {
            market.start_rent(&name)
        } else {
            let _ = market.renter.rent(&name, &[]).ok();
            if command == "resume" {
                let _ = market.renter.feira(&["stop", &name]).ok();
            }
            let arguments = [command, name.as_str(), "--yes"];
            market.begin(&arguments[..if command == "end" { 3 } else { 2 }])
        };
        std::thread::sleep(Duration::from_millis(60));
        engine.down();
        engine.up();
        child.wait().unwrap();
        // Whatever became of it, it can be ended, and nothing is left.
        let said = market.renter.feira(&["end", &name, "--yes"]);
        assert!([0, 1, 3, 7].contains(&said.code), "{said}");
        wait_for("the engine to be empty", SOON, || {
            engine.containers().is_empty().then_some(())
        });
        market.check_money(command);
    }
}

#[test]
fn programs_stop_cleanly_and_containers_outlive_the_agent() {
    let mut market = Market::on(Stage::new(), &[]);
    let lease = market.renter.rent("steady", &[]).ok().json();
    let id = lease["id"].as_str().unwrap().to_owned();
    assert_eq!(market.host.running.as_mut().unwrap().terminate(), Some(0));
    assert_eq!(containers_of_lease(&id).len(), 1);
    assert_eq!(market.broker.running.as_mut().unwrap().terminate(), Some(0));
    market.broker.start();
    market.host.start();
    market.settle("clean stop");
}

#[test]
fn the_programs_are_there() {
    for name in ["feira", "feira-broker", "feira-host"] {
        let said = run_within(Command::new(program(name)).arg("--version"), SOON).ok();
        assert!(said.out.starts_with(name), "{said}");
    }
}
