//! The loopback page of a broker: `/metrics` for Prometheus, `/healthz` (the process lives), `/readyz` (it
//! can do its work). Must not show anything about a single party.

use crate::api::Api;
use crate::clock::behind;
use crate::metrics::MarketNumbers;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use protocol::net::Node;
use protocol::operator::{METRICS_CONTENT_TYPE, MetricsAddress, PageError, PageListener};
use protocol::units::{Seconds, Timestamp};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

/// Of the metrics page, unless another is set or that one is taken.
const USUAL_PORT: u16 = 9640;
/// The market answers in milliseconds, or something is wrong with it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// 2025-01-01: a machine whose clock is before it was never set.
const EARLIEST: Timestamp = Timestamp(1_735_689_600_000);

/// The page, listening.
#[derive(Debug)]
pub(crate) struct HealthPage(PageListener);

/// What the page is made from.
#[derive(Debug, Clone)]
pub(crate) struct PageState {
    pub(crate) api: Api,
    pub(crate) node: Node,
    /// As old as the last backup.
    pub(crate) last_backup: PathBuf,
}

impl HealthPage {
    pub(crate) async fn bind(wanted: MetricsAddress) -> Result<Self, PageError> {
        PageListener::bind(wanted, USUAL_PORT).await.map(Self)
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.0.address
    }

    pub(crate) async fn serve(self, state: PageState) {
        let router = Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .with_state(state);
        if let Err(error) = axum::serve(self.0.listener, router).await {
            tracing::error!(%error, "the metrics page ended");
        }
    }
}

async fn ready(State(state): State<PageState>) -> Response {
    match readiness(&state).await {
        Ok(()) => "ready\n".into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

async fn readiness(state: &PageState) -> Result<(), &'static str> {
    if state.api.stopping.is_cancelled() {
        return Err("the broker is stopping");
    }
    if state.api.clock.now() < EARLIEST {
        return Err("the clock is not set");
    }
    match tokio::time::timeout(ANSWER_TIMEOUT, state.api.market.counts()).await {
        Ok(Ok(counts)) if behind(state.api.clock.now(), counts.last_at).is_some() => {
            Err("the journal is ahead of the clock")
        }
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err("the market does not take questions"),
        Err(_) => Err("the market does not answer"),
    }
}

async fn metrics(State(state): State<PageState>) -> Response {
    let Ok(Ok(counts)) = tokio::time::timeout(ANSWER_TIMEOUT, state.api.market.counts()).await
    else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let numbers = MarketNumbers::from(counts);
    if let Some(age) = backup_age(&state) {
        state.api.metrics.set_backup_age(age);
    }
    match state.api.metrics.page(state.node.counters(), &numbers) {
        Ok(page) => ([(header::CONTENT_TYPE, METRICS_CONTENT_TYPE)], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// How long ago the last backup was made, if one was.
fn backup_age(state: &PageState) -> Option<Seconds> {
    let made = std::fs::metadata(&state.last_backup)
        .ok()?
        .modified()
        .ok()?;
    let made = made.duration_since(UNIX_EPOCH).ok()?.as_millis();
    let made = Timestamp(u64::try_from(made).ok()?);
    Some(state.api.clock.now().since(made).seconds())
}
