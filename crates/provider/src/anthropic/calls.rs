//! The calls of the Managed Agents API. Returns what was answered; what it means is decided elsewhere.

use outlast_core::{BeginError, ProviderError};
use reqwest::StatusCode;
use serde::Serialize;
use serde_json::json;

use super::wire::{self, Event, Page};
use crate::http::send;
use crate::vendor::EventStream;
use crate::vendor::{HttpAnswer, Service, Submit, is_event_stream, malformed, not_yet, unreadable};

/// Longer lists are not read to their end.
const MAX_PAGES: usize = 100;

impl Service {
    /// One page of a list, or whatever was answered in its place.
    pub(super) async fn page(
        &self,
        names: &[&str],
        query: &[(&str, &str)],
    ) -> Result<HttpAnswer, ProviderError> {
        let mut url = self.address(names.iter().copied());
        url.query_pairs_mut().extend_pairs(query);
        let request = self.calls()?.get(url).timeout(self.timeout());
        self.answer(self.authorised(request)).await
    }

    /// Makes something that costs nothing.
    pub(super) async fn make(
        &self,
        names: &[&str],
        body: &(impl Serialize + Sync),
    ) -> Result<HttpAnswer, ProviderError> {
        let request = self.calls()?.post(self.address(names.iter().copied())).json(body);
        self.answer(self.authorised(request.timeout(self.timeout()))).await
    }

    /// Sends the question into a session, which costs money. An answer that names no event leaves open what became of it.
    pub(super) async fn ask(&self, id: &str, body: &wire::Events<'_>) -> Result<(), BeginError> {
        let request = self.post(&["v1", "sessions", id, "events"], body)?;
        let submit = Submit::within(self, self.waits().step_limit);
        let refusal = |answer: &HttpAnswer| match answer.status {
            // It was made a moment ago, so it may only be hidden.
            StatusCode::NOT_FOUND => BeginError::Refused(not_yet()),
            _ => self.refusal(answer),
        };
        let response = submit.send(request, refusal).await?;
        let body = submit.read(response).await?;
        match Page::<Event>::parse(&body).is_some_and(|sent| !sent.data.is_empty()) {
            true => Ok(()),
            false => Err(BeginError::Unknown(
                self.malformed("the provider's answer to the question names no event", &body),
            )),
        }
    }

    /// All events of a session, oldest first; the answer in their place where it is no success.
    pub(super) async fn events(
        &self,
        id: &str,
    ) -> Result<Result<Vec<Event>, HttpAnswer>, ProviderError> {
        let mut events = Vec::new();
        let mut query = vec![("limit", "100".to_owned())];
        for _ in 0..MAX_PAGES {
            let pairs: Vec<(&str, &str)> =
                query.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let answer = self.page(&["v1", "sessions", id, "events"], &pairs).await?;
            if !answer.status.is_success() {
                return Ok(Err(answer));
            }
            let page: Page<Event> = Page::parse(&answer.body).ok_or_else(unreadable)?;
            events.extend(page.data);
            let Some(next) = page.next_page.0 else { return Ok(Ok(events)) };
            query.truncate(1);
            query.push(("page", next));
        }
        Err(malformed("the provider's list of events has no end"))
    }

    /// Opens the stream of a session's events, from now on; `None` where the provider gives none.
    pub(super) async fn stream(&self, id: &str) -> Result<Option<EventStream>, ProviderError> {
        let mut url = self.address(["v1", "sessions", id, "events", "stream"]);
        url.query_pairs_mut().append_pair("event_deltas[]", "agent.message");
        let request = self.calls()?.get(url).header("accept", "text/event-stream");
        let response =
            send(self.authorised(request)).await.map_err(|error| self.no_answer(&error))?;
        let status = response.status();
        if status == StatusCode::OK && is_event_stream(&response) {
            return Ok(Some(EventStream::new(response)));
        }
        if status.is_success() || matches!(status.as_u16(), 400 | 405 | 410 | 422) {
            return Ok(None);
        }
        // A stream that cannot be had now may be had later.
        Err(self.trouble(&HttpAnswer { status, retry_after: None, body: Vec::new() }))
    }

    /// Tells a session to stop what it does.
    pub(super) async fn interrupt(&self, id: &str) -> Result<HttpAnswer, ProviderError> {
        let request = self.calls()?.post(self.address(["v1", "sessions", id, "events"]));
        let body = json!({"events": [{"type": "user.interrupt"}]});
        self.answer(self.authorised(request.timeout(self.stop_limit()).json(&body))).await
    }

    /// Closes a session to further events. Nothing depends on it, so trouble is only logged.
    pub(super) async fn archive(&self, id: &str) {
        let archived = async {
            let request = self.calls()?.post(self.address(["v1", "sessions", id, "archive"]));
            self.answer(self.authorised(request.timeout(self.stop_limit()))).await
        };
        match archived.await {
            Ok(answer) if answer.status.is_success() => {}
            Ok(answer) => {
                tracing::debug!(status = answer.status.as_u16(), "a session is not archived")
            }
            Err(error) => tracing::debug!(%error, "a session is not archived"),
        }
    }
}
