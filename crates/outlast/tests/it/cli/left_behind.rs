//! The worker that a command left behind: it must be gone before the test's folder and provider are.

use outlast_testkit::mcp_process::{Signal, signal};

use crate::support::eventually;

/// A worker in a session of its own; killed where a test ends before it does.
pub(super) struct LeftBehind {
    pub(super) pid: u32,
}

impl LeftBehind {
    /// By what a command said of it.
    pub(super) fn of(said: &str) -> Self {
        // However it was broken into lines.
        let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let pid = line.split("(pid ").nth(1).and_then(|rest| rest.split(')').next());
        let pid = pid.unwrap_or_else(|| panic!("no worker was left behind: {said}"));
        let worker = Self { pid: pid.parse().unwrap() };
        assert_ne!(worker.pid, 0, "{said}");
        worker
    }

    /// Waits until it has nothing left to do.
    pub(super) async fn leaves(self) {
        eventually("the worker leaves when idle", || !self.is_alive()).await;
    }

    /// Whose session it is in.
    pub(super) fn session(&self) -> u32 {
        self.stat().get(3).unwrap().parse().unwrap()
    }

    fn is_alive(&self) -> bool {
        // No process may have waited for it.
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
