//! The owner's commands as an owner types them: what is printed, what is refused, which exit code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::Duration;

use tempfile::TempDir;

const BROKER: &str =
    "/ip4/127.0.0.1/tcp/9/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN";
const OTHER: &str =
    "/ip4/127.0.0.1/udp/9/quic-v1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN";

/// A folder that is closed to others, not yet a host's.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

fn host(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_feira-host"))
        .args(arguments)
        .arg("--data")
        .arg(folder)
        .env_remove("DOCKER_HOST")
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

#[track_caller]
fn ends(output: &Output, code: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        output.status.code(),
        Some(code),
        "stdout: {out}\nstderr: {err}"
    );
    (out, err)
}

/// A host that looks for its engine where there is none.
fn without_engine() -> TempDir {
    let folder = folder();
    ends(&host(folder.path(), &["init"]), 0);
    let file = folder.path().join("host.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        format!("engine = \"{}/none.sock\"\n{text}", folder.path().display()),
    )
    .unwrap();
    folder
}

#[test]
fn init_makes_a_host_and_can_be_run_again() {
    let folder = folder();
    let (first, note) = ends(&host(folder.path(), &["init", "--broker", BROKER]), 0);
    assert!(first.starts_with("host      h-"), "{first}");
    assert!(note.contains("Next: feira-host doctor --data"), "{note}");
    let mode = |name: &str| {
        std::fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode("identity.key"), mode("host.toml")), (0o600, 0o600));
    let before = std::fs::read_to_string(folder.path().join("host.toml")).unwrap();
    let (second, _) = ends(&host(folder.path(), &["init", "--broker", BROKER]), 0);
    assert_eq!(
        first.lines().next(),
        second.lines().next(),
        "another key was made"
    );
    assert!(second.contains("(kept"));
    assert_eq!(
        std::fs::read_to_string(folder.path().join("host.toml")).unwrap(),
        before
    );
    // Another address is added, and what was there stays.
    ends(&host(folder.path(), &["init", "--broker", OTHER]), 0);
    let after = std::fs::read_to_string(folder.path().join("host.toml")).unwrap();
    assert!(after.contains(BROKER) && after.contains(OTHER));
    let (json, _) = ends(&host(folder.path(), &["init", "--json"]), 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "feira.host-init/1");
    assert_eq!(json["brokers"].as_array().unwrap().len(), 1);
}

#[test]
fn a_broker_without_its_key_is_a_usage_error() {
    let folder = folder();
    let (_, err) = ends(
        &host(folder.path(), &["init", "--broker", "/ip4/127.0.0.1/tcp/9"]),
        2,
    );
    assert!(err.contains("--broker"), "{err}");
    ends(&host(folder.path(), &["lits"]), 2);
    // Nobody has a machine here yet.
    ends(&host(folder.path(), &["list"]), 3);
    ends(&host(folder.path(), &["list", "--price", "free"]), 2);
}

#[test]
fn a_mistake_in_the_settings_is_named_by_line_and_field() {
    let folder = folder();
    ends(&host(folder.path(), &["init"]), 0);
    let file = folder.path().join("host.toml");
    std::fs::write(&file, "brokers = []\nreport = 3\n").unwrap();
    let (_, err) = ends(&host(folder.path(), &["run"]), 2);
    assert!(
        err.contains("host.toml, line 2, field `report`: unknown field"),
        "{err}"
    );
    let (_, err) = ends(&host(folder.path(), &["status"]), 2);
    assert!(err.contains("line 2"), "{err}");
}

#[test]
fn a_key_that_others_may_read_is_refused_with_the_remedy() {
    let folder = folder();
    ends(&host(folder.path(), &["init"]), 0);
    let key = folder.path().join("identity.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (_, err) = ends(&host(folder.path(), &["run"]), 4);
    assert!(
        err.contains("mode is 0644") && err.contains("chmod 0600"),
        "{err}"
    );
}

#[test]
fn without_a_host_the_way_to_one_is_said() {
    let folder = folder();
    for command in ["run", "status", "leases", "show-offer"] {
        let (_, err) = ends(&host(folder.path(), &[command]), 3);
        assert!(err.contains("feira-host init"), "{command}: {err}");
    }
}

#[test]
fn no_engine_is_said_with_the_remedy() {
    let folder = without_engine();
    let (_, err) = ends(&host(folder.path(), &["list", "--price", "0.35"]), 8);
    assert!(err.contains("no container engine answers"), "{err}");
    assert!(err.contains("systemctl start docker"), "{err}");
    let (out, _) = ends(&host(folder.path(), &["doctor"]), 1);
    assert!(out.contains("fail  engine"), "{out}");
    assert!(out.contains("not ready to list"), "{out}");
    let (json, _) = ends(&host(folder.path(), &["doctor", "--json"]), 1);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let checks = json["checks"].as_array().unwrap();
    let grade = |name: &str| {
        checks
            .iter()
            .find(|check| check["name"] == name)
            .map(|check| check["grade"].clone())
    };
    assert_eq!(grade("key").unwrap(), "ok");
    assert_eq!(grade("engine").unwrap(), "fail");
    assert_eq!(grade("listing").unwrap(), "warn");
}

/// A `feira-host run` with its log in a file; killed when dropped.
struct Running {
    process: Child,
    log: std::path::PathBuf,
}

impl Running {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let log = folder.join("log");
        let process = Command::new(env!("CARGO_BIN_EXE_feira-host"))
            .arg("run")
            .args(more)
            .arg("--data")
            .arg(folder)
            .env_remove("DOCKER_HOST")
            .env_remove("NO_COLOR")
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { process, log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn wait_for(&self, words: &str) {
        for _ in 0..1000 {
            if self.log().contains(words) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no '{words}' in {}", self.log());
    }

    /// The code it ends with after a polite signal.
    fn stop(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _over = self.process.kill();
        let _over = self.process.wait();
    }
}

#[test]
fn run_waits_for_an_engine_that_is_not_there_yet_and_says_so_once() {
    let folder = without_engine();
    let mut agent = Running::start(folder.path(), &[]);
    agent.wait_for("the container engine does not answer");
    agent.wait_for("agent runs");
    // Long enough for several tries.
    std::thread::sleep(Duration::from_secs(4));
    let log = agent.log();
    assert_eq!(log.matches("does not answer").count(), 1, "{log}");
    let (out, _) = ends(&host(folder.path(), &["status"]), 0);
    assert!(
        out.contains("does not answer: no container engine"),
        "{out}"
    );
    assert_eq!(agent.stop(), Some(0), "{}", agent.log());
}

#[test]
fn a_log_that_is_no_terminal_has_no_colours_and_no_names_of_types() {
    let folder = without_engine();
    let mut agent = Running::start(folder.path(), &[]);
    agent.wait_for("agent runs");
    assert_eq!(agent.stop(), Some(0));
    let log = agent.log();
    assert!(!log.contains('\u{1b}'), "{log:?}");
    assert!(log.contains("host=h-") && !log.contains(" { "), "{log}");
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let folder = without_engine();
    for arguments in [&["leases"][..], &["leases", "--json"], &["init"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_feira-host"))
            .args(arguments)
            .arg("--data")
            .arg(folder.path())
            .stdout(
                std::fs::OpenOptions::new()
                    .write(true)
                    .open("/dev/full")
                    .unwrap(),
            )
            .output()
            .unwrap();
        let (_, err) = ends(&output, 1);
        assert!(err.contains("could not be written"), "{err}");
    }
}

#[test]
fn a_machine_is_not_given_away_by_a_slip() {
    let folder = without_engine();
    let (_, err) = ends(&host(folder.path(), &["list", "--price", "0"]), 2);
    assert!(
        err.contains("gives the machine away") && err.contains("--free"),
        "{err}"
    );
    let (_, err) = ends(
        &host(folder.path(), &["list", "--price", "0.35", "--free"]),
        2,
    );
    assert!(err.contains("--free means --price 0"), "{err}");
    let (_, err) = ends(&host(folder.path(), &["list", "--price", "-1"]), 2);
    assert!(
        err.contains("--price") && err.contains("nothing or more"),
        "{err}"
    );
    // Meant so, it goes on to look for the engine.
    ends(&host(folder.path(), &["list", "--price", "0", "--free"]), 8);
}

/// A user who may do nothing that everybody may not.
const NOBODY: u32 = 65_534;

#[test]
fn an_engine_that_may_not_be_used_is_said_with_the_remedy() {
    let folder = folder();
    let socket = folder.path().join("docker.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    ends(&host(folder.path(), &["init"]), 0);
    let file = folder.path().join("host.toml");
    let settings = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        format!("engine = \"{}\"\n{settings}", socket.display()),
    )
    .unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_feira-host"));
    command.args(["run", "--data"]).arg(folder.path());
    if rustix::process::geteuid().is_root() {
        // Root may use every socket: the command is somebody else's.
        for path in [folder.path(), &folder.path().join("identity.key"), &file] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    let (_, err) = ends(&command.env_remove("DOCKER_HOST").output().unwrap(), 4);
    assert!(
        err.contains("may not be used by this user") && err.contains("groups docker"),
        "{err}"
    );
}

#[test]
fn root_looks_after_a_host_of_another_user_and_leaves_nothing_there_that_it_could_not_use() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = without_engine();
    for path in [
        folder.path().to_owned(),
        folder.path().join("identity.key"),
        folder.path().join("host.toml"),
    ] {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let (out, _) = ends(&host(folder.path(), &["doctor"]), 1);
    assert!(out.contains("ok    key"), "{out}");
    ends(&host(folder.path(), &["leases"]), 0);
    for command in [&["run"][..], &["init", "--broker", BROKER]] {
        let (_, err) = ends(&host(folder.path(), command), 4);
        assert!(err.contains("belongs to nobody"), "{err}");
        assert!(err.contains("runuser -u nobody -- feira-host"), "{err}");
    }
    let owned_by_root = std::fs::read_dir(folder.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().metadata().unwrap().uid() == 0);
    assert_eq!(owned_by_root.count(), 0);
}

#[test]
fn what_is_not_listed_or_not_running_is_said() {
    let folder = without_engine();
    let (_, err) = ends(&host(folder.path(), &["unlist"]), 3);
    assert!(
        err.contains("not listed yet") && err.contains("feira-host list --price"),
        "{err}"
    );
    ends(&host(folder.path(), &["show-offer"]), 3);
    let (_, err) = ends(&host(folder.path(), &["status"]), 8);
    assert!(
        err.contains("no agent runs") && err.contains("feira-host run"),
        "{err}"
    );
    let (out, _) = ends(&host(folder.path(), &["leases"]), 0);
    assert_eq!(out, "no leases\n");
    let (out, _) = ends(&host(folder.path(), &["earnings"]), 0);
    assert_eq!(out, "no brokers are set\n");
    let (_, err) = ends(&host(folder.path(), &["status", "--json"]), 8);
    let json: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert_eq!(json["exit_code"], 8);
}

#[test]
fn an_unreachable_broker_is_a_failed_check_and_no_earnings() {
    let folder = folder();
    ends(&host(folder.path(), &["init", "--broker", BROKER]), 0);
    let (out, _) = ends(&host(folder.path(), &["doctor"]), 1);
    assert!(out.contains("fail  broker"), "{out}");
    ends(&host(folder.path(), &["earnings"]), 8);
}

#[test]
fn help_names_the_exit_codes_and_completions_are_printed() {
    let help = Command::new(env!("CARGO_BIN_EXE_feira-host"))
        .arg("--help")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&help.stdout).contains("Exit codes"));
    let folder = folder();
    let (script, _) = ends(&host(folder.path(), &["completions", "bash"]), 0);
    assert!(script.contains("complete -F"), "{script}");
}
