//! The control endpoints under `/__sim`, for tests in another process. They need no key, and are neither
//! counted nor recorded.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use crate::app::{App, SharedApp};
use crate::errors::Refusal;

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/__sim/stats", get(async |State(app): SharedApp| Json(app.runs.stats())))
        .route("/__sim/requests", get(async |State(app): SharedApp| Json(app.journal.requests())))
        .route("/__sim/calls", get(async |State(app): SharedApp| Json(app.calls.snapshot())))
        .route("/__sim/prompts", get(async |State(app): SharedApp| Json(app.calls.prompts())))
        .route("/__sim/origins", get(async |State(app): SharedApp| Json(app.origins.clone())))
        .route("/__sim/script", post(script))
        .route("/__sim/release", post(release))
        .route("/__sim/reset", post(reset))
        .route("/__sim/advance", post(advance))
}

async fn release(State(app): SharedApp) -> StatusCode {
    app.runs.release();
    StatusCode::NO_CONTENT
}

async fn reset(State(app): SharedApp) -> StatusCode {
    app.runs.reset();
    app.journal.clear();
    app.calls.clear();
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
struct Queue {
    scenarios: Vec<String>,
}

async fn script(State(app): SharedApp, Json(queue): Json<Queue>) -> Result<StatusCode, Refusal> {
    app.runs.queue(&queue.scenarios).map_err(Refusal::invalid)?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct Advance {
    ms: u64,
}

async fn advance(State(app): SharedApp, Json(by): Json<Advance>) -> Result<StatusCode, Refusal> {
    if !app.runs.clock.advance(Duration::from_millis(by.ms)) {
        return Err(Refusal::invalid(
            "simulator: the clock is real; start the simulator with a virtual clock",
        ));
    }
    Ok(StatusCode::NO_CONTENT)
}
