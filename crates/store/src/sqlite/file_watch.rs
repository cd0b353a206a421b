//! Detects that a process has written to the store without reading it: the kernel (inotify) reports writes to the write-ahead
//! log. A process that waits for changes can therefore sleep while nothing is written.
//!
//! A write is reported before its commit can be read, because a flush of the disk lies in between. So a report ends the
//! sleep, and the store counts as quiet again only after a read some time later.

use std::path::Path;

use tokio::sync::watch;
use tokio::time::{Duration, Instant};

/// The time within which a commit becomes visible after a write that belongs to it. A slower commit is seen at the next
/// regular look.
const COMMIT_TIME: Duration = Duration::from_secs(2);

/// Watches the files of one store.
pub(super) struct FileWatch {
    source: source::Source,
    /// The time at which the latest write was noticed.
    written: watch::Sender<Instant>,
}

impl FileWatch {
    /// Watches the database at `path` and its log from now on. Returns `None` if the system does not report writes.
    ///
    /// Must be called within a runtime.
    pub(super) fn start(path: &Path) -> Option<Self> {
        let source = source::Source::new(path)
            .inspect_err(|error| tracing::debug!(%error, "writes to the store are not reported; it is looked at instead"))
            .ok()?;
        Some(Self { source, written: watch::Sender::new(Instant::now()) })
    }

    /// Records all writes reported until now.
    fn collect(&self) {
        if self.source.take_reports() {
            self.written.send_replace(Instant::now());
        }
    }

    /// Returns true if a look at `looked_at` has seen every commit until now.
    pub(super) fn is_quiet_since(&self, looked_at: Instant) -> bool {
        self.collect();
        let written = *self.written.borrow();
        self.source.is_reliable() && looked_at.saturating_duration_since(written) >= COMMIT_TIME
    }

    /// Waits for the next write. Cancel-safe. Another waiter may have consumed the report, so this compares the time of the
    /// latest write.
    pub(super) async fn was_written_after(&self, looked_at: Instant) {
        let mut written = self.written.subscribe();
        while *written.borrow_and_update() <= looked_at {
            tokio::select! {
                _ = written.changed() => {}
                () = self.source.reported() => self.collect(),
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod source {
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::AsFd as _;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;
    use tokio::net::unix::pipe::Receiver;

    use crate::sqlite::files::beside;

    /// The kernel's reports.
    pub(super) struct Source {
        /// Not a pipe: this is Tokio's only reader that accepts any descriptor without `unsafe`.
        reports: Receiver,
        path: PathBuf,
        is_reliable: AtomicBool,
    }

    impl Source {
        pub(super) fn new(path: &Path) -> io::Result<Self> {
            let reports = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            let reports = Receiver::from_owned_fd_unchecked(reports)?;
            let source =
                Self { reports, path: path.to_owned(), is_reliable: AtomicBool::new(true) };
            source.watch_files()?;
            Ok(source)
        }

        /// Watches the files that are now at the paths. A file that is already watched stays watched.
        fn watch_files(&self) -> io::Result<()> {
            let gone = WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
            let log = beside(&self.path, "-wal");
            inotify::add_watch(self.reports.as_fd(), &log, gone | WatchFlags::MODIFY)?;
            inotify::add_watch(self.reports.as_fd(), &self.path, gone)?;
            Ok(())
        }

        /// Consumes the pending reports; returns true if there was one.
        pub(super) fn take_reports(&self) -> bool {
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let (mut any, mut is_replaced) = (false, false);
            loop {
                let taken = self.reports.try_io(|| {
                    let mut reader = Reader::new(self.reports.as_fd(), &mut buffer);
                    loop {
                        is_replaced |= reader.next()?.events() != ReadFlags::MODIFY;
                        any = true;
                        if reader.is_buffer_empty() {
                            return Ok(());
                        }
                    }
                });
                match taken {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
                    Err(error) => {
                        tracing::debug!(%error, "reports of writes to the store cannot be read; it is looked at instead");
                        self.is_reliable.store(false, Ordering::Relaxed);
                        return true;
                    }
                }
            }
            // A file was moved, removed or replaced, its owner has changed, or reports were lost.
            if is_replaced {
                self.is_reliable.store(self.watch_files().is_ok(), Ordering::Relaxed);
            }
            any
        }

        /// Waits until there may be reports. Cancel-safe.
        pub(super) async fn reported(&self) {
            if self.reports.readable().await.is_err() {
                // The runtime is shutting down, and every waiter with it.
                std::future::pending().await
            }
        }

        /// Returns true if every write is reported.
        pub(super) fn is_reliable(&self) -> bool {
            self.is_reliable.load(Ordering::Relaxed)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod source {
    use std::io;
    use std::path::Path;

    /// Other systems do not report writes.
    pub(super) struct Source;

    impl Source {
        pub(super) fn new(_: &Path) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn take_reports(&self) -> bool {
            false
        }

        pub(super) async fn reported(&self) {
            std::future::pending().await
        }

        pub(super) fn is_reliable(&self) -> bool {
            false
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
