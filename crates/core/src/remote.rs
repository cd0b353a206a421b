//! The provider's side of a job.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteStop {
    /// There is no run to stop.
    NotNeeded,
    /// The request was on its way: a run may come of it, and has no name yet. Stays so where the process that sent it
    /// died, or never heard what became of it.
    MaybeBegun,
    /// It should be stopped, and no worker has done so yet.
    Owed,
    /// The provider was told, or had ended it already.
    Done,
    /// The provider has no way to stop it.
    Unsupported,
}
