//! Empties the write-ahead log into the database, on a thread beside the writer.
//!
//! That flushes pages from all over the file, and no caller that waits for a commit should wait for it too. The thread
//! has a connection of its own and is started when there is first something to do. It cannot keep up with a writer that
//! never rests; so the writer takes part when the log has grown long.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use outlast_core::StoreError;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::database_file::DatabaseFile;
use super::fault::Fault;

/// The thread is called when the log has grown by so many pages.
const PAGES_PER_CALL: i32 = 1_000;
/// From so many pages on the writer takes part.
const WRITER_HELPS_AT: i32 = 8_000;

/// Empties the log as the writer fills it.
pub(super) struct LogCheckpoints(Arc<Mutex<LogState>>);

struct LogState {
    file: Arc<DatabaseFile>,
    helper: Option<Helper>,
    /// The log's length when the helper was last called.
    called_at: i32,
}

struct Helper {
    calls: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl LogCheckpoints {
    /// Follows how long the log is after each commit of the writer's connection.
    pub(super) fn follow(
        connection: &mut Connection,
        file: Arc<DatabaseFile>,
    ) -> Result<Self, Fault> {
        let state = Arc::new(Mutex::new(LogState { file, helper: None, called_at: 0 }));
        let followed = Arc::clone(&state);
        // Always Ok: the commit is done, whatever becomes of the checkpoint.
        connection.wal_hook(Some(move |log: &mut Wal, pages| {
            if pages >= WRITER_HELPS_AT
                && let Err(error) = log.checkpoint()
            {
                tracing::debug!(%error, pages, "the write-ahead log could not be emptied yet");
            }
            followed.lock().unwrap_or_else(PoisonError::into_inner).committed(pages);
            Ok(())
        }))?;
        Ok(Self(state))
    }

    /// Ends the thread after the checkpoint it is at.
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
    fn committed(&mut self, pages: i32) {
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
            // A helper that is busy finds these pages too, or is called again.
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

/// Empties as much as no process has to wait for: readers keep the pages they look at.
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
    use crate::sqlite::open::{Access, made_for_test};

    #[test]
    fn the_thread_is_called_each_time_the_log_has_grown() {
        let dir = tempfile::tempdir().unwrap();
        drop(made_for_test(&dir));
        let file = DatabaseFile::of(&dir.path().join("jobs.db"), Access::Read).unwrap();
        let mut state = LogState { file: Arc::new(file), helper: None, called_at: 0 };
        for (pages, called_at) in
            [(999, 0), (1_000, 1_000), (1_999, 1_000), (2_000, 2_000), (5, 0), (1_003, 1_003)]
        {
            state.committed(pages);
            assert_eq!(state.called_at, called_at, "{pages}");
        }
        LogCheckpoints(Arc::new(Mutex::new(state))).end();
    }
}
