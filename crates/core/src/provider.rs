//! The port to the services that do the work.
//!
//! An adapter maps, calls and maps back; whether to try again is decided by [`crate::rules`]. The types keep one
//! promise visible: [`BeginError`] says whether a request may have been accepted, so that nothing is ever
//! paid for twice by accident.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Code, Cost, NanoUsd, Output, Progress, RemoteRun, StopOutcome, Store};

/// A service that does the work.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Its name in logs and in [`RemoteRun::provider`].
    fn name(&self) -> &'static str;

    /// What may be done with a request of this kind after trouble.
    fn nature(&self, ask: &Value) -> Nature;

    /// The model that will answer a request like this, as far as is known before it is made.
    fn expected_model(&self, _ask: &Value) -> Option<String> {
        None
    }

    /// What a request like this usually costs, known before it is made.
    fn typical_cost(&self, _ask: &Value) -> Cost {
        Cost::Unknown
    }

    /// The cap of a run like this if nothing lower is asked for; `None` if the provider cannot stop a run at a sum. A
    /// provider with caps is given the cap of each run as the budget of its request ([`crate::ResearchAsk::budget`]).
    fn default_cap(&self, _ask: &Value) -> Option<NanoUsd> {
        None
    }

    /// Says where ids that are made once for an account are kept. Called before anything is begun.
    fn keep_ids_in(&self, _store: &Arc<dyn Store>) {}

    /// Sends the request and returns once the provider has a name for the run.
    ///
    /// `key` is this try's own and begins with the job's id ([`crate::rules::job_of_key`]); where an earlier run has to
    /// be begun anew because it cannot be taken up, it is that run's id.
    ///
    /// Not cancel-safe, on purpose: a dropped `begin` may have bought something. Bounded by its own timeout.
    async fn begin(&self, ask: &Value, key: &str) -> Result<Box<dyn Run>, BeginError>;

    /// Takes up a run that was begun earlier, by this process or another. `ask` is the request it was begun with: where a
    /// run has its name before it is sent what to do, the request may still have to be sent.
    async fn resume(&self, ask: &Value, run: &RemoteRun) -> Result<Box<dyn Run>, ProviderError>;

    /// Asks the provider to stop a run, and looks at the run unless the answer itself shows its end. Safe to repeat.
    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError>;
}

/// A run that is under way.
#[async_trait]
pub trait Run: Send {
    /// What another process needs to take it up.
    fn remote(&self) -> RemoteRun;

    /// The text it has written so far, where that is known ([`crate::Partial::shown`]). Looked at after steps, now and then;
    /// never taken for the result.
    fn text(&self) -> Option<String> {
        None
    }

    /// Waits for the next thing to happen. Cancel-safe: a dropped call loses nothing.
    ///
    /// Trouble that passes (a broken stream, a failed check) is the adapter's own; an error here ends the try.
    async fn next(&mut self) -> Result<Step, ProviderError>;
}

/// The next thing that happened in a run.
#[derive(Debug)]
pub enum Step {
    /// It has come further.
    Progress(Progress),
    /// [`Run::remote`] has changed and is worth recording.
    Moved,
    /// It is done.
    Done {
        /// The result.
        output: Box<Output>,
        /// The provider's last word as it came.
        raw: Option<Vec<u8>>,
    },
}

/// What may be done with a request after trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// May the request be sent a second time when it is not known whether the first was accepted?
    pub again: Again,
    /// Which runs can another process take up?
    pub resumes: Resumes,
    /// Can a run be stopped?
    pub stops: bool,
}

/// Whether a request may be sent a second time when it is not known whether the first was accepted. This alone decides
/// what happens to a job after a crash in the middle of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Yes: running it twice does no harm.
    Safe,
    /// Yes, under the same key: the provider begins one run for it.
    WithKey,
    /// No: it may have been accepted, and paid for.
    Never,
}

/// Which runs can be taken up by another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumes {
    /// None: they end with the process that began them.
    Never,
    /// Those with a [`RemoteRun::cursor`]; the others end with the process that began them.
    WithCursor,
    /// All of them.
    Always,
}

impl Resumes {
    /// Whether this run can be.
    pub fn takes_up(self, run: &RemoteRun) -> bool {
        match self {
            Self::Never => false,
            Self::WithCursor => run.cursor.is_some(),
            Self::Always => true,
        }
    }
}

/// Why a request did not become a run, by whether the provider may have accepted it.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// It never left: connection refused, name not found.
    #[error("the request was not sent: {0}")]
    NotSent(#[source] ProviderError),
    /// It arrived and was certainly not accepted.
    #[error("the request was refused: {0}")]
    Refused(#[source] ProviderError),
    /// It was sent, and what became of it cannot be known.
    #[error("the fate of the request is unknown: {0}")]
    Unknown(#[source] ProviderError),
}

/// Something a provider could not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct ProviderError {
    /// What kind of trouble, by its remedy.
    pub trouble: Trouble,
    /// For clients: one plain sentence in our own words, with the next step.
    pub sentence: String,
    /// What the vendor itself says of it: the message of its error, with keys taken out. Clients see a sentence of it, quoted
    /// (G9).
    pub reason: Option<String>,
    /// For the operator: what upstream said, redacted and cut.
    pub detail: Option<String>,
    /// What it shows about the provider's run.
    pub run: RunStatus,
}

impl ProviderError {
    /// Trouble of which no more is known than this sentence.
    pub fn new(trouble: Trouble, sentence: impl Into<String>) -> Self {
        let run = RunStatus::Unknown;
        Self { trouble, sentence: sentence.into(), reason: None, detail: None, run }
    }
}

/// The provider's run as an error shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Nothing is known: it may go on.
    #[default]
    Unknown,
    /// Nothing that costs money was accepted in it.
    NotCharged,
    /// It has ended without a result, at this cost as far as the provider states it.
    Ended(Cost),
}

impl RunStatus {
    /// Returns whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }
}

/// Kinds of trouble, by remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Slow down.
    RateLimited {
        /// As long as the provider asked for.
        retry_after: Option<Duration>,
    },
    /// Correct the key.
    Unauthorized,
    /// Pay.
    QuotaExhausted,
    /// Use another endpoint.
    Retired,
    /// Correct a setting: the model is not there, say.
    Misconfigured,
    /// Ask something else.
    Rejected,
    /// Wait: the service has trouble of its own.
    Unavailable {
        /// As long as the provider asked for.
        retry_after: Option<Duration>,
    },
    /// Wait, or repair the network.
    Unreachable,
    /// The answer did not come in time.
    TimedOut,
    /// The answer makes no sense.
    Malformed,
    /// The answer is larger than is read, and will be so the next time.
    TooLarge,
    /// The run ended without a result; a new one may be begun.
    RunFailed,
    /// The provider no longer knows the run, which may have done its work and been paid for: a new one may be begun
    /// only where running it twice does no harm.
    RunLost,
    /// The run was stopped at the provider, and not by this system: it is not begun again.
    RunStopped,
    /// The run took longer than it may and was ended; a new one may be begun.
    RunTimedOut,
    /// The run has a name, and whether the step that costs money was accepted in it cannot be known: nothing is sent again.
    StepUnknown,
}

/// What a kind of trouble means for the job.
struct Meaning {
    code: Code,
    is_permanent: bool,
    ends_the_run: bool,
}

impl Trouble {
    /// The failure code clients see.
    pub fn code(&self) -> Code {
        self.meaning().code
    }

    /// Whether the next try would meet the same trouble.
    pub fn is_permanent(&self) -> bool {
        self.meaning().is_permanent
    }

    /// Whether the provider's run is over, so that a new one would not be a second spend.
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
        }
    }

    /// How long the provider asked us to wait, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        let (Self::RateLimited { retry_after } | Self::Unavailable { retry_after }) = self else {
            return None;
        };
        *retry_after
    }
}
