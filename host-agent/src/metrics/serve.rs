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
use protocol::operator::{METRICS_CONTENT_TYPE, MetricsAddress, PageError, PageListener};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Of the page, unless another is set or that one is taken.
pub const USUAL_PORT: u16 = 9641;
/// The agent's loop answers in milliseconds, or something is wrong with it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The page, listening.
#[derive(Debug)]
pub(crate) struct MetricsPage(PageListener);

#[derive(Debug, Clone)]
struct PageState {
    asked: mpsc::Sender<Asked>,
    hostname: String,
}

impl MetricsPage {
    pub(crate) async fn bind(wanted: MetricsAddress) -> Result<Self, PageError> {
        PageListener::bind(wanted, USUAL_PORT).await.map(Self)
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Answers with what the agent's loop says.
    pub(crate) async fn serve(self, asked: mpsc::Sender<Asked>) {
        let system = rustix::system::uname();
        let hostname = system.nodename().to_string_lossy().into_owned();
        let router = Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/metrics", get(metrics))
            .with_state(PageState { asked, hostname });
        if let Err(error) = axum::serve(self.0.listener, router).await {
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
        Ok(page) => ([(header::CONTENT_TYPE, METRICS_CONTENT_TYPE)], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
