//! Taking turns at writing between processes.
//!
//! SQLite's own wait for its lock is a sleep in steps: whoever commits in a loop starves the rest. A blocking
//! lock on a file beside the database is woken by the kernel, nearly in order, and freed by a crash. It is
//! only a courtesy: SQLite's lock is what keeps writers apart, so a gate that is stuck is passed by.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use super::open::{Existing, make_private_file};

/// Waits for this process's turn on a thread of its own, because a blocking lock cannot be given up.
pub(super) struct Gate {
    requests: Sender<SyncSender<Held>>,
    /// A request is at the lock and has not come back.
    waiting: Arc<AtomicBool>,
    patience: Duration,
}

/// This process's turn; ends when dropped.
#[derive(Debug)]
pub(super) struct Held(Arc<File>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the write gate could not be unlocked");
        }
    }
}

impl Gate {
    /// How long a writer stands at the gate before it goes on without.
    pub(super) const PATIENCE: Duration = Duration::from_secs(2);

    /// Opens the gate at `path`, making the file if there is none.
    pub(super) fn open(path: &Path, patience: Duration) -> io::Result<Self> {
        let file = Arc::new(make_private_file(path, Existing::Open)?);
        let waiting = Arc::new(AtomicBool::new(false));
        let (requests, queue) = mpsc::channel();
        thread::Builder::new().name("outlast-gate".to_owned()).spawn({
            let waiting = waiting.clone();
            move || keep(&file, &queue, &waiting)
        })?;
        Ok(Self { requests, waiting, patience })
    }

    /// Waits for this process's turn; `None` means: go on without.
    pub(super) fn pass(&self) -> Option<Held> {
        // Whoever made the last request wait still does; nobody waits twice for the same one.
        if self.waiting.swap(true, Ordering::SeqCst) {
            return None;
        }
        let (grant, granted) = mpsc::sync_channel(1);
        self.requests.send(grant).ok()?;
        match granted.recv_timeout(self.patience) {
            Ok(held) => Some(held),
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!(waited = ?self.patience, "the write gate is stuck; writing without it");
                None
            }
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }
}

fn keep(file: &Arc<File>, queue: &Receiver<SyncSender<Held>>, waiting: &AtomicBool) {
    for grant in queue {
        let locked = file.lock();
        waiting.store(false, Ordering::SeqCst);
        match locked {
            // A grant nobody takes any more is dropped, here or in the channel, and that unlocks.
            Ok(()) => drop(grant.send(Held(file.clone()))),
            Err(error) => {
                tracing::warn!(%error, "the write gate cannot be locked; writing without it");
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

    fn gate_and_rival(dir: &TempDir, patience: Duration) -> (Gate, File) {
        let path = dir.path().join("db.wlock");
        let gate = Gate::open(&path, patience).unwrap();
        (gate, File::options().write(true).open(path).unwrap())
    }

    /// Locks on a thread of its own, so that a gate that never opens fails the test instead of hanging it.
    fn lock(rival: File) -> File {
        let (done, locked) = mpsc::channel();
        thread::spawn(move || {
            rival.lock().unwrap();
            done.send(rival).unwrap();
        });
        locked.recv_timeout(Duration::from_secs(10)).expect("the gate is free again")
    }

    #[test]
    fn a_turn_keeps_others_out_until_it_ends() {
        let dir = TempDir::new().unwrap();
        let (gate, rival) = gate_and_rival(&dir, Gate::PATIENCE);
        let held = gate.pass().expect("nobody else is there");
        assert!(rival.try_lock().is_err());
        drop(held);
        rival.try_lock().unwrap();
        rival.unlock().unwrap();
        assert!(gate.pass().is_some(), "a second turn is like the first");
    }

    #[test]
    fn a_stuck_gate_is_passed_by_and_waited_for_only_once() {
        let dir = TempDir::new().unwrap();
        let (gate, rival) = gate_and_rival(&dir, SHORT);
        rival.lock().unwrap();
        assert!(gate.pass().is_none());
        let patient = Gate { patience: Duration::from_secs(3600), ..gate };
        assert!(patient.pass().is_none(), "and this returned without an hour's wait");
    }

    #[test]
    fn a_turn_that_came_too_late_is_given_back_at_once() {
        let dir = TempDir::new().unwrap();
        let (gate, rival) = gate_and_rival(&dir, SHORT);
        rival.lock().unwrap();
        assert!(gate.pass().is_none());
        rival.unlock().unwrap();
        // The rival must not be back before the gate's thread had the lock.
        let had_it = (0..10_000).any(|_| {
            thread::park_timeout(Duration::from_millis(1));
            !gate.waiting.load(Ordering::SeqCst)
        });
        assert!(had_it);
        lock(rival).unlock().unwrap();
    }
}
