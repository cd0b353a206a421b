//! The paid runs of one job, each with its id and its actual or possible cost: for `outlast jobs show` and for the page.

use std::fmt;

use outlast_core::{ChargeState, Checkpoint, Cost, Job, LedgerRow, NanoUsd};

use crate::export::cost_text;

/// A run that a job began, or may have begun.
#[derive(Clone, Debug, PartialEq)]
pub struct PaidRun {
    /// The number among the runs of the job, from 1.
    pub number: u32,
    /// The provider's id of the run, if known.
    pub id: Option<String>,
    /// The provider.
    pub provider: String,
    /// The state of the charge.
    pub state: ChargeState,
    /// The cost, once it is known.
    pub cost: Cost,
    /// The possible cost, if the actual cost is not known.
    pub possible: Option<NanoUsd>,
}

impl PaidRun {
    /// Returns the runs of a job, oldest first. The last one may still be in progress; its id comes from the job itself.
    pub fn all(job: &Job, rows: &[LedgerRow]) -> Vec<Self> {
        let last = rows.last().map(|row| row.run);
        let known = match &job.checkpoint {
            Checkpoint::Running(run) => Some(run.short_id().to_owned()),
            Checkpoint::NotBegun | Checkpoint::Beginning { .. } => None,
        };
        let run = |row: &LedgerRow| Self {
            number: row.run,
            id: row.run_id.clone().or_else(|| known.clone().filter(|_| Some(row.run) == last)),
            provider: row.provider.clone(),
            state: row.state,
            cost: row.cost,
            possible: match row.state {
                ChargeState::Reserved | ChargeState::Maybe => row.reserved,
                ChargeState::Spent | ChargeState::Released => None,
            },
        };
        rows.iter().map(run).collect()
    }
}

/// `run 1, resp_1 at openai: maybe $0.4000`
impl fmt::Display for PaidRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id.as_deref().unwrap_or("without an id");
        write!(f, "run {}, {id} at {}: ", self.number, self.provider)?;
        let amount = || self.possible.map_or("an unknown amount".to_owned(), |it| it.to_string());
        match self.state {
            ChargeState::Spent => write!(f, "cost {}", cost_text(self.cost)),
            ChargeState::Maybe => write!(f, "may have cost {}", amount()),
            ChargeState::Reserved => write!(f, "not ended; {} is set aside", amount()),
            ChargeState::Released => f.write_str("cost nothing"),
        }
    }
}
