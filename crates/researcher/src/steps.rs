//! The steps of a run: each request that leaves this process is recorded before it is sent and after it was answered
//! (K2, K3).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outlast_core::{
    FailedRecord, NanoUsd, NewStep, ProviderError, ProviderErrorKind, Resend, RunJournal, StepEnd,
    StepResult, StepStart, StepState, StoreError,
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::SharedState;
use crate::engine_channel::EngineChannel;
use crate::model::wait_for_slot;
use crate::model::window::reach_server;
use crate::settings::Settings;
use crate::waits::ServerWaits;

/// The beginning of the recorded reason of a request that was certainly not accepted: the step is sent again under
/// the next key.
const NOT_ACCEPTED: &str = "not accepted: ";
/// The number of times that a free request without an answer is sent in one attempt.
const MAX_SENDS: u32 = 2;

/// A step that is about to be taken.
#[derive(Clone, Debug)]
pub(crate) struct StepSpec {
    pub(crate) key: String,
    pub(crate) kind: &'static str,
    /// The digest of everything that the answer depends on.
    pub(crate) digest: [u8; 32],
    /// The maximum cost; `None` if it is unknown.
    pub(crate) bound: Option<NanoUsd>,
    /// True for a step that collects: it is not begun if the owner has no room for it.
    pub(crate) needs_room: bool,
    /// The query or the address, which is recorded with the reason of a failure.
    pub(crate) subject: Option<String>,
}

impl StepSpec {
    /// Creates a free step.
    pub(crate) fn free(key: impl Into<String>, kind: &'static str, input: &[&str]) -> Self {
        let (key, digest, bound) = (key.into(), digest_of(input), Some(NanoUsd(0)));
        Self { key, kind, digest, bound, needs_room: false, subject: None }
    }

    /// Returns the result of a step that failed for this reason.
    fn to_failure(&self, reason: &str) -> StepResult {
        StepResult::Failed(match self.subject.clone() {
            Some(subject) => to_json(&FailedRecord { subject, reason: reason.to_owned() }),
            None => reason.to_owned(),
        })
    }
}

/// Returns a record as JSON.
pub(crate) fn to_json(record: &impl Serialize) -> String {
    serde_json::to_string(record).unwrap_or_default()
}

/// Returns the digest of texts.
pub(crate) fn digest_of(input: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for text in input {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    hasher.finalize().into()
}

/// The result of sending the request of a step.
#[derive(Debug)]
pub(crate) enum RequestResult {
    Done {
        output: String,
        usage: StepUsage,
    },
    /// The failure is final for the run.
    Failed {
        reason: String,
        usage: StepUsage,
    },
    /// Nothing was accepted; the request may be sent again after the wait.
    Busy {
        wait: Duration,
        error: ProviderError,
    },
    /// Nothing was accepted, and the run cannot go on.
    Stop(ProviderError),
    /// The request may have been accepted.
    Unanswered(ProviderError),
}

/// The consumption of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepUsage {
    pub(crate) spent: NanoUsd,
    pub(crate) read: u64,
    pub(crate) written: u64,
}

/// The recorded result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    Done(String),
    Failed(String),
    /// The run or its owner has no room for another step.
    NoRoom,
}

/// The consumption of a run so far, in all attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunTotals {
    /// The known cost, with the bounds of the steps that were sent again.
    pub(crate) spent: NanoUsd,
    /// The sum of the bounds of the steps that were sent again.
    pub(crate) resent: NanoUsd,
    pub(crate) read: u64,
    pub(crate) written: u64,
    pub(crate) searches: u64,
}

/// The steps of a run.
pub(crate) struct Steps {
    journal: RunJournal,
    max_resend: NanoUsd,
    totals: Mutex<RunTotals>,
    /// The steps that had ended when the attempt began.
    ended: HashSet<String>,
    reports: Arc<EngineChannel>,
    /// The longest time to wait for a server that cannot be reached.
    patience: Duration,
    is_winding_down: watch::Sender<bool>,
}

impl Steps {
    /// Reads the consumption of earlier attempts.
    pub(crate) async fn open(
        journal: RunJournal,
        settings: &Settings,
        reports: Arc<EngineChannel>,
    ) -> Result<Self, ProviderError> {
        let recorded = journal.steps().await.map_err(store_error)?;
        let mut totals = RunTotals::default();
        let mut ended = HashSet::new();
        for step in recorded {
            let resent = NanoUsd(step.bound.0.saturating_mul(u64::from(step.resent)));
            totals.resent.0 = totals.resent.0.saturating_add(resent.0);
            totals.spent.0 = totals.spent.0.saturating_add(resent.0).saturating_add(step.spent.0);
            totals.read += step.tokens_in;
            totals.written += step.tokens_out;
            totals.searches += u64::from(step.kind == "search" && step.state == StepState::Done);
            if step.state != StepState::Sending {
                ended.insert(step.key);
            }
        }
        Ok(Self {
            journal,
            max_resend: settings.max_resend,
            totals: Mutex::new(totals),
            ended,
            reports,
            patience: settings.patience,
            is_winding_down: watch::Sender::new(false),
        })
    }

    /// Returns the journal.
    pub(crate) fn journal(&self) -> &RunJournal {
        &self.journal
    }

    /// Returns the consumption so far.
    pub(crate) fn totals(&self) -> RunTotals {
        *self.lock()
    }

    /// Begins no step from now on; those in flight are recorded.
    pub(crate) fn wind_down(&self) {
        self.is_winding_down.send_replace(true);
    }

    fn is_winding_down(&self) -> bool {
        *self.is_winding_down.borrow()
    }

    /// Sleeps, but not into a shutdown.
    async fn sleep(&self, wait: Duration) -> Result<(), ProviderError> {
        let mut asked = self.is_winding_down.subscribe();
        tokio::select! {
            () = tokio::time::sleep(wait) => Ok(()),
            _ = asked.wait_for(|asked| *asked) => Err(shutting_down()),
        }
    }

    /// ServerWaits until the model server can be reached. Sends nothing that is recorded.
    pub(crate) async fn await_model(&self, shared: &SharedState) -> Result<(), ProviderError> {
        let mut waits = ServerWaits::new(&self.reports, self.patience);
        while let Err(error) = reach_server(shared).await {
            let Some(wait) = waits.next(&error, Duration::ZERO) else { return Err(error) };
            self.sleep(wait).await?;
        }
        Ok(())
    }

    /// Returns true if an earlier attempt has finished the step.
    pub(crate) fn has_ended(&self, key: &str) -> bool {
        self.ended.contains(key)
    }

    fn lock(&self) -> MutexGuard<'_, RunTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a step, or finds its recorded result. The slot of the model server is awaited before the step is recorded as sent, so that a
    /// process that ends while it waits leaves no open step.
    pub(crate) async fn take<'a>(
        &self,
        spec: &StepSpec,
        slot_of: Option<&SharedState>,
        send: impl Fn() -> BoxFuture<'a, RequestResult>,
    ) -> Result<StepOutcome, ProviderError> {
        let (mut number, mut sends) = (0_u32, 0);
        let mut waits = ServerWaits::new(&self.reports, self.patience);
        loop {
            let key = match number {
                0 => spec.key.clone(),
                number => format!("{}~{number}", spec.key),
            };
            let permit = match slot_of {
                Some(shared) if !self.has_ended(&key) => wait_for_slot(shared).await,
                Some(_) | None => None,
            };
            match self.begin(spec, &key).await? {
                Begun::Send => {}
                Begun::Ended(StepOutcome::Failed(reason)) if reason.starts_with(NOT_ACCEPTED) => {
                    number += 1;
                    continue;
                }
                Begun::Ended(outcome) => return Ok(outcome),
            }
            sends += 1;
            let sent = send().await;
            drop(permit);
            match sent {
                RequestResult::Done { output, usage } => {
                    self.end(spec, &key, StepResult::Done(output.clone()), usage).await?;
                    return Ok(StepOutcome::Done(output));
                }
                RequestResult::Failed { reason, usage } => {
                    self.end(spec, &key, spec.to_failure(&reason), usage).await?;
                    return Ok(StepOutcome::Failed(reason));
                }
                RequestResult::Busy { wait, error } => {
                    self.end_unaccepted(spec, &key, &error).await?;
                    let Some(wait) = waits.next(&error, wait) else { return Err(error) };
                    tracing::debug!(step = key, %error, "a server is busy; waiting {wait:?}");
                    self.sleep(wait).await?;
                    number += 1;
                }
                RequestResult::Stop(error) => {
                    self.end_unaccepted(spec, &key, &error).await?;
                    return Err(error);
                }
                RequestResult::Unanswered(error) => {
                    tracing::warn!(step = key, %error, "a step was not answered");
                    if spec.bound == Some(NanoUsd(0)) && sends >= MAX_SENDS {
                        let reason = error.sentence.clone();
                        let end = spec.to_failure(&reason);
                        self.end(spec, &key, end, StepUsage::default()).await?;
                        return Ok(StepOutcome::Failed(reason));
                    }
                }
            }
        }
    }

    /// Records a decision of this process, or returns the one of an earlier attempt.
    pub(crate) async fn decide(
        &self,
        key: &str,
        decide: impl FnOnce() -> String,
    ) -> Result<String, ProviderError> {
        self.record(key, "decision", decide).await
    }

    /// Records a text of this process under a kind, or returns the one of an earlier attempt.
    pub(crate) async fn record(
        &self,
        key: &str,
        kind: &'static str,
        decide: impl FnOnce() -> String,
    ) -> Result<String, ProviderError> {
        let spec = StepSpec::free(key, kind, &[]);
        match self.begin(&spec, key).await? {
            Begun::Send => {
                let output = decide();
                self.end(&spec, key, StepResult::Done(output.clone()), StepUsage::default())
                    .await?;
                Ok(output)
            }
            Begun::Ended(StepOutcome::Done(output)) => Ok(output),
            Begun::Ended(StepOutcome::Failed(_) | StepOutcome::NoRoom) => Ok(decide()),
        }
    }

    async fn begin(&self, spec: &StepSpec, key: &str) -> Result<Begun, ProviderError> {
        if self.is_winding_down() && !self.has_ended(key) {
            return Err(shutting_down());
        }
        let is_free = spec.bound == Some(NanoUsd(0));
        let step = NewStep {
            key: key.to_owned(),
            kind: spec.kind.to_owned(),
            input_digest: spec.digest,
            bound: spec.bound.unwrap_or_default(),
            resend: if is_free { Resend::Allow } else { Resend::Refuse },
            max_bytes: if spec.needs_room { self.journal.max_bytes() } else { u64::MAX },
        };
        match self.journal.begin_step(&step).await {
            Ok(StepStart::Open { .. }) => self.begin_again(spec, step).await,
            Ok(start) => Begun::from_start(start),
            Err(StoreError::TooManyBytes) => Ok(Begun::Ended(StepOutcome::NoRoom)),
            Err(error) => Err(store_error(error)),
        }
    }

    /// Begins a step again whose answer was lost, if that may cost no more than allowed.
    async fn begin_again(&self, spec: &StepSpec, step: NewStep) -> Result<Begun, ProviderError> {
        let is_allowed = spec.bound.is_some_and(|bound| {
            let mut totals = self.lock();
            let resent = totals.resent.0.saturating_add(bound.0);
            let is_allowed = resent <= self.max_resend.0;
            if is_allowed {
                totals.resent = NanoUsd(resent);
                totals.spent.0 = totals.spent.0.saturating_add(bound.0);
            }
            is_allowed
        });
        if !is_allowed {
            let sentence = format!(
                "the answer to the step {} was lost, and it may have been paid for; it is sent again only if you ask for it",
                step.key
            );
            return Err(ProviderError::new(ProviderErrorKind::StepUnknown, sentence));
        }
        let step = NewStep { resend: Resend::Allow, ..step };
        let start = self.journal.begin_step(&step).await.map_err(store_error)?;
        Begun::from_start(start)
    }

    async fn end(
        &self,
        spec: &StepSpec,
        key: &str,
        result: StepResult,
        usage: StepUsage,
    ) -> Result<(), ProviderError> {
        {
            let mut totals = self.lock();
            totals.spent.0 = totals.spent.0.saturating_add(usage.spent.0);
            totals.read += usage.read;
            totals.written += usage.written;
            let is_done = matches!(result, StepResult::Done(_));
            totals.searches += u64::from(spec.kind == "search" && is_done);
        }
        let StepUsage { spent, read, written } = usage;
        let end = StepEnd { result, spent, tokens_in: read, tokens_out: written };
        self.journal.end_step(key, &end).await.map_err(store_error)
    }

    async fn end_unaccepted(
        &self,
        spec: &StepSpec,
        key: &str,
        error: &ProviderError,
    ) -> Result<(), ProviderError> {
        let reason = format!("{NOT_ACCEPTED}{}", error.sentence);
        self.end(spec, key, StepResult::Failed(reason), StepUsage::default()).await
    }
}

/// The answer to the beginning of a step.
enum Begun {
    Send,
    Ended(StepOutcome),
}

impl Begun {
    fn from_start(start: StepStart) -> Result<Self, ProviderError> {
        match start {
            StepStart::New => Ok(Self::Send),
            StepStart::Done(output) => Ok(Self::Ended(StepOutcome::Done(output))),
            StepStart::Failed(reason) => Ok(Self::Ended(StepOutcome::Failed(reason))),
            StepStart::Open { .. } => Err(ProviderError::new(
                ProviderErrorKind::StepUnknown,
                "a step has no recorded answer",
            )),
            StepStart::Changed => {
                let sentence = "the run was begun by another version of outlast, which takes its steps in another way; start the research again";
                Err(ProviderError::new(ProviderErrorKind::Misconfigured, sentence))
            }
        }
    }
}

/// Returns the error of an attempt that is ended by a shutdown. The run stays as it is.
fn shutting_down() -> ProviderError {
    let kind = ProviderErrorKind::Unavailable { retry_after: None };
    ProviderError::new(kind, "the worker is shutting down")
}

/// Returns the error of an attempt that cannot record its steps. The run stays as it is.
pub(crate) fn store_error(error: StoreError) -> ProviderError {
    let sentence = match error {
        StoreError::LeaseLost | StoreError::NotFound => "the job belongs to another worker",
        StoreError::TooManyBytes => "the run has no room for another step",
        _ => "a step of the run could not be recorded",
    };
    let kind = ProviderErrorKind::Unavailable { retry_after: None };
    ProviderError { detail: Some(error.to_string()), ..ProviderError::new(kind, sentence) }
}
