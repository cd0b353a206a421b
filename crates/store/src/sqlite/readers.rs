//! Connections for reading: made when first needed, a few at most, kept for the next reader.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_core::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::database_file::Place;
use super::fault::{Fault, unavailable};

/// How many reads run at once; the rest queue without a thread.
const READERS: usize = 4;

/// Runs reads off the async threads.
pub(super) struct Readers {
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
}

struct Shared {
    place: Arc<Place>,
    /// Those not in use; `None` once closed.
    idle: Mutex<Option<Vec<Connection>>>,
}

impl Readers {
    /// Will read the database at `place`.
    pub(super) fn new(place: Arc<Place>) -> Self {
        let shared = Shared { place, idle: Mutex::new(Some(Vec::new())) };
        Self { shared: Arc::new(shared), room: Arc::new(Semaphore::new(READERS)) }
    }

    /// Runs `read` on a connection of its own.
    pub(super) async fn run<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let permit = self.room.clone().acquire_owned().await.map_err(unavailable)?;
        let shared = self.shared.clone();
        let task = tokio::task::spawn_blocking(move || {
            // Held by the work and not by the caller, who may go away before it is done.
            let _permit = permit;
            shared.place.check()?;
            let connection = shared.take()?;
            let read = read(&connection)?;
            shared.put(connection);
            Ok(read)
        });
        task.await.map_err(unavailable)?
    }

    /// Closes the idle ones; those in use close when they are done.
    pub(super) fn close(&self) {
        self.shared.idle().take();
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Option<Vec<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<Connection, StoreError> {
        let idle = match self.idle().as_mut() {
            Some(idle) => idle.pop(),
            None => return Err(unavailable("the store is closed")),
        };
        match idle {
            Some(connection) => Ok(connection),
            None => self.place.connect(),
        }
    }

    fn put(&self, connection: Connection) {
        if let Some(idle) = self.idle().as_mut() {
            idle.push(connection);
        }
    }
}
