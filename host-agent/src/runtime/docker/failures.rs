//! From the engine's words to typed failures. The engine says most things only in prose, so the phrases that
//! this program relies on are all here, and each has a test with the words of a real engine.

use std::error::Error as _;
use std::io;
use std::path::Path;

use bollard::errors::Error;
use protocol::lease::{Problem, ProblemKind, Stage};

use super::super::RuntimeError;
use super::super::sandbox::problem;

/// The failure to reach the socket itself.
pub(super) fn of_socket(socket: &Path, error: &io::Error) -> RuntimeError {
    let name = socket.display().to_string();
    let kind = error.kind();
    if kind == io::ErrorKind::PermissionDenied {
        return RuntimeError::Permission { socket: name };
    }
    let reason = if kind == io::ErrorKind::NotFound {
        "there is no such socket: is Docker installed, and does it run?".to_owned()
    } else {
        error.to_string()
    };
    RuntimeError::Unreachable {
        socket: name,
        reason,
    }
}

/// What the engine answered to a request to `what`.
pub(super) fn of_engine(socket: &Path, what: &'static str, error: &Error) -> RuntimeError {
    if let Some(cause) = io_cause(error) {
        return of_socket(socket, cause);
    }
    match status(error) {
        Some(404) => RuntimeError::NoContainer,
        _ => RuntimeError::Failed {
            what,
            detail: words(error),
        },
    }
}

/// The HTTP status of the engine's answer, if that was the failure.
pub(super) fn status(error: &Error) -> Option<u16> {
    if let Error::DockerResponseServerError { status_code, .. } = error {
        return Some(*status_code);
    }
    None
}

/// What was said, at the bottom of it.
pub(super) fn words(error: &Error) -> String {
    if let Error::DockerResponseServerError { message: said, .. }
    | Error::DockerStreamError { error: said } = error
    {
        return said.trim().to_owned();
    }
    if is_timeout(error) {
        return "it did not answer in time".to_owned();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = next.to_string();
        cause = next.source();
    }
    text
}

fn is_timeout(error: &Error) -> bool {
    matches!(error, Error::RequestTimeoutError)
}

/// The system's error below a connection that could not be made or broke.
fn io_cause(error: &Error) -> Option<&io::Error> {
    if let Error::IOError { err } = error {
        return Some(err);
    }
    let mut cause = error.source();
    while let Some(next) = cause {
        if let Some(found) = next.downcast_ref::<io::Error>() {
            return Some(found);
        }
        cause = next.source();
    }
    None
}

/// Why an image could not be pulled.
pub(super) fn of_pull(error: &Error) -> Problem {
    let said = words(error);
    let kind = if is_timeout(error) {
        ProblemKind::RegistryDown
    } else if io_cause(error).is_some() {
        ProblemKind::EngineFailed
    } else {
        pull_kind(&said)
    };
    problem(Stage::Pulling, kind, &said)
}

/// By what a registry or the engine says. Ordered: the first that fits is meant.
const PULL_PHRASES: [(ProblemKind, &[&str]); 6] = [
    (
        ProblemKind::DigestMismatch,
        &[
            "verification failed for digest",
            "layer verification failed",
            "digest mismatch",
        ],
    ),
    (
        ProblemKind::EngineFailed,
        &["no space left on device", "input/output error"],
    ),
    (
        ProblemKind::ImageUnusable,
        &[
            "no matching manifest for",
            "unsupported media type",
            "unsupported manifest",
            "cannot be used on this platform",
        ],
    ),
    (
        ProblemKind::ImageUnknown,
        &[
            "manifest unknown",
            "repository does not exist",
            "repository name not known",
            "not found",
            "name unknown",
            "invalid reference format",
        ],
    ),
    (
        ProblemKind::ImageRefused,
        &[
            "unauthorized",
            "authentication required",
            "no basic auth credentials",
            "denied",
            "forbidden",
        ],
    ),
    (
        ProblemKind::RegistryDown,
        &[
            "connection refused",
            "no such host",
            "i/o timeout",
            "timeout",
            "deadline exceeded",
            "connection reset",
            "unexpected eof",
            "server misbehaving",
            "no route to host",
            "network is unreachable",
            "toomanyrequests",
            "unexpected http status",
            "http response to https client",
            "x509",
            "lookup ",
            ": eof",
            "proxyconnect",
        ],
    ),
];

fn pull_kind(said: &str) -> ProblemKind {
    let said = said.to_lowercase();
    let fits = |(_, phrases): &&(ProblemKind, &[&str])| phrases.iter().any(|p| said.contains(p));
    PULL_PHRASES
        .iter()
        .find(fits)
        .map_or(ProblemKind::EngineFailed, |(kind, _)| *kind)
}

/// Why a container could not be made.
pub(super) fn of_create(error: &Error) -> Problem {
    let said = words(error);
    let kind = match status(error) {
        // The engine refused what image and job together ask for; the host's own part is always the same.
        Some(400) => start_kind(&said).unwrap_or(ProblemKind::ImageUnusable),
        _ => ProblemKind::EngineFailed,
    };
    problem(Stage::Creating, kind, &said)
}

/// Why a container could not be started.
pub(super) fn of_start(error: &Error) -> Problem {
    let said = words(error);
    let kind = start_kind(&said).unwrap_or(ProblemKind::EngineFailed);
    problem(Stage::Starting, kind, runtime_words(&said))
}

const START_PHRASES: [(ProblemKind, &[&str]); 3] = [
    (
        ProblemKind::GpuUnavailable,
        &["could not select device driver", "nvidia", "device_request"],
    ),
    (
        ProblemKind::ImageUnusable,
        &[
            "unable to find user",
            "unable to find group",
            "no matching entries in passwd",
            "chdir to cwd",
            "exec format error",
            "not a directory",
            "mkdir",
            "mountpoint",
        ],
    ),
    (
        ProblemKind::CommandUnknown,
        &[
            "executable file not found",
            "no command specified",
            "no such file or directory",
            "permission denied",
            "is a directory",
        ],
    ),
];

fn start_kind(said: &str) -> Option<ProblemKind> {
    let said = said.to_lowercase();
    let fits = |(_, phrases): &&(ProblemKind, &[&str])| phrases.iter().any(|p| said.contains(p));
    START_PHRASES.iter().find(fits).map(|(kind, _)| *kind)
}

/// The runtime's own words without what the engine wraps around them.
pub(super) fn runtime_words(said: &str) -> &str {
    let start = said
        .find("exec: \"")
        .or_else(|| said.find("starting container process caused: "));
    let inner = start.and_then(|start| said.get(start..)).unwrap_or(said);
    inner.trim_end().trim_end_matches(": unknown")
}

/// What the container's init says when it cannot run the program, if that is what `line` is.
pub(super) fn of_init(line: &str) -> Option<Problem> {
    let (_, said) = line.strip_prefix("[FATAL tini (")?.split_once(")] ")?;
    let kind = start_kind(said).unwrap_or(ProblemKind::CommandUnknown);
    Some(problem(Stage::Starting, kind, said.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_words_have_their_kinds() {
        let expected = [
            (
                "manifest for 127.0.0.1:5000/x@sha256:00 not found: manifest unknown: manifest unknown",
                ProblemKind::ImageUnknown,
            ),
            (
                "pull access denied for nosuch, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
                ProblemKind::ImageUnknown,
            ),
            (
                "Head \"https://r/v2/x/manifests/1\": unauthorized: authentication required",
                ProblemKind::ImageRefused,
            ),
            (
                "Get \"http://127.0.0.1:5999/v2/\": dial tcp 127.0.0.1:5999: connect: connection refused",
                ProblemKind::RegistryDown,
            ),
            (
                "Get \"https://no.such/v2/\": dial tcp: lookup no.such: no such host",
                ProblemKind::RegistryDown,
            ),
            (
                "manifest verification failed for digest sha256:ab",
                ProblemKind::DigestMismatch,
            ),
            (
                "filesystem layer verification failed for digest sha256:ab",
                ProblemKind::DigestMismatch,
            ),
            (
                "no matching manifest for linux/amd64 in the manifest list entries",
                ProblemKind::ImageUnusable,
            ),
            (
                "write /var/lib/docker/tmp/x: no space left on device",
                ProblemKind::EngineFailed,
            ),
        ];
        for (said, kind) in expected {
            assert_eq!(pull_kind(said), kind, "{said}");
        }
    }

    #[test]
    fn starts_words_have_their_kinds() {
        let expected = [
            (
                "could not select device driver \"nvidia\" with capabilities: [[gpu]]",
                ProblemKind::GpuUnavailable,
            ),
            (
                "OCI runtime create failed: runc create failed: unable to start container process: exec: \"/nope\": stat /nope: no such file or directory: unknown",
                ProblemKind::CommandUnknown,
            ),
            (
                "unable to find user bob: no matching entries in passwd file",
                ProblemKind::ImageUnusable,
            ),
        ];
        for (said, kind) in expected {
            assert_eq!(start_kind(said), Some(kind), "{said}");
        }
        assert_eq!(start_kind("shim died"), None);
    }

    #[test]
    fn the_runtimes_words_come_without_their_wrapping() {
        let said = "OCI runtime exec failed: exec failed: unable to start container process: exec: \"sh\": executable file not found in $PATH: unknown\r\n";
        assert_eq!(
            runtime_words(said),
            "exec: \"sh\": executable file not found in $PATH"
        );
    }

    #[test]
    fn inits_words_are_known_and_a_programs_are_not() {
        let problem =
            of_init("[FATAL tini (7)] exec /nope failed: No such file or directory").unwrap();
        assert_eq!(problem.kind, ProblemKind::CommandUnknown);
        assert_eq!(
            problem.detail.as_str(),
            "exec /nope failed: No such file or directory"
        );
        assert_eq!(of_init("[FATAL tini"), None);
        let format = of_init("[FATAL tini (7)] exec /a failed: Exec format error").unwrap();
        assert_eq!(format.kind, ProblemKind::ImageUnusable);
    }
}
