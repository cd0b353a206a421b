//! Requests in sessions that this server does not hold, by their ids, so that their clients can cancel them here.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use futures_util::{Stream, StreamExt};
use parking_lot::Mutex;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::SessionId;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::lost_calls;

/// The requests in progress.
#[derive(Default)]
pub(super) struct UnheldCalls(Mutex<HashMap<CallKey, CancellationToken>>);

/// The session and the id of a request.
type CallKey = (SessionId, RequestId);

/// The fields of a message that matter here.
#[derive(Deserialize)]
struct MessageFields {
    id: Option<RequestId>,
    method: Option<String>,
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "requestId")]
    request_id: Option<RequestId>,
}

impl UnheldCalls {
    /// Processes a message. A request can be cancelled until the returned value is dropped; a cancellation takes effect at
    /// once.
    pub(super) fn hear(self: &Arc<Self>, session: SessionId, message: &[u8]) -> Option<UnheldCall> {
        let MessageFields { id, method, params } = serde_json::from_slice(message).ok()?;
        let Some(request) = id else {
            let cancelled = params.filter(|_| method.as_deref() == Some("notifications/cancelled"));
            if let Some(call) = self.0.lock().get(&(session, cancelled?.request_id?)) {
                call.cancel();
            }
            return None;
        };
        let (calls, cancelled) = (Arc::clone(self), CancellationToken::new());
        let key = (session, request);
        self.0.lock().insert(key.clone(), cancelled.clone());
        Some(UnheldCall { calls, key, cancelled })
    }
}

/// One request; it can be cancelled until this is dropped.
pub(super) struct UnheldCall {
    calls: Arc<UnheldCalls>,
    key: CallKey,
    cancelled: CancellationToken,
}

impl UnheldCall {
    /// Returns the events of the answer until the request is cancelled. The first event has an id, so that the client
    /// returns if the stream breaks.
    pub(super) fn events<E>(
        self,
        events: impl Stream<Item = Result<Bytes, E>>,
    ) -> impl Stream<Item = Result<Bytes, E>> {
        let first = futures_util::stream::iter(lost_calls::first_event(&self.key.1).map(Ok));
        let cancelled = self.cancelled.clone().cancelled_owned();
        first.chain(events).take_until(Box::pin(cancelled)).map(move |event| {
            let _under_way = &self;
            event
        })
    }
}

impl Drop for UnheldCall {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.key);
    }
}
