//! Reads the rows of the journal: steps and pages.

use outlast_core::rules::StoredStep;
use outlast_core::{Fence, JournalStep, NanoUsd, Page, StepOutput, StepState, StoreError};

use crate::columns::Columns;

/// A row of one of the journal's tables.
pub(crate) trait JournalColumns: Columns {
    fn step(&self) -> Result<JournalStep, Self::Fault> {
        let key = self.text("key")?;
        let state = StepState::parse(&self.text("state")?);
        let state = state.ok_or_else(|| damaged("state", &key))?;
        Ok(JournalStep {
            kind: self.text("kind")?,
            input_digest: self.digest("input_digest")?,
            state,
            fence: Fence(self.count("fence")?),
            bound: NanoUsd(self.count("bound_nano")?),
            spent: NanoUsd(self.count("spent_nano")?),
            tokens_in: self.count("tokens_in")?,
            tokens_out: self.count("tokens_out")?,
            resent: self.small("resent")?,
            started_at: self.time("started_at")?,
            ended_at: self.maybe_time("ended_at")?,
            key,
        })
    }

    /// A step with its output.
    fn stored_step(&self) -> Result<StoredStep, Self::Fault> {
        Ok(StoredStep { step: self.step()?, output: self.maybe_text("output")? })
    }

    fn step_output(&self) -> Result<StepOutput, Self::Fault> {
        let output = self.text("output")?;
        Ok(StepOutput { key: self.text("key")?, kind: self.text("kind")?, output })
    }

    fn page(&self) -> Result<Page, Self::Fault> {
        Ok(Page {
            digest: self.digest("digest")?,
            url: self.text("url")?,
            final_url: self.text("final_url")?,
            status: self.small("status")?,
            media_type: self.maybe_text("media_type")?,
            fetched_at: self.time("fetched_at")?,
            truncated: self.number("truncated")? != 0,
            text: self.text("text")?,
        })
    }

    fn digest(&self, column: &str) -> Result<[u8; 32], Self::Fault> {
        let bytes = self.maybe_bytes(column)?.and_then(|bytes| bytes.try_into().ok());
        Ok(bytes.ok_or_else(|| damaged(column, "the journal"))?)
    }
}

impl<T: Columns> JournalColumns for T {}

fn damaged(column: &str, row: &str) -> StoreError {
    StoreError::Corrupt { at: format!("{column} of step {row}") }
}
