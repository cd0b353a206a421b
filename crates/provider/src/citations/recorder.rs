//! The steps of a check in the journal of its job.

use std::sync::atomic::{AtomicBool, Ordering};

use outlast_core::rules::MAX_STEP_OUTPUT;
use outlast_core::{
    NanoUsd, NewStep, Resend, RunJournal, StepEnd, StepResult, StepStart, StoreError,
};
use outlast_sources::{SourceStep, StepRecord, StepRecorder};
use sha2::{Digest as _, Sha256};

/// Records each fetched address as the step `read:<digest of the address>`.
pub(super) struct JournalRecorder {
    journal: Option<RunJournal>,
    was_stopped: AtomicBool,
}

impl JournalRecorder {
    pub(super) fn new(journal: Option<RunJournal>) -> Self {
        Self { journal, was_stopped: AtomicBool::new(false) }
    }

    /// Returns true if the job belongs to another worker.
    pub(super) fn was_stopped(&self) -> bool {
        self.was_stopped.load(Ordering::Relaxed)
    }
}

impl StepRecorder for JournalRecorder {
    async fn begin(&self, address: &str) -> StepRecord {
        let Some(journal) = &self.journal else { return StepRecord::New };
        if self.was_stopped() {
            return StepRecord::Stopped;
        }
        let step = NewStep {
            key: key(address),
            kind: "read".to_owned(),
            input_digest: digest(address),
            bound: NanoUsd(0),
            resend: Resend::Allow,
            max_bytes: journal.max_bytes(),
        };
        match journal.begin_step(&step).await {
            Ok(StepStart::Done(output)) => match serde_json::from_str(&output) {
                Ok(steps) => StepRecord::Done(steps),
                // Written by another version.
                Err(_) => StepRecord::New,
            },
            Ok(
                StepStart::New | StepStart::Failed(_) | StepStart::Open { .. } | StepStart::Changed,
            ) => StepRecord::New,
            Err(StoreError::LeaseLost | StoreError::NotFound) => {
                self.was_stopped.store(true, Ordering::Relaxed);
                StepRecord::Stopped
            }
            // A check without a record is worth more than none: after a crash it fetches this source again.
            Err(error) => {
                tracing::warn!(%error, "failed to record a step of a check");
                StepRecord::New
            }
        }
    }

    async fn end(&self, address: &str, steps: &[SourceStep]) {
        let Some(journal) = &self.journal else { return };
        let Some(output) = output(steps) else { return };
        let end = StepEnd::free(StepResult::Done(output));
        match journal.end_step(&key(address), &end).await {
            Ok(()) | Err(StoreError::NotFound) => {}
            Err(StoreError::LeaseLost) => self.was_stopped.store(true, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "failed to record the end of a step of a check"),
        }
    }
}

fn digest(address: &str) -> [u8; 32] {
    Sha256::digest(address).into()
}

fn key(address: &str) -> String {
    let digest = digest(address).into_iter().take(16);
    digest.fold("read:".to_owned(), |key, byte| format!("{key}{byte:02x}"))
}

/// Returns the steps as text, without passages if there is no room for them; `None` if there is no room at all.
fn output(steps: &[SourceStep]) -> Option<String> {
    let fits = |text: &String| text.len() <= MAX_STEP_OUTPUT;
    let whole = serde_json::to_string(steps).ok()?;
    if fits(&whole) {
        return Some(whole);
    }
    let mut steps = steps.to_vec();
    steps.iter_mut().for_each(SourceStep::remove_passages);
    serde_json::to_string(&steps).ok().filter(fits)
}
