//! Who waits for what on one connection: the transport's tap reads it, the calls write it. Progress is timed here, the
//! moment it is read, so that a busy caller cannot make it late; what belongs to nobody is counted and dropped.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rmcp::model::{NumberOrString, ProgressNotificationParam, RequestId};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::patience::{Limits, Noted, Patience, Verdict};
use crate::progress::{Progress, Token};

/// Progress kept for a callback that is slower than the server; older notes go first.
const UNREAD: usize = 16;

/// What came on a connection and was for nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Progress without a request: unknown, or over.
    pub stray_progress: u64,
    /// Progress that did not rise.
    pub stale_progress: u64,
    /// Answers without a request: unknown, given up, or answered before.
    pub stray_answers: u64,
}

/// Why a connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// One message is longer than we take.
    TooLong,
}

/// The requests of one connection that have no answer yet.
#[derive(Default)]
pub(crate) struct PendingCalls {
    asked: Mutex<Asked>,
    stray_progress: AtomicU64,
    stale_progress: AtomicU64,
    stray_answers: AtomicU64,
    fault: OnceLock<Fault>,
    broken: CancellationToken,
}

#[derive(Default)]
struct Asked {
    requests: HashMap<RequestId, Option<Token>>,
    watches: HashMap<Token, Arc<Watch>>,
}

impl PendingCalls {
    /// A request is about to be sent.
    pub(crate) fn ask(&self, id: RequestId, token: Option<Token>, watch: Option<Arc<Watch>>) {
        let mut asked = lock(&self.asked);
        if let (Some(token), Some(watch)) = (&token, watch) {
            lock(&watch.state).patience.listen(token.clone());
            asked.watches.insert(token.clone(), watch);
        }
        asked.requests.insert(id, token);
    }

    /// An answer came; whether somebody waits for it.
    pub(crate) fn answer(&self, id: &RequestId) -> bool {
        let known = self.forget(id);
        if !known {
            self.stray_answers.fetch_add(1, Ordering::Relaxed);
        }
        known
    }

    /// Nobody waits for this request any more.
    pub(crate) fn forget(&self, id: &RequestId) -> bool {
        let mut asked = lock(&self.asked);
        let Some(token) = asked.requests.remove(&as_sent(id)) else { return false };
        if let Some(token) = token {
            asked.watches.remove(&token);
        }
        true
    }

    /// Progress came.
    pub(crate) fn progress(&self, note: ProgressNotificationParam) {
        let token = token_of(&note.progress_token.0).as_sent();
        let watch = lock(&self.asked).watches.get(&token).cloned();
        let noted = watch.map_or(Noted::Foreign, |watch| watch.note(&token, note));
        match noted {
            Noted::Counted => {}
            Noted::Stale => {
                self.stale_progress.fetch_add(1, Ordering::Relaxed);
            }
            Noted::Foreign | Noted::Late => {
                self.stray_progress.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The connection cannot go on; every waiting call ends.
    pub(crate) fn break_off(&self, fault: Fault) {
        self.fault.get_or_init(|| fault);
        self.broken.cancel();
    }

    /// Why the connection cannot go on, if so.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault.get().copied()
    }

    /// Resolves when the connection cannot go on.
    pub(crate) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    pub(crate) fn dropped(&self) -> Dropped {
        Dropped {
            stray_progress: self.stray_progress.load(Ordering::Relaxed),
            stale_progress: self.stale_progress.load(Ordering::Relaxed),
            stray_answers: self.stray_answers.load(Ordering::Relaxed),
        }
    }
}

/// One call's patience, and the progress its caller has not seen.
pub(crate) struct Watch {
    began: Instant,
    state: Mutex<State>,
    pub(crate) woken: Notify,
}

struct State {
    patience: Patience,
    unread: VecDeque<Progress>,
}

impl Watch {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let state = State { patience: Patience::new(limits), unread: VecDeque::new() };
        Arc::new(Self { began: Instant::now(), state: Mutex::new(state), woken: Notify::new() })
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    pub(crate) fn look(&self) -> Verdict {
        lock(&self.state).patience.look(self.began.elapsed())
    }

    pub(crate) fn patience(&self) -> Patience {
        lock(&self.state).patience.clone()
    }

    /// The oldest progress the caller has not seen.
    pub(crate) fn unread(&self) -> Option<Progress> {
        lock(&self.state).unread.pop_front()
    }

    /// A task said something new of itself.
    pub(crate) fn status(&self, progress: Progress) {
        let mut state = lock(&self.state);
        if state.patience.sign_of_life(self.began.elapsed()) == Noted::Counted {
            state.push(progress);
        }
    }

    /// The server answered a question about the task.
    pub(crate) fn answered_about(&self) {
        lock(&self.state).patience.answered_about(self.began.elapsed());
    }

    fn note(&self, token: &Token, note: ProgressNotificationParam) -> Noted {
        let mut state = lock(&self.state);
        let noted = state.patience.progress(self.began.elapsed(), token, note.progress);
        if noted == Noted::Counted {
            let ProgressNotificationParam { progress, total, message, meta, .. } = note;
            let meta = meta.and_then(|meta| serde_json::to_value(meta).ok());
            state.push(Progress { value: progress, total, message, meta });
            self.woken.notify_one();
        }
        noted
    }
}

impl State {
    fn push(&mut self, progress: Progress) {
        if self.unread.len() == UNREAD {
            self.unread.pop_front();
        }
        self.unread.push_back(progress);
    }
}

pub(crate) fn token_of(token: &NumberOrString) -> Token {
    match token {
        NumberOrString::Number(number) => Token::Number(*number),
        NumberOrString::String(text) => Token::Text(text.to_string()),
    }
}

/// Some servers return the id as its digits.
fn as_sent(id: &RequestId) -> RequestId {
    match token_of(id).as_sent() {
        Token::Number(number) => RequestId::Number(number),
        Token::Text(_) => id.clone(),
    }
}

/// Nothing that holds these locks can panic half-way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
