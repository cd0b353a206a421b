//! The audit file of `[audit] file` (M5): one JSON line for each start, end and cancel of a job, each answer to a question,
//! each sign-in and each refusal. No line contains a question, an answer, a report or a token.
//!
//! One thread writes, so that a disk that hangs delays no call for longer than [`PATIENCE`]. The file is opened for each
//! batch of lines, so it can be rotated by renaming it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use outlast_core::{
    AnswerOutcome, CancelOutcome, Clock as _, FollowUp, InsertOutcome, Job, JobState, NanoUsd,
    Observer, RequestNote, StoreEvent,
};
use outlast_server::{AuditEvent, AuditLog};
use outlast_store::SystemClock;
use rustix::fs::OFlags;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The maximum number of lines that wait to be written; more are lost, and counted.
const MAX_WAITING: usize = 10_000;
/// The time for which a write to the store waits for its line.
const PATIENCE: Duration = Duration::from_secs(1);
/// The maximum number of refused HTTP requests that are recorded in one second, so that strangers cannot fill the disk.
const REFUSALS_PER_SECOND: u32 = 20;
/// The minimum time between two warnings that the file cannot be written.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The audit file of this process.
pub(crate) struct AuditFile {
    lines: SyncSender<Line>,
    /// Lines that were lost because too many were waiting.
    lost: AtomicU64,
    refusals: Mutex<RefusalRate>,
}

/// A line that waits to be written.
struct Line {
    text: String,
    written: Option<oneshot::Sender<()>>,
}

/// The refused requests of the current second.
#[derive(Default)]
struct RefusalRate {
    since: Option<Instant>,
    recorded: u32,
    left_out: u64,
}

impl AuditFile {
    /// Starts the thread that writes to this file. The file is created by the first line.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(MAX_WAITING);
        thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || AuditWriter { path, warned: None }.write_all(&waiting))?;
        Ok(Self { lines, lost: AtomicU64::new(0), refusals: Mutex::default() })
    }

    /// Queues a line. The receiver is notified once it was written, or could not be.
    fn queue(&self, event: &str, fields: Value) -> oneshot::Receiver<()> {
        let (sender, written) = oneshot::channel();
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let mut entry = Map::new();
        entry.insert("time".to_owned(), SystemClock.now().to_string().into());
        entry.insert("event".to_owned(), event.into());
        if let Value::Object(fields) = fields {
            entry.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        if lost > 0 {
            entry.insert("lost_before".to_owned(), lost.into());
        }
        let line = Line { text: format!("{}\n", Value::Object(entry)), written: Some(sender) };
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
        written
    }

    /// Counts a refused request. Returns the number of requests that were left out since the last recorded one, or
    /// `None` if this one is left out.
    fn count_refusal(&self) -> Option<u64> {
        let mut rate = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if rate.since.is_none_or(|since| since.elapsed() >= Duration::from_secs(1)) {
            (rate.since, rate.recorded) = (Some(Instant::now()), 0);
        }
        if rate.recorded >= REFUSALS_PER_SECOND {
            rate.left_out += 1;
            return None;
        }
        rate.recorded += 1;
        Some(std::mem::take(&mut rate.left_out))
    }
}

impl Observer for AuditFile {
    fn observe<'a>(&'a self, event: &StoreEvent<'a>) -> Option<FollowUp<'a>> {
        let written = match *event {
            StoreEvent::Inserted(InsertOutcome::New(job)) => {
                self.queue("start", describe_start(job))
            }
            StoreEvent::Settled { job, .. } if job.state.kind().is_terminal() => {
                self.queue("end", describe_end(job))
            }
            StoreEvent::Answered(AnswerOutcome::Accepted(job)) => {
                self.queue("answer", describe_answer(job))
            }
            StoreEvent::Cancelled(CancelOutcome::Now(job)) => {
                self.queue("cancel", describe_end(job))
            }
            StoreEvent::Inserted(InsertOutcome::Existing { .. })
            | StoreEvent::Settled { .. }
            | StoreEvent::Cancelled(CancelOutcome::Already(_))
            | StoreEvent::Asked { .. }
            | StoreEvent::Answered(AnswerOutcome::Refused(_))
            | StoreEvent::Claimed { .. }
            | StoreEvent::Taken(_)
            | StoreEvent::Renewed { .. }
            | StoreEvent::Checkpointed
            | StoreEvent::Noted
            | StoreEvent::StopRecorded
            | StoreEvent::Deleting { .. }
            | StoreEvent::Deleted { .. }
            | StoreEvent::WriteFailed(_) => return None,
        };
        Some(Box::pin(async move {
            // A line that is late is written all the same.
            drop(tokio::time::timeout(PATIENCE, written).await);
        }))
    }
}

impl AuditLog for AuditFile {
    fn record(&self, event: &AuditEvent<'_>) {
        let (name, fields) = match *event {
            AuditEvent::SignIn { owner, address } => {
                ("sign_in", json!({ "owner": owner.as_str(), "address": address.to_string() }))
            }
            AuditEvent::RefusedCall { owner, tool, code } => {
                ("refusal", json!({ "owner": owner.as_str(), "tool": tool, "code": code }))
            }
            AuditEvent::RefusedRequest { address, method, path, status, code } => {
                let Some(left_out) = self.count_refusal() else { return };
                let fields = json!({
                    "address": address.to_string(),
                    "method": shorten(method),
                    "path": shorten(path),
                    "status": status,
                    "code": code,
                    "left_out_before": (left_out > 0).then_some(left_out),
                });
                ("refusal", fields)
            }
        };
        drop(self.queue(name, fields));
    }
}

/// Cuts text of a stranger.
fn shorten(text: &str) -> String {
    text.chars().take(200).collect()
}

fn describe_start(job: &Job) -> Value {
    json!({
        "owner": job.new.owner.as_str(),
        "job": job.id.to_string(),
        "conversation": job.new.conversation.as_ref().map(|id| id.as_str()),
        "workflow": job.new.workflow,
        "provider": job.new.profile.provider(),
        "tool": job.new.recorded_tool(),
        "retry_of": job.new.request.note(RequestNote::RetryOf),
        "traceparent": job.new.request.note(RequestNote::Traceparent),
    })
}

fn describe_answer(job: &Job) -> Value {
    json!({
        "owner": job.new.owner.as_str(),
        "job": job.id.to_string(),
        "workflow": job.new.workflow,
        "question": job.questions.current.as_ref().map(|question| question.id.as_str()),
    })
}

fn describe_end(job: &Job) -> Value {
    let (failure, cost) = match &job.state {
        JobState::Succeeded { output, .. } => (None, output.cost.amount()),
        JobState::Failed { .. } => (job.failures.last(), None),
        JobState::Cancelled { .. } | JobState::Queued { .. } | JobState::Running { .. } => {
            (None, None)
        }
    };
    json!({
        "owner": job.new.owner.as_str(),
        "job": job.id.to_string(),
        "workflow": job.new.workflow,
        "state": job.state.kind().as_str(),
        "code": failure.map(|failure| failure.code.as_str()),
        "cost_usd": cost.map(NanoUsd::as_usd),
    })
}

/// Writes the lines of one process.
struct AuditWriter {
    path: PathBuf,
    warned: Option<Instant>,
}

impl AuditWriter {
    /// Writes lines until no sender is left.
    fn write_all(mut self, waiting: &Receiver<Line>) {
        while let Ok(first) = waiting.recv() {
            let batch: Vec<Line> = std::iter::once(first).chain(waiting.try_iter()).collect();
            let text: String = batch.iter().map(|line| line.text.as_str()).collect();
            match append(&self.path, text.as_bytes()) {
                Ok(()) => self.warned = None,
                Err(error) => self.warn(&error, batch.len()),
            }
            for line in batch {
                // Fails only when the writer of the job has stopped waiting.
                line.written.map(|written| written.send(()));
            }
        }
    }

    fn warn(&mut self, error: &io::Error, lines: usize) {
        if self.warned.is_some_and(|at| at.elapsed() < WARNING_INTERVAL) {
            return;
        }
        self.warned = Some(Instant::now());
        let path = self.path.display();
        tracing::warn!(%path, %error, lines, "the audit file cannot be written; jobs go on, and these lines are lost");
    }
}

/// Appends lines with one write, so that the lines of several processes do not mix.
fn append(path: &Path, text: &[u8]) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    check(&file)?;
    file.write_all(text)
}

/// Refuses everything but a file of this user that only this user can read and write.
fn check(file: &File) -> io::Result<()> {
    let found = file.metadata()?;
    let refuse = |why| Err(io::Error::new(ErrorKind::PermissionDenied, why));
    if !found.is_file() {
        return refuse("it is not a regular file");
    }
    if found.nlink() > 1 {
        return refuse("it has a second name (a hard link)");
    }
    if found.mode() & 0o077 != 0 {
        return refuse("other users can read or write it; set its mode to 0600");
    }
    Ok(())
}
