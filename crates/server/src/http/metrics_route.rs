//! `/metrics`: what was counted, and what the store holds at the moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use outlast_core::rules::Sharing;
use outlast_core::{JobQuery, OwnerId, Scope, StateKind, StoreError};

use super::http_refusal::Refused;
use super::routes::App;
use crate::caller::Principal;
use crate::metrics::{Snapshot, word};

/// Unfinished jobs are read so many at a time.
const PAGE: u32 = 500;
/// And no more than so many: the figure is a floor then.
const MOST: usize = 50_000;

/// The figures as text, as far as the caller may see them.
pub(super) async fn figures(
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
            tracing::warn!(%error, "no figures");
            Refused::store().into_response()
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
        limit: PAGE,
        ..JobQuery::default()
    };
    let mut read = 0;
    loop {
        let page = app.engine.list(reader, &query).await?;
        read += page.jobs.len();
        for job in page.jobs {
            if job.state == StateKind::Queued {
                oldest = Some(oldest.map_or(job.created_at, |oldest| job.created_at.min(oldest)));
            }
            *unfinished.entry((job.workflow, word(job.state))).or_default() += 1;
        }
        query.after = page.next;
        if query.after.is_none() || read >= MOST {
            break;
        }
    }
    let now = app.engine.now();
    Ok(Snapshot {
        unfinished,
        oldest_queued: oldest.map(|oldest| now.since(oldest)),
        calls: app.server.calls_under_way(),
    })
}
