//! Detects that a process has written to the store without reading it: the system reports writes to the write-ahead
//! log. A process that waits for changes can therefore sleep while nothing is written.
//!
//! A write is reported before its commit can be read, because a flush of the disk lies in between. So a report ends the
//! sleep, and the store counts as quiet again only after a read some time later.

use std::path::Path;

use outlast_platform::FileReports;
use tokio::sync::watch;
use tokio::time::{Duration, Instant};

use super::files::beside;

/// The time within which a commit becomes visible after a write that belongs to it. A slower commit is seen at the next
/// regular look.
const COMMIT_TIME: Duration = Duration::from_secs(2);

/// Watches the files of one store.
pub(super) struct FileWatch {
    reports: FileReports,
    /// The time at which the latest write was noticed.
    written: watch::Sender<Instant>,
}

impl FileWatch {
    /// Watches the database at `path` and its log from now on. Returns `None` if the system does not report writes.
    ///
    /// Must be called within a runtime.
    pub(super) fn start(path: &Path) -> Option<Self> {
        let reports = FileReports::new(path, &beside(path, "-wal"))
            .inspect_err(|error| tracing::debug!(%error, "writes to the store are not reported; it is looked at instead"))
            .ok()?;
        Some(Self { reports, written: watch::Sender::new(Instant::now()) })
    }

    /// Records all writes reported until now.
    fn collect(&self) {
        if self.reports.take() {
            self.written.send_replace(Instant::now());
        }
    }

    /// Returns true if a look at `looked_at` has seen every commit until now.
    pub(super) fn is_quiet_since(&self, looked_at: Instant) -> bool {
        self.collect();
        let written = *self.written.borrow();
        self.reports.is_reliable() && looked_at.saturating_duration_since(written) >= COMMIT_TIME
    }

    /// Waits for the next write. Cancel-safe. Another waiter may have consumed the report, so this compares the time of the
    /// latest write.
    pub(super) async fn was_written_after(&self, looked_at: Instant) {
        let mut written = self.written.subscribe();
        while *written.borrow_and_update() <= looked_at {
            tokio::select! {
                _ = written.changed() => {}
                () = self.reports.wait() => self.collect(),
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sqlite::open::made_for_test;

    const LIMIT: Duration = Duration::from_secs(30);

    fn write(connection: &rusqlite::Connection) {
        connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'rev'", []).unwrap();
    }

    async fn written(watch: &FileWatch, looked_at: Instant) {
        tokio::time::timeout(LIMIT, watch.was_written_after(looked_at))
            .await
            .expect("the write is reported");
    }

    #[tokio::test]
    async fn a_store_is_quiet_until_a_process_writes() {
        let dir = tempfile::tempdir().unwrap();
        let connection = made_for_test(&dir);
        let watch = FileWatch::start(&dir.path().join("jobs.db")).unwrap();
        let started = Instant::now();
        assert!(!watch.is_quiet_since(started), "a commit may be under way");
        assert!(watch.is_quiet_since(started + COMMIT_TIME));
        connection.query_row("SELECT count(*) FROM jobs", [], |_| Ok(())).unwrap();
        assert!(watch.is_quiet_since(started + COMMIT_TIME), "a reader writes nothing");

        write(&connection);
        // Both waiters see the write, whichever of them consumes the report.
        tokio::join!(written(&watch, started), written(&watch, started));
        assert!(!watch.is_quiet_since(started + COMMIT_TIME));
        assert!(watch.is_quiet_since(Instant::now() + COMMIT_TIME));
    }

    #[tokio::test]
    async fn a_store_that_was_removed_is_not_quiet() {
        let dir = tempfile::tempdir().unwrap();
        let _connection = made_for_test(&dir);
        let path = dir.path().join("jobs.db");
        let watch = FileWatch::start(&path).unwrap();
        let started = Instant::now();
        fs::remove_file(&path).unwrap();
        written(&watch, started).await;
        assert!(!watch.is_quiet_since(Instant::now() + COMMIT_TIME));
    }

    #[tokio::test]
    async fn a_store_without_a_log_is_not_watched() {
        let dir = tempfile::tempdir().unwrap();
        assert!(FileWatch::start(&dir.path().join("none.db")).is_none());
    }
}
