//! The jobs that this server inserted, and the log lines about them that workers send (`log_relay.rs`). A line is
//! written to standard error once the job is known to be one of them, and after the server's own line about its insert.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_core::JobId;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::log_relay::{RelayedMessage, job_of};
use crate::logging;

/// The number of jobs that are remembered; the oldest is forgotten first.
const MAX_JOBS: usize = 65_536;
/// The number of lines that may wait for the insert of their job to be logged. Lines about other servers' jobs pass
/// through here too.
const MAX_WAITING: usize = 256;
/// The message with which the engine logs an insert (B15).
const ENQUEUED: &str = "Job enqueued";

/// The jobs of this server; as a layer of the log, it learns them from the lines about their inserts.
#[derive(Debug, Default)]
pub(crate) struct OwnJobs(Mutex<KnownJobs>);

#[derive(Debug, Default)]
struct KnownJobs {
    jobs: BTreeSet<JobId>,
    /// The same jobs, oldest first.
    order: VecDeque<JobId>,
    waiting: VecDeque<WaitingLine>,
}

#[derive(Debug)]
struct WaitingLine {
    job: JobId,
    level: Level,
    target: String,
    line: String,
}

impl OwnJobs {
    /// Returns true if an event may name a job of this server.
    pub(crate) fn is_insert(event: &tracing::Metadata<'_>) -> bool {
        event.is_event()
            && event.target().starts_with("outlast_engine")
            && event.fields().field("job.id").is_some()
    }

    fn lock_known(&self) -> MutexGuard<'_, KnownJobs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, job: JobId) {
        let mut known = self.lock_known();
        if known.jobs.insert(job) {
            known.order.push_back(job);
        }
        if known.order.len() > MAX_JOBS
            && let Some(oldest) = known.order.pop_front()
        {
            known.jobs.remove(&oldest);
        }
        // In their order; the lock prevents a later line from overtaking.
        known.waiting.retain(|line| {
            if line.job == job {
                logging::write_relayed(line.level, &line.target, &line.line);
            }
            line.job != job
        });
    }

    /// Handles a message of a worker, if it contains log lines.
    pub(crate) fn take(&self, datagram: &[u8]) {
        let Some(relayed) = RelayedMessage::parse(datagram) else { return };
        let mut known = self.lock_known();
        match relayed {
            RelayedMessage::Line { level, target, job, line } if known.jobs.contains(&job) => {
                logging::write_relayed(level, target, line);
            }
            RelayedMessage::Line { level, target, job, line } => {
                if known.waiting.len() == MAX_WAITING {
                    known.waiting.pop_front();
                }
                let (target, line) = (target.to_owned(), line.to_owned());
                known.waiting.push_back(WaitingLine { job, level, target, line });
            }
            RelayedMessage::Lost(lines) if !known.jobs.is_empty() => {
                drop(known);
                tracing::warn!(lines, "lost log lines of the worker; worker.log has them all");
            }
            RelayedMessage::Lost(_) => {}
        }
    }
}

/// The log layer of a server.
pub(crate) struct OwnJobsLayer(pub(crate) std::sync::Arc<OwnJobs>);

impl<S: Subscriber> Layer<S> for OwnJobsLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = IsEnqueued(false);
        event.record(&mut message);
        if message.0
            && let Some(job) = job_of(event)
        {
            self.0.add(job);
        }
    }
}

struct IsEnqueued(bool);

impl Visit for IsEnqueued {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 = self.0 || field.name() == "message" && format!("{value:?}") == ENQUEUED;
    }
}
