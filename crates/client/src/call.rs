//! One request, from the first byte to its answer or to a limit of its caller.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
    GetExtensions, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use tokio::task::JoinSet;

use crate::error::{ClientError, TimedOut};
use crate::http;
use crate::options::{CANCEL_GRACE, CallOptions};
use crate::patience::{Limit, PatienceVerdict};
use crate::pending::{PendingCalls, WaitingCall};
use crate::stream::NOT_UTF8;

/// The part of a connection that a call uses.
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) pending: Arc<PendingCalls>,
    pub(crate) longest_message: usize,
    /// Cancellations for callers that have gone away.
    pub(crate) late_cancels: Arc<Mutex<JoinSet<()>>>,
}

impl Connection {
    /// Sends a request and waits for its answer, until a limit of the timer is reached.
    pub(crate) fn ask<'a>(
        &'a self,
        mut request: ClientRequest,
        timer: &'a CallTimer,
    ) -> BoxFuture<'a, Result<ServerResult, ClientError>> {
        request.extensions_mut().insert(timer.call.clone());
        Box::pin(async move {
            let options = PeerRequestOptions::no_options();
            let sending = self.peer.send_request_with_option(request, options);
            let handle =
                self.wait(timer, sending).await?.map_err(|error| self.to_client_error(error))?;
            let mut sent = SentRequest { connection: self, handle: Some(handle) };
            let answer = match self.wait(timer, sent.answer()).await {
                Err(ClientError::TimedOut(timed_out)) => {
                    let told = sent.cancel(timed_out.limit).await;
                    return Err(TimedOut { told, ..timed_out }.into());
                }
                answer => answer?,
            };
            sent.handle = None;
            answer.map_err(|error| self.to_client_error(error))
        })
    }

    /// Waits for the future until a limit is reached. A result that is ready at the limit is returned.
    pub(crate) async fn wait<T>(
        &self,
        timer: &CallTimer,
        work: impl Future<Output = T>,
    ) -> Result<T, ClientError> {
        let mut work = pin!(work);
        loop {
            let done = work.as_mut().now_or_never();
            timer.report_progress();
            if let Some(done) = done {
                return Ok(done);
            }
            let until = match timer.call.look() {
                PatienceVerdict::Wait { until } => until,
                PatienceVerdict::TimedOut { limit, .. } => {
                    return Err(timer.time_out(limit).into());
                }
            };
            tokio::select! {
                biased;
                done = &mut work => {
                    timer.report_progress();
                    return Ok(done);
                }
                () = self.pending.broken.cancelled() => return Err(self.too_long()),
                () = timer.call.woken.notified() => {}
                () = timer.due(until) => {}
            }
        }
    }

    /// Sends a cancellation after its caller has gone away; [`Connection::finish_cancels`] waits for it.
    pub(crate) fn cancel_later<T: 'static>(
        &self,
        cancel: impl Future<Output = T> + Send + 'static,
    ) {
        // Without a runtime the connection is closed already.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut cancels = self.late_cancels.lock().unwrap_or_else(PoisonError::into_inner);
        while cancels.try_join_next().is_some() {}
        let bounded = tokio::time::timeout(CANCEL_GRACE, cancel).map(drop);
        cancels.spawn_on(bounded, &runtime);
    }

    /// Waits until the late cancellations are sent, for at most one second.
    pub(crate) async fn finish_cancels(&self) {
        let mut cancels =
            std::mem::take(&mut *self.late_cancels.lock().unwrap_or_else(PoisonError::into_inner));
        let sent = async { while cancels.join_next().await.is_some() {} };
        // Do not wait longer for a server that stopped reading.
        drop(tokio::time::timeout(CANCEL_GRACE, sent).await);
    }

    fn to_client_error(&self, error: ServiceError) -> ClientError {
        match error {
            ServiceError::McpError(error) if error.data.as_ref().is_some_and(is_not_utf8) => {
                ClientError::NotUtf8
            }
            ServiceError::McpError(error) => {
                ClientError::Refused { code: error.code.0, message: error.message.to_string() }
            }
            ServiceError::TransportSend(error) => http::failure(&*error.error)
                .unwrap_or_else(|| ClientError::Gone { how: error.error.to_string() }),
            ServiceError::TransportClosed if self.pending.broken.is_cancelled() => self.too_long(),
            ServiceError::TransportClosed => ClientError::Gone { how: String::new() },
            other => ClientError::Unexpected(other.to_string()),
        }
    }

    fn too_long(&self) -> ClientError {
        ClientError::TooLong { limit: self.longest_message }
    }
}

/// The limits and the progress callback of one caller.
pub(crate) struct CallTimer {
    pub(crate) call: Arc<WaitingCall>,
    pub(crate) options: CallOptions,
}

impl CallTimer {
    pub(crate) fn start(options: CallOptions) -> Result<Self, ClientError> {
        Ok(Self { call: WaitingCall::new(options.limits()?), options })
    }

    /// Passes on progress that the caller has not seen.
    fn report_progress(&self) {
        while let Some(progress) = self.call.take_unread() {
            let Some(callback) = &self.options.on_progress else { continue };
            if catch_unwind(AssertUnwindSafe(|| callback(&progress))).is_err() {
                tracing::warn!("the progress callback panicked; continuing the call");
            }
        }
    }

    async fn due(&self, until: Option<Duration>) {
        // A limit beyond the end of the clock never expires.
        match until.and_then(|until| self.call.began.checked_add(until)) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn time_out(&self, limit: Limit) -> TimedOut {
        let patience = self.call.patience();
        let elapsed = self.call.began.elapsed();
        let length = match limit {
            Limit::Idle => patience.limits.timeout,
            Limit::Total => patience.limits.max_total_timeout,
        };
        TimedOut {
            limit,
            length: length.unwrap_or_default(),
            elapsed,
            notes: patience.notes,
            last_note: patience.last_note.map(|at| elapsed.saturating_sub(at)),
            told: true,
            task: None,
        }
    }
}

/// A request that was handed to the transport. It is cancelled if dropped before its answer.
struct SentRequest<'a> {
    connection: &'a Connection,
    handle: Option<RequestHandle<RoleClient>>,
}

impl SentRequest<'_> {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        match &mut self.handle {
            Some(handle) => (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed)),
            None => Err(ServiceError::TransportClosed),
        }
    }

    /// Cancels the request because of this limit; returns false if the cancellation could not be sent in time.
    async fn cancel(mut self, limit: Limit) -> bool {
        let Some(handle) = self.handle.take() else { return true };
        self.connection.pending.remove(&handle.id);
        let reason = match limit {
            Limit::Idle => "the client's timeout was reached",
            Limit::Total => "the client's total timeout was reached",
        };
        let sending = self.connection.peer.send_notification(cancellation(handle.id, reason));
        matches!(tokio::time::timeout(CANCEL_GRACE, sending).await, Ok(Ok(())))
    }
}

impl Drop for SentRequest<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        self.connection.pending.remove(&handle.id);
        self.connection.cancel_later(async move {
            handle.peer.send_notification(cancellation(handle.id, "the caller has gone away")).await
        });
    }
}

fn is_not_utf8(data: &serde_json::Value) -> bool {
    data.as_str() == Some(NOT_UTF8)
}

fn cancellation(id: RequestId, reason: &str) -> ClientNotification {
    let params = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
    CancelledNotification::new(params).into()
}
