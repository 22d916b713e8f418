//! How fast bytes go between two nodes: a stream that one side fills, for a few seconds and a bounded number of
//! bytes, while the other side counts. Who may ask how often is the gate's business.
//!
//! ```text
//! acceptor  0, or a refusal (one byte)
//! opener    1: send to me             then the acceptor's bytes until it closes
//!           2: count what I send      then the opener's bytes until it closes, and the acceptor's
//!                                     u64 bytes ‖ u64 microseconds, both little-endian
//! ```
//! The receiver is the one who counts, because a sender only knows what went into its own buffers. The first half
//! second, in which a connection finds its speed, is left out when there is more.

use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::clock;
use super::config::SpeedLimits;
use super::node::Node;
use super::streams::{Kind, OpenError};
use super::wire::{FrameError, PeerRefusal, read_answer};
use crate::ids::PublicKey;

/// What a connection needs to find its speed.
const WARM_UP: Duration = Duration::from_millis(500);
/// How much longer than the limit a measurement may take: the other side's buffers have to run empty.
const SLACK: Duration = Duration::from_secs(10);
const CHUNK: usize = 64 * 1024;

const TO_OPENER: u8 = 1;
const FROM_OPENER: u8 = 2;

/// In which direction bytes go, as seen from the node that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the peer to this node.
    Down,
    /// From this node to the peer.
    Up,
}

/// So many bytes in such a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed {
    /// Bytes that arrived.
    pub bytes: u64,
    /// In how long.
    pub elapsed: Duration,
}

impl Speed {
    /// In kbit/s, rounded down; 0 in no time at all.
    #[must_use]
    pub fn kilobits_per_second(&self) -> u64 {
        // bytes × 8 / 1000 / (µs / 10^6)
        (u128::from(self.bytes) * 8_000)
            .checked_div(self.elapsed.as_micros())
            .map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// Why there is no figure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpeedError {
    /// There is no connection to the peer.
    #[error("there is no connection to the peer")]
    Unreachable,
    /// The peer said no.
    #[error("the peer refused: {reason}")]
    Refused {
        /// In its own words.
        reason: PeerRefusal,
    },
    /// One is under way with this peer.
    #[error("a measurement with this peer is under way")]
    UnderWay,
    /// The peer cannot do it.
    #[error("the peer does not speak the protocol of measurements")]
    Unsupported,
    /// It took far longer than it may.
    #[error("not done within {after:?}")]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
    },
    /// The connection ended first.
    #[error("the connection closed before the end")]
    ConnectionClosed,
    /// The peer breaks the protocol, or nothing arrived.
    #[error("the peer's answer is malformed")]
    Malformed,
    /// This node has stopped.
    #[error("the node has stopped")]
    NodeStopped,
}

impl SpeedError {
    fn of_opening(error: &OpenError) -> Self {
        match error {
            OpenError::Unreachable => Self::Unreachable,
            OpenError::TooMany { .. } => Self::UnderWay,
            OpenError::TimedOut => Self::TimedOut { after: SLACK },
            OpenError::Unsupported => Self::Unsupported,
            OpenError::Io(_) => Self::ConnectionClosed,
        }
    }
}

impl From<io::Error> for SpeedError {
    fn from(_: io::Error) -> Self {
        Self::ConnectionClosed
    }
}

impl From<FrameError> for SpeedError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(_) | FrameError::Truncated => Self::ConnectionClosed,
            FrameError::UnknownAnswer(_) | FrameError::TooBig { .. } => Self::Malformed,
        }
    }
}

impl Node {
    /// Measures the way from or to a connected broker. `progress` hears how many thousandths of the longest time
    /// have passed. Dropping the future ends it.
    ///
    /// # Errors
    /// [`SpeedError`]; in particular [`SpeedError::Refused`] when the broker gives no more for now.
    pub async fn measure_speed(
        &self,
        peer: PublicKey,
        direction: Direction,
        progress: impl Fn(u16) + Send,
    ) -> Result<Speed, SpeedError> {
        let limits = SpeedLimits::default();
        let patience = limits.length + SLACK + SLACK;
        let measuring = async {
            let opened = self
                .open(peer, Kind::Speed)
                .await
                .ok_or(SpeedError::NodeStopped)?
                .map_err(|error| SpeedError::of_opening(&error))?;
            let _place = opened.place;
            let mut stream = opened.stream;
            if let Err(reason) = read_answer(&mut stream).await? {
                return Err(SpeedError::Refused { reason });
            }
            match direction {
                Direction::Down => receive(&mut stream, &limits, progress).await,
                Direction::Up => send(&mut stream, &limits, progress).await,
            }
        };
        timeout(patience, measuring)
            .await
            .unwrap_or(Err(SpeedError::TimedOut { after: patience }))
    }
}

async fn receive<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    limits: &SpeedLimits,
    progress: impl Fn(u16),
) -> Result<Speed, SpeedError> {
    stream.write_all(&[TO_OPENER]).await?;
    stream.flush().await?;
    let meter = count(stream, limits, progress).await?;
    meter.speed().ok_or(SpeedError::Malformed)
}

async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    limits: &SpeedLimits,
    progress: impl Fn(u16),
) -> Result<Speed, SpeedError> {
    stream.write_all(&[FROM_OPENER]).await?;
    let (mut reader, mut writer) = stream.split();
    let answer = pin!(async {
        let (mut bytes, mut micros) = ([0; 8], [0; 8]);
        reader.read_exact(&mut bytes).await?;
        reader.read_exact(&mut micros).await?;
        io::Result::Ok((bytes, micros))
    });
    let filling = pin!(fill(&mut writer, limits, progress));
    // A peer that has counted enough answers and reads no more: then the rest is never written. How writing ended
    // matters to nobody when there is an answer, and without a connection there is none.
    let (bytes, micros) = match select(answer, filling).await {
        Either::Left((answer, _)) => answer?,
        Either::Right((_, answer)) => answer.await?,
    };
    let speed = Speed {
        bytes: u64::from_le_bytes(bytes),
        elapsed: Duration::from_micros(u64::from_le_bytes(micros)),
    };
    if speed.bytes == 0 || speed.elapsed.is_zero() {
        return Err(SpeedError::Malformed);
    }
    Ok(speed)
}

/// The acceptor's side, after its yes. Ends within the limits whatever the opener does.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, limits: SpeedLimits) {
    let serving = async {
        let mut wanted = [0];
        stream.read_exact(&mut wanted).await?;
        match wanted[0] {
            TO_OPENER => fill(stream, &limits, |_| {}).await,
            FROM_OPENER => {
                let meter = count(stream, &limits, |_| {}).await?;
                let speed = meter.speed().unwrap_or(Speed {
                    bytes: 0,
                    elapsed: Duration::ZERO,
                });
                let micros = u64::try_from(speed.elapsed.as_micros()).unwrap_or(u64::MAX);
                stream.write_all(&speed.bytes.to_le_bytes()).await?;
                stream.write_all(&micros.to_le_bytes()).await?;
                stream.close().await
            }
            _ => Ok(()),
        }
    };
    // The opener may be gone or slow: then there is nobody to tell.
    let _ = timeout(limits.length + SLACK, serving).await;
}

/// Writes as much as the limits allow, and closes.
async fn fill<S: AsyncWrite + Unpin>(
    stream: &mut S,
    limits: &SpeedLimits,
    progress: impl Fn(u16),
) -> io::Result<()> {
    let chunk = vec![0; CHUNK];
    let began = clock::now();
    let mut left = limits.bytes;
    loop {
        let passed = clock::now().saturating_duration_since(began);
        progress(thousandths(passed, limits.length));
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let Some(part) = chunk.get(..length).filter(|part| !part.is_empty()) else {
            break;
        };
        if passed >= limits.length {
            break;
        }
        let written = stream.write(part).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        left = left.saturating_sub(u64::try_from(written).unwrap_or(u64::MAX));
    }
    stream.close().await
}

/// Reads to the end, or to what the limits allow.
async fn count<S: AsyncRead + Unpin>(
    stream: &mut S,
    limits: &SpeedLimits,
    progress: impl Fn(u16),
) -> io::Result<Meter> {
    let mut buffer = vec![0; CHUNK];
    let mut meter = Meter::default();
    while meter.bytes < limits.bytes {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        meter.add(u64::try_from(read).unwrap_or(0), clock::now());
        progress(thousandths(meter.passed(), limits.length));
        if meter.passed() >= limits.length + SLACK / 2 {
            break;
        }
    }
    Ok(meter)
}

fn thousandths(passed: Duration, of: Duration) -> u16 {
    let part = (passed.as_millis() * 1000)
        .checked_div(of.as_millis())
        .unwrap_or(1000);
    u16::try_from(part.min(1000)).unwrap_or(1000)
}

/// What has arrived when. What came first only starts the clock.
#[derive(Debug, Default)]
struct Meter {
    bytes: u64,
    first: Option<(Instant, u64)>,
    warm: Option<(Instant, u64)>,
    last: Option<Instant>,
}

impl Meter {
    fn add(&mut self, bytes: u64, now: Instant) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.last = Some(now);
        let (began, _) = *self.first.get_or_insert((now, self.bytes));
        if now.saturating_duration_since(began) >= WARM_UP {
            self.warm.get_or_insert((now, self.bytes));
        }
    }

    fn passed(&self) -> Duration {
        self.since(self.first)
            .map_or(Duration::ZERO, |speed| speed.elapsed)
    }

    /// Nothing when too little arrived to tell.
    fn speed(&self) -> Option<Speed> {
        let long = |speed: &Speed| speed.elapsed >= WARM_UP;
        let speed = self.since(self.warm).filter(long);
        let speed = speed.or_else(|| self.since(self.first))?;
        (speed.bytes > 0 && speed.elapsed >= Duration::from_micros(1)).then_some(speed)
    }

    fn since(&self, mark: Option<(Instant, u64)>) -> Option<Speed> {
        let ((began, before), last) = (mark?, self.last?);
        Some(Speed {
            bytes: self.bytes.saturating_sub(before),
            elapsed: last.saturating_duration_since(began),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_in_kilobits() {
        let speed = Speed {
            bytes: 12_500_000,
            elapsed: Duration::from_secs(1),
        };
        // 12.5 MB a second are 100 Mbit/s.
        assert_eq!(speed.kilobits_per_second(), 100_000);
        let none = Speed {
            bytes: 1,
            elapsed: Duration::ZERO,
        };
        assert_eq!(none.kilobits_per_second(), 0);
    }

    #[test]
    fn the_start_is_left_out_when_there_is_more() {
        let began = clock::now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut meter = Meter::default();
        meter.add(1000, at(0));
        assert_eq!(meter.speed(), None);
        meter.add(50, at(250));
        // Of a short one all counts but what came first.
        let short = meter.speed().unwrap();
        assert_eq!(
            (short.bytes, short.elapsed),
            (50, Duration::from_millis(250))
        );
        meter.add(100, at(500));
        meter.add(4000, at(1500));
        meter.add(4000, at(2500));
        let speed = meter.speed().unwrap();
        assert_eq!((speed.bytes, speed.elapsed), (8000, Duration::from_secs(2)));
        assert_eq!(speed.kilobits_per_second(), 32);
    }
}
