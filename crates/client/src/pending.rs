//! The requests of one connection that have no answer yet: calls add them, the wire tap settles them. Progress is timed
//! here, the moment it is read, so that a busy caller cannot make it late; what belongs to no request is counted and
//! dropped.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{NumberOrString, ProgressNotificationParam, RequestId};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::patience::{Limits, Patience, PatienceVerdict, ProgressNote};
use crate::progress::{Progress, ProgressToken};

/// Progress kept for a callback that is slower than the server; older notes go first.
const MAX_UNREAD_PROGRESS: usize = 16;

/// What came on a connection and belonged to no waiting request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedMessages {
    /// Progress without a request: unknown, or over.
    pub stray_progress: u64,
    /// Progress that did not rise.
    pub stale_progress: u64,
    /// Answers without a request: unknown, given up, or answered before.
    pub stray_answers: u64,
}

/// The requests of one connection that have no answer yet.
#[derive(Default)]
pub(crate) struct PendingCalls {
    requests: Mutex<RequestTable>,
    stray_progress: AtomicU64,
    stale_progress: AtomicU64,
    stray_answers: AtomicU64,
    broken: CancellationToken,
}

#[derive(Default)]
struct RequestTable {
    tokens: HashMap<RequestId, Option<ProgressToken>>,
    calls: HashMap<ProgressToken, Arc<WaitingCall>>,
}

impl PendingCalls {
    /// Adds a request that is about to be sent.
    pub(crate) fn add(
        &self,
        id: RequestId,
        token: Option<ProgressToken>,
        call: Option<Arc<WaitingCall>>,
    ) {
        let mut requests = lock(&self.requests);
        if let (Some(token), Some(call)) = (&token, call) {
            lock(&call.state).patience.listen(token.clone());
            requests.calls.insert(token.clone(), call);
        }
        requests.tokens.insert(id, token);
    }

    /// Settles a request whose answer came; false when no such request waits.
    pub(crate) fn answered(&self, id: &RequestId) -> bool {
        let known = self.remove(id);
        if !known {
            self.stray_answers.fetch_add(1, Ordering::Relaxed);
        }
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
        let token = token_of(&note.progress_token.0).as_sent();
        let call = lock(&self.requests).calls.get(&token).cloned();
        let dropped = match call.map_or(ProgressNote::Foreign, |call| call.progress(&token, note)) {
            ProgressNote::Counted => return,
            ProgressNote::Stale => &self.stale_progress,
            ProgressNote::Foreign | ProgressNote::Late => &self.stray_progress,
        };
        dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends every waiting call: a message was too long, and the connection cannot go on.
    pub(crate) fn break_off(&self) {
        self.broken.cancel();
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_cancelled()
    }

    /// Resolves when the connection cannot go on.
    pub(crate) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    pub(crate) fn dropped(&self) -> DroppedMessages {
        DroppedMessages {
            stray_progress: self.stray_progress.load(Ordering::Relaxed),
            stale_progress: self.stale_progress.load(Ordering::Relaxed),
            stray_answers: self.stray_answers.load(Ordering::Relaxed),
        }
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
        if state.patience.sign_of_life(self.began.elapsed()) == ProgressNote::Counted {
            state.push(progress);
        }
    }

    /// Notes that the server answered a question about the task.
    pub(crate) fn task_answered(&self) {
        lock(&self.state).patience.answered_about(self.began.elapsed());
    }

    fn progress(&self, token: &ProgressToken, note: ProgressNotificationParam) -> ProgressNote {
        let mut state = lock(&self.state);
        let noted = state.patience.progress(self.began.elapsed(), token, note.progress);
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

pub(crate) fn token_of(token: &NumberOrString) -> ProgressToken {
    match token {
        NumberOrString::Number(number) => ProgressToken::Number(*number),
        NumberOrString::String(text) => ProgressToken::Text(text.to_string()),
    }
}

/// Some servers return the id as its digits.
fn as_sent(id: &RequestId) -> RequestId {
    match token_of(id).as_sent() {
        ProgressToken::Number(number) => RequestId::Number(number),
        ProgressToken::Text(_) => id.clone(),
    }
}

/// Nothing that holds these locks can panic half-way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
