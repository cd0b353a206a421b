//! The provider's side of a job.

use serde::{Deserialize, Serialize};

use crate::{Cost, Timestamp};

/// The provider's own run of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteRun {
    pub provider: String,
    /// The provider's id of it.
    pub id: String,
    /// The data to resume with if the id is not enough: a position in its event stream, or the task that it has
    /// become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The time when the provider accepted it.
    pub begun_at: Timestamp,
}

impl RemoteRun {
    /// The provider's name of a command that runs on this machine.
    pub const COMMAND: &str = "command";

    /// Returns the part of its id that a log line shows. The provider chooses the id, which may be of any length.
    pub fn short_id(&self) -> &str {
        const SHOWN: usize = 200;
        match self.id.char_indices().nth(SHOWN) {
            Some((end, _)) => &self.id[..end],
            None => &self.id,
        }
    }
}

/// The known state of the provider's own run after a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteStop {
    /// There is no run to stop.
    NotNeeded,
    /// The request was on its way: it may become a run, and has no id yet. This state stays if the process that sent
    /// the request crashed, or never received the outcome.
    MaybeBegun,
    /// It should be stopped, and no worker has done so yet.
    Owed,
    /// The provider was asked to stop it, and no check followed. Recorded by earlier versions only.
    Told,
    /// A check showed that it had ended without a result.
    Ended,
    /// A check showed that it had completed: another job can fetch its report.
    Completed,
    /// The provider did not stop it, or has no way to. It continues, and another job can resume it.
    GoesOn,
    /// The provider could not be asked, or does not know the run. It may continue and cannot be resumed.
    Unsupported,
}

/// The state of a run after the provider was asked to stop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOutcome {
    /// It has ended without a result.
    Ended {
        /// The cost that the provider states, if it does.
        cost: Cost,
    },
    /// It has completed; its report can be fetched.
    Completed {
        /// The cost that the provider states, if it does.
        cost: Cost,
    },
    /// It still runs, although the provider was asked to stop it. Another stop request may help.
    StillRunning,
    /// It continues: the provider has no call that stops it.
    CannotStop,
    /// The provider does not know it, so it cannot be known whether it continues.
    Unknown,
}

impl StopOutcome {
    /// Returns the state to record, and the cost of the run. No further stop is tried for a run that still runs.
    pub fn to_record(self) -> (RemoteStop, Cost) {
        match self {
            Self::Ended { cost } => (RemoteStop::Ended, cost),
            Self::Completed { cost } => (RemoteStop::Completed, cost),
            Self::StillRunning | Self::CannotStop => (RemoteStop::GoesOn, Cost::Unknown),
            Self::Unknown => (RemoteStop::Unsupported, Cost::Unknown),
        }
    }
}
