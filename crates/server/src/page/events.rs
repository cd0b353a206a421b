//! Notifies an open page, by server-sent events, that its content has changed. The event does not contain the change: the
//! page reads its content again, as the signed-in visitor.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::response::IntoResponse;
use futures_util::stream;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use outlast_core::{ChangeWait, Changes, JobId, JobQuery, Rev, StoreError};
use outlast_engine::{Engine, Shutdown};

use super::form::Fields;
use super::request::{PageRequest, PageResult};
use super::session::{self, Visitor};
use crate::http::App;

/// The longest silence before the page receives a sign that the connection is open.
const QUIET: Duration = Duration::from_secs(15);
/// The interval of polls for changes by other processes.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The minimum interval between events.
const AT_LEAST_APART: Duration = Duration::from_millis(300);

struct EventFeed {
    app: Arc<App>,
    /// The headers of the request, which prove that the visitor is still signed in.
    headers: HeaderMap,
    engine: Engine,
    visitor: Visitor,
    job: Option<JobId>,
    rev: Option<Rev>,
    stop: Shutdown,
}

/// Opens the stream; for a single job only if the visitor may see it.
pub(super) async fn stream(asked: PageRequest, Query(fields): Query<Fields>) -> PageResult {
    let (engine, visitor) = (asked.engine().clone(), asked.visitor.clone());
    let job: Option<JobId> = fields.get("job").and_then(|id| id.parse().ok());
    if let Some(id) = &job {
        asked.require_found(engine.job(&visitor.scope(), id).await)?;
    }
    let stop = asked.app.stop.clone();
    let PageRequest { app, headers, .. } = asked;
    let follow = EventFeed { app, headers, engine, visitor, job, rev: None, stop };
    let events = stream::unfold(Some(follow), |follow| async {
        let mut follow = follow?;
        let event = follow.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from_static(event.as_bytes())), Some(follow)))
    });
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response())
}

impl EventFeed {
    /// Returns the next event; `None` if the server is about to stop, the store cannot be followed, or the visitor was
    /// signed out.
    async fn next(&mut self) -> Option<&'static str> {
        let Some(rev) = self.rev else {
            self.rev = Some(self.engine.rev().await.ok()?);
            return Some("retry: 1000\nevent: open\ndata: {}\n\n");
        };
        let wait = ChangeWait { at_most: QUIET, look_every: LOOK_EVERY };
        let stop = self.stop.clone();
        let changes = tokio::select! {
            () = stop.wait() => return None,
            changes = self.engine.changes(rev, wait) => changes.ok()?,
        };
        self.rev = Some(changes.rev);
        if session::visitor(&self.app, &self.headers).await.as_ref() != Some(&self.visitor) {
            return None;
        }
        let told = if self.concerns(&changes).await.ok()? {
            "event: change\ndata: {}\n\n"
        } else {
            ": quiet\n\n"
        };
        tokio::time::sleep(AT_LEAST_APART).await;
        Some(told)
    }

    /// Returns true if a job that this page shows has changed. The page learns nothing about changes of other owners, not
    /// even that there were some.
    async fn concerns(&self, changes: &Changes) -> Result<bool, StoreError> {
        if let Some(job) = self.job {
            return Ok(changes.jobs.iter().any(|change| change.id == job));
        }
        for change in &changes.jobs {
            let id_prefix = Some(change.id.to_string());
            let query = JobQuery { id_prefix, limit: 1, ..JobQuery::default() };
            if !self.engine.list(&self.visitor.scope(), &query).await?.jobs.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
