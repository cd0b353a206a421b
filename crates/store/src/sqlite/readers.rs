//! Connections for reading: a few at most, created on demand and kept for the next reader.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_core::StoreError;
use rusqlite::Connection;
use tokio::sync::{Notify, Semaphore, oneshot};

use super::database_file::DatabaseFile;
use super::fault::Fault;
use crate::unavailable;

/// The maximum number of concurrent reads. The others wait without a thread.
const MAX_READERS: usize = 4;

/// The time for which a read waits for a busy connection before it opens another one. Most reads take less time than opening
/// a connection, and each connection takes some hundred kilobytes.
const MAX_WAIT: Duration = Duration::from_millis(5);

type BoxedRead = Box<dyn FnOnce(&Connection) -> Result<(), Fault> + Send>;

/// Runs reads off the async threads.
pub(super) struct Readers {
    file: Arc<DatabaseFile>,
    connections: Arc<Connections>,
    /// Closed with the store.
    permits: Arc<Semaphore>,
}

impl Readers {
    /// Creates readers of this database.
    pub(super) fn new(file: Arc<DatabaseFile>) -> Self {
        let permits = Arc::new(Semaphore::new(MAX_READERS));
        Self { file, connections: Arc::default(), permits }
    }

    /// Runs `read` on a connection that no other read uses.
    pub(super) async fn run<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let read = move |connection: &Connection| {
            // A caller that has gone away needs no answer.
            let _ = answer.send(read(connection)?);
            Ok(())
        };
        self.run_boxed(Box::new(read)).await?;
        answered.await.map_err(unavailable)
    }

    /// Runs a boxed read; this code is compiled only once.
    async fn run_boxed(&self, read: BoxedRead) -> Result<(), StoreError> {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|_| unavailable("the store is closed"))?;
        let file = self.file.clone();
        let (idle, in_use) = self.connections.take().await;
        let task = tokio::task::spawn_blocking(move || {
            let InUse(connections) = &in_use;
            file.check()?;
            let connection = idle.map_or_else(|| file.connect(), Ok)?;
            read(&connection)?;
            let mut known = connections.lock_known();
            // Checked under the lock, so that `close` leaves no connection behind.
            if !permit.semaphore().is_closed() {
                known.idle.push(connection);
            }
            Ok(())
        });
        task.await.map_err(unavailable)?
    }

    /// Closes the idle connections. Those in use are closed after their read.
    pub(super) fn close(&self) {
        self.permits.close();
        self.connections.lock_known().idle.clear();
    }
}

#[derive(Default)]
struct Connections {
    known: Mutex<ReaderState>,
    /// Notified when a connection is no longer in use.
    freed: Notify,
}

#[derive(Default)]
struct ReaderState {
    idle: Vec<Connection>,
    in_use: usize,
}

impl Connections {
    /// Returns an idle connection, or `None` if the caller must open one.
    async fn take(self: &Arc<Self>) -> (Option<Connection>, InUse) {
        let mut waited = std::pin::pin!(tokio::time::sleep(MAX_WAIT));
        loop {
            {
                let mut known = self.lock_known();
                let idle = known.idle.pop();
                if idle.is_some() || known.in_use == 0 || waited.is_elapsed() {
                    known.in_use += 1;
                    return (idle, InUse(Arc::clone(self)));
                }
            }
            tokio::select! {
                () = self.freed.notified() => {}
                () = &mut waited => {}
            }
        }
    }

    fn lock_known(&self) -> MutexGuard<'_, ReaderState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a connection for as long as a read has it or opens it.
struct InUse(Arc<Connections>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.lock_known().in_use -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::sqlite::open::{self, ConnectionPurpose};

    fn readers(dir: &tempfile::TempDir) -> Readers {
        let path = dir.path().join("jobs.db");
        open::make_files(&path).unwrap();
        Readers::new(Arc::new(DatabaseFile::of(&path, ConnectionPurpose::Read).unwrap()))
    }

    fn count(readers: &Readers) -> usize {
        readers.connections.lock_known().idle.len()
    }

    /// Time is paused while a read is running.
    #[tokio::test(start_paused = true)]
    async fn short_reads_share_a_connection() {
        let dir = tempfile::tempdir().unwrap();
        let readers = readers(&dir);
        let reads = (0..20).map(|_| readers.run(|_| Ok(())));
        for read in futures_util::future::join_all(reads).await {
            read.unwrap();
        }
        assert_eq!(count(&readers), 1);
    }

    #[tokio::test]
    async fn a_long_read_keeps_no_other_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let readers = readers(&dir);
        let (end, ended) = mpsc::channel::<()>();
        let long = readers.run(move |_| Ok(ended.recv().is_ok()));
        let short = async {
            readers.run(|_| Ok(())).await.unwrap();
            end.send(()).unwrap();
        };
        let (long, ()) = tokio::join!(long, short);
        assert!(long.unwrap());
        assert_eq!(count(&readers), 2);
        // A read that fails drops its connection, and the next one opens another.
        for _ in 0..3 {
            assert!(
                readers.run(|_| Err::<(), _>(Fault::from(unavailable("a fault")))).await.is_err()
            );
        }
        readers.run(|_| Ok(())).await.unwrap();
        assert_eq!(count(&readers), 1);
        assert_eq!(readers.connections.lock_known().in_use, 0);
    }
}
