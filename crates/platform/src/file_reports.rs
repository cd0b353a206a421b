//! The system's reports of writes to a file, so that a process that waits for a write can sleep.

use std::io;
use std::path::Path;

use crate::is_fast;

/// Reports of writes to a log, and of changes of the place of the log and of the file that it belongs to.
#[derive(Debug)]
pub struct FileReports(source::Reports);

impl FileReports {
    /// Asks for reports from now on. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// Fails if the system does not report writes, or one of the files does not exist.
    pub fn new(file: &Path, log: &Path) -> io::Result<Self> {
        if !is_fast() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        source::Reports::new(file, log).map(Self)
    }

    /// Consumes the pending reports; returns true if there was one.
    pub fn take(&self) -> bool {
        self.0.take()
    }

    /// Waits until there may be reports. Cancel-safe.
    pub async fn wait(&self) {
        self.0.wait().await;
    }

    /// Returns true if every write is reported.
    pub fn is_reliable(&self) -> bool {
        self.0.is_reliable()
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

    /// The reports of the kernel (inotify).
    #[derive(Debug)]
    pub(super) struct Reports {
        /// Not a pipe: this is Tokio's only reader that accepts any descriptor without `unsafe`.
        reports: Receiver,
        file: PathBuf,
        log: PathBuf,
        is_reliable: AtomicBool,
    }

    impl Reports {
        pub(super) fn new(file: &Path, log: &Path) -> io::Result<Self> {
            let reports = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            let reports = Receiver::from_owned_fd_unchecked(reports)?;
            let source = Self {
                reports,
                file: file.to_owned(),
                log: log.to_owned(),
                is_reliable: AtomicBool::new(true),
            };
            source.watch_files()?;
            Ok(source)
        }

        /// Watches the files that are now at the paths. A file that is already watched stays watched.
        fn watch_files(&self) -> io::Result<()> {
            let gone = WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
            inotify::add_watch(self.reports.as_fd(), &self.log, gone | WatchFlags::MODIFY)?;
            inotify::add_watch(self.reports.as_fd(), &self.file, gone)?;
            Ok(())
        }

        /// Consumes the pending reports; returns true if there was one.
        pub(super) fn take(&self) -> bool {
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
                        tracing::debug!(%error, "reports of writes to a file cannot be read");
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
        pub(super) async fn wait(&self) {
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

    /// Other systems do not report writes, so this has no values.
    #[derive(Debug)]
    pub(super) enum Reports {}

    impl Reports {
        pub(super) fn new(_: &Path, _: &Path) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn take(&self) -> bool {
            match *self {}
        }

        pub(super) async fn wait(&self) {
            match *self {}
        }

        pub(super) fn is_reliable(&self) -> bool {
            match *self {}
        }
    }
}
