//! Lets processes take turns at writing.
//!
//! SQLite itself waits for its lock by sleeping in steps, so a process that commits in a loop starves the others. The kernel
//! wakes processes that wait for a file lock nearly in order, and a crash frees the lock. SQLite's lock keeps writers apart.
//! This lock only orders them, so a writer that has waited too long continues without it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use super::files::open_private_file;

/// Waits for the lock on a separate thread, because a blocking lock call cannot be cancelled.
pub(super) struct WriteLock {
    file: Arc<File>,
    requests: Sender<SyncSender<WriteTurn>>,
    /// The thread is waiting for the lock.
    waiting: Arc<AtomicBool>,
    max_wait: Duration,
}

/// This process's turn to write, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct WriteTurn(Arc<File>);

impl Drop for WriteTurn {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the write lock could not be unlocked");
        }
    }
}

impl WriteLock {
    /// The time for which a writer waits for its turn before it continues without one.
    pub(super) const MAX_WAIT: Duration = Duration::from_secs(2);

    /// Opens the lock file at `path`, and creates it if it does not exist.
    pub(super) fn open(path: &Path, max_wait: Duration) -> io::Result<Self> {
        let file = Arc::new(open_private_file(path)?);
        let waiting = Arc::new(AtomicBool::new(false));
        let (requests, queue) = mpsc::channel();
        thread::Builder::new().name("outlast-wlock".to_owned()).spawn({
            let (file, waiting) = (file.clone(), waiting.clone());
            move || take_turns(&file, &queue, &waiting)
        })?;
        Ok(Self { file, requests, waiting, max_wait })
    }

    /// Takes this process's turn if no other process has it or waits for it. Only for a writer that has been idle: a writer
    /// that never pauses would always overtake the waiting processes.
    pub(super) fn take(&self) -> Option<WriteTurn> {
        let is_free = !self.waiting.load(Ordering::SeqCst) && self.file.try_lock().is_ok();
        is_free.then(|| WriteTurn(self.file.clone()))
    }

    /// Waits for this process's turn. `None` means: write without it.
    pub(super) fn wait(&self) -> Option<WriteTurn> {
        // The thread is still waiting for an earlier request, and another wait would cost the same time again.
        if self.waiting.swap(true, Ordering::SeqCst) {
            return None;
        }
        let (grant, granted) = mpsc::sync_channel(1);
        self.requests.send(grant).ok()?;
        match granted.recv_timeout(self.max_wait) {
            Ok(turn) => Some(turn),
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!(waited = ?self.max_wait, "the write lock is stuck; writing without it");
                None
            }
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }
}

fn take_turns(file: &Arc<File>, queue: &Receiver<SyncSender<WriteTurn>>, waiting: &AtomicBool) {
    for grant in queue {
        let locked = file.lock();
        waiting.store(false, Ordering::SeqCst);
        match locked {
            // A turn that comes too late is dropped, here or in the channel, which unlocks the file.
            Ok(()) => drop(grant.send(WriteTurn(file.clone()))),
            Err(error) => {
                tracing::warn!(%error, "the write lock cannot be taken; writing without it");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    fn lock_and_rival(dir: &TempDir, max_wait: Duration) -> (WriteLock, File) {
        let path = dir.path().join("db.wlock");
        let ours = WriteLock::open(&path, max_wait).unwrap();
        (ours, File::options().write(true).open(path).unwrap())
    }

    /// Locks on a separate thread, so that a lock that never becomes free fails the test instead of hanging it.
    fn lock(rival: File) -> File {
        let (done, locked) = mpsc::channel();
        thread::spawn(move || {
            rival.lock().unwrap();
            done.send(rival).unwrap();
        });
        locked.recv_timeout(Duration::from_secs(10)).expect("the lock is free again")
    }

    #[test]
    fn a_turn_keeps_others_out_until_it_ends() {
        let dir = TempDir::new().unwrap();
        let (ours, rival) = lock_and_rival(&dir, WriteLock::MAX_WAIT);
        let held = ours.wait().expect("no other process has it");
        assert!(rival.try_lock().is_err());
        drop(held);
        rival.try_lock().unwrap();
        rival.unlock().unwrap();
        assert!(ours.wait().is_some(), "a second turn is like the first");
    }

    #[test]
    fn a_free_turn_is_taken_at_once_and_no_other() {
        let dir = TempDir::new().unwrap();
        let (ours, rival) = lock_and_rival(&dir, SHORT);
        let held = ours.take().expect("it is free");
        assert!(rival.try_lock().is_err());
        drop(held);
        rival.lock().unwrap();
        assert!(ours.take().is_none(), "another process has it");
        rival.unlock().unwrap();
        assert!(ours.take().is_some());
    }

    #[test]
    fn a_stuck_lock_is_waited_for_only_once_and_then_left_out() {
        let dir = TempDir::new().unwrap();
        let (ours, rival) = lock_and_rival(&dir, SHORT);
        rival.lock().unwrap();
        assert!(ours.wait().is_none());
        let patient = WriteLock { max_wait: Duration::from_secs(3600), ..ours };
        assert!(patient.wait().is_none(), "and this returned without an hour's wait");
    }

    #[test]
    fn a_turn_that_came_too_late_is_released_at_once() {
        let dir = TempDir::new().unwrap();
        let (ours, rival) = lock_and_rival(&dir, SHORT);
        rival.lock().unwrap();
        assert!(ours.wait().is_none());
        rival.unlock().unwrap();
        // The rival must not return before our thread has had the lock.
        let had_it = (0..10_000).any(|_| {
            thread::park_timeout(Duration::from_millis(1));
            !ours.waiting.load(Ordering::SeqCst)
        });
        assert!(had_it);
        lock(rival).unlock().unwrap();
    }
}
