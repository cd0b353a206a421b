//! What is served where.

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use outlast_core::OwnerId;
use outlast_engine::{Engine, Shutdown};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::allowed_hosts::{Hosts, Origins};
use super::capacity::Capacity;
use super::http_refusal::HttpRefusal;
use super::limits::Limits;
use super::sessions::Sessions;
use super::{Callers, admission, mcp, metrics_route};
use crate::metrics::Metrics;
use crate::server::Server;

/// The one route that asks for no token.
pub(super) const HEALTH: &str = "/health";

/// What every request can reach.
pub(super) struct App {
    pub(super) server: Server,
    pub(super) mcp_service: mcp::McpService,
    pub(super) engine: Engine,
    pub(super) metrics: Arc<Metrics>,
    pub(super) callers: Callers,
    pub(super) hosts: Hosts,
    pub(super) origins: Origins,
    pub(super) limits: Limits,
    /// The bytes of requests that are being read or worked on.
    pub(super) bodies: Arc<Capacity<OwnerId>>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) stop: Shutdown,
    /// Ends every stream.
    pub(super) closed: CancellationToken,
}

/// Every route, behind [`admission`].
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/mcp", get(mcp::endpoint).post(mcp::endpoint).delete(mcp::endpoint))
        .route(HEALTH, get(health))
        .route("/metrics", get(metrics_route::metrics))
        .fallback(|| async { HttpRefusal::not_found() })
        .method_not_allowed_fallback(|| async { HttpRefusal::bad_method() })
        .layer(from_fn_with_state(Arc::clone(&app), admission::guard))
        .with_state(app)
}

/// Whether calls are worth making. Names no owner and no job.
async fn health(State(app): State<Arc<App>>) -> Response {
    let (status, word) = if app.stop.is_asked() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else if app.metrics.store_refuses() {
        (StatusCode::SERVICE_UNAVAILABLE, "store refuses writes")
    } else {
        (StatusCode::OK, "ok")
    };
    (status, Json(json!({ "status": word }))).into_response()
}
