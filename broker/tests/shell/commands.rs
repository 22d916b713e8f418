//! The program itself, as an operator types it: what it prints, what it leaves, how it ends.

use broker::clock::Stopwatch;
use protocol::ids::RenterId;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A start may wait for a disk that other tests keep busy.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Typed {
    _temporary: TempDir,
    pub(crate) data: PathBuf,
}

pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A running program; killed when it is dropped.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Tells it to stop, as a service manager does, and gives its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let pid = i32::try_from(self.0.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.0.wait().unwrap().code()
    }
}

impl Typed {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let data = temporary.path().join("broker");
        Self {
            _temporary: temporary,
            data,
        }
    }

    /// A folder with a broker of free ports in it.
    pub(crate) fn made() -> Self {
        let typed = Self::new();
        typed
            .say(&[
                "init",
                "--listen",
                "/ip4/127.0.0.1/tcp/0",
                "--metrics",
                "127.0.0.1:0",
            ])
            .ok();
        typed
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_feira-broker"));
        command
            .args(words)
            .arg("--data")
            .arg(&self.data)
            .env_remove("FEIRA_BROKER_DATA");
        command
    }

    pub(crate) fn say(&self, words: &[&str]) -> Said {
        let mut command = self.command(words);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        let since = Stopwatch::start();
        // What these commands print fits into a pipe.
        while running.0.try_wait().unwrap().is_none() {
            assert!(
                since.elapsed() < PATIENCE,
                "`{}` did not end",
                words.join(" ")
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        Said::of(&mut running.0)
    }

    /// Runs it until it says that it is ready; gives the lines of its ready file.
    pub(crate) fn run(&self) -> (Running, Vec<String>) {
        let ready = self.data.join("ready");
        let _ = fs::remove_file(&ready);
        let words = [
            "run",
            "--log-format",
            "json",
            "--ready-file",
            ready.to_str().unwrap(),
        ];
        let child = self.command(&words).stderr(Stdio::null()).spawn().unwrap();
        let running = Running(child);
        let since = Stopwatch::start();
        while since.elapsed() < PATIENCE {
            if let Ok(text) = fs::read_to_string(&ready) {
                return (running, text.lines().map(str::to_owned).collect());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it was not ready in time");
    }
}

impl Said {
    fn of(ended: &mut Child) -> Self {
        let (mut out, mut err) = (String::new(), String::new());
        ended
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        ended
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        Self {
            code: ended.wait().unwrap().code().unwrap_or(-1),
            out,
            err,
        }
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.code(0, "")
    }

    #[track_caller]
    pub(crate) fn code(self, code: i32, says: &str) -> Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        let all = format!("{}{}", self.out, self.err);
        assert!(all.contains(says), "`{says}` is not in: {all}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// The id of some renter.
pub(crate) fn renter() -> String {
    let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    RenterId::from_bytes(key.verifying_key().to_bytes()).to_string()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn init_makes_what_is_missing_and_keeps_what_is_there() {
    let typed = Typed::new();
    let first = typed
        .say(&[
            "init",
            "--name",
            "eu1",
            "--listen",
            "/ip4/192.0.2.7/tcp/7700",
        ])
        .ok();
    assert!(
        first.out.contains("/ip4/192.0.2.7/tcp/7700/p2p/12D3KooW"),
        "{}",
        first.out
    );
    let key = typed.data.join("identity.key");
    assert_eq!(
        (
            mode(&typed.data),
            mode(&key),
            mode(&typed.data.join("broker.toml"))
        ),
        (0o700, 0o600, 0o600)
    );
    let (key_before, toml_before) = (
        fs::read(&key).unwrap(),
        fs::read(typed.data.join("broker.toml")).unwrap(),
    );
    let again = typed.say(&["init", "--json"]).ok().json();
    assert_eq!(
        (&again["key_made"], &again["config_made"]),
        (&Value::Bool(false), &Value::Bool(false))
    );
    assert!(first.out.contains(again["broker"].as_str().unwrap()));
    typed
        .say(&["init", "--fee-bps", "200"])
        .code(0, "says otherwise than --fee-bps");
    assert_eq!(typed.say(&["init", "--if-missing"]).ok().out, "");
    assert_eq!(fs::read(&key).unwrap(), key_before);
    assert_eq!(
        fs::read(typed.data.join("broker.toml")).unwrap(),
        toml_before
    );
}

#[test]
fn a_broker_that_runs_answers_its_operator() {
    let typed = Typed::made();
    let (running, ready) = typed.run();
    assert!(
        ready[0].starts_with("/ip4/127.0.0.1/tcp/") && ready[0].contains("/p2p/12D3KooW"),
        "{ready:?}"
    );
    assert!(
        ready[1].starts_with("http://127.0.0.1:") && ready[1].ends_with("/metrics"),
        "{ready:?}"
    );
    let status = typed.say(&["status", "--json"]).ok().json();
    assert_eq!(
        status["status"]["addresses"][0].as_str(),
        Some(ready[0].as_str())
    );
    assert!(typed.say(&["status"]).ok().out.contains("connections 0"));

    let renter = renter();
    let id = protocol::ids::DepositId::from_bytes([9; 16]).to_string();
    for _ in 0..2 {
        typed
            .say(&["deposit", "--new", &renter, "10.25", "--id", &id])
            .code(0, "$10.25 available");
    }
    typed
        .say(&["deposit", "--new", &renter, "0.75"])
        .code(0, "$11.00 available");
    typed
        .say(&["deposit", "--new", &renter, "0"])
        .code(2, "more than nothing");
    typed
        .say(&["deposit", &renter[..9], "1"])
        .code(2, "not a whole renter");
    let accounts = typed.say(&["accounts", "--json"]).ok().json();
    assert_eq!(
        accounts["items"][0]["renter"].as_str(),
        Some(renter.as_str())
    );
    assert_eq!(
        accounts["items"][0]["available_usd"].as_str(),
        Some("11.000000")
    );
    assert!(typed.say(&["accounts"]).ok().out.contains("$11.00"));
    assert_eq!(
        typed.say(&["hosts", "--json"]).ok().json()["items"],
        serde_json::json!([])
    );
    typed.say(&["hosts"]).code(0, "no host is heard");
    typed.say(&["leases", "--all"]).code(0, "no lease");
    typed.say(&["ledger", "check"]).code(0, "the books balance");
    typed.say(&["replay"]).code(0, "the books balance");
    typed.say(&["doctor"]).code(0, "0 failed");

    assert_eq!(running.terminate(), Some(0));
    assert!(!typed.data.join("admin.sock").exists());
    typed.say(&["status"]).code(8, "feira-broker run --data");
    typed
        .say(&["deposit", "--new", &renter, "1"])
        .code(8, "--id t-");
    let books = typed.say(&["ledger", "check", "--json"]).ok().json();
    assert_eq!(
        books["ledger"]["by_kind_usd"]["renter-available"].as_str(),
        Some("11.000000")
    );
}

#[test]
fn a_kill_loses_nothing_that_was_answered() {
    let typed = Typed::made();
    let renter = renter();
    let (running, _) = typed.run();
    typed.say(&["deposit", "--new", &renter, "3"]).ok();
    // The socket's file stays behind, as after a crash.
    drop(running);
    assert!(typed.data.join("admin.sock").exists());
    typed.say(&["accounts"]).code(8, "no broker runs");
    let (_running, _) = typed.run();
    assert!(typed.say(&["accounts"]).ok().out.contains("$3.00"));
}

#[test]
fn a_backup_is_whole_and_overwrites_nothing() {
    let typed = Typed::made();
    let (running, _) = typed.run();
    let renter = renter();
    typed.say(&["deposit", "--new", &renter, "5"]).ok();
    let file = typed.data.join("copy.db");
    let file = file.to_str().unwrap();
    let made = typed.say(&["backup", file, "--json"]).ok().json();
    assert_eq!(made["events"].as_u64(), Some(1));
    assert_eq!(mode(Path::new(file)), 0o600);
    let before = fs::read(file).unwrap();
    typed.say(&["backup", file]).code(2, "left as it is");
    assert_eq!(fs::read(file).unwrap(), before);
    drop(running);

    // A broker made of the copy and the key has the money.
    let restored = Typed::new();
    fs::create_dir(&restored.data).unwrap();
    fs::set_permissions(&restored.data, fs::Permissions::from_mode(0o700)).unwrap();
    for (from, to) in [
        ("identity.key", "identity.key"),
        ("broker.toml", "broker.toml"),
        ("copy.db", "journal.db"),
    ] {
        fs::copy(typed.data.join(from), restored.data.join(to)).unwrap();
    }
    let (_running, _) = restored.run();
    assert!(restored.say(&["accounts"]).ok().out.contains("$5.00"));
    // Offline it works as well.
    let offline = typed.data.join("offline.db");
    typed.say(&["backup", offline.to_str().unwrap()]).ok();
}

#[test]
fn what_is_in_the_way_is_named() {
    let typed = Typed::made();
    let (running, ready) = typed.run();
    typed.say(&["run"]).code(1, "another broker");

    let port = ready[0].split('/').nth(4).unwrap();
    let other = Typed::new();
    let listen = format!("/ip4/127.0.0.1/tcp/{port}");
    other.say(&["init", "--listen", &listen]).ok();
    other.say(&["run"]).code(1, port);
    other.say(&["doctor"]).code(1, "cannot listen on");
    let page = ready[1]
        .trim_start_matches("http://")
        .trim_end_matches("/metrics");
    let third = Typed::new();
    third
        .say(&[
            "init",
            "--listen",
            "/ip4/127.0.0.1/tcp/0",
            "--metrics",
            page,
        ])
        .ok();
    third.say(&["run"]).code(1, page);
    drop(running);

    fs::set_permissions(
        typed.data.join("identity.key"),
        fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    typed.say(&["run"]).code(4, "chmod 0600");
    typed.say(&["doctor"]).code(1, "chmod 0600");
}

#[test]
fn wrong_settings_are_named_by_line_and_field() {
    let typed = Typed::made();
    let toml = typed.data.join("broker.toml");
    let good = fs::read_to_string(&toml).unwrap();
    fs::write(&toml, format!("fee_pbs = 3\n{good}")).unwrap();
    typed.say(&["run"]).code(
        2,
        "broker.toml, line 1, field `fee_pbs`: unknown field `fee_pbs`",
    );
    typed.say(&["status"]).code(2, "line 1");
    typed.say(&["doctor"]).code(1, "line 1");
    let error = typed.say(&["run", "--json"]).code(2, "").err;
    let object: Value = serde_json::from_str(&error).unwrap();
    assert_eq!(object["exit_code"], 2);
    let nowhere = Typed::new();
    nowhere.say(&["run"]).code(3, "feira-broker init");
    nowhere.say(&["status"]).code(3, "feira-broker init");
    nowhere
        .say(&["backup", "/tmp/never.db"])
        .code(3, "no journal");
    nowhere.say(&["frobnicate"]).code(2, "unrecognized");
}
