//! The worker that a command left behind: it must exit before the test's folder and provider are removed.

use outlast_testkit::mcp_process::{Signal, signal};

use crate::support::eventually;

/// A worker in a separate session; killed if a test ends before the worker.
pub(super) struct LeftBehind {
    pub(super) pid: u32,
}

impl LeftBehind {
    /// Finds it by the output of a command.
    pub(super) fn of(said: &str) -> Self {
        // Independent of the line breaks.
        let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let pid = line.split("(pid ").nth(1).and_then(|rest| rest.split(')').next());
        let pid = pid.unwrap_or_else(|| panic!("no worker was left behind: {said}"));
        let worker = Self { pid: pid.parse().unwrap() };
        assert_ne!(worker.pid, 0, "{said}");
        worker
    }

    /// Waits until it has no more work.
    pub(super) async fn leaves(self) {
        eventually("the worker leaves when idle", || !self.is_alive()).await;
    }

    /// Returns the session that it belongs to.
    pub(super) fn session(&self) -> u32 {
        self.stat().get(3).unwrap().parse().unwrap()
    }

    fn is_alive(&self) -> bool {
        // It may be a zombie that no process has waited for.
        self.stat().first().is_some_and(|state| state != "Z")
    }

    fn stat(&self) -> Vec<String> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().map(str::to_owned).collect()
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        if self.is_alive() {
            signal(self.pid, Signal::KILL);
        }
    }
}
