//! The control plane under `/__sim`: what tests in another process ask. No key needed, nothing counted or recorded.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use crate::app::App;
use crate::errors::Refusal;
use crate::journal::SeenRequest;
use crate::scenario::Scenario;
use crate::stats::Stats;

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/__sim/stats", get(stats))
        .route("/__sim/requests", get(requests))
        .route("/__sim/script", post(script))
        .route("/__sim/release", post(release))
        .route("/__sim/reset", post(reset))
        .route("/__sim/advance", post(advance))
}

async fn stats(State(app): State<Arc<App>>) -> Json<Stats> {
    Json(app.runs.stats())
}

async fn requests(State(app): State<Arc<App>>) -> Json<Vec<SeenRequest>> {
    Json(app.journal.requests())
}

async fn release(State(app): State<Arc<App>>) -> StatusCode {
    app.runs.release();
    StatusCode::NO_CONTENT
}

async fn reset(State(app): State<Arc<App>>) -> StatusCode {
    app.runs.reset();
    app.journal.clear();
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
struct Queue {
    scenarios: Vec<String>,
}

async fn script(
    State(app): State<Arc<App>>,
    Json(Queue { scenarios }): Json<Queue>,
) -> Result<StatusCode, Refusal> {
    let scenarios: Result<_, _> = scenarios.iter().map(|text| Scenario::parse(text)).collect();
    app.runs.queue(scenarios.map_err(Refusal::invalid)?);
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct Advance {
    ms: u64,
}

async fn advance(
    State(app): State<Arc<App>>,
    Json(Advance { ms }): Json<Advance>,
) -> Result<StatusCode, Refusal> {
    if !app.runs.clock.advance(Duration::from_millis(ms)) {
        return Err(Refusal::invalid("simulator: its clock is real, start it with a virtual one"));
    }
    Ok(StatusCode::NO_CONTENT)
}
