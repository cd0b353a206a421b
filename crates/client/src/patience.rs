//! When to give up on a request: a pure state machine. It is told what happened and when, as time since the request
//! began, and says how long to wait or which limit was reached. It reads no clock and knows no protocol.

use std::time::Duration;

use crate::progress::Token;

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

/// A limit of patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The idle window.
    Idle,
    /// The ceiling.
    Total,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on; look again at this time at the latest, or whenever something happens.
    Wait {
        /// Time since the request began; `None` when no limit is set.
        until: Option<Duration>,
    },
    /// The answer is there.
    Answered,
    /// Patience is over. This verdict never changes again.
    TimedOut {
        /// Which limit; the total one when both fall together.
        limit: Limit,
        /// When it fell due, as time since the request began.
        due: Duration,
    },
}

/// What became of a progress note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// It is this request's and says more than the one before.
    Counted,
    /// It is another request's.
    Foreign,
    /// It does not rise.
    Stale,
    /// It came after the end.
    Late,
}

/// The patience with one request.
#[derive(Clone, Debug)]
pub struct Patience {
    limits: Limits,
    token: Option<Token>,
    /// When the idle window began.
    idle_since: Duration,
    highest: Option<f64>,
    notes: u64,
    last_note: Option<Duration>,
    ended: Option<Verdict>,
}

impl Patience {
    /// Begins to wait. Until [`Patience::listen`] names a token, all progress is foreign.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            token: None,
            idle_since: Duration::ZERO,
            highest: None,
            notes: 0,
            last_note: None,
            ended: None,
        }
    }

    /// This request's progress carries this token.
    pub fn listen(&mut self, token: Token) {
        self.token = Some(token);
    }

    /// Progress came. Times must not run backwards.
    ///
    /// A limit that had fallen due before counts first: progress at or after a deadline is late.
    pub fn progress(&mut self, at: Duration, token: &Token, value: f64) -> Noted {
        if !self.token.as_ref().is_some_and(|ours| ours.matches(token)) {
            return Noted::Foreign;
        }
        if !matches!(self.look(at), Verdict::Wait { .. }) {
            return Noted::Late;
        }
        // Nothing compares with NaN: it never rises, and nothing rises above it.
        if !value.is_finite() || self.highest.is_some_and(|highest| value <= highest) {
            return Noted::Stale;
        }
        self.highest = Some(value);
        self.sign_of_life(at)
    }

    /// Progress came that has neither token nor value, such as a task's new status.
    pub fn sign_of_life(&mut self, at: Duration) -> Noted {
        if !matches!(self.look(at), Verdict::Wait { .. }) {
            return Noted::Late;
        }
        self.notes += 1;
        self.last_note = Some(at);
        if self.limits.reset_timeout_on_progress {
            self.idle_since = at;
        }
        Noted::Counted
    }

    /// The server answered a question about the work: a silent task is not a silent server.
    pub fn answered_about(&mut self, at: Duration) {
        let waits = matches!(self.look(at), Verdict::Wait { .. });
        if waits && self.limits.reset_timeout_on_progress {
            self.idle_since = at;
        }
    }

    /// The answer came. It counts unless a limit had already been reported: nobody throws away what was waited for.
    pub fn answered(&mut self) -> Verdict {
        *self.ended.get_or_insert(Verdict::Answered)
    }

    /// What to do at this time.
    pub fn look(&mut self, now: Duration) -> Verdict {
        if let Some(ended) = self.ended {
            return ended;
        }
        let Some((due, limit)) = self.next_due() else { return Verdict::Wait { until: None } };
        if now < due {
            return Verdict::Wait { until: Some(due) };
        }
        *self.ended.insert(Verdict::TimedOut { limit, due })
    }

    /// How many progress notes counted.
    pub fn notes(&self) -> u64 {
        self.notes
    }

    /// When the last of them came, as time since the request began.
    pub fn last_note(&self) -> Option<Duration> {
        self.last_note
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        self.limits
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
