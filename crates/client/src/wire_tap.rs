//! A layer between rmcp and a transport that sees every message in wire order. rmcp handles each notification
//! in its own task, where progress could overtake other progress or arrive after the answer.

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

/// The time to write the last bytes when the connection is closed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of unanswered server requests: a server that asks and never reads must not fill our
/// memory.
const MAX_UNSENT_REPLIES: usize = 64;

/// A transport whose messages settle the pending calls.
pub(crate) struct WireTap<T> {
    pub(crate) inner: T,
    pub(crate) pending: Arc<PendingCalls>,
    /// Aborts writes that the server does not read.
    pub(crate) cut: CancellationToken,
    pub(crate) unsent: Arc<AtomicUsize>,
    /// The id of the request that asks whether the server supports the newest era, until it is answered.
    pub(crate) asked_era: Option<RequestId>,
}

impl<T: Transport<RoleClient>> WireTap<T> {
    /// Returns the message that rmcp should see, if any.
    fn process(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Notification(note) => match note.notification {
                ServerNotification::ProgressNotification(mut progress) => {
                    // rmcp moved `_meta` out of the parameters.
                    progress.params.meta = progress.extensions.remove::<NotificationMetaObject>();
                    self.pending.progress(progress.params);
                    None
                }
                // A flood of these would start a flood of tasks, and nothing here reads them.
                ServerNotification::LoggingMessageNotification(_)
                | ServerNotification::TaskStatusNotification(_)
                | ServerNotification::CustomNotification(_) => None,
                _ => Some(JsonRpcMessage::Notification(note)),
            },
            JsonRpcMessage::Response(answer) => {
                if !self.pending.settle(&answer.id) {
                    return None;
                }
                let names_no_era = !matches!(answer.result, ServerResult::DiscoverResult(_));
                if self.asked_era.take_if(|id| *id == answer.id).is_some() && names_no_era {
                    // This is a server that answers `{}` to unknown requests.
                    let error =
                        ErrorData::invalid_request("server/discover names no version", None);
                    return Some(ServerJsonRpcMessage::error(error, Some(answer.id)));
                }
                Some(JsonRpcMessage::Response(answer))
            }
            JsonRpcMessage::Error(error) => {
                let mine = error.id.as_ref().is_none_or(|id| self.pending.settle(id));
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
                // Saturating, because rmcp also answers messages that it could not parse, which were not
                // counted.
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
            if let Some(message) = self.process(message) {
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
