//! `/metrics`: what was counted, and what the store holds at the moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use outlast_core::{Query, Scope, StateKind, StoreError};

use super::refused::Refused;
use super::routes::App;
use crate::metrics::{Snapshot, word};

/// Unfinished jobs are read so many at a time.
const PAGE: u32 = 500;
/// And no more than so many: the figure is a floor then.
const MOST: usize = 50_000;

/// The figures as text.
pub(super) async fn figures(State(app): State<Arc<App>>) -> Response {
    match snapshot(&app).await {
        Ok(now) => {
            let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, app.metrics.text(&now)).into_response()
        }
        Err(error) => {
            tracing::warn!(%error, "no figures");
            Refused::store().into_response()
        }
    }
}

async fn snapshot(app: &App) -> Result<Snapshot, StoreError> {
    let mut unfinished: BTreeMap<(String, &'static str), u64> = BTreeMap::new();
    let mut oldest = None;
    let mut query = Query {
        states: vec![StateKind::Queued, StateKind::Running],
        limit: PAGE,
        ..Query::default()
    };
    let mut read = 0;
    loop {
        let page = app.engine.list(&Scope::Operator, &query).await?;
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
