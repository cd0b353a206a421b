//! The Responses protocol, as Perplexity's Agent API and OpenAI speak it: a run that goes on by itself at the provider, its
//! object, its numbered events, and its cancel. The request and the making of the report are each vendor's own.

mod run;
mod meter;
pub(crate) mod wire;

use outlast_core::{
    Cost, ProviderError, ProviderErrorKind, RemoteRun, RunStatus, Step, StopOutcome,
};
use wire::Response;

use crate::vendor::{
    self, ErrorCode, EventStream, HttpAnswer, RunError, Service, Status, StopCalls, Vendor, object,
    stop_outcome,
};
pub(crate) use meter::Meter;
pub(crate) use run::ResponseRun;

/// The differences of one vendor's API from the others.
pub(crate) struct Dialect {
    /// The name in [`outlast_core::RemoteRun::provider`].
    pub(crate) name: &'static str,
    /// The names that lead to its runs.
    pub(crate) path: [&'static str; 2],
    /// The last step of a run that was not stopped; `None` when it has no report.
    pub(crate) finished: fn(Status, &mut Response, Vec<u8>) -> Option<Step>,
    /// The cost that its object states.
    pub(crate) cost: fn(&Response) -> Cost,
}

/// Adds to a report that its run ended early, and why.
pub(crate) fn note_early_end(text: &mut String, status: Status, response: &Response) {
    if status != Status::Incomplete {
        return;
    }
    let reason = response.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
    let reason = reason
        .filter(|reason| reason.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    let reason = reason.unwrap_or("no reason given");
    text.push_str(&format!("\n\n*The provider ended this report early ({reason}).*"));
}

/// A run that ended without a report.
pub(crate) fn run_ended(
    vendor: &Vendor,
    status: Status,
    error: Option<&RunError>,
    redact: impl Fn(&str) -> String,
) -> ProviderError {
    vendor::run_ended(vendor, status, None, error, cause, redact)
}

/// Failures that a new run would only repeat, by the provider's code for them.
fn cause(error: &RunError) -> ProviderErrorKind {
    let (word, number) = match &*error.code {
        Some(ErrorCode::Word(word)) => (Some(word.as_str()), None),
        Some(ErrorCode::Number(number)) => (None, Some(*number)),
        None => (None, None),
    };
    let words = [word, error.kind.as_deref()];
    let says = |known: &[&str]| {
        words.iter().flatten().any(|word| known.iter().any(|known| word.starts_with(known)))
    };
    if says(&["insufficient_", "quota_"]) || number == Some(402) {
        return ProviderErrorKind::QuotaExhausted;
    }
    let refused = [
        "invalid_",
        "too_many_prompt_tokens",
        "content_policy",
        "content_filter",
        "bio_policy",
        "cyber_policy",
        "misalignment_policy",
        "data_residency",
    ];
    if says(&refused) || matches!(number, Some(400 | 413 | 422)) {
        return ProviderErrorKind::Rejected;
    }
    ProviderErrorKind::RunFailed
}

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
    fn run_ended(&self, status: Status, error: Option<&RunError>, cost: Cost) -> ProviderError {
        let redact = |said: &str| self.service.redact(said);
        let error = run_ended(self.service.vendor(), status, error, redact);
        ProviderError { run: RunStatus::Ended(cost), ..error }
    }

    /// The cost that a run's object states.
    fn cost(&self, response: &Response) -> Cost {
        (self.dialect.cost)(response)
    }

    /// Reopens a run's event stream after the event of this number.
    async fn attach(&self, id: &str, cursor: u64) -> Result<Option<EventStream>, ProviderError> {
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
            end: |body: &[u8]| {
                let mut response = object::<Response>(body)?;
                let (status, cost) = (response.status(), self.cost(&response));
                let finished = self.dialect.finished;
                stop_outcome(status, cost, || finished(status, &mut response, Vec::new()).is_some())
            },
            to_error: |answer: &HttpAnswer| service.provider_error(answer),
        };
        service.stop(run, &names, calls).await
    }

    /// The names that lead to a run.
    fn names<'a>(&self, id: &'a str) -> [&'a str; 3] {
        let [version, runs] = self.dialect.path;
        [version, runs, id]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perplexity::VENDOR;

    /// B9a: a failed run may be repeated, unless its failure would only be repeated.
    #[test]
    fn a_failed_run_is_permanent_only_if_another_would_fail_too() {
        let ended = |status, error: Option<RunError>| {
            run_ended(&VENDOR, status, error.as_ref(), str::to_owned)
        };
        let cases = [
            (r#"{"code":"server_error"}"#, ProviderErrorKind::RunFailed),
            (r#"{"code":null,"message":null,"type":null}"#, ProviderErrorKind::RunFailed),
            (r#"{"code":500}"#, ProviderErrorKind::RunFailed),
            (r#"{"code":429,"type":"rate_limit"}"#, ProviderErrorKind::RunFailed),
            (r#"{"code":"insufficient_quota"}"#, ProviderErrorKind::QuotaExhausted),
            (r#"{"code":402}"#, ProviderErrorKind::QuotaExhausted),
            (r#"{"type":"invalid_request","code":400}"#, ProviderErrorKind::Rejected),
            (r#"{"code":"content_policy_violation"}"#, ProviderErrorKind::Rejected),
            (r#"{"type":"too_many_prompt_tokens"}"#, ProviderErrorKind::Rejected),
            (r#"{"code":"invalid_prompt"}"#, ProviderErrorKind::Rejected),
            (r#"{"code":"bio_policy"}"#, ProviderErrorKind::Rejected),
            (r#"{"code":"rate_limit_exceeded"}"#, ProviderErrorKind::RunFailed),
        ];
        for (error, expected) in cases {
            let parsed = serde_json::from_str(error).unwrap();
            assert_eq!(ended(Status::Failed, parsed).kind, expected, "{error}");
        }
        let ends = [
            (Status::Cancelled, ProviderErrorKind::RunStopped),
            (Status::RequiresAction, ProviderErrorKind::Rejected),
            (Status::Incomplete, ProviderErrorKind::Rejected),
            (Status::Completed, ProviderErrorKind::Malformed),
        ];
        for (status, expected) in ends {
            assert_eq!(ended(status, None).kind, expected, "{status:?}");
        }
    }
}
