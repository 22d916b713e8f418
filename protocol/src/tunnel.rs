//! What crosses a tunnel between a renter and the host of its lease: one signed request, one answer, then
//! frames in both directions until one side closes.
//!
//! Every message is a 4-byte little-endian length and that many bytes of the canonical codec.

use crate::bounded::{Blob, List, Text};
use crate::ids::LeaseId;
use crate::job::Variable;
use crate::lease::Detail;
use crate::signed::{Signed, Statement};
use crate::units::{Seconds, Timestamp};
use serde::{Deserialize, Serialize};

/// Largest data of one frame.
pub const DATA_BYTES_MAX: usize = 32 * 1024;
/// Largest message of a tunnel, encoded, without its length.
pub const FRAME_BYTES_MAX: usize = 64 * 1024;

/// What a renter asks at the start of a tunnel; the audience is the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelRequest {
    /// The lease.
    pub lease: LeaseId,
    /// For what.
    pub purpose: Purpose,
}

impl Statement for TunnelRequest {
    const TYPE: &'static str = "tunnel/v1";
}

/// What a tunnel is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// Run a program in the container.
    Exec(Exec),
    /// Read what the container wrote.
    Logs(Logs),
}

/// A program to run in the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The program and its arguments; empty asks for the best login shell that the image has.
    pub command: List<Text<4096>, 64>,
    /// With a terminal of this size, or with separate pipes.
    pub terminal: Option<Terminal>,
    /// Variables beside the container's own.
    pub environment: List<Variable, 32>,
}

/// A terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// `TERM`.
    pub kind: Text<64>,
    /// Its size.
    pub size: WindowSize,
}

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

/// Which logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logs {
    /// Keep the tunnel open and send what is written from now on.
    pub follow: bool,
    /// Nothing written before this.
    pub since: Option<Timestamp>,
    /// Only so many last lines.
    pub tail: Option<u32>,
    /// Each line with the time at which it was written.
    pub timestamps: bool,
}

/// The first message of a tunnel.
pub type Opening = Signed<TunnelRequest>;

/// The host's answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpeningReply {
    /// Frames follow.
    Open,
    /// No, because.
    Refused(TunnelRefusal),
}

/// Why a host refuses a tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum TunnelRefusal {
    /// The request cannot be read, does not verify, is too old or is for another host.
    #[error("the host refused the request: {0}")]
    BadRequest(Detail),
    /// The host has no such lease, or the asker may not enter it.
    #[error("the host has no such lease of yours")]
    UnknownLease,
    /// The container does not run.
    #[error("the container does not run")]
    NotRunning,
    /// The program is not in the image.
    #[error("{0}")]
    CommandUnknown(Detail),
    /// There is no shell in the image.
    #[error(
        "the image has no shell: name a program that it has, with `feira exec NAME -- PROGRAM`"
    )]
    NoShell,
    /// The engine failed.
    #[error("the host's container engine failed: {0}")]
    EngineFailed(Detail),
    /// Logs are not kept any longer.
    #[error("the logs are not kept any longer (they are for {} after the end)", Seconds(.0.0))]
    LogsGone(Seconds),
    /// The host serves as many tunnels as it will.
    #[error("the host serves as many tunnels as it will: close some, or try again")]
    TooMany,
}

/// What flows from renter to host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Upward {
    /// For the program's standard input.
    Input(Blob<DATA_BYTES_MAX>),
    /// Standard input is at its end.
    InputEnd,
    /// The terminal has another size.
    Resize(WindowSize),
    /// Send a signal, by name without `SIG`, like `INT`.
    Signal(Text<16>),
}

/// What flows from host to renter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Downward {
    /// From standard output, or from the terminal.
    Output(Blob<DATA_BYTES_MAX>),
    /// From standard error.
    Errors(Blob<DATA_BYTES_MAX>),
    /// The program ended with this code, or the logs are at their end (0).
    Exit(i32),
    /// The tunnel ends because of this.
    Broken(Detail),
}
