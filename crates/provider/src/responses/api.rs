//! The calls that follow and stop a run.

use outlast_core::{Cost, ProviderError, RemoteRun, RunStatus, StopOutcome};

use super::wire::Response;
use super::{Dialect, errors};
use crate::vendor::{EventStream, HttpAnswer, RunError, Service, Status, StopCalls, object};

/// One vendor's API behind an address and a key. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Responses {
    pub(crate) service: Service,
    pub(crate) dialect: &'static Dialect,
}

impl Responses {
    /// A run that begins now.
    pub(crate) fn remote(&self, id: &str) -> RemoteRun {
        self.service.remote(self.dialect.name, id.to_owned())
    }

    /// Returns the error of a run that ended without a report, with this key kept out of it.
    pub(super) fn run_ended(
        &self,
        status: Status,
        error: Option<&RunError>,
        cost: Cost,
    ) -> ProviderError {
        let redact = |said: &str| self.service.redacted(said);
        let error = errors::run_ended(self.service.vendor(), status, error, redact);
        ProviderError { run: RunStatus::Ended(cost), ..error }
    }

    /// The cost that a run's object states.
    pub(super) fn cost(&self, response: &Response) -> Cost {
        (self.dialect.cost)(response)
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
    pub(crate) async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        let (service, names) = (&self.service, self.names(&run.id));
        let calls = StopCalls {
            look: || service.get_within(service.stop_limit(), &names),
            end: |body: &[u8]| self.end(&mut object::<Response>(body)?),
            trouble: |answer: &HttpAnswer| service.trouble(answer),
        };
        service.stop(run, &names, calls).await
    }

    /// The end that a run's object shows; `None` while the run goes on. One that waits for an action can be stopped.
    fn end(&self, response: &mut Response) -> Option<StopOutcome> {
        let status = response.status();
        let cost = (self.dialect.cost)(response);
        match status {
            Status::Running | Status::RequiresAction => None,
            Status::Failed | Status::Cancelled => Some(StopOutcome::Ended { cost }),
            Status::Completed | Status::Incomplete => {
                let report = (self.dialect.finished)(status, response, Vec::new());
                Some(
                    report.map_or(StopOutcome::Ended { cost }, |_| StopOutcome::Completed { cost }),
                )
            }
        }
    }

    /// The names that lead to a run.
    pub(super) fn names<'a>(&self, id: &'a str) -> [&'a str; 3] {
        let [version, runs] = self.dialect.path;
        [version, runs, id]
    }
}
