//! The port to the services that do the work.
//!
//! An adapter maps, calls and maps back; [`crate::rules`] decides whether another attempt follows. The types keep one
//! promise visible: [`BeginError`] states whether a request may have been accepted, so that nothing is ever paid for
//! twice by accident.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    Code, Cost, NanoUsd, Output, Progress, RemoteRun, Request, RunJournal, StopOutcome, Store,
};

/// A service that does the work.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns its name in logs and in [`RemoteRun::provider`].
    fn name(&self) -> &'static str;

    /// Returns the recovery semantics of a request of this kind.
    fn recovery_semantics(&self, request: &Request) -> RecoverySemantics;

    /// Returns the model that will answer a request like this, as far as it is known before the request is sent.
    fn expected_model(&self, _request: &Request) -> Option<String> {
        None
    }

    /// Returns the usual cost of a request like this, known before it is sent.
    fn typical_cost(&self, _request: &Request) -> Cost {
        Cost::Unknown
    }

    /// Returns the cap of a run like this if nothing lower is asked for; `None` if the provider cannot stop a run at
    /// a sum. A provider with caps receives the cap of each run as the budget of its request
    /// ([`crate::ResearchRequest::budget`]).
    fn default_cap(&self, _request: &Request) -> Option<NanoUsd> {
        None
    }

    /// Returns the time limit of an attempt, if the provider's own settings state one.
    fn attempt_time(&self, _request: &Request) -> Option<Duration> {
        None
    }

    /// Sets the store for ids that are created once for each account. Called before anything is begun.
    fn set_id_store(&self, _store: &Arc<dyn Store>) {}

    /// Sends the request and returns once the provider has an id for the run.
    ///
    /// `key` belongs to this attempt and begins with the job's id ([`crate::rules::job_of_key`]). If an earlier run
    /// has to be begun again because it cannot be resumed, `key` is that run's id.
    ///
    /// Not cancel-safe, on purpose: a dropped `begin` may have bought something. Its own timeout limits it.
    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError>;

    /// Resumes a run that was begun earlier, by this process or another. `ask` is the request that the run was begun
    /// with: if a run gets its id before its request is sent, the request may still have to be sent.
    async fn resume(
        &self,
        request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError>;

    /// Asks the provider to stop a run, and checks the run unless the answer itself shows its end. Safe to repeat.
    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError>;
}

/// A run that is under way.
#[async_trait]
pub trait Run: Send {
    /// Returns the data that another process needs to resume it.
    fn remote(&self) -> RemoteRun;

    /// Sets the journal of the attempt. Called before the first step; a run without steps ignores it.
    fn set_journal(&mut self, _journal: RunJournal) {}

    /// Returns the text that it has written so far, if that is known ([`crate::Partial::visible_text`]). It is read now and
    /// then after steps, and never taken for the result.
    fn text(&self) -> Option<String> {
        None
    }

    /// Waits for the next step. Cancel-safe: a dropped call loses nothing.
    ///
    /// The adapter handles passing errors itself, such as a broken stream or a failed check; an error here ends the
    /// attempt.
    async fn next(&mut self) -> Result<Step, ProviderError>;

    /// Begins no step any more, and records those that are in flight as far as they are answered within this time. Called
    /// before the run is dropped because the worker shuts down or the attempt has no time left (K2). A run whose
    /// steps are not worth waiting for ignores it.
    async fn wind_down(&mut self, _at_most: Duration) {}
}

/// The next step of a run.
#[derive(Debug)]
pub enum Step {
    /// It has made progress.
    Progress(Progress),
    /// [`Run::remote`] has changed and is worth recording.
    Moved,
    /// It has asked its owner a question ([`RunJournal::ask`]) and stops until the answer: the worker gives up the job,
    /// and a worker resumes the run when it is answered, or at the deadline (M4).
    Wait,
    /// Its owner has declined to continue: the job is cancelled (M4).
    Cancel,
    /// It is done.
    Done {
        output: Box<Output>,
        /// The provider's final response, unchanged.
        raw: Option<Vec<u8>>,
    },
}

/// The recovery semantics of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoverySemantics {
    /// The rule for a second send if it is not known whether the first was accepted.
    pub resend: ResendPolicy,
    /// The runs that another process can resume.
    pub resume: ResumePolicy,
    /// True if a run can be stopped.
    pub can_stop: bool,
}

/// The rule for a second send of a request if it is not known whether the first was accepted. This alone decides what
/// happens to a job after a crash in the middle of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendPolicy {
    /// Yes: running it twice does no harm.
    Idempotent,
    /// Yes, under the same key: the provider begins one run for it.
    WithKey,
    /// No: it may have been accepted, and paid for.
    Never,
}

/// The runs that another process can resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumePolicy {
    /// None: they end with the process that began them.
    Never,
    /// Those with a [`RemoteRun::cursor`]; the others end with the process that began them.
    WithCursor,
    Always,
    /// All, from the journal of their job: the work is done in the process that holds the lease, step by step. It
    /// ends with the lease, because another worker may continue it then (K2).
    FromJournal,
}

impl ResumePolicy {
    /// Returns whether another process can resume this run.
    pub fn can_resume(self, run: &RemoteRun) -> bool {
        match self {
            Self::Never => false,
            Self::WithCursor => run.cursor.is_some(),
            Self::Always | Self::FromJournal => true,
        }
    }

    /// Returns whether this run goes on only as long as the process that works on it.
    pub fn works_here(self, run: &RemoteRun) -> bool {
        self == Self::FromJournal || !self.can_resume(run)
    }
}

/// The reason why a request did not become a run, by whether the provider may have accepted it.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// It was never sent: connection refused, name not found.
    #[error("the request was not sent: {0}")]
    NotSent(#[source] ProviderError),
    /// It arrived and was certainly not accepted.
    #[error("the request was refused: {0}")]
    Refused(#[source] ProviderError),
    /// It was sent, and its outcome cannot be known.
    #[error("the outcome of the request is unknown: {0}")]
    Unknown(#[source] ProviderError),
}

/// An error of a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct ProviderError {
    /// The kind of the error, by its remedy.
    pub kind: ProviderErrorKind,
    /// The message for clients: one plain sentence in our own words, with the next step.
    pub sentence: String,
    /// The vendor's own reason: the message of its error, with keys removed. Clients see one sentence of it, quoted
    /// (G9).
    pub reason: Option<String>,
    /// The text for the operator: what upstream returned, redacted and cut.
    pub detail: Option<String>,
    /// The status of the provider's run, as far as the error shows it.
    pub run: RunStatus,
}

impl ProviderError {
    /// Creates an error of which no more is known than this sentence.
    pub fn new(kind: ProviderErrorKind, sentence: impl Into<String>) -> Self {
        let run = RunStatus::Unknown;
        Self { kind, sentence: sentence.into(), reason: None, detail: None, run }
    }
}

/// The status of the provider's run, as an error shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Nothing is known: the run may continue.
    #[default]
    Unknown,
    /// Nothing that costs money was accepted in the run.
    NotCharged,
    /// The run has ended without a result, at this cost as far as the provider states it.
    Ended(Cost),
}

impl RunStatus {
    /// Returns whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }
}

/// The kinds of provider errors, by remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// Send fewer requests.
    RateLimited {
        /// The wait that the provider asked for.
        retry_after: Option<Duration>,
    },
    /// Correct the key.
    Unauthorized,
    /// Add money to the account.
    QuotaExhausted,
    /// Use another endpoint.
    Retired,
    /// Correct a setting; for example, the model does not exist.
    Misconfigured,
    /// Ask something else.
    Rejected,
    /// Wait: the service itself has an error.
    Unavailable {
        /// The wait that the provider asked for.
        retry_after: Option<Duration>,
    },
    /// Wait, or repair the network.
    Unreachable,
    /// The answer did not arrive in time.
    TimedOut,
    /// The answer cannot be parsed.
    Malformed,
    /// The answer is larger than the limit, and will be again the next time.
    TooLarge,
    /// The run ended without a result; a new one may be begun.
    RunFailed,
    /// The provider no longer knows the run, which may have done its work and been paid for. A new one may be begun
    /// only if running it twice does no harm.
    RunLost,
    /// The run was stopped at the provider, and not by this system. It is not begun again.
    RunStopped,
    /// The run exceeded its time limit and was ended; a new one may be begun.
    RunTimedOut,
    /// The run has an id, but it cannot be known whether the step that costs money was accepted in it. Nothing is
    /// sent again.
    StepUnknown,
    /// A question of the run was not answered before its deadline (M4).
    NotAnswered,
}

/// The meaning of an error kind for the job.
struct Meaning {
    code: Code,
    is_permanent: bool,
    ends_the_run: bool,
}

impl ProviderErrorKind {
    /// Returns the failure code that clients see.
    pub fn code(&self) -> Code {
        self.meaning().code
    }

    /// Returns whether the next attempt would meet the same error.
    pub fn is_permanent(&self) -> bool {
        self.meaning().is_permanent
    }

    /// Returns whether the provider's run is over, so that a new one would not pay a second time.
    pub fn ends_the_run(&self) -> bool {
        self.meaning().ends_the_run
    }

    fn meaning(&self) -> Meaning {
        let passes = |code| Meaning { code, is_permanent: false, ends_the_run: false };
        let stays = |code| Meaning { is_permanent: true, ..passes(code) };
        let ended = |meaning| Meaning { ends_the_run: true, ..meaning };
        match self {
            Self::RateLimited { .. } => passes(Code::RateLimited),
            Self::Unauthorized => stays(Code::Unauthorized),
            Self::QuotaExhausted => stays(Code::QuotaExhausted),
            Self::Retired => stays(Code::EndpointRetired),
            Self::Misconfigured => stays(Code::ConfigurationError),
            Self::Rejected | Self::TooLarge => stays(Code::ExecutionError),
            Self::Unavailable { .. } | Self::Unreachable => passes(Code::ServiceUnavailable),
            Self::TimedOut => passes(Code::Timeout),
            Self::Malformed => passes(Code::ExecutionError),
            Self::RunFailed => ended(passes(Code::ExecutionError)),
            Self::RunLost => passes(Code::RunLost),
            Self::RunStopped => ended(stays(Code::ExecutionError)),
            Self::RunTimedOut => ended(passes(Code::Timeout)),
            Self::StepUnknown => stays(Code::SubmitUnknown),
            Self::NotAnswered => ended(stays(Code::NotAnswered)),
        }
    }

    /// Returns the wait that the provider asked for, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        let (Self::RateLimited { retry_after } | Self::Unavailable { retry_after }) = self else {
            return None;
        };
        *retry_after
    }
}
