//! The calls of the Agent API that follow and stop a run.

use outlast_core::ProviderError;
use reqwest::StatusCode;

use super::errors;
use super::wire::{RunError, Status};
use crate::http::send;
use crate::vendor::{EventStream, HttpAnswer, Service, is_event_stream};

impl Service {
    /// What the provider says went wrong with a run, with this key kept out of it.
    pub(super) fn said(&self, error: RunError) -> String {
        self.redacted(&errors::said(error))
    }

    /// What the end of a run without a report means, with this key kept out of it.
    pub(super) fn run_ended(&self, status: Status, error: Option<RunError>) -> ProviderError {
        errors::run_ended(self.vendor(), status, error, |said| self.redacted(said))
    }

    /// Takes up a run's event stream after the event of this number.
    pub(super) async fn attach(&self, id: &str, cursor: u64) -> Result<Attached, ProviderError> {
        let mut url = self.address(["v1", "agent", id]);
        url.set_query(Some(&format!("stream=true&starting_after={cursor}")));
        let request = self.calls()?.get(url).header("accept", "text/event-stream");
        let response =
            send(self.authorised(request)).await.map_err(|error| self.no_answer(&error))?;
        if response.status() == StatusCode::OK && is_event_stream(&response) {
            return Ok(Attached::Stream(Box::new(EventStream::new(response))));
        }
        let status = response.status();
        if status.is_success() || matches!(status.as_u16(), 400 | 405 | 410 | 422) {
            return Ok(Attached::Refused);
        }
        // A stream that cannot be had now may be had later.
        Err(self.trouble(&HttpAnswer { status, retry_after: None, body: Vec::new() }))
    }

    /// Asks for a run to be stopped.
    pub(super) async fn cancel(&self, id: &str) -> Result<HttpAnswer, ProviderError> {
        let request = self.calls()?.post(self.address(["v1", "agent", id, "cancel"]));
        let request = request.timeout(self.stop_limit()).json(&serde_json::json!({}));
        self.answer(self.authorised(request)).await
    }
}

/// What came of asking for a stream.
pub(super) enum Attached {
    /// It is there.
    Stream(Box<EventStream>),
    /// This run has none; asking again is of no use.
    Refused,
}
