//! Where a program's page of metrics is: at the address that is set, or at the usual port of this machine alone, since
//! the page has no login. Must not know what is on it.

use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// What the page is: OpenMetrics text.
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where the metrics page is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAddress {
    /// There and nowhere else.
    At(SocketAddr),
    /// At the usual port, or at any other when another program has that one.
    Usual,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for the metrics page; is another program using that port?")]
pub struct PageError {
    /// Where.
    pub address: SocketAddr,
    /// What the system said.
    #[source]
    pub source: std::io::Error,
}

/// The page's place, taken.
#[derive(Debug)]
pub struct PageListener {
    /// To accept on.
    pub listener: TcpListener,
    /// Where it is.
    pub address: SocketAddr,
}

impl PageListener {
    /// Listens where it is wanted; `port` is the program's usual one.
    ///
    /// # Errors
    /// When the place is taken, or is none of this machine.
    pub async fn bind(wanted: MetricsAddress, port: u16) -> Result<Self, PageError> {
        match wanted {
            MetricsAddress::At(address) => Self::bind_at(address).await,
            MetricsAddress::Usual => match Self::bind_at(loopback(port)).await {
                Ok(page) => Ok(page),
                Err(_) => Self::bind_at(loopback(0)).await,
            },
        }
    }

    async fn bind_at(address: SocketAddr) -> Result<Self, PageError> {
        let failed = |source| PageError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
