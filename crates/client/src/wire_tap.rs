//! A layer between rmcp and a transport that sees every message in the order of the wire. rmcp handles each notification
//! in a task of its own, where progress could overtake progress, or come after the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetExtensions, GetMeta, JsonRpcMessage,
    NotificationMetaObject, RequestId, ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use crate::pending::{PendingCalls, WaitingCall};

/// How long the last bytes may take when the connection is closed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Requests of the server without a reply yet: a server that asks and never reads must not fill our memory.
const MAX_UNSENT_REPLIES: usize = 64;

/// A transport whose messages settle the pending calls.
pub(crate) struct WireTap<T> {
    pub(crate) inner: T,
    pub(crate) pending: Arc<PendingCalls>,
    /// Ends writes that the server does not read.
    pub(crate) cut: CancellationToken,
    pub(crate) unsent: Arc<AtomicUsize>,
    /// The question whether the server knows the newest era, until it is answered.
    pub(crate) asked_era: Option<RequestId>,
}

impl<T: Transport<RoleClient>> WireTap<T> {
    /// What rmcp should see of a message.
    fn passed(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Notification(note) => match note.notification {
                ServerNotification::ProgressNotification(mut progress) => {
                    // rmcp has moved `_meta` out of the parameters.
                    progress.params.meta = progress.extensions.remove::<NotificationMetaObject>();
                    self.pending.progress(progress.params);
                    None
                }
                // A flood of these would be a flood of tasks, and nothing here reads them.
                ServerNotification::LoggingMessageNotification(_)
                | ServerNotification::TaskStatusNotification(_)
                | ServerNotification::CustomNotification(_) => None,
                _ => Some(JsonRpcMessage::Notification(note)),
            },
            JsonRpcMessage::Response(answer) => {
                if !self.pending.answered(&answer.id) {
                    return None;
                }
                let names_no_era = !matches!(answer.result, ServerResult::DiscoverResult(_));
                if self.asked_era.take_if(|id| *id == answer.id).is_some() && names_no_era {
                    // As from a server that answers `{}` to all it does not know.
                    let error =
                        ErrorData::invalid_request("server/discover names no version", None);
                    return Some(ServerJsonRpcMessage::error(error, Some(answer.id)));
                }
                Some(JsonRpcMessage::Response(answer))
            }
            JsonRpcMessage::Error(error) => {
                let mine = error.id.as_ref().is_none_or(|id| self.pending.answered(id));
                mine.then_some(JsonRpcMessage::Error(error))
            }
            JsonRpcMessage::Request(request) => {
                if self.unsent.load(Ordering::Relaxed) >= MAX_UNSENT_REPLIES {
                    return None;
                }
                self.unsent.fetch_add(1, Ordering::Relaxed);
                Some(JsonRpcMessage::Request(request))
            }
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for WireTap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let mut reply = None;
        match &message {
            JsonRpcMessage::Request(request) => {
                if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
                    self.asked_era = Some(request.id.clone());
                }
                let token = request.request.get_meta().get_progress_token();
                let call = request.request.extensions().get::<Arc<WaitingCall>>().cloned();
                self.pending.add(request.id.clone(), token.map(|token| token.0), call);
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                reply = Some(self.unsent.clone());
            }
            JsonRpcMessage::Notification(_) => {}
        }
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            if let Some(unsent) = reply {
                // Saturating: rmcp also answers what it could not read, which was not counted.
                let _ =
                    unsent.try_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = tokio::select! {
                biased;
                () = self.pending.broken.cancelled() => return None,
                message = self.inner.receive() => message?,
            };
            if let Some(message) = self.passed(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        if let Ok(closed) = tokio::time::timeout(FLUSH_TIMEOUT, self.inner.close()).await {
            return closed;
        }
        self.cut.cancel();
        match tokio::time::timeout(FLUSH_TIMEOUT, self.inner.close()).await {
            Ok(closed) => closed,
            Err(_) => Ok(()),
        }
    }
}
