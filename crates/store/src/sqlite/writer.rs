//! The one writer of this process: a thread that commits what has queued up, together.
//!
//! A durable commit costs a disk flush; sharing it among everybody who waits is what makes durability cheap.
//! Each command runs in a savepoint of its own, so that one that is refused or breaks takes nobody with it,
//! and nobody is answered before the commit that holds their change.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use outlast_core::{Clock, Rev, StoreError, Timestamp};
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::database_file::Place;
use super::fault::{Fault, again, unavailable};
use super::log_checkpoints::Checkpoints;
use super::mark::{Mark, Reached};
use super::write_lock::Gate;

/// No commit is shared by more commands than this, so that none waits long for the others.
const TOGETHER: usize = 256;

/// How far behind the mark beside the store may be.
const BEHIND: Duration = Duration::from_secs(2);

/// How long the last checkpoint may wait for other processes' readers.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(200);

/// Hands commands to the writer thread.
pub(super) struct Writer {
    queue: Mutex<Option<Sender<Box<dyn Command>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread works with.
pub(super) struct Desk {
    pub(super) connection: Connection,
    pub(super) place: Arc<Place>,
    pub(super) gate: Gate,
    pub(super) clock: Arc<dyn Clock>,
    /// Told of every commit that changed a job.
    pub(super) rev: Arc<watch::Sender<Rev>>,
    pub(super) mark: Mark,
    /// The number that the mark tells stores apart by.
    pub(super) store: i64,
}

/// The open transaction, as a command sees it.
pub(super) struct Tx<'a> {
    pub(super) connection: &'a Connection,
    clock: &'a dyn Clock,
    rev: Option<Rev>,
}

impl<'a> Tx<'a> {
    /// For a transaction that was begun on this connection.
    pub(super) fn new(connection: &'a Connection, clock: &'a dyn Clock) -> Self {
        Self { connection, clock, rev: None }
    }

    /// The present moment.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The number of this commit's changes, taken when the first of them is made.
    pub(super) fn rev(&mut self) -> Result<Rev, Fault> {
        if let Some(rev) = self.rev {
            return Ok(rev);
        }
        // Two plain statements: RETURNING would build and drop a table of its own each time.
        self.connection
            .prepare_cached("UPDATE meta SET value = value + 1 WHERE name = 'rev'")?
            .execute([])?;
        let value = self
            .connection
            .prepare_cached("SELECT value FROM meta WHERE name = 'rev'")?
            .query_row([], |row| row.get(0))?;
        let rev = super::rows::rev(value);
        self.rev = Some(rev);
        Ok(rev)
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(mut desk: Desk) -> Result<Self, StoreError> {
        let (queue, commands) = mpsc::channel();
        let checkpoints = Checkpoints::of(&mut desk.connection, Arc::clone(&desk.place))?;
        let thread = thread::Builder::new()
            .name("outlast-writer".to_owned())
            .spawn(move || {
                desk.serve(&commands);
                checkpoints.end();
                desk.leave();
            })
            .map_err(unavailable)?;
        Ok(Self { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    /// Runs `step` in the next commit and returns when that is durable.
    ///
    /// A caller that goes away does not take its step back.
    pub(super) async fn run<T, F>(&self, step: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let command = Step { step: Some(step), result: None, reply };
        self.submit(Box::new(command))?;
        answer.await.unwrap_or_else(|_| Err(unavailable("the writer is gone")))
    }

    /// Takes no more commands; the thread ends when those queued are done, and can be waited for.
    pub(super) fn close(&self) -> Option<JoinHandle<()>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn submit(&self, command: Box<dyn Command>) -> Result<(), StoreError> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queue.as_ref().ok_or_else(|| unavailable("the store is closed"))?;
        queue.send(command).map_err(|_| unavailable("the writer is gone"))
    }
}

/// Something to do in a transaction, and somebody who waits for it.
trait Command: Send {
    /// Does it. An error means that nothing of it may stay.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError>;

    /// Tells the caller; `lost` is why the whole transaction came to nothing, if it did.
    fn answer(self: Box<Self>, lost: Option<StoreError>);
}

struct Step<T, F> {
    step: Option<F>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Command for Step<T, F>
where
    T: Send,
    F: FnOnce(&mut Tx<'_>) -> Result<T, Fault> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let Some(step) = self.step.take() else { return Ok(()) };
        let result = step(tx).map_err(StoreError::from);
        let kept = result.as_ref().map(|_| ()).map_err(again);
        self.result = Some(result);
        kept
    }

    fn answer(self: Box<Self>, lost: Option<StoreError>) {
        let result = match (lost, self.result) {
            (Some(error), _) => Err(error),
            (None, Some(result)) => result,
            (None, None) => Err(unavailable("the store failed; the log has the details")),
        };
        // Nobody listens any more when the caller went away; the step stands all the same.
        let _ = self.reply.send(result);
    }
}

impl Desk {
    fn serve(&self, commands: &Receiver<Box<dyn Command>>) {
        // A change that is not in the mark yet, and when it should be.
        let mut unmarked: Option<(Rev, Instant)> = None;
        loop {
            // Also while commands never stop coming.
            if unmarked.as_ref().is_some_and(|(_, due)| *due <= Instant::now()) {
                self.mark(unmarked.take());
            }
            let next = match &unmarked {
                Some((_, due)) => {
                    commands.recv_timeout(due.saturating_duration_since(Instant::now()))
                }
                None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let first = match next {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    self.mark(unmarked.take());
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return self.mark(unmarked.take()),
            };
            let turn = self.gate.pass();
            // Gathered after the wait, so that whoever came meanwhile shares this commit.
            let mut batch = vec![first];
            batch.extend(commands.try_iter().take(TOGETHER - 1));
            let committed = self.commit(&mut batch);
            drop(turn);
            if let Ok(Some(rev)) = committed {
                self.rev.send_replace(rev);
                let due = unmarked.map_or_else(|| Instant::now() + BEHIND, |(_, due)| due);
                unmarked = Some((rev, due));
            }
            let lost = committed.err();
            for command in batch {
                command.answer(lost.as_ref().map(again));
            }
        }
    }

    fn mark(&self, unmarked: Option<(Rev, Instant)>) {
        // Not for a file that has taken this one's place.
        if let Some((rev, _)) = unmarked
            && self.place.check().is_ok()
        {
            self.mark.write(Reached { store: self.store, rev });
        }
    }

    /// Runs the batch in one transaction; an error means that nothing of it happened.
    fn commit(&self, batch: &mut [Box<dyn Command>]) -> Result<Option<Rev>, StoreError> {
        self.place.check()?;
        let mut tx = Tx::new(&self.connection, &*self.clock);
        // Looked at again after the commit: what went into a deleted file must not be acknowledged.
        let committed = transact(&mut tx, batch).and_then(|()| self.place.check());
        if committed.is_err()
            && !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction could not be rolled back");
        }
        committed.map(|()| tx.rev)
    }

    fn leave(self) {
        if let Err(error) = self.place.check() {
            // The log of that name may belong to another database by now.
            return tracing::error!(%error, "the write-ahead log was left alone");
        }
        let emptied = self.connection.busy_timeout(CHECKPOINT_WAIT).and_then(|()| {
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        });
        if let Err(error) = emptied {
            tracing::warn!(%error, "the write-ahead log was left for the next process to empty");
        }
    }
}

fn transact(tx: &mut Tx<'_>, batch: &mut [Box<dyn Command>]) -> Result<(), StoreError> {
    execute(tx.connection, "BEGIN IMMEDIATE")?;
    for command in batch {
        run_alone(tx, command.as_mut())?;
    }
    execute(tx.connection, "COMMIT")
}

/// Runs one command so that its failure is its own; an error means that the transaction is lost.
fn run_alone(tx: &mut Tx<'_>, command: &mut dyn Command) -> Result<(), StoreError> {
    execute(tx.connection, "SAVEPOINT command")?;
    let before = tx.rev;
    let ran = catch_unwind(AssertUnwindSafe(|| command.run(tx)))
        .unwrap_or_else(|_| Err(unavailable("a command of the store panicked")));
    let Err(error) = ran else { return execute(tx.connection, "RELEASE command") };
    // On a full disk and the like SQLite may have ended the whole transaction by itself.
    if tx.connection.is_autocommit() {
        return Err(error);
    }
    // The number went back with everything else the command did.
    tx.rev = before;
    execute(tx.connection, "ROLLBACK TO command")?;
    execute(tx.connection, "RELEASE command")
}

fn execute(connection: &Connection, statement: &str) -> Result<(), StoreError> {
    let executed = connection.prepare_cached(statement).and_then(|mut cached| cached.execute([]));
    executed.map(drop).map_err(|error| Fault::Sql(error).into())
}

#[cfg(test)]
mod tests;
