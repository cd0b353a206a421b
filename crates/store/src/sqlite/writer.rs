//! The only writer of this process: a thread that commits queued commands together.
//!
//! A durable commit costs a disk flush. Durability is cheap because all waiting callers share one. Each command runs in a
//! separate savepoint, so a refused or failed command undoes no other. No caller is answered before the commit that contains
//! its change.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::vec;

use outlast_core::{Clock, Rev, StoreError, Timestamp};
use rusqlite::Connection;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::database_file::DatabaseFile;
use super::fault::Fault;
use super::log_checkpoints::LogCheckpoints;
use super::mark::{LockedMarkFile, ReachedChange};
use super::own_commits::{OwnCommit, OwnCommits};
use super::search::{self, PendingText};
use super::tx::Tx;
use super::write_lock::WriteLock;
use super::{reads, sql, titles};
use crate::{copy_error, unavailable};

/// The maximum number of commands in one commit, so that no command waits long for the others.
const MAX_TOGETHER: usize = 256;

/// The time for which a non-urgent command waits for another command to share its commit.
const COMPANY: Duration = Duration::from_millis(10);

/// The maximum delay of the mark next to the store.
const MARK_DELAY: Duration = Duration::from_secs(2);

/// The time for which words wait to be indexed in bulk, and the time before a failed attempt is repeated.
const WORDS_DELAY: Duration = Duration::from_secs(2);

/// The pause between bulk indexing steps while commands arrive, so that few commands have to wait for one.
const WORDS_PAUSE: Duration = Duration::from_millis(100);

/// The time for which the last checkpoint waits for other processes' readers.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(200);

/// A step of a caller. It receives the transaction, or the error if there is none. It returns its refusal, if it was refused,
/// and the way to answer the caller.
type Command =
    Box<dyn FnOnce(Result<&mut Tx<'_>, StoreError>) -> (Option<StoreError>, AnswerCallback) + Send>;

/// The time at which a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// With the next commit.
    Now,
    /// With the next commit that another command needs, or shortly after. For a step that no caller waits for. No later
    /// command runs before it.
    InCompany,
}

/// Answers a caller with the result of its step, or with the reason why the commit failed.
type AnswerCallback = Box<dyn FnOnce(Option<StoreError>) + Send>;

/// Sends commands to the writer thread.
pub(super) struct Writer {
    queue: Mutex<Option<Sender<(Urgency, Command)>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The resources of the thread.
pub(super) struct WriterThread {
    pub(super) connection: Connection,
    pub(super) file: Arc<DatabaseFile>,
    pub(super) lock: WriteLock,
    pub(super) clock: Arc<dyn Clock>,
    /// Receives every commit that changed a job.
    pub(super) commits: Arc<OwnCommits>,
    pub(super) mark: LockedMarkFile,
    /// The store's id in the mark.
    pub(super) store: i64,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(mut thread: WriterThread) -> Result<Self, StoreError> {
        let (queue, commands) = mpsc::channel();
        let file = Arc::clone(&thread.file);
        // Otherwise SQLite creates and removes a file for each savepoint.
        thread.connection.pragma_update(None, "temp_store", "MEMORY").map_err(unavailable)?;
        let checkpoints = LogCheckpoints::follow(&mut thread.connection, file)?;
        let run = move || {
            thread.serve(&commands);
            checkpoints.end();
            thread.leave();
        };
        let builder = thread::Builder::new().name("outlast-writer".to_owned());
        let thread = builder.spawn(run).map_err(unavailable)?;
        Ok(Self { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    /// Runs `step` in the next commit and returns when that commit is durable.
    ///
    /// The step runs even if the caller goes away.
    pub(super) async fn run<T, F>(&self, step: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        self.run_when(Urgency::Now, step).await
    }

    /// Runs a step that may wait to share a commit.
    pub(super) async fn run_when<T, F>(&self, urgency: Urgency, step: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let command: Command = Box::new(move |tx| {
            let result = tx.and_then(|tx| Ok(step(tx)?));
            let refused = result.as_ref().err().map(copy_error);
            let answer = move |lost: Option<StoreError>| {
                // The caller may have gone away; its step is committed all the same.
                let _ = reply.send(lost.map_or(result, Err));
            };
            (refused, Box::new(answer))
        });
        self.submit(urgency, command)?;
        answer
            .await
            .unwrap_or_else(|_| Err(unavailable("the store failed; the log has the details")))
    }

    /// Accepts no more commands. The thread ends after the queued ones; the returned handle waits for it.
    pub(super) fn close(&self) -> Option<JoinHandle<()>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn submit(&self, urgency: Urgency, command: Command) -> Result<(), StoreError> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queue.as_ref().ok_or_else(|| unavailable("the store is closed"))?;
        queue.send((urgency, command)).map_err(|_| unavailable("the writer has ended"))
    }
}

impl WriterThread {
    fn serve(&self, commands: &Receiver<(Urgency, Command)>) {
        // A change that is not in the mark yet, and the time by which it must be.
        let mut unmarked: Option<(Rev, Instant)> = None;
        // The time of the next indexing. A process may have exited before it indexed all words.
        let mut words_due = Some(self.clock.now().after(WORDS_DELAY));
        let mut is_busy = false;
        loop {
            let now = Instant::now();
            // Do this even if commands arrive without a pause.
            if unmarked.is_some_and(|(_, due)| due <= now) {
                self.mark(unmarked.take());
            }
            let queued = match commands.try_recv() {
                Ok(queued) => Some(queued),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return self.mark(unmarked),
            };
            let rested = queued.is_none();
            let words_wait = words_due.map(|due| self.until(due));
            if rested && words_wait == Some(Duration::ZERO) {
                let pause = if is_busy { WORDS_PAUSE } else { Duration::ZERO };
                words_due = self.put_words(pause);
                is_busy = false;
                continue;
            }
            let mark_wait = unmarked.map(|(_, due)| due - now);
            let next = match (queued, mark_wait.into_iter().chain(words_wait).min()) {
                (Some(queued), _) => Ok(queued),
                (None, Some(wait)) => commands.recv_timeout(wait),
                (None, None) => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let (urgency, first) = match next {
                Ok(next) => next,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return self.mark(unmarked),
            };
            let mut batch = vec![first];
            if urgency == Urgency::InCompany {
                batch.extend(company(commands));
            }
            let turn = rested.then(|| self.lock.take()).flatten().or_else(|| self.lock.wait());
            // Collected after the wait, so that commands that arrived meanwhile share this commit.
            let left = MAX_TOGETHER - batch.len();
            batch.extend(commands.try_iter().take(left).map(|(_, command)| command));
            let mut batch = batch.into_iter();
            let mut answers = Vec::new();
            let committed = self.commit(&mut batch, &mut answers);
            is_busy = true;
            drop(turn);
            let committed = committed.map(|commit| {
                let rev = commit.as_ref().map(|commit| commit.rev);
                commit.into_iter().for_each(|commit| self.commits.add(commit));
                rev
            });
            if let Ok(Some(rev)) = committed {
                let due = unmarked.map_or_else(|| Instant::now() + MARK_DELAY, |(_, due)| due);
                unmarked = Some((rev, due));
                words_due = words_due.or_else(|| Some(self.clock.now().after(WORDS_DELAY)));
            }
            let lost = committed.err();
            if let Some(lost) = &lost {
                answers.extend(batch.map(|command| command(Err(copy_error(lost))).1));
            }
            for answer in answers {
                answer(lost.as_ref().map(copy_error));
            }
        }
    }

    fn mark(&self, unmarked: Option<(Rev, Instant)>) {
        // Only while the file at the path is still this one.
        if let Some((rev, _)) = unmarked
            && self.file.check().is_ok()
        {
            self.mark.write(ReachedChange { store: self.store, rev });
        }
    }

    /// The time until words are indexed; zero if the clock was set back.
    fn until(&self, due: Timestamp) -> Duration {
        let wait = due.since(self.clock.now());
        if wait > WORDS_DELAY { Duration::ZERO } else { wait }
    }

    /// Indexes words for a limited time. Returns the time to continue, if more are pending.
    fn put_words(&self, pause: Duration) -> Option<Timestamp> {
        let put = || {
            self.file.check()?;
            let has_words = search::read_owed(&self.connection)? == PendingText::More;
            if !has_words && !titles::is_owed(&self.connection)? {
                return Ok(PendingText::Nothing);
            }
            let _turn = self.lock.wait();
            execute(&self.connection, "BEGIN IMMEDIATE")?;
            if has_words {
                search::catch_up(&self.connection)?;
            } else if titles::is_owed(&self.connection)? {
                titles::index_next(&self.connection)?;
            }
            execute(&self.connection, "COMMIT")?;
            Ok::<_, StoreError>(PendingText::More)
        };
        // A text that cannot be split into words must not end the writer.
        let put = catch_unwind(AssertUnwindSafe(put))
            .unwrap_or_else(|_| Err(unavailable("putting words panicked")));
        match put {
            Ok(PendingText::More) => Some(self.clock.now().after(pause)),
            Ok(PendingText::Nothing) => None,
            Err(error) => {
                tracing::debug!(%error, "words could not be put, will try again");
                self.undo();
                Some(self.clock.now().after(WORDS_DELAY))
            }
        }
    }

    /// Runs the batch in one transaction. An error means that none of it happened.
    fn commit(
        &self,
        batch: &mut vec::IntoIter<Command>,
        answers: &mut Vec<AnswerCallback>,
    ) -> Result<Option<OwnCommit>, StoreError> {
        self.file.check()?;
        let mut tx = Tx::new(&self.connection, &*self.clock);
        // Checked again after the commit: a change to a deleted file must not be acknowledged.
        let committed = transact(&mut tx, batch, answers);
        let committed = committed.and_then(|commit| self.file.check().map(|()| commit));
        if committed.is_err() {
            self.undo();
        }
        committed
    }

    /// Rolls back an open transaction.
    fn undo(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction could not be rolled back");
        }
    }

    fn leave(self) {
        if let Err(error) = self.file.check() {
            // The log at the path may now belong to another database.
            return tracing::error!(%error, "the write-ahead log was left alone");
        }
        let timeout = self.connection.busy_timeout(CHECKPOINT_WAIT);
        if let Err(error) = timeout.and_then(|()| sql::empty_log(&self.connection)) {
            tracing::warn!(%error, "the write-ahead log was left for the next process to empty");
        }
    }
}

/// Collects commands until one of them is urgent or the waiting time is over.
fn company(commands: &Receiver<(Urgency, Command)>) -> Vec<Command> {
    let mut company = Vec::new();
    let until = Instant::now() + COMPANY;
    while company.len() < MAX_TOGETHER - 1 {
        let left = until.saturating_duration_since(Instant::now());
        match commands.recv_timeout(left) {
            Ok((urgency, command)) => {
                company.push(command);
                if urgency == Urgency::Now {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    company
}

fn transact(
    tx: &mut Tx<'_>,
    batch: &mut vec::IntoIter<Command>,
    answers: &mut Vec<AnswerCallback>,
) -> Result<Option<OwnCommit>, StoreError> {
    execute(tx.connection, "BEGIN IMMEDIATE")?;
    if batch.len() == 1 {
        let command = batch.next();
        // Without a savepoint, for which SQLite would copy every changed page.
        let refused = command.map(|command| run(tx, command, answers));
        if let Some(error) = refused.flatten() {
            return undo(tx, error, &["ROLLBACK"]).map(|()| None);
        }
    }
    for command in batch {
        run_alone(tx, command, answers)?;
    }
    // Read before the commit, in the same transaction.
    let commit = match tx.take_changes() {
        Some((rev, changes)) => {
            let next_due = reads::next_due(tx.connection, tx.now())?;
            Some(OwnCommit { rev, changes, next_due })
        }
        None => None,
    };
    execute(tx.connection, "COMMIT")?;
    Ok(commit)
}

/// Runs one command so that its failure undoes no other. An error means that the whole transaction failed.
fn run_alone(
    tx: &mut Tx<'_>,
    command: Command,
    answers: &mut Vec<AnswerCallback>,
) -> Result<(), StoreError> {
    execute(tx.connection, "SAVEPOINT command")?;
    let before = (tx.rev, tx.changes.len());
    let Some(error) = run(tx, command, answers) else {
        return execute(tx.connection, "RELEASE command");
    };
    // The change number is rolled back with the rest.
    tx.rev = before.0;
    tx.changes.truncate(before.1);
    undo(tx, error, &["ROLLBACK TO command", "RELEASE command"])
}

/// Undoes the writes of a refused command. An error means that the whole transaction failed.
fn undo(tx: &Tx<'_>, error: StoreError, statements: &[&str]) -> Result<(), StoreError> {
    // On errors such as a full disk, SQLite may have ended the whole transaction itself.
    if tx.connection.is_autocommit() {
        return Err(error);
    }
    statements.iter().try_for_each(|statement| execute(tx.connection, statement))
}

/// Runs one command and returns its refusal, if it was refused.
fn run(tx: &mut Tx<'_>, command: Command, answers: &mut Vec<AnswerCallback>) -> Option<StoreError> {
    // A command that panics drops its reply channel, which answers its caller.
    match catch_unwind(AssertUnwindSafe(|| command(Ok(&mut *tx)))) {
        Ok((refused, answer)) => {
            answers.push(answer);
            refused
        }
        Err(_) => Some(unavailable("a command of the store panicked")),
    }
}

fn execute(connection: &Connection, statement: &str) -> Result<(), StoreError> {
    Ok(sql::execute(connection, statement, []).map(drop)?)
}

#[cfg(test)]
mod tests;
