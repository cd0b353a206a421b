//! Sending a request that costs money, for every endpoint: what arrived, what was refused, what nobody can know.

use std::time::Duration;

use outlast_core::{AskKind, BeginError, ProviderError, ResearchAsk, Trouble};
use reqwest::{RequestBuilder, Response};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::api::Api;
use super::errors::{self, Answer};
use crate::http::{read_body, retry_after, send};

/// How long the body of a refused submit may take; its status counts without it.
const REFUSAL_LIMIT: Duration = Duration::from_secs(10);

/// What came of a submit that was answered.
pub(super) enum Sent {
    /// A success, its body still to come.
    Accepted(Response),
    /// Anything else, whole.
    Refused(Answer),
}

/// A submit under way: one limit for all that it waits for.
pub(super) struct Submit<'a> {
    api: &'a Api,
    deadline: Instant,
}

impl<'a> Submit<'a> {
    /// The limit runs from here.
    pub(super) fn new(api: &'a Api) -> Self {
        Self { api, deadline: Instant::now() + api.timeout() }
    }

    /// Sends it and waits for the head of the answer. A refusal's body that breaks off or never ends is taken for an
    /// empty one: it must not undo what the status says.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Sent, BeginError> {
        let response = self.in_time(send(request)).await?;
        let response = response.map_err(|error| errors::not_begun(&error))?;
        if response.status().is_success() {
            return Ok(Sent::Accepted(response));
        }
        let status = response.status();
        let retry_after = retry_after(response.headers(), self.api.now());
        let limit = self.api.timeout().min(REFUSAL_LIMIT);
        let body = match timeout(limit, read_body(response)).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        Ok(Sent::Refused(Answer { status, retry_after, body }))
    }

    /// The whole body of a success. It was accepted, so without its body its fate is unknown.
    pub(super) async fn read(&self, response: Response) -> Result<Vec<u8>, BeginError> {
        let body = self.in_time(read_body(response)).await?;
        body.map_err(|error| BeginError::Unknown(errors::broken_answer(&error)))
    }

    /// Waits for something after the request has left.
    pub(super) async fn in_time<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, BeginError> {
        let silent = |_| BeginError::Unknown(errors::silent(self.api.timeout()));
        timeout_at(self.deadline, future).await.map_err(silent)
    }
}

/// A stored request as we know it.
pub(super) fn asked(ask: &Value) -> Result<ResearchAsk, BeginError> {
    ResearchAsk::deserialize(ask).map_err(|error| {
        BeginError::NotSent(ProviderError {
            trouble: Trouble::Rejected,
            sentence: "the stored request cannot be read by this version".to_owned(),
            detail: Some(error.to_string()),
        })
    })
}

/// What kind of answer a stored request wants; what cannot be read is refused by [`asked`] before it is sent.
pub(super) fn kind(ask: &Value) -> AskKind {
    ask.get("kind").and_then(|kind| AskKind::deserialize(kind).ok()).unwrap_or_default()
}
