//! Between rmcp and a transport: sees every message in the order of the wire. rmcp handles each notification in a task
//! of its own, so that progress could overtake progress, or come after the answer; here nothing can.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, GetMeta, JsonRpcMessage, NotificationMetaObject,
    ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use crate::pending::{PendingCalls, Watch, token_of};

/// How long the last bytes may take when the connection is closed.
const LAST_BYTES: Duration = Duration::from_secs(1);
/// Requests of the server that we have not answered yet: one that asks and never reads must not fill our memory.
const UNSENT_REPLIES: usize = 64;

/// A transport whose messages the board sees.
pub(crate) struct WireTap<T> {
    pub(crate) inner: T,
    pub(crate) board: Arc<PendingCalls>,
    /// Ends writes that nobody reads.
    pub(crate) cut: CancellationToken,
    pub(crate) unsent: Arc<AtomicUsize>,
}

impl<T: Transport<RoleClient>> WireTap<T> {
    /// What rmcp should see of a message.
    fn passed(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Notification(note) => match note.notification {
                ServerNotification::ProgressNotification(mut progress) => {
                    // rmcp has moved `_meta` out of the parameters.
                    progress.params.meta = progress.extensions.remove::<NotificationMetaObject>();
                    self.board.progress(progress.params);
                    None
                }
                // A flood of these would be a flood of tasks, and nobody reads them.
                ServerNotification::LoggingMessageNotification(_)
                | ServerNotification::TaskStatusNotification(_)
                | ServerNotification::CustomNotification(_) => None,
                _ => Some(JsonRpcMessage::Notification(note)),
            },
            JsonRpcMessage::Response(answer) => {
                self.board.answer(&answer.id).then_some(JsonRpcMessage::Response(answer))
            }
            JsonRpcMessage::Error(error) => {
                let mine = error.id.as_ref().is_none_or(|id| self.board.answer(id));
                mine.then_some(JsonRpcMessage::Error(error))
            }
            JsonRpcMessage::Request(request) => {
                if self.unsent.load(Ordering::Relaxed) >= UNSENT_REPLIES {
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
                let token = request.request.get_meta().get_progress_token();
                let token = token.map(|token| token_of(&token.0));
                let watch = request.request.extensions().get::<Arc<Watch>>().cloned();
                self.board.ask(request.id.clone(), token, watch);
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
                // Saturating: rmcp also answers what it could not read, which nobody counted.
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
                () = self.board.broken() => return None,
                message = self.inner.receive() => message?,
            };
            if let Some(message) = self.passed(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        if let Ok(closed) = tokio::time::timeout(LAST_BYTES, self.inner.close()).await {
            return closed;
        }
        self.cut.cancel();
        match tokio::time::timeout(LAST_BYTES, self.inner.close()).await {
            Ok(closed) => closed,
            Err(_) => Ok(()),
        }
    }
}
