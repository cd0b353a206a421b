//! The unanswered requests of one connection: calls add them, the wire tap settles them. Progress is
//! timestamped here as soon as it is read, so that a busy caller cannot make it late. Messages that belong to
//! no request are counted and dropped.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{NumberOrString, ProgressNotificationParam, RequestId};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::patience::{Patience, PatienceVerdict, ProgressNote, RequestLimits};
use crate::progress::Progress;

/// The maximum number of progress notifications queued for a slow callback; the oldest are dropped first.
const MAX_UNREAD_PROGRESS: usize = 16;

/// Messages on a connection that belonged to no waiting request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedMessages {
    /// Progress for an unknown or finished request.
    pub stray_progress: u64,
    /// Answers to unknown, abandoned or already answered requests.
    pub stray_answers: u64,
}

/// The unanswered requests of one connection.
#[derive(Default)]
pub(crate) struct PendingCalls {
    requests: Mutex<RequestTable>,
    /// Ends every waiting call: a message was too long, so the connection cannot continue.
    pub(crate) broken: CancellationToken,
}

#[derive(Default)]
struct RequestTable {
    /// The progress token of each request.
    tokens: HashMap<RequestId, Option<NumberOrString>>,
    calls: HashMap<NumberOrString, Arc<WaitingCall>>,
    dropped: DroppedMessages,
}

impl PendingCalls {
    /// Adds a request that is about to be sent.
    pub(crate) fn add(
        &self,
        id: RequestId,
        token: Option<NumberOrString>,
        call: Option<Arc<WaitingCall>>,
    ) {
        let mut requests = lock(&self.requests);
        if let (Some(token), Some(call)) = (&token, call) {
            requests.calls.insert(token.clone(), call);
        }
        requests.tokens.insert(id, token);
    }

    /// Settles a request that was answered; returns false if no such request is waiting.
    pub(crate) fn settle(&self, id: &RequestId) -> bool {
        let known = self.remove(id);
        lock(&self.requests).dropped.stray_answers += u64::from(!known);
        known
    }

    /// Removes a request; returns false if there was none.
    pub(crate) fn remove(&self, id: &RequestId) -> bool {
        let mut requests = lock(&self.requests);
        let Some(token) = requests.tokens.remove(&as_sent(id)) else { return false };
        if let Some(token) = token {
            requests.calls.remove(&token);
        }
        true
    }

    /// Passes progress to its call.
    pub(crate) fn progress(&self, note: ProgressNotificationParam) {
        let token = as_sent(&note.progress_token.0);
        let call = lock(&self.requests).calls.get(&token).cloned();
        let noted = call.map_or(ProgressNote::Late, |call| call.progress(note));
        if noted == ProgressNote::Late {
            lock(&self.requests).dropped.stray_progress += 1;
        }
    }

    pub(crate) fn dropped_messages(&self) -> DroppedMessages {
        lock(&self.requests).dropped
    }
}

/// The limits of one call, and the progress its caller has not seen.
pub(crate) struct WaitingCall {
    pub(crate) began: Instant,
    state: Mutex<WaitState>,
    pub(crate) woken: Notify,
}

struct WaitState {
    patience: Patience,
    unread: VecDeque<Progress>,
}

impl WaitingCall {
    pub(crate) fn new(limits: RequestLimits) -> Arc<Self> {
        let state = WaitState { patience: Patience::new(limits), unread: VecDeque::new() };
        Arc::new(Self { began: Instant::now(), state: Mutex::new(state), woken: Notify::new() })
    }

    pub(crate) fn look(&self) -> PatienceVerdict {
        lock(&self.state).patience.look(self.began.elapsed())
    }

    pub(crate) fn patience(&self) -> Patience {
        lock(&self.state).patience.clone()
    }

    /// Takes the oldest progress the caller has not seen.
    pub(crate) fn take_unread(&self) -> Option<Progress> {
        lock(&self.state).unread.pop_front()
    }

    /// Records a new status of the task as progress.
    pub(crate) fn task_status(&self, progress: Progress) {
        let mut state = lock(&self.state);
        if state.patience.progress(self.began.elapsed()) == ProgressNote::Counted {
            state.push(progress);
        }
    }

    /// Records that the server answered a status request about the task.
    pub(crate) fn task_answered(&self) {
        lock(&self.state).patience.restart_at_answer(self.began.elapsed());
    }

    fn progress(&self, note: ProgressNotificationParam) -> ProgressNote {
        let mut state = lock(&self.state);
        let noted = state.patience.progress(self.began.elapsed());
        if noted == ProgressNote::Counted {
            let ProgressNotificationParam { progress, total, message, meta, .. } = note;
            let meta = meta.and_then(|meta| serde_json::to_value(meta).ok());
            state.push(Progress { value: progress, total, message, meta });
            self.woken.notify_one();
        }
        noted
    }
}

impl WaitState {
    fn push(&mut self, progress: Progress) {
        if self.unread.len() == MAX_UNREAD_PROGRESS {
            self.unread.pop_front();
        }
        self.unread.push_back(progress);
    }
}

/// Returns the id or token in the form in which it was sent, which is a number: some servers return its digits
/// as a string. Other strings do not match: the empty string is not 0.
fn as_sent(returned: &NumberOrString) -> NumberOrString {
    match returned {
        NumberOrString::String(text) => match text.parse::<i64>() {
            Ok(number) if number.to_string() == **text => NumberOrString::Number(number),
            _ => returned.clone(),
        },
        NumberOrString::Number(_) => returned.clone(),
    }
}

/// No code that holds these locks can panic halfway through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checklist of timeouts, G.
    #[test]
    fn a_token_returned_as_digits_is_the_same_token_but_other_strings_are_not() {
        let ours = NumberOrString::Number(0);
        assert_eq!(as_sent(&ours), ours);
        assert_eq!(as_sent(&NumberOrString::String("0".into())), ours);
        for other in ["", "00", " 0", "+0", "-0", "0.0", "false"] {
            assert_ne!(as_sent(&NumberOrString::String(other.into())), ours, "{other:?}");
        }
    }
}
