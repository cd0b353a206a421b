//! The routing table, and the routes that are not MCP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{Extension, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use outlast_core::rules::Sharing;
use outlast_core::{JobQuery, Scope, StateKind, StoreError};
use serde_json::json;

use super::Routes;
use super::app::{App, HEALTH, LIVEZ, METRICS, READYZ};
use super::http_refusal::HttpRefusal;
use super::{admission, mcp};
use crate::caller::{Access, Principal};
use crate::metrics::{Snapshot, StoreHealth};
use crate::page;

/// The time limit for reading the store for metrics: shorter than a scrape.
const SNAPSHOT: Duration = Duration::from_secs(3);
/// The number of unfinished jobs that are read at a time.
const JOBS_PER_READ: u32 = 500;
/// The maximum number of jobs that are read; if there are more, the figure is too low.
const MAX_JOBS_READ: usize = 50_000;

/// Returns every route, behind [`admission`].
pub(super) fn router(app: Arc<App>) -> Router {
    let of_operators = Router::new()
        .route(LIVEZ, get(livez))
        .route(READYZ, get(readyz))
        .route(HEALTH, get(readyz))
        .route(METRICS, get(metrics));
    let routes = match app.options.routes {
        Routes::OfOperators => of_operators,
        Routes::All => of_operators
            .route("/mcp", get(mcp::endpoint).post(mcp::endpoint).delete(mcp::endpoint))
            // Clients and proxies add the slash; a redirect would lose the token.
            .route("/mcp/", get(mcp::endpoint).post(mcp::endpoint).delete(mcp::endpoint))
            .merge(page::router()),
    };
    routes
        .fallback(|| async { HttpRefusal::not_found() })
        .method_not_allowed_fallback(|| async { HttpRefusal::bad_method() })
        .layer(from_fn_with_state(Arc::clone(&app), admission::guard))
        .with_state(app)
}

/// Answers as long as the process runs: a restart would not help if the store is unreachable.
async fn livez() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

/// Reports whether calls are worth making. Names no owner and no job.
async fn readyz(State(app): State<Arc<App>>) -> Response {
    let store = app.server.metrics.check_store().await;
    let (status, word) = match store {
        _ if app.stop.is_draining() => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        StoreHealth::Silent => (StatusCode::SERVICE_UNAVAILABLE, "store does not answer"),
        StoreHealth::RefusesWrites => (StatusCode::SERVICE_UNAVAILABLE, "store refuses writes"),
        StoreHealth::Sound => (StatusCode::OK, "ok"),
    };
    (status, Json(json!({ "status": word }))).into_response()
}

/// Returns the metrics as text, limited to what the caller may see.
async fn metrics(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Response {
    let reader = reader(&app, principal);
    // The counts of this process are most useful while its store has errors.
    let silent = app.server.metrics.check_store().await == StoreHealth::Silent;
    let read = async { if silent { None } else { Some(snapshot(&app, &reader).await) } };
    let now = match tokio::time::timeout(SNAPSHOT, read).await {
        Ok(Some(Ok(now))) => Some(now),
        Ok(Some(Err(error))) => {
            tracing::warn!(%error, "failed to count the jobs of the store for metrics");
            None
        }
        Ok(None) | Err(_) => None,
    };
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let calls = app.server.calls.len();
    (kind, app.server.metrics.text(&reader, now.as_ref(), calls)).into_response()
}

/// Returns the scope of the reader. The owner of this server's command line sees everything, and so does an only owner; if
/// there are several, the others see their own jobs (E7).
fn reader(app: &App, Principal { owner, access, .. }: Principal) -> Scope {
    let operates = owner == app.server.face.owner || access == Access::Admin;
    match app.options.sharing() {
        Sharing::SeveralOwners if !operates => Scope::Owner(owner),
        Sharing::SeveralOwners | Sharing::OneOwner => Scope::Operator,
    }
}

async fn snapshot(app: &App, reader: &Scope) -> Result<Snapshot, StoreError> {
    let mut unfinished: BTreeMap<(String, &'static str), u64> = BTreeMap::new();
    let mut oldest = None;
    let mut query = JobQuery {
        states: StateKind::UNFINISHED.to_vec(),
        limit: JOBS_PER_READ,
        ..JobQuery::default()
    };
    let mut read = 0;
    loop {
        let page = app.server.face.engine.list(reader, &query).await?;
        read += page.jobs.len();
        for job in page.jobs {
            if job.state == StateKind::Queued {
                oldest = Some(oldest.map_or(job.created_at, |oldest| job.created_at.min(oldest)));
            }
            *unfinished.entry((job.workflow, job.state.as_str())).or_default() += 1;
        }
        query.after = page.next;
        if query.after.is_none() || read >= MAX_JOBS_READ {
            break;
        }
    }
    let now = app.server.face.engine.now();
    Ok(Snapshot { unfinished, oldest_queued: oldest.map(|oldest| now.since(oldest)) })
}
