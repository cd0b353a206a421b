//! Moves the write-ahead log into the database, on a separate thread.
//!
//! A checkpoint flushes pages all over the file, and a caller that waits for a commit should not wait for that too. The
//! thread has a separate connection and starts when there is first something to do. It cannot keep up with a writer that
//! never pauses, so the writer helps when the log has grown long.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use outlast_core::StoreError;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::database_file::DatabaseFile;
use super::fault::Fault;

/// The growth of the log, in pages, at which the thread is called.
const PAGES_PER_CALL: i32 = 1_000;
/// The length of the log, in pages, from which the writer helps.
const WRITER_HELPS_AT: i32 = 8_000;

/// Empties the log while the writer fills it.
pub(super) struct LogCheckpoints(Arc<Mutex<LogState>>);

struct LogState {
    file: Arc<DatabaseFile>,
    helper: Option<Helper>,
    /// The log's length at the last call of the helper.
    called_at: i32,
}

struct Helper {
    calls: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl LogCheckpoints {
    /// Monitors the length of the log after each commit of the writer's connection.
    pub(super) fn follow(
        connection: &mut Connection,
        file: Arc<DatabaseFile>,
    ) -> Result<Self, Fault> {
        let state = Arc::new(Mutex::new(LogState { file, helper: None, called_at: 0 }));
        let followed = Arc::clone(&state);
        // Always Ok: the commit is complete, even if the checkpoint fails.
        connection.wal_hook(Some(move |log: &mut Wal, pages| {
            if pages >= WRITER_HELPS_AT
                && let Err(error) = log.checkpoint()
            {
                tracing::debug!(%error, pages, "the write-ahead log could not be emptied yet");
            }
            followed.lock().unwrap_or_else(PoisonError::into_inner).note_commit(pages);
            Ok(())
        }))?;
        Ok(Self(state))
    }

    /// Ends the thread after its current checkpoint.
    pub(super) fn end(&self) {
        let helper = self.0.lock().unwrap_or_else(PoisonError::into_inner).helper.take();
        let Some(Helper { calls, thread }) = helper else { return };
        drop(calls);
        if thread.join().is_err() {
            tracing::error!("emptying the write-ahead log panicked");
        }
    }
}

impl LogState {
    fn note_commit(&mut self, pages: i32) {
        if pages < self.called_at {
            // The log was emptied and starts again.
            self.called_at = 0;
        }
        if pages - self.called_at < PAGES_PER_CALL {
            return;
        }
        self.called_at = pages;
        if self.helper.is_none() {
            self.helper = start(Arc::clone(&self.file));
        }
        if let Some(helper) = &self.helper {
            // If the helper is busy, it finds these pages too, or is called again.
            let _ = helper.calls.try_send(());
        }
    }
}

fn start(file: Arc<DatabaseFile>) -> Option<Helper> {
    let (calls, called) = sync_channel(1);
    let thread = thread::Builder::new().name("outlast-checkpt".to_owned());
    match thread.spawn(move || serve(&file, &called)) {
        Ok(thread) => Some(Helper { calls, thread }),
        Err(error) => {
            tracing::warn!(%error, "no thread to empty the write-ahead log; the writer does it");
            None
        }
    }
}

fn serve(file: &DatabaseFile, called: &Receiver<()>) {
    let mut connection = None;
    while called.recv().is_ok() {
        if let Err(error) = empty(file, &mut connection) {
            tracing::warn!(%error, "the write-ahead log could not be emptied; it grows until it can");
            connection = None;
        }
    }
}

/// Moves as much as possible without making a process wait: readers keep the pages that they are reading.
fn empty(file: &DatabaseFile, connection: &mut Option<Connection>) -> Result<(), StoreError> {
    file.check()?;
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(file.connect()?),
    };
    let passive = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    passive.map_err(|error| Fault::Sql(error).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::open::{ConnectionPurpose, made_for_test};

    #[test]
    fn the_thread_is_called_each_time_the_log_has_grown() {
        let dir = tempfile::tempdir().unwrap();
        drop(made_for_test(&dir));
        let file = DatabaseFile::of(&dir.path().join("jobs.db"), ConnectionPurpose::Read).unwrap();
        let mut state = LogState { file: Arc::new(file), helper: None, called_at: 0 };
        for (pages, called_at) in
            [(999, 0), (1_000, 1_000), (1_999, 1_000), (2_000, 2_000), (5, 0), (1_003, 1_003)]
        {
            state.note_commit(pages);
            assert_eq!(state.called_at, called_at, "{pages}");
        }
        LogCheckpoints(Arc::new(Mutex::new(state))).end();
    }
}
