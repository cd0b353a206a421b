//! The calls that follow and stop a run.

use outlast_core::{ProviderError, RemoteRun, RemoteStop};
use reqwest::StatusCode;

use super::wire::Response;
use super::{Dialect, errors};
use crate::vendor::{EventStream, HttpAnswer, RunError, Service, Status, object};

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

    /// What the end of a run without a report means, with this key kept out of it.
    pub(super) fn run_ended(&self, status: Status, error: Option<&RunError>) -> ProviderError {
        let redact = |said: &str| self.service.redacted(said);
        errors::run_ended(self.service.vendor(), status, error, redact)
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
        let (service, names) = (&self.service, self.names(&run.id));
        let before = service.get_within(service.stop_limit(), &names).await?;
        let has_ended = |body: &[u8]| {
            object::<Response>(body).is_some_and(|response| response.status().is_terminal())
        };
        let already = [StatusCode::BAD_REQUEST];
        let trouble = |answer: &HttpAnswer| service.trouble(answer);
        service.stop(run, &names, &before, has_ended, &already, trouble).await
    }

    /// The names that lead to a run.
    pub(super) fn names<'a>(&self, id: &'a str) -> [&'a str; 3] {
        let [version, runs] = self.dialect.path;
        [version, runs, id]
    }
}
