//! `/metrics`: what was counted, and what the store holds at the moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use outlast_core::rules::Sharing;
use outlast_core::{JobQuery, OwnerId, Scope, StateKind, StoreError};

use super::app::App;
use super::http_refusal::HttpRefusal;
use crate::caller::Principal;
use crate::metrics::Snapshot;

/// How many unfinished jobs are read at a time.
const JOBS_PER_READ: u32 = 500;
/// How many are read in all; where there are more, the figure is too low.
const MAX_JOBS_READ: usize = 50_000;

/// The figures as text, as far as the caller may see them.
pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    Extension(Principal(owner)): Extension<Principal>,
) -> Response {
    let reader = reader(&app, owner);
    match snapshot(&app, &reader).await {
        Ok(now) => {
            let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, app.metrics.text(&reader, &now)).into_response()
        }
        Err(error) => {
            tracing::warn!(%error, "metrics cannot be read");
            HttpRefusal::store_unreadable().into_response()
        }
    }
}

/// Who reads: the owner that this server's own command line works for sees everything, and so does an only owner; of
/// several the others see their own (E7).
fn reader(app: &App, owner: OwnerId) -> Scope {
    let operates = owner == *app.server.operator();
    match app.callers.sharing() {
        Sharing::SeveralOwners if !operates => Scope::Owner(owner),
        Sharing::SeveralOwners | Sharing::OneOwner => Scope::Operator,
    }
}

async fn snapshot(app: &App, reader: &Scope) -> Result<Snapshot, StoreError> {
    let mut unfinished: BTreeMap<(String, &'static str), u64> = BTreeMap::new();
    let mut oldest = None;
    let mut query = JobQuery {
        states: vec![StateKind::Queued, StateKind::Running],
        limit: JOBS_PER_READ,
        ..JobQuery::default()
    };
    let mut read = 0;
    loop {
        let page = app.server.engine().list(reader, &query).await?;
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
    let now = app.server.engine().now();
    Ok(Snapshot {
        unfinished,
        oldest_queued: oldest.map(|oldest| now.since(oldest)),
        calls: app.server.calls_under_way(),
    })
}
