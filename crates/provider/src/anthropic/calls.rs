//! The calls of the Managed Agents API. Returns what was answered; what it means is decided elsewhere.

use std::ops::ControlFlow;

use outlast_core::{BeginError, ProviderError};
use reqwest::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::wire::{Event, ListPage};
use crate::http::{SendError, send};
use crate::vendor::{
    EventStream, HttpAnswer, Service, Submit, object, report_malformed, unknown_run, unreadable,
};

/// The reason why a free object has no id.
#[derive(Debug)]
pub(super) enum CreateError {
    /// It was certainly not made.
    Failed(ProviderError),
    /// It may have been made, and the answer was lost.
    Lost(ProviderError),
}

impl From<ProviderError> for CreateError {
    fn from(error: ProviderError) -> Self {
        Self::Failed(error)
    }
}

/// Longer lists are not read to their end.
const MAX_PAGES: usize = 100;

impl Service {
    /// Reads a list, at most `most` pages of it, while `take` wants more. Returns false if that was not enough, or the answer
    /// that came in place of a page.
    pub(super) async fn pages<T: DeserializeOwned>(
        &self,
        names: &[&str],
        query: &[(&str, &str)],
        most: usize,
        mut take: impl FnMut(Vec<T>) -> ControlFlow<()>,
    ) -> Result<Result<bool, HttpAnswer>, ProviderError> {
        let mut next = None;
        for _ in 0..most {
            let mut url = self.address(names.iter().copied());
            url.query_pairs_mut().extend_pairs(query).append_pair("limit", "100");
            url.query_pairs_mut().extend_pairs(next.as_ref().map(|next| ("page", next)));
            let request = self.calls()?.get(url).timeout(self.timeout());
            let answer = self.answer(self.authorize(request)).await?;
            if !answer.status.is_success() {
                return Ok(Err(answer));
            }
            let page: ListPage<T> = object(&answer.body).ok_or_else(unreadable)?;
            next = page.next_page.0;
            if take(page.data).is_break() || next.is_none() {
                return Ok(Ok(true));
            }
        }
        Ok(Ok(false))
    }

    /// Makes an object that costs nothing: an agent, an environment or a session.
    pub(super) async fn create(
        &self,
        names: &[&str],
        body: &Value,
    ) -> Result<Vec<u8>, CreateError> {
        let request = self.calls().map_err(CreateError::Failed)?;
        let request = request.post(self.address(names.iter().copied())).json(body);
        let request = self.authorize(request.timeout(self.timeout()));
        let answer = match send(request).await {
            Err(error @ SendError::Lost(_)) => {
                return Err(CreateError::Lost(self.no_answer(&error)));
            }
            Err(error) => return Err(CreateError::Failed(self.no_answer(&error))),
            Ok(response) => self.read_answer(response).await.map_err(CreateError::Lost)?,
        };
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        Err(match self.refusal(&answer) {
            BeginError::NotSent(error) | BeginError::Refused(error) => CreateError::Failed(error),
            BeginError::Unknown(error) => CreateError::Lost(error),
        })
    }

    /// Sends the question into a session, which costs money. An answer that names no event leaves its outcome unknown.
    pub(super) async fn ask(&self, id: &str, body: &Value) -> Result<(), BeginError> {
        let request = self.post(&["v1", "sessions", id, "events"], body)?;
        let submit = Submit::within(self, self.waits().step_limit);
        let refusal = |answer: &HttpAnswer| match answer.status {
            // It was made a moment ago, so it may only be hidden.
            StatusCode::NOT_FOUND => BeginError::Refused(unknown_run()),
            _ => self.refusal(answer),
        };
        let response = submit.send(request, refusal).await?;
        let body = submit.read(response).await?;
        match object::<ListPage<Event>>(&body).is_some_and(|sent| !sent.data.is_empty()) {
            true => Ok(()),
            false => {
                Err(BeginError::Unknown(self.report_malformed(
                    "the provider's answer to the question names no event",
                    &body,
                )))
            }
        }
    }

    /// All events of a session, oldest first; the answer in their place if it is not a success.
    pub(super) async fn events(
        &self,
        id: &str,
    ) -> Result<Result<Vec<Event>, HttpAnswer>, ProviderError> {
        let mut events = Vec::new();
        let take = |page: Vec<Event>| {
            events.extend(page);
            ControlFlow::Continue(())
        };
        match self.pages(&["v1", "sessions", id, "events"], &[], MAX_PAGES, take).await? {
            Ok(true) => Ok(Ok(events)),
            Ok(false) => Err(report_malformed("the provider's list of events has no end")),
            Err(answer) => Ok(Err(answer)),
        }
    }

    /// Opens the stream of a session's events, from now on; `None` if the provider has none.
    pub(super) async fn stream(&self, id: &str) -> Result<Option<EventStream>, ProviderError> {
        let mut url = self.address(["v1", "sessions", id, "events", "stream"]);
        url.query_pairs_mut().append_pair("event_deltas[]", "agent.message");
        self.attach(url).await
    }

    /// Interrupts a session.
    pub(super) async fn interrupt(&self, id: &str) -> Result<HttpAnswer, ProviderError> {
        let body = json!({"events": [{"type": "user.interrupt"}]});
        self.tell(self.stop_limit(), &["v1", "sessions", id, "events"], &body).await
    }

    /// Closes a session to further events, and returns true if that was done. An error is only logged.
    pub(super) async fn archive(&self, id: &str) -> bool {
        let names = ["v1", "sessions", id, "archive"];
        match self.tell(self.stop_limit(), &names, &json!({})).await {
            Ok(answer) if answer.status.is_success() => return true,
            Ok(answer) => {
                tracing::debug!(status = answer.status.as_u16(), "failed to archive a session")
            }
            Err(error) => tracing::debug!(%error, "failed to archive a session"),
        }
        false
    }
}
