//! Runs the three programs and the container engine's client as a person would, and keeps what they said.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Where the built programs are: `FEIRA_BIN_DIR`, or beside this test's own executable.
///
/// # Panics
/// When the executable's own path is unknown.
#[must_use]
pub fn program(name: &str) -> PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told by scripts where to look"
    )]
    let folder = std::env::var("FEIRA_BIN_DIR").map(PathBuf::from);
    folder
        .unwrap_or_else(|_| {
            let test = std::env::current_exe().expect("own path");
            let deps = test.parent().expect("a folder");
            deps.parent().unwrap_or(deps).to_owned()
        })
        .join(name)
}

/// The loopback registry that holds the test images.
#[must_use]
pub fn registry() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told by scripts where to look"
    )]
    std::env::var("FEIRA_TEST_REGISTRY").unwrap_or_else(|_| "127.0.0.1:5000".to_owned())
}

/// Makes the program that `command` starts see a clock that is this many seconds ahead, or behind where it is less
/// than nothing. The time that passes is the same.
///
/// # Panics
/// When Debian's libfaketime is not installed.
pub fn set_clock_ahead(command: &mut Command, seconds: i64) {
    if seconds == 0 {
        return;
    }
    let folders = std::fs::read_dir("/usr/lib").expect("/usr/lib").flatten();
    let library = folders
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.exists());
    command
        .env(
            "LD_PRELOAD",
            library.expect("libfaketime: apt install libfaketime"),
        )
        .env("FAKETIME", format!("{seconds:+}s"))
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
}

/// What a program said and how it ended.
#[derive(Debug, Clone)]
pub struct Said {
    /// The command line, for messages.
    pub line: String,
    /// Its exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Itself, if the exit code is `code`.
    ///
    /// # Panics
    /// With everything that was said when the code is another.
    #[track_caller]
    #[must_use]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }

    /// Itself, if it succeeded.
    ///
    /// # Panics
    /// With everything that was said when it did not.
    #[track_caller]
    #[must_use]
    pub fn ok(self) -> Self {
        self.code(0)
    }

    /// Itself, if standard error or output holds `words`.
    ///
    /// # Panics
    /// With everything that was said when neither does.
    #[track_caller]
    #[must_use]
    pub fn says(self, words: &str) -> Self {
        assert!(
            self.err.contains(words) || self.out.contains(words),
            "no '{words}' in {self}"
        );
        self
    }

    /// Standard output as JSON.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("not JSON ({error}): {self}"))
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "$ {}\nexit {}\n--- stdout\n{}\n--- stderr\n{}",
            self.line, self.code, self.out, self.err
        )
    }
}

fn line_of(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Runs `command` without standard input to its end.
///
/// # Panics
/// When it cannot be started, or runs for longer than `limit`.
#[track_caller]
pub fn run_within(command: &mut Command, limit: Duration) -> Said {
    run_with_input(command, &[], limit)
}

/// Runs `command` with `input` on standard input to its end.
///
/// # Panics
/// When it cannot be started, or runs for longer than `limit`.
#[track_caller]
pub fn run_with_input(command: &mut Command, input: &[u8], limit: Duration) -> Said {
    use std::io::Write;
    let line = line_of(command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if input.is_empty() {
        Stdio::null()
    } else {
        Stdio::piped()
    });
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early closes its end; what it said tells why.
        let _ = stdin.write_all(input);
    }
    let Output {
        status,
        stdout,
        stderr,
    } = wait_within(child, limit, &line);
    Said {
        line,
        code: status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

#[track_caller]
fn wait_within(child: Child, limit: Duration, line: &str) -> Output {
    let pid = child.id();
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let waiter = std::thread::spawn(move || {
        // The receiver may have given up; then nobody is interested.
        let _ = sender.send(child.wait_with_output());
    });
    let answer = receiver.recv_timeout(limit);
    if answer.is_err() {
        signal(pid, "KILL");
    }
    let late = receiver.recv_timeout(Duration::from_secs(5));
    waiter.join().expect("the waiting thread");
    match answer {
        Ok(output) => output.unwrap_or_else(|error| panic!("{line}: {error}")),
        Err(_) => panic!("{line} ran for more than {limit:?}; it had said {late:?}"),
    }
}

/// Sends a signal to a process that a test started.
///
/// # Panics
/// When `kill` cannot be run.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &pid.to_string()])
        .status();
    status.expect("kill");
}

/// Waits until `path` exists and is not empty, and gives its lines.
///
/// # Panics
/// When that takes longer than `limit`.
#[track_caller]
#[must_use]
pub fn wait_for_lines(path: &Path, limit: Duration) -> Vec<String> {
    wait_for(&format!("{}", path.display()), limit, || {
        let text = std::fs::read_to_string(path)
            .ok()
            .filter(|text| text.ends_with('\n'))?;
        Some(text.lines().map(str::to_owned).collect())
    })
}

/// Tries until `attempt` gives something.
///
/// # Panics
/// When that takes longer than `limit`.
#[track_caller]
pub fn wait_for<T>(what: &str, limit: Duration, attempt: impl FnMut() -> Option<T>) -> T {
    try_for(limit, attempt).unwrap_or_else(|| panic!("waited {limit:?} for {what} in vain"))
}

/// The same for who has more to say of it in the end.
pub fn try_for<T>(limit: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let pause = Duration::from_millis(50);
    for _ in 0..=limit.as_millis() / pause.as_millis() {
        if let Some(found) = attempt() {
            return Some(found);
        }
        std::thread::sleep(pause);
    }
    None
}

/// Sets `name = value` lines at the top of a TOML file, dropping earlier lines of the same names.
pub(crate) fn set_lines(path: &Path, settings: &[(&str, &str)]) {
    if settings.is_empty() {
        return;
    }
    let text = std::fs::read_to_string(path).expect("a settings file");
    let is_set = |line: &str| {
        settings.iter().any(|(name, _)| {
            line.trim_start_matches(['#', ' '])
                .split('=')
                .next()
                .map(str::trim)
                == Some(*name)
        })
    };
    let mut lines: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    lines.extend(text.lines().filter(|line| !is_set(line)).map(str::to_owned));
    std::fs::write(path, lines.join("\n") + "\n").expect("a settings file");
}
