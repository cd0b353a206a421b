//! The progress of an attempt.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100; never derived from time, never decreasing within an attempt. `None` if no real figure is known.
    pub percent: Option<u8>,
    /// The present activity, in a few words.
    pub message: String,
}
