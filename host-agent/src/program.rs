//! What this program is called, where its things are by default, and what it calls itself in its messages.

use crate::config::Config;
use protocol::operator::Program;

/// Where a host keeps what is its own unless it is told otherwise.
pub const DEFAULT_FOLDER: &str = "/var/lib/feira-host";

/// The agent's program.
pub const PROGRAM: Program = Program {
    name: "feira-host",
    runs: "agent",
    party: "host",
    settings: "host.toml",
    folder: DEFAULT_FOLDER,
    init: "init --broker ADDRESS",
    log_target: "host_agent",
    admin_socket: |settings| Ok(Config::read(settings)?.admin_socket),
};
