//! When to give up on a request: a pure state machine. The caller tells it what happened and when, as time since the
//! request began; the machine says how long to wait or which limit was reached. It reads no clock and knows no protocol.

use std::time::Duration;

/// How long to wait for one request.
///
/// The default waits for ever and changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The idle window: so long without an answer, or with [`Limits::reset_timeout_on_progress`] without progress.
    pub timeout: Option<Duration>,
    /// Whether progress begins the idle window anew.
    pub reset_timeout_on_progress: bool,
    /// The ceiling from the request's start, whatever happens.
    pub max_total_timeout: Option<Duration>,
}

/// Which of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The idle window.
    Idle,
    /// The ceiling.
    Total,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatienceVerdict {
    /// Go on; look again at this time at the latest, or whenever something happens.
    Wait {
        /// Time since the request began; `None` when no limit is set.
        until: Option<Duration>,
    },
    /// A limit was reached. This verdict never changes again.
    TimedOut {
        /// Which limit; the total one when both fall together.
        limit: Limit,
        /// When it fell due, as time since the request began.
        due: Duration,
    },
}

/// What became of a progress note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressNote {
    /// The note came in time.
    Counted,
    /// It came after a limit was reached, or its request is over or unknown.
    Late,
}

/// The patience with one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    pub(crate) limits: Limits,
    /// When the idle window began.
    idle_since: Duration,
    /// The number of progress notes that came in time.
    pub(crate) notes: u64,
    /// When the last of them came, as time since the request began.
    pub(crate) last_note: Option<Duration>,
    ended: Option<PatienceVerdict>,
}

impl Patience {
    /// Begins to wait.
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Records progress of this request: a notification, whatever its value, or a task's new status. Times must not run
    /// backwards.
    ///
    /// A limit that had fallen due before counts first: progress at or after a deadline is late.
    pub(crate) fn progress(&mut self, at: Duration) -> ProgressNote {
        if !matches!(self.look(at), PatienceVerdict::Wait { .. }) {
            return ProgressNote::Late;
        }
        self.notes += 1;
        self.last_note = Some(at);
        if self.limits.reset_timeout_on_progress {
            self.idle_since = at;
        }
        ProgressNote::Counted
    }

    /// The server answered a question about the work: a silent task is not a silent server.
    pub(crate) fn answered_about(&mut self, at: Duration) {
        let waits = matches!(self.look(at), PatienceVerdict::Wait { .. });
        if waits && self.limits.reset_timeout_on_progress {
            self.idle_since = at;
        }
    }

    /// What to do at this time.
    pub(crate) fn look(&mut self, now: Duration) -> PatienceVerdict {
        if let Some(ended) = self.ended {
            return ended;
        }
        let Some((due, limit)) = self.next_due() else {
            return PatienceVerdict::Wait { until: None };
        };
        if now < due {
            return PatienceVerdict::Wait { until: Some(due) };
        }
        *self.ended.insert(PatienceVerdict::TimedOut { limit, due })
    }

    fn next_due(&self) -> Option<(Duration, Limit)> {
        let total = self.limits.max_total_timeout.map(|total| (total, Limit::Total));
        let idle =
            self.limits.timeout.map(|window| (self.idle_since.saturating_add(window), Limit::Idle));
        match (idle, total) {
            (Some(idle), Some(total)) => Some(if idle.0 < total.0 { idle } else { total }),
            (idle, total) => idle.or(total),
        }
    }
}

#[cfg(test)]
mod tests;
