//! A broker, hosts and renters as real processes under one temporary folder, ready within seconds.

use crate::programs::{
    Said, program, run_within, set_clock_ahead, set_lines, signal, wait_for, wait_for_lines,
};
use crate::renter::Renter;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a program may take to be ready, on a machine with other work.
pub(crate) const READY: Duration = Duration::from_secs(30);
/// How long one command may take.
pub(crate) const COMMAND: Duration = Duration::from_secs(90);

/// One temporary folder and the address of the engine.
#[derive(Debug)]
pub struct Stage {
    folder: tempfile::TempDir,
    docker: Option<PathBuf>,
}

/// A long-running program: stopped by its process id when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as `kill -9` does, and waits until it is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop with SIGTERM and gives its exit code.
    ///
    /// # Panics
    /// When it does not stop in time.
    #[track_caller]
    pub fn terminate(&mut self) -> Option<i32> {
        signal(self.pid(), "TERM");
        let status = wait_for("a program to stop", READY, || {
            self.child.try_wait().ok().flatten()
        });
        status.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// A broker: its folder, its fixed port, and its process while it runs.
#[derive(Debug)]
pub struct Broker {
    /// Data folder.
    pub data: PathBuf,
    port: u16,
    ready: PathBuf,
    log: PathBuf,
    /// The process; none while it is down.
    pub running: Option<Running>,
    /// Seconds that its clock is ahead, from the next start.
    pub clock_ahead_s: i64,
    /// Its TCP address with its key, as hosts and renters are given it.
    pub address: String,
}

/// A host: its folder and its process while it runs.
#[derive(Debug)]
pub struct Host {
    /// Data folder.
    pub data: PathBuf,
    docker: Option<PathBuf>,
    log: PathBuf,
    /// The process; none while it is down.
    pub running: Option<Running>,
    /// Seconds that its clock is ahead, from the next start.
    pub clock_ahead_s: i64,
    /// Variables of its programs, beside those of the test.
    pub environment: Vec<(String, PathBuf)>,
    /// What starts its program instead of the test itself: a command, with the program's own as its end.
    pub wrapper: Vec<String>,
}

/// A port that was free a moment ago.
///
/// # Panics
/// When none is.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

impl Stage {
    /// An empty stage on the default engine.
    ///
    /// # Panics
    /// When there is no temporary folder.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("feira")
            .tempdir()
            .expect("a folder");
        Self {
            folder,
            docker: None,
        }
    }

    /// An empty stage whose hosts use the engine at this socket.
    #[must_use]
    pub fn on_engine(socket: &Path) -> Self {
        Self {
            docker: Some(socket.to_owned()),
            ..Self::new()
        }
    }

    /// The same, whose hosts use the engine at this socket from now on.
    #[must_use]
    pub fn with_engine(self, socket: &Path) -> Self {
        Self {
            docker: Some(socket.to_owned()),
            ..self
        }
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes and starts a broker; `settings` are lines of its `broker.toml`, replacing those of the same
    /// name.
    #[track_caller]
    #[must_use]
    pub fn broker(&self, name: &str, settings: &[(&str, &str)]) -> Broker {
        let data = self.folder().join(name);
        let port = free_port();
        let listen = format!("/ip4/127.0.0.1/tcp/{port}");
        let mut init = Command::new(program("feira-broker"));
        init.args(["init", "--name", name, "--listen", &listen, "--data"])
            .arg(&data);
        let _ = run_within(&mut init, COMMAND).ok();
        set_lines(&data.join("broker.toml"), settings);
        let ready = self.folder().join(format!("{name}.ready"));
        let log = self.folder().join(format!("{name}.log"));
        let mut broker = Broker {
            data,
            port,
            ready,
            log,
            running: None,
            clock_ahead_s: 0,
            address: String::new(),
        };
        broker.start();
        broker
    }

    /// Makes a host of these brokers, lists it with `listing` and starts it.
    #[track_caller]
    #[must_use]
    pub fn host(&self, name: &str, brokers: &[&str], listing: &[&str]) -> Host {
        let mut host = self.unlisted_host(name, brokers);
        let mut arguments = vec!["list"];
        arguments.extend_from_slice(listing);
        let _ = host.command(&arguments).ok();
        host.start();
        host
    }

    /// Makes a host of these brokers and nothing more.
    #[track_caller]
    #[must_use]
    pub fn unlisted_host(&self, name: &str, brokers: &[&str]) -> Host {
        let data = self.folder().join(name);
        let log = self.folder().join(format!("{name}.log"));
        let host = Host {
            data,
            docker: self.docker.clone(),
            log,
            running: None,
            clock_ahead_s: 0,
            environment: Vec::new(),
            wrapper: Vec::new(),
        };
        let mut arguments = vec!["init"];
        for broker in brokers {
            arguments.extend_from_slice(&["--broker", broker]);
        }
        let _ = host.command(&arguments).ok();
        host
    }

    /// Makes a renter of these brokers.
    #[track_caller]
    #[must_use]
    pub fn renter(&self, name: &str, brokers: &[&str]) -> Renter {
        let mut renter = Renter {
            home: self.folder().join(name),
            id: String::new(),
            clock_ahead_s: 0,
        };
        let mut arguments = vec!["init", "--yes", "--json"];
        for broker in brokers {
            arguments.extend_from_slice(&["--broker", broker]);
        }
        let said = renter.feira(&arguments).ok();
        renter.id = said.json()["renter"]
            .as_str()
            .expect("a renter id")
            .to_owned();
        renter
    }
}

impl Default for Stage {
    fn default() -> Self {
        Self::new()
    }
}

impl Broker {
    /// Starts it and waits until it listens.
    #[track_caller]
    pub fn start(&mut self) {
        let _ = std::fs::remove_file(&self.ready);
        let mut command = Command::new(program("feira-broker"));
        command
            .arg("run")
            .arg("--data")
            .arg(&self.data)
            .arg("--ready-file")
            .arg(&self.ready);
        set_clock_ahead(&mut command, self.clock_ahead_s);
        self.running = Some(spawn(&mut command, &self.log));
        let lines = wait_for_lines(&self.ready, READY);
        let tcp = lines
            .iter()
            .find(|line| line.contains("/tcp/") && line.contains("/p2p/"));
        self.address = tcp.expect("a TCP address").clone();
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Its socket address.
    #[must_use]
    pub fn socket(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Its address through another port: a proxy's.
    #[must_use]
    pub fn address_through(&self, proxy: SocketAddr) -> String {
        self.address.replace(
            &format!("/tcp/{}", self.port),
            &format!("/tcp/{}", proxy.port()),
        )
    }

    /// Runs an operator's command.
    #[track_caller]
    pub fn command(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(program("feira-broker"));
        command.args(arguments).arg("--data").arg(&self.data);
        set_clock_ahead(&mut command, self.clock_ahead_s);
        run_within(&mut command, COMMAND)
    }

    /// Gives a renter money.
    #[track_caller]
    pub fn deposit(&self, renter: &Renter, dollars: &str) {
        let _ = self.command(&["deposit", &renter.id, dollars]).ok();
    }

    /// Proves that the books balance.
    #[track_caller]
    pub fn check_ledger(&self) {
        let _ = self.command(&["ledger", "check"]).ok();
    }

    /// What it logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Host {
    /// Starts it; it is listed once its brokers show its offer.
    #[track_caller]
    pub fn start(&mut self) {
        let mut command = self.prepared();
        command.arg("run").arg("--data").arg(&self.data);
        self.running = Some(spawn(&mut command, &self.log));
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Runs a command of the host's.
    #[track_caller]
    pub fn command(&self, arguments: &[&str]) -> Said {
        let mut command = self.prepared();
        run_within(
            command.args(arguments).arg("--data").arg(&self.data),
            COMMAND,
        )
    }

    /// Sets lines of its `host.toml`, replacing those of the same name.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn set(&self, settings: &[(&str, &str)]) {
        set_lines(&self.data.join("host.toml"), settings);
    }

    fn prepared(&self) -> Command {
        let program = program("feira-host");
        let mut command = match self.wrapper.split_first() {
            None => Command::new(program),
            Some((first, more)) => {
                let mut command = Command::new(first);
                command.args(more).arg(program);
                command
            }
        };
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(socket) = &self.docker {
            command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
        }
        set_clock_ahead(&mut command, self.clock_ahead_s);
        command
    }

    /// What it logged.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

#[track_caller]
fn spawn(command: &mut Command, log: &Path) -> Running {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .expect("a log");
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone().expect("a log"))
        .stderr(file);
    Running {
        child: command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}")),
    }
}
