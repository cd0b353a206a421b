//! A clock that a test can set while the server runs: the machine's, shifted by what a file says.

use std::path::PathBuf;

use outlast_core::{Clock, Timestamp};
use outlast_store::SystemClock;

/// The machine's clock, so many milliseconds ahead as the file says at that moment; none if it says nothing.
pub(crate) struct TestClock {
    pub(crate) file: PathBuf,
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let said = std::fs::read_to_string(&self.file).unwrap_or_default();
        let shift: i64 = said.trim().parse().unwrap_or_default();
        Timestamp::from_millis(SystemClock.now().as_millis().saturating_add(shift))
    }
}
