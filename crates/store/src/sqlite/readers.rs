//! Connections for reading: made when first needed, a few at most, kept for the next reader.

use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::database_file::DatabaseFile;
use super::fault::{Fault, unavailable};

/// How many reads run at once; the rest queue without a thread.
const MAX_READERS: usize = 4;

/// Runs reads off the async threads.
pub(super) struct Readers {
    file: Arc<DatabaseFile>,
    /// Connections that are not in use.
    idle: Arc<Mutex<Vec<Connection>>>,
    /// Closed with the store.
    permits: Arc<Semaphore>,
}

impl Readers {
    /// Will read this database.
    pub(super) fn new(file: Arc<DatabaseFile>) -> Self {
        Self { file, idle: Arc::default(), permits: Arc::new(Semaphore::new(MAX_READERS)) }
    }

    /// Runs `read` on a connection of its own.
    pub(super) async fn run<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|_| unavailable("the store is closed"))?;
        let (file, idle) = (self.file.clone(), self.idle.clone());
        let task = tokio::task::spawn_blocking(move || {
            file.check()?;
            let connection = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = connection.map_or_else(|| file.connect(), Ok)?;
            let read = read(&connection)?;
            let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
            // Asked under the lock, so that `close` leaves no connection behind.
            if !permit.semaphore().is_closed() {
                idle.push(connection);
            }
            Ok(read)
        });
        task.await.map_err(unavailable)?
    }

    /// Closes the idle connections; those in use are closed after their read.
    pub(super) fn close(&self) {
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
