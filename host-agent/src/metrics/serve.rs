//! Where the page is: `/metrics` for Prometheus and `/healthz` (the process lives), on this machine alone, since the
//! page has no login.

use super::page;
use crate::admin::serve::Asked;
use crate::admin::wire::{AdminReply, AdminRequest};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// Of the page, unless another is set or that one is taken.
pub const USUAL_PORT: u16 = 9641;
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The agent's loop answers in milliseconds, or something is wrong with it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Where the page is to be.
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

/// The page, listening.
#[derive(Debug)]
pub(crate) struct MetricsPage {
    listener: TcpListener,
    address: SocketAddr,
}

#[derive(Debug, Clone)]
struct PageState {
    asked: mpsc::Sender<Asked>,
    hostname: String,
}

impl MetricsPage {
    pub(crate) async fn bind(wanted: MetricsAddress) -> Result<Self, PageError> {
        let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, USUAL_PORT));
        match wanted {
            MetricsAddress::At(address) => Self::bind_at(address).await,
            MetricsAddress::Usual => match Self::bind_at(usual).await {
                Ok(page) => Ok(page),
                Err(_) => Self::bind_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await,
            },
        }
    }

    async fn bind_at(address: SocketAddr) -> Result<Self, PageError> {
        let failed = |source| PageError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with what the agent's loop says.
    pub(crate) async fn serve(self, asked: mpsc::Sender<Asked>) {
        let system = rustix::system::uname();
        let hostname = system.nodename().to_string_lossy().into_owned();
        let router = Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/metrics", get(metrics))
            .with_state(PageState { asked, hostname });
        if let Err(error) = axum::serve(self.listener, router).await {
            tracing::error!(%error, "the metrics page ended");
        }
    }
}

async fn metrics(State(state): State<PageState>) -> Response {
    let (reply, answered) = oneshot::channel();
    let question = (AdminRequest::Status, reply);
    let answer = async {
        state.asked.send(question).await.ok()?;
        answered.await.ok()
    };
    let Ok(Some(AdminReply::Status(status))) = tokio::time::timeout(ANSWER_TIMEOUT, answer).await
    else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    match page(&status, &state.hostname) {
        Ok(page) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
