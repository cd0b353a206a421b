//! Sessions of the older protocol era that this server opened and still holds. Each belongs to the owner who opened it, and
//! is removed after it has been idle for a while.
//!
//! A session that another server opened, or that this server has removed, is served without being held: no pending result is
//! stored in a session. A held session adds a standalone stream, resumed streams and cancellations.
//!
//! rmcp would count the silence of a long call as idleness, so its own timeout is off, and this module counts calls.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use futures_util::{Stream, StreamExt};
use outlast_core::OwnerId;
use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, JsonRpcRequest, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};
use tokio::time::Instant;

use super::lost_calls::{event_id, lost_call, parse_event_id};
use super::session_id::{is_session_of, new_session_id};
use crate::reply::id_in_use;

/// The maximum number of sessions per owner. Above it, the session that has been idle longest is removed.
const MAX_SESSIONS_PER_OWNER: usize = 100;
/// The maximum number of sessions in total.
const MAX_SESSIONS: usize = 1000;
/// The number of sessions that are remembered because a client ended them here.
const MAX_DELETED: usize = 1000;

pub(super) struct Sessions {
    rmcp: LocalSessionManager,
    known: Mutex<HashMap<SessionId, Session>>,
    deleted: Mutex<VecDeque<SessionId>>,
}

/// A session that a request names.
pub(super) enum NamedSession {
    /// This server holds the session.
    Held(SessionUse),
    /// Another server holds the session, or no server does any more.
    NotHeld,
}

struct Session {
    owner: OwnerId,
    /// The number of calls and streams in progress.
    uses: usize,
    /// The ids of requests that are not answered yet.
    asked: HashSet<RequestId>,
    idle_since: Instant,
}

impl Sessions {
    pub(super) fn new() -> Self {
        let mut rmcp = LocalSessionManager::default();
        rmcp.session_config.keep_alive = None;
        Self { rmcp, known: Mutex::default(), deleted: Mutex::default() }
    }

    /// Uses a session; a held one is in use until the returned value is dropped. Returns `None` if the owner has no such
    /// session.
    pub(super) fn enter(self: &Arc<Self>, owner: &OwnerId, id: &SessionId) -> Option<NamedSession> {
        if !is_session_of(owner, id) || self.deleted.lock().contains(id) {
            return None;
        }
        let mut known = self.known.lock();
        let Some(session) = known.get_mut(id) else { return Some(NamedSession::NotHeld) };
        session.uses += 1;
        Some(NamedSession::Held(SessionUse { sessions: Arc::clone(self), id: id.clone() }))
    }

    /// Ends a session at its client's request. Other servers do not learn of it.
    pub(super) async fn delete(&self, id: &SessionId) {
        {
            let mut deleted = self.deleted.lock();
            deleted.push_back(id.clone());
            if deleted.len() > MAX_DELETED {
                deleted.pop_front();
            }
        }
        self.end(id).await;
    }

    /// Removes sessions that have been idle for `idle`, in an endless loop.
    pub(super) async fn reap(&self, idle: Duration) {
        let pause = (idle / 4).clamp(Duration::from_millis(10), Duration::from_secs(60));
        loop {
            tokio::time::sleep(pause).await;
            // Removed at once, so that no request enters a session that is about to end.
            let over: Vec<SessionId> = {
                let over = |_: &SessionId, session: &mut Session| {
                    session.uses == 0 && session.idle_since.elapsed() >= idle
                };
                self.known.lock().extract_if(over).map(|(id, _)| id).collect()
            };
            for id in &over {
                self.end(id).await;
            }
            if !over.is_empty() {
                tracing::info!(sessions = over.len(), "idle sessions ended");
            }
        }
    }

    /// Registers a new session; if there are too many, the one that has been idle longest is removed.
    async fn register(&self, owner: &OwnerId, id: &SessionId) -> Result<(), SessionError> {
        let ends = self.insert(owner, id);
        if let Some(ended) = &ends {
            self.end(ended).await;
        }
        if ends.as_ref() == Some(id) { Err(SessionError::TooMany) } else { Ok(()) }
    }

    /// Inserts a session. Returns the session that must end for it, which is the new one itself if all others are in use.
    fn insert(&self, owner: &OwnerId, id: &SessionId) -> Option<SessionId> {
        let mut known = self.known.lock();
        let own = known.values().filter(|session| session.owner == *owner).count();
        let ends = if own >= MAX_SESSIONS_PER_OWNER {
            Some(longest_idle(&known, |session| session.owner == *owner))
        } else if known.len() >= MAX_SESSIONS {
            Some(longest_idle(&known, |_| true))
        } else {
            None
        };
        let (asked, idle_since) = (HashSet::new(), Instant::now());
        let session = Session { owner: owner.clone(), uses: 0, asked, idle_since };
        known.insert(id.clone(), session);
        let ends = ends.map(|idle| idle.unwrap_or_else(|| id.clone()));
        // Removed at once, so that no request enters a session that is about to end.
        ends.inspect(|ended| drop(known.remove(ended)))
    }

    async fn end(&self, id: &SessionId) {
        self.known.lock().remove(id);
        if let Err(error) = self.rmcp.close_session(id).await {
            tracing::debug!(%error, "session ended twice");
        }
    }
}

fn longest_idle(
    known: &HashMap<SessionId, Session>,
    of: impl Fn(&Session) -> bool,
) -> Option<SessionId> {
    let idle = known.iter().filter(|(_, session)| session.uses == 0 && of(session));
    idle.min_by_key(|(_, session)| session.idle_since).map(|(id, _)| id.clone())
}

/// One use of a session: a request with its answer, or a stream.
pub(super) struct SessionUse {
    sessions: Arc<Sessions>,
    id: SessionId,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.known.lock().get_mut(&self.id) {
            session.uses -= 1;
            session.idle_since = Instant::now();
        }
    }
}

/// One request of a session; its id is free again once this is dropped.
struct OpenRequest {
    sessions: Arc<Sessions>,
    session: SessionId,
    id: RequestId,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if let Some(session) = self.sessions.known.lock().get_mut(&self.session) {
            session.asked.remove(&self.id);
        }
    }
}

/// The reason that there is no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// All sessions are in use.
    #[error("too many sessions are in use")]
    TooMany,
    /// rmcp already had a session with a new id.
    #[error("the session could not be made")]
    NotMade,
    /// An error from rmcp.
    #[error(transparent)]
    Rmcp(#[from] LocalSessionManagerError),
}

/// The sessions as rmcp sees them during one owner's request.
pub(super) struct OwnSessions {
    pub(super) sessions: Arc<Sessions>,
    pub(super) owner: OwnerId,
    /// True if a session was requested and refused.
    pub(super) refused: std::sync::atomic::AtomicBool,
}

impl OwnSessions {
    /// Reserves the request's id until the request is answered, even if the client no longer listens. Returns a refusal if
    /// the id is in use, because answers find their request by its id.
    fn ask(
        &self,
        session: &SessionId,
        message: &mut ClientJsonRpcMessage,
    ) -> Option<ServerJsonRpcMessage> {
        let ClientJsonRpcMessage::Request(JsonRpcRequest { id, request, .. }) = message else {
            return None;
        };
        if let Some(known) = self.sessions.known.lock().get_mut(session)
            && !known.asked.insert(id.clone())
        {
            return Some(id_in_use(id));
        }
        let open_request = OpenRequest {
            sessions: Arc::clone(&self.sessions),
            session: session.clone(),
            id: id.clone(),
        };
        if let Some(parts) = request.extensions_mut().get_mut::<http::request::Parts>() {
            parts.extensions.insert(Arc::new(open_request));
        }
        None
    }
}

impl SessionManager for OwnSessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        let id = new_session_id(&self.owner);
        // The only way to make rmcp use our id.
        let restored = self.sessions.rmcp.restore_session(id.clone()).await?;
        let RestoreOutcome::Restored(transport) = restored else {
            return Err(SessionError::NotMade);
        };
        if let Err(error) = self.sessions.register(&self.owner, &id).await {
            self.refused.store(true, std::sync::atomic::Ordering::Relaxed);
            return Err(error);
        }
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        Ok(self.sessions.rmcp.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.sessions.rmcp.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.sessions.end(id).await;
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        if let Some(refused) = self.ask(id, &mut message) {
            return Ok(Either::Left(only(refused)));
        }
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let events = self.sessions.rmcp.create_stream(id, message).await?;
        Ok(Either::Right(events.map(move |event| with_request(event, request.as_ref()))))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        Ok(self.sessions.rmcp.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.sessions.rmcp.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let (event, request) = match parse_event_id(&last_event_id) {
            Some((event, request)) => (event.to_owned(), Some(request)),
            None => (last_event_id, None),
        };
        match (self.sessions.rmcp.resume(id, event).await, request) {
            (Ok(events), request) => {
                Ok(Either::Left(events.map(move |event| with_request(event, request.as_ref()))))
            }
            (Err(_), Some(request)) => Ok(Either::Right(only(lost_call(request)))),
            (Err(error), None) => Err(error.into()),
        }
    }
}

fn only(message: ServerJsonRpcMessage) -> impl Stream<Item = ServerSseMessage> {
    futures_util::stream::once(std::future::ready(ServerSseMessage::from_message(message)))
}

/// Extends the event's id with the request on whose stream the event is.
fn with_request(mut event: ServerSseMessage, request: Option<&RequestId>) -> ServerSseMessage {
    if let Some(request) = request {
        event.event_id = event.event_id.and_then(|id| event_id(&id, request));
    }
    event
}
