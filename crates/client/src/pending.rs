//! The requests of one connection that have no answer yet: calls add them, the wire tap settles them. Progress is timed
//! here, the moment it is read, so that a busy caller cannot make it late; what belongs to no request is counted and
//! dropped.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{NumberOrString, ProgressNotificationParam, RequestId};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::patience::{Limits, Patience, PatienceVerdict, ProgressNote};
use crate::progress::Progress;

/// Progress kept for a callback that is slower than the server; older notes go first.
const MAX_UNREAD_PROGRESS: usize = 16;

/// What came on a connection and belonged to no waiting request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedMessages {
    /// Progress without a request: unknown, or over.
    pub stray_progress: u64,
    /// Answers without a request: unknown, given up, or answered before.
    pub stray_answers: u64,
}

/// The requests of one connection that have no answer yet.
#[derive(Default)]
pub(crate) struct PendingCalls {
    requests: Mutex<RequestTable>,
    /// Ends every waiting call: a message was too long, and the connection cannot go on.
    pub(crate) broken: CancellationToken,
}

#[derive(Default)]
struct RequestTable {
    /// Each request with its progress token.
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

    /// Settles a request whose answer came; false when no such request waits.
    pub(crate) fn answered(&self, id: &RequestId) -> bool {
        let known = self.remove(id);
        lock(&self.requests).dropped.stray_answers += u64::from(!known);
        known
    }

    /// Removes a request; false when there was none.
    pub(crate) fn remove(&self, id: &RequestId) -> bool {
        let mut requests = lock(&self.requests);
        let Some(token) = requests.tokens.remove(&as_sent(id)) else { return false };
        if let Some(token) = token {
            requests.calls.remove(&token);
        }
        true
    }

    /// Gives progress to the call it belongs to.
    pub(crate) fn progress(&self, note: ProgressNotificationParam) {
        let token = as_sent(&note.progress_token.0);
        let call = lock(&self.requests).calls.get(&token).cloned();
        let noted = call.map_or(ProgressNote::Late, |call| call.progress(note));
        if noted == ProgressNote::Late {
            lock(&self.requests).dropped.stray_progress += 1;
        }
    }

    pub(crate) fn dropped(&self) -> DroppedMessages {
        lock(&self.requests).dropped
    }
}

/// One call's patience, and the progress its caller has not seen.
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
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let state = WaitState { patience: Patience::new(limits), unread: VecDeque::new() };
        Arc::new(Self { began: Instant::now(), state: Mutex::new(state), woken: Notify::new() })
    }

    pub(crate) fn look(&self) -> PatienceVerdict {
        lock(&self.state).patience.look(self.began.elapsed())
    }

    pub(crate) fn patience(&self) -> Patience {
        lock(&self.state).patience.clone()
    }

    /// The oldest progress the caller has not seen.
    pub(crate) fn unread(&self) -> Option<Progress> {
        lock(&self.state).unread.pop_front()
    }

    /// Takes a new status of the task for progress.
    pub(crate) fn task_status(&self, progress: Progress) {
        let mut state = lock(&self.state);
        if state.patience.progress(self.began.elapsed()) == ProgressNote::Counted {
            state.push(progress);
        }
    }

    /// Notes that the server answered a question about the task.
    pub(crate) fn task_answered(&self) {
        lock(&self.state).patience.answered_about(self.began.elapsed());
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

/// The id or token that was sent, which is a number: some servers return its digits. Nothing else is taken for it: the empty
/// text is not 0.
fn as_sent(returned: &NumberOrString) -> NumberOrString {
    match returned {
        NumberOrString::String(text) => match text.parse::<i64>() {
            Ok(number) if number.to_string() == **text => NumberOrString::Number(number),
            _ => returned.clone(),
        },
        NumberOrString::Number(_) => returned.clone(),
    }
}

/// Nothing that holds these locks can panic half-way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checklist of timeouts, G.
    #[test]
    fn a_token_returned_as_digits_is_the_same_token_and_nothing_else_is() {
        let ours = NumberOrString::Number(0);
        assert_eq!(as_sent(&ours), ours);
        assert_eq!(as_sent(&NumberOrString::String("0".into())), ours);
        for other in ["", "00", " 0", "+0", "-0", "0.0", "false"] {
            assert_ne!(as_sent(&NumberOrString::String(other.into())), ours, "{other:?}");
        }
    }
}
