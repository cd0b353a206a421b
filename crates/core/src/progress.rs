//! How far a try has come.

use serde::{Deserialize, Serialize};

/// How far a try has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100; never time-based, never down within a try. `None` where nothing real is known.
    pub percent: Option<u8>,
    /// What is happening, in a few words.
    pub message: String,
}
