//! The one writer of this process: a thread that commits the commands that have queued up together.
//!
//! A durable commit costs a disk flush; that the callers who wait share it makes durability cheap. Each command runs in a
//! savepoint of its own, so that one that is refused or fails undoes no other, and no caller is answered before the
//! commit that holds its change.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::vec;

use outlast_core::{Change, Clock, Job, Rev, StoreError, Timestamp};
use rusqlite::Connection;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::database_file::DatabaseFile;
use super::fault::Fault;
use super::log_checkpoints::LogCheckpoints;
use super::mark::{Mark, Reached};
use super::own_commits::{OwnCommit, OwnCommits};
use super::search::{self, Owed};
use super::write_lock::WriteLock;
use super::{reads, sql};
use crate::{columns, copied, unavailable};

/// How many commands share a commit at most, so that none waits long for the others.
const MAX_TOGETHER: usize = 256;

/// How long a command that may wait does so for another to share its commit.
const COMPANY: Duration = Duration::from_millis(10);

/// How far behind the mark beside the store may be.
const MARK_DELAY: Duration = Duration::from_secs(2);

/// How long words wait for a moment in which many are put, and for another try where they could not be.
const WORDS_DELAY: Duration = Duration::from_secs(2);

/// How long the next words wait while commands come, so that few of those find the writer at it.
const WORDS_PAUSE: Duration = Duration::from_millis(100);

/// How long the last checkpoint may wait for other processes' readers.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(200);

/// A step of a caller. It is given the transaction, or why there is none, and returns why it was refused, if it was, and
/// the way to answer the caller.
type Command =
    Box<dyn FnOnce(Result<&mut Tx<'_>, StoreError>) -> (Option<StoreError>, Answer) + Send>;

/// When a command is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// With the next commit.
    Now,
    /// With the next commit that another command needs, or in a moment: for a step that no caller waits for. No later command is carried
    /// out before it.
    InCompany,
}

/// Answers a caller with the result of its step, or with why the commit failed.
type Answer = Box<dyn FnOnce(Option<StoreError>) + Send>;

/// Hands commands to the writer thread.
pub(super) struct Writer {
    queue: Mutex<Option<Sender<(Urgency, Command)>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread works with.
pub(super) struct WriterThread {
    pub(super) connection: Connection,
    pub(super) file: Arc<DatabaseFile>,
    pub(super) lock: WriteLock,
    pub(super) clock: Arc<dyn Clock>,
    /// Is told of every commit that changed a job.
    pub(super) commits: Arc<OwnCommits>,
    pub(super) mark: Mark,
    /// The number that the mark tells stores apart by.
    pub(super) store: i64,
}

/// The open transaction, as a command sees it.
pub(super) struct Tx<'a> {
    pub(super) connection: &'a Connection,
    clock: &'a dyn Clock,
    rev: Option<Rev>,
    /// What was changed, each job with its number of arrival.
    changes: Vec<(i64, Change)>,
}

impl<'a> Tx<'a> {
    /// The transaction that was begun on this connection.
    pub(super) fn new(connection: &'a Connection, clock: &'a dyn Clock) -> Self {
        Self { connection, clock, rev: None, changes: Vec::new() }
    }

    /// The present moment.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Notes where a job stands after this commit.
    pub(super) fn changed(&mut self, seq: i64, job: &Job) {
        self.changes.push((seq, Change::of(job)));
    }

    /// What the commit has changed; read before it, in the same transaction.
    fn summed_up(&mut self) -> Result<Option<OwnCommit>, Fault> {
        let Some(rev) = self.rev else { return Ok(None) };
        // The order in which they are read.
        self.changes.sort_by_key(|(seq, _)| *seq);
        let changes = self.changes.drain(..).map(|(_, change)| change).collect();
        let next_due = reads::next_due(self.connection, self.now())?;
        Ok(Some(OwnCommit { rev, changes, next_due }))
    }

    /// The number of this commit's changes, taken when the first of them is made.
    pub(super) fn rev(&mut self) -> Result<Rev, Fault> {
        if let Some(rev) = self.rev {
            return Ok(rev);
        }
        // Two plain statements: RETURNING would build and drop a table of its own each time.
        sql::execute(self.connection, "UPDATE meta SET value = value + 1 WHERE name = 'rev'", [])?;
        let select = "SELECT value FROM meta WHERE name = 'rev'";
        let rev = columns::rev(sql::value(self.connection, select, [])?);
        self.rev = Some(rev);
        Ok(rev)
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(mut thread: WriterThread) -> Result<Self, StoreError> {
        let (queue, commands) = mpsc::channel();
        let file = Arc::clone(&thread.file);
        // Else what savepoints need to be undone is a file, made and removed for each.
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

    /// Runs `step` in the next commit and returns when that is durable.
    ///
    /// A caller that goes away does not take its step back.
    pub(super) async fn run<T, F>(&self, step: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        self.run_when(Urgency::Now, step).await
    }

    /// The same for a step that may wait for company.
    pub(super) async fn run_when<T, F>(&self, urgency: Urgency, step: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let command: Command = Box::new(move |tx| {
            let result = tx.and_then(|tx| Ok(step(tx)?));
            let refused = result.as_ref().err().map(copied);
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

    /// Takes no more commands; the thread ends when those queued are done, and can be waited for.
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
        // A change that is not in the mark yet, and when it should be.
        let mut unmarked: Option<(Rev, Instant)> = None;
        // When words are put. A process that ended before it did may have left some.
        let mut words_due = Some(self.clock.now().after(WORDS_DELAY));
        let mut is_busy = false;
        loop {
            let now = Instant::now();
            // Also while commands never stop coming.
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
            // Gathered after the wait, so that commands that came meanwhile share this commit.
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
                answers.extend(batch.map(|command| command(Err(copied(lost))).1));
            }
            for answer in answers {
                answer(lost.as_ref().map(copied));
            }
        }
    }

    fn mark(&self, unmarked: Option<(Rev, Instant)>) {
        // Not where another file is at the path.
        if let Some((rev, _)) = unmarked
            && self.file.check().is_ok()
        {
            self.mark.write(Reached { store: self.store, rev });
        }
    }

    /// How long it is until words are put; not at all where the clock was set back.
    fn until(&self, due: Timestamp) -> Duration {
        let wait = due.since(self.clock.now());
        if wait > WORDS_DELAY { Duration::ZERO } else { wait }
    }

    /// Puts words for a moment; when to go on, if more are owed.
    fn put_words(&self, pause: Duration) -> Option<Timestamp> {
        let put = || {
            self.file.check()?;
            if search::owed(&self.connection)? == Owed::Nothing {
                return Ok(Owed::Nothing);
            }
            let _turn = self.lock.wait();
            execute(&self.connection, "BEGIN IMMEDIATE")?;
            let owed = search::catch_up(&self.connection)?;
            execute(&self.connection, "COMMIT")?;
            Ok::<_, StoreError>(owed)
        };
        // A text that the words cannot be taken from must not end the writer.
        let put = catch_unwind(AssertUnwindSafe(put))
            .unwrap_or_else(|_| Err(unavailable("putting words panicked")));
        match put {
            Ok(Owed::More) => Some(self.clock.now().after(pause)),
            Ok(Owed::Nothing) => None,
            Err(error) => {
                tracing::debug!(%error, "words could not be put, will try again");
                self.undo();
                Some(self.clock.now().after(WORDS_DELAY))
            }
        }
    }

    /// Runs the batch in one transaction; an error means that nothing of it happened.
    fn commit(
        &self,
        batch: &mut vec::IntoIter<Command>,
        answers: &mut Vec<Answer>,
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

    /// Takes back what was begun and not committed.
    fn undo(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction could not be rolled back");
        }
    }

    fn leave(self) {
        if let Err(error) = self.file.check() {
            // The log at the path may belong to another database by now.
            return tracing::error!(%error, "the write-ahead log was left alone");
        }
        let timeout = self.connection.busy_timeout(CHECKPOINT_WAIT);
        if let Err(error) = timeout.and_then(|()| sql::empty_log(&self.connection)) {
            tracing::warn!(%error, "the write-ahead log was left for the next process to empty");
        }
    }
}

/// The commands that come until one of them is urgent, or a moment has passed.
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
    answers: &mut Vec<Answer>,
) -> Result<Option<OwnCommit>, StoreError> {
    execute(tx.connection, "BEGIN IMMEDIATE")?;
    if batch.len() == 1 {
        let command = batch.next();
        // Without a savepoint, for which SQLite would copy every page that is changed.
        let refused = command.map(|command| run(tx, command, answers));
        if let Some(error) = refused.flatten() {
            return undo(tx, error, &["ROLLBACK"]).map(|()| None);
        }
    }
    for command in batch {
        run_alone(tx, command, answers)?;
    }
    let commit = tx.summed_up()?;
    execute(tx.connection, "COMMIT")?;
    Ok(commit)
}

/// Runs one command so that its failure undoes no other; an error means that the whole transaction failed.
fn run_alone(
    tx: &mut Tx<'_>,
    command: Command,
    answers: &mut Vec<Answer>,
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

/// Undoes what a refused command wrote; an error means that the whole transaction failed.
fn undo(tx: &Tx<'_>, error: StoreError, statements: &[&str]) -> Result<(), StoreError> {
    // On a full disk and the like SQLite may have ended the whole transaction by itself.
    if tx.connection.is_autocommit() {
        return Err(error);
    }
    statements.iter().try_for_each(|statement| execute(tx.connection, statement))
}

/// Runs one command and says why it was refused, if it was.
fn run(tx: &mut Tx<'_>, command: Command, answers: &mut Vec<Answer>) -> Option<StoreError> {
    // A command that panics drops the way to its caller, which is answered by that.
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
