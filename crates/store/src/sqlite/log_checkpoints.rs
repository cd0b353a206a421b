//! Emptying the write-ahead log into the database, beside the writer.
//!
//! That flushes pages from all over the file, and nobody who waits for a commit should wait for it. A thread with a
//! connection of its own does it, started when there is first something to do. It can only follow a writer that never
//! rests, not catch up; so the writer lends a hand when the log has grown long.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use outlast_core::StoreError;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::database_file::Place;
use super::fault::Fault;

/// The log is worth emptying from so many pages on, and again after as many more.
const WORTH_IT: i32 = 1_000;
/// From here on the writer takes part.
const LONG: i32 = 8_000;

/// Who empties the log.
pub(super) struct Checkpoints(Arc<Mutex<State>>);

struct State {
    place: Arc<Place>,
    helper: Option<Helper>,
    /// The log's length when the helper was last called.
    called_at: i32,
}

struct Helper {
    calls: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Checkpoints {
    /// Hears from the writer's connection how long the log is.
    pub(super) fn of(connection: &mut Connection, place: Arc<Place>) -> Result<Self, Fault> {
        let state = Arc::new(Mutex::new(State { place, helper: None, called_at: 0 }));
        let told = Arc::clone(&state);
        // Always Ok: the commit it is told of stands, whatever becomes of the checkpoint.
        connection.wal_hook(Some(move |log: &mut Wal, pages| {
            if pages >= LONG
                && let Err(error) = log.checkpoint()
            {
                tracing::debug!(%error, pages, "the write-ahead log could not be emptied yet");
            }
            told.lock().unwrap_or_else(PoisonError::into_inner).committed(pages);
            Ok(())
        }))?;
        Ok(Self(state))
    }

    /// Ends the thread, when it has done what it is at.
    pub(super) fn end(&self) {
        let helper = self.0.lock().unwrap_or_else(PoisonError::into_inner).helper.take();
        let Some(Helper { calls, thread }) = helper else { return };
        drop(calls);
        if thread.join().is_err() {
            tracing::error!("emptying the write-ahead log panicked");
        }
    }
}

impl State {
    fn committed(&mut self, pages: i32) {
        if pages < self.called_at {
            // The log was emptied and begun again.
            self.called_at = 0;
        }
        if pages - self.called_at < WORTH_IT {
            return;
        }
        self.called_at = pages;
        if self.helper.is_none() {
            self.helper = start(Arc::clone(&self.place));
        }
        if let Some(helper) = &self.helper {
            // One that is at it already will find these pages too, or be called again.
            let _ = helper.calls.try_send(());
        }
    }
}

fn start(place: Arc<Place>) -> Option<Helper> {
    let (calls, called) = sync_channel(1);
    let thread = thread::Builder::new().name("outlast-checkpt".to_owned());
    match thread.spawn(move || serve(&place, &called)) {
        Ok(thread) => Some(Helper { calls, thread }),
        Err(error) => {
            tracing::warn!(%error, "no thread to empty the write-ahead log; the writer does it");
            None
        }
    }
}

fn serve(place: &Place, called: &Receiver<()>) {
    let mut connection = None;
    while called.recv().is_ok() {
        if let Err(error) = empty(place, &mut connection) {
            tracing::warn!(%error, "the write-ahead log could not be emptied; it grows until it can");
            connection = None;
        }
    }
}

/// As far as it goes without anybody waiting: readers keep what they look at, and another process may be at it.
fn empty(place: &Place, connection: &mut Option<Connection>) -> Result<(), StoreError> {
    place.check()?;
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(place.connect()?),
    };
    let passive = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    passive.map_err(|error| Fault::Sql(error).into())
}
