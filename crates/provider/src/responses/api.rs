//! The calls that follow and stop a run.

use outlast_core::{ProviderError, RemoteRun, RemoteStop};
use reqwest::StatusCode;

use super::wire::{Response, RunError, Status};
use super::{Dialect, errors};
use crate::vendor::{EventStream, HttpAnswer, Service, not_yet};

/// One vendor's API behind an address and a key. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Responses {
    pub(crate) service: Service,
    pub(crate) dialect: &'static Dialect,
}

impl Responses {
    /// A run that begins now.
    pub(crate) fn remote(&self, id: String) -> RemoteRun {
        self.service.remote(self.dialect.name, id)
    }

    /// What the provider says went wrong with a run, with this key kept out of it.
    pub(crate) fn said(&self, error: RunError) -> String {
        self.service.redacted(&errors::said(error))
    }

    /// What the end of a run without a report means, with this key kept out of it.
    pub(super) fn run_ended(&self, status: Status, error: Option<RunError>) -> ProviderError {
        let redact = |said: &str| self.service.redacted(said);
        errors::run_ended(self.service.vendor(), status, error, redact)
    }

    /// Asks for a run's object.
    pub(super) async fn get(&self, id: &str) -> Result<HttpAnswer, ProviderError> {
        self.service.get(&self.names(id)).await
    }

    /// Takes up a run's event stream after the event of this number.
    pub(super) async fn attach(
        &self,
        id: &str,
        cursor: u64,
    ) -> Result<Option<EventStream>, ProviderError> {
        let mut url = self.service.address(self.names(id));
        url.query_pairs_mut()
            .append_pair("stream", "true")
            .append_pair("starting_after", &cursor.to_string());
        self.service.attach(url).await
    }

    /// Stops a run. Safe to repeat.
    pub(crate) async fn stop(&self, run: &RemoteRun) -> Result<RemoteStop, ProviderError> {
        let service = &self.service;
        // A cancel of an unknown run and of a finished one may get the same answer, so the state is read first.
        let before = service.get_within(service.stop_limit(), &self.names(&run.id)).await?;
        if before.status == StatusCode::NOT_FOUND {
            if !service.is_settled(run) {
                return Err(not_yet());
            }
            // It may only be hidden for a while, so it is told all the same.
            let answer = self.cancel(&run.id).await?;
            return match answer.status {
                status if status.is_success() => Ok(RemoteStop::Done),
                StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND => Ok(RemoteStop::Unsupported),
                _ => Err(service.trouble(&answer)),
            };
        }
        if !before.status.is_success() {
            return Err(service.trouble(&before));
        }
        if Response::parse(&before.body).is_some_and(|response| response.status().is_terminal()) {
            return Ok(RemoteStop::Done);
        }
        let answer = self.cancel(&run.id).await?;
        match answer.status {
            status if status.is_success() => Ok(RemoteStop::Done),
            // It ended between the two calls.
            StatusCode::BAD_REQUEST => Ok(RemoteStop::Done),
            _ => Err(service.trouble(&answer)),
        }
    }

    async fn cancel(&self, id: &str) -> Result<HttpAnswer, ProviderError> {
        let service = &self.service;
        let names = self.names(id).into_iter().chain(["cancel"]);
        let request = service.calls()?.post(service.address(names));
        let request = request.timeout(service.stop_limit()).json(&serde_json::json!({}));
        service.answer(service.authorised(request)).await
    }

    /// The names that lead to a run.
    fn names<'a>(&self, id: &'a str) -> [&'a str; 3] {
        let [version, runs] = self.dialect.path;
        [version, runs, id]
    }
}
