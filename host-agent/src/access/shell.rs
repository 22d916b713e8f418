//! What an [`Exec`] asks for, as something to start: its variables checked, and the best shell that the
//! image has when it names no program.

use protocol::ids::LeaseId;
use protocol::tunnel::{Exec, TunnelRefusal};

use super::{bad_request, engine_failed};
use crate::runtime::exec::{ExecError, ExecSession, ExecSpec};
use crate::runtime::{Runtime, sandbox};

/// One start finds the better shell of an image that has any. Not as a login shell: that would read a
/// profile which puts the distribution's own `PATH` in place of the image's.
const BEST_SHELL: [&str; 3] = [
    "sh",
    "-c",
    "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi",
];
/// An image may have this one alone.
const OTHER_SHELL: [&str; 1] = ["bash"];

/// Starts what was asked for.
pub(super) async fn start<R: Runtime>(
    runtime: &R,
    lease: LeaseId,
    asked: &Exec,
) -> Result<ExecSession, TunnelRefusal> {
    sandbox::refuse_variables(&asked.environment).map_err(|detail| bad_request(&detail))?;
    if !asked.command.is_empty() {
        let command = asked.command.iter().map(ToString::to_string).collect();
        return runtime
            .exec(lease, &spec(asked, command))
            .await
            .map_err(refusal);
    }
    for shell in [&BEST_SHELL[..], &OTHER_SHELL[..]] {
        let command = shell.iter().map(|word| (*word).to_owned()).collect();
        match runtime.exec(lease, &spec(asked, command)).await {
            Ok(session) => return Ok(session),
            Err(ExecError::CommandUnknown { .. }) => {}
            Err(error @ (ExecError::NotRunning | ExecError::Engine(_))) => {
                return Err(refusal(error));
            }
        }
    }
    Err(TunnelRefusal::NoShell)
}

fn spec(asked: &Exec, command: Vec<String>) -> ExecSpec {
    let mut environment: Vec<String> = asked
        .environment
        .iter()
        .map(|v| format!("{}={}", v.name, v.value))
        .collect();
    if let Some(terminal) = &asked.terminal {
        environment.push(format!("TERM={}", terminal.kind));
    }
    ExecSpec {
        command,
        environment,
        terminal: asked.terminal.as_ref().map(|t| t.size),
    }
}

fn refusal(error: ExecError) -> TunnelRefusal {
    match error {
        ExecError::NotRunning => TunnelRefusal::NotRunning,
        ExecError::CommandUnknown { detail } => {
            TunnelRefusal::CommandUnknown(protocol::lease::Detail::cut(&detail))
        }
        ExecError::Engine(error) => engine_failed(&error),
    }
}
