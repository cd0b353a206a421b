//! A clock that a test can set while the server runs: the machine's clock, shifted by the content of a file.

use std::path::PathBuf;

use outlast_core::{Clock, Timestamp};
use outlast_store::SystemClock;

/// The machine's clock, ahead by the milliseconds that the file holds at that moment; by none if it holds nothing.
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
