//! The provider's side of a job.

use serde::{Deserialize, Serialize};

use crate::{Cost, Timestamp};

/// The provider's own run of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteRun {
    /// Which provider.
    pub provider: String,
    /// The provider's name for it.
    pub id: String,
    /// What to go on with where the id is not enough: a place in its event stream, or the task it has become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// When the provider accepted it.
    pub begun_at: Timestamp,
}

impl RemoteRun {
    /// The provider's name of a command that runs on this machine.
    pub const COMMAND: &str = "command";

    /// Its id as far as a log line should show it; an id is the provider's to choose, and may be of any length.
    pub fn short_id(&self) -> &str {
        const SHOWN: usize = 200;
        match self.id.char_indices().nth(SHOWN) {
            Some((end, _)) => &self.id[..end],
            None => &self.id,
        }
    }
}

/// What is known of the provider's own run after a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteStop {
    /// There is no run to stop.
    NotNeeded,
    /// The request was on its way: a run may come of it, and has no name yet. Stays so where the process that sent it
    /// died, or never heard what became of it.
    MaybeBegun,
    /// It should be stopped, and no worker has done so yet.
    Owed,
    /// The provider was told to stop it, and nobody looked at it afterwards. Recorded by earlier versions only.
    Told,
    /// It was seen to have ended without a result.
    Ended,
    /// It was seen to have completed: another job can fetch its report.
    Completed,
    /// The provider did not stop it, or has no way to: it goes on, and another job can resume it.
    GoesOn,
    /// The provider could not be told, or does not know the run. It may go on and cannot be resumed.
    Unsupported,
}

/// A run as it was found when the provider was asked to stop it.
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
    /// It still runs, although the provider was asked to stop it: worth another try.
    StillRunning,
    /// It goes on: the provider has no call that stops it.
    CannotStop,
    /// The provider does not know it, so nobody knows whether it goes on.
    Unknown,
}

impl StopOutcome {
    /// The state to record, and the cost of the run. A run that still runs is given up on.
    pub fn recorded(self) -> (RemoteStop, Cost) {
        match self {
            Self::Ended { cost } => (RemoteStop::Ended, cost),
            Self::Completed { cost } => (RemoteStop::Completed, cost),
            Self::StillRunning | Self::CannotStop => (RemoteStop::GoesOn, Cost::Unknown),
            Self::Unknown => (RemoteStop::Unsupported, Cost::Unknown),
        }
    }
}
