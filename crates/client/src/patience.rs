//! A pure state machine that decides when to give up on a request. The caller reports events with the time
//! since the start of the request; the machine returns how long to wait or which limit was reached. It reads no
//! clock and knows no protocol.

use std::time::Duration;

/// The limits of one request.
///
/// By default a request waits forever, and progress changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestLimits {
    /// The idle timeout: the maximum time without an answer, or, with [`RequestLimits::reset_timeout_on_progress`],
    /// without progress.
    pub timeout: Option<Duration>,
    /// Restarts the idle timeout with every progress notification.
    pub reset_timeout_on_progress: bool,
    /// The total timeout: the maximum time since the start of the request, even with progress.
    pub max_total_timeout: Option<Duration>,
}

/// The two limits of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The idle timeout.
    Idle,
    /// The total timeout.
    Total,
}

/// The next step of a waiting caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatienceVerdict {
    /// Keep waiting; check again at this time at the latest, or when something happens.
    Wait {
        /// The time since the start of the request; `None` if there is no limit.
        until: Option<Duration>,
    },
    /// A limit was reached. This verdict is final.
    TimedOut {
        /// The limit that was reached; the total timeout if both expire together.
        limit: Limit,
        /// The time at which it expired, since the start of the request.
        due: Duration,
    },
}

/// The effect of a progress notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressNote {
    /// It arrived in time.
    Counted,
    /// It arrived after a limit was reached, or its request is finished or unknown.
    Late,
}

/// The state of one request's limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    pub(crate) limits: RequestLimits,
    /// The start of the idle timeout.
    idle_since: Duration,
    /// The number of progress notifications that arrived in time.
    pub(crate) notes: u64,
    /// The time of the last one, since the start of the request.
    pub(crate) last_note: Option<Duration>,
    ended: Option<PatienceVerdict>,
}

impl Patience {
    /// Starts to wait.
    pub(crate) fn new(limits: RequestLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Records progress of this request: a notification with any value, or a new status of its task. Times must
    /// not go backwards.
    ///
    /// A limit that expired earlier counts first: progress at or after a deadline is late.
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

    /// Records that the server answered a status request: a silent task does not mean a silent server.
    pub(crate) fn restart_at_answer(&mut self, at: Duration) {
        let waits = matches!(self.look(at), PatienceVerdict::Wait { .. });
        if waits && self.limits.reset_timeout_on_progress {
            self.idle_since = at;
        }
    }

    /// Returns the next step at this time.
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
