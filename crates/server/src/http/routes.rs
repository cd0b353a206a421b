//! What is served where.

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use serde_json::json;

use super::app::{App, HEALTH};
use super::http_refusal::HttpRefusal;
use super::{admission, mcp, metrics_route};

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
