//! One request, from the first byte to the answer or the end of patience.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
    GetExtensions, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use rmcp::{ErrorData, RoleClient};
use tokio::task::JoinSet;

use crate::error::{ClientError, TimedOut};
use crate::options::{CallOptions, OnProgress};
use crate::patience::{Limit, Verdict};
use crate::pending::{PendingCalls, Watch};

/// How long the server may take to hear that nobody waits any more.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// A connection, as a call sees it.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) board: Arc<PendingCalls>,
    pub(crate) longest_message: usize,
    /// Words to the server on behalf of callers that have left.
    farewells: Arc<Mutex<JoinSet<()>>>,
}

impl Link {
    pub(crate) fn new(
        peer: Peer<RoleClient>,
        board: Arc<PendingCalls>,
        longest_message: usize,
    ) -> Self {
        Self { peer, board, longest_message, farewells: Arc::default() }
    }

    /// Sends a request and waits for its answer, as long as the vigil lasts.
    pub(crate) async fn ask(
        &self,
        mut request: ClientRequest,
        vigil: &CallTimer,
    ) -> Result<ServerResult, ClientError> {
        request.extensions_mut().insert(vigil.watch.clone());
        let sending = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = match vigil.wait(&self.board, sending).await {
            Ok(handle) => handle.map_err(|error| self.failed(error))?,
            // Nothing was handed over, so that there is nothing to take back.
            Err(Ended::Broken) => return Err(self.broken()),
            Err(Ended::TimedOut(timed_out)) => return Err(timed_out.into()),
        };
        let mut pending = Pending { link: self, handle: Some(handle) };
        let answer = match vigil.wait(&self.board, pending.answer()).await {
            Ok(answer) => answer,
            Err(Ended::Broken) => return Err(self.broken()),
            Err(Ended::TimedOut(timed_out)) => {
                let told = pending.cancel(timed_out.reason()).await;
                return Err(TimedOut { told, ..timed_out }.into());
            }
        };
        pending.done();
        answer.map_err(|error| self.failed(error))
    }

    /// Says something to the server after its caller has left; [`Link::farewell`] waits for it.
    pub(crate) fn later(&self, words: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime the connection is gone, and with it whoever could listen.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut farewells = self.farewells.lock().unwrap_or_else(PoisonError::into_inner);
        while farewells.try_join_next().is_some() {}
        farewells.spawn_on(words, &runtime);
    }

    /// Waits until everything was said, for a second at most.
    pub(crate) async fn farewell(&self) {
        let mut farewells =
            std::mem::take(&mut *self.farewells.lock().unwrap_or_else(PoisonError::into_inner));
        let said = async { while farewells.join_next().await.is_some() {} };
        // Whoever does not listen for a second is not waited for.
        drop(tokio::time::timeout(CANCEL_GRACE, said).await);
    }

    pub(crate) fn failed(&self, error: ServiceError) -> ClientError {
        match error {
            ServiceError::McpError(error) => refused(&error),
            ServiceError::TransportSend(error) => crate::http::failure(&*error.error)
                .unwrap_or_else(|| ClientError::Gone { how: error.error.to_string() }),
            ServiceError::TransportClosed if self.board.fault().is_some() => self.broken(),
            ServiceError::TransportClosed => ClientError::Gone { how: String::new() },
            other => ClientError::Unexpected(other.to_string()),
        }
    }

    pub(crate) fn broken(&self) -> ClientError {
        ClientError::TooLong { limit: self.longest_message }
    }
}

pub(crate) fn refused(error: &ErrorData) -> ClientError {
    ClientError::Refused { code: error.code.0, message: error.message.to_string() }
}

/// The wait of one caller: its patience, and whom to tell of progress.
pub(crate) struct CallTimer {
    pub(crate) watch: Arc<Watch>,
    pub(crate) cancel_on_give_up: bool,
    on_progress: Option<OnProgress>,
}

/// Why a wait ended without what it was for.
pub(crate) enum Ended {
    TimedOut(TimedOut),
    /// The connection cannot go on.
    Broken,
}

impl CallTimer {
    /// Begins now.
    pub(crate) fn begin(options: &CallOptions) -> Result<Self, ClientError> {
        let watch = Watch::new(options.limits()?);
        Ok(Self {
            watch,
            cancel_on_give_up: options.cancel_on_give_up,
            on_progress: options.on_progress.clone(),
        })
    }

    /// Waits for this, as long as patience lasts. What is there when a limit falls due is taken.
    pub(crate) async fn wait<T>(
        &self,
        board: &PendingCalls,
        work: impl Future<Output = T>,
    ) -> Result<T, Ended> {
        let mut work = pin!(work);
        loop {
            if let Some(done) = work.as_mut().now_or_never() {
                self.tell();
                return Ok(done);
            }
            self.tell();
            let until = match self.watch.look() {
                Verdict::Wait { until } => until,
                Verdict::Answered => None,
                Verdict::TimedOut { limit, .. } => return Err(Ended::TimedOut(self.report(limit))),
            };
            tokio::select! {
                biased;
                done = &mut work => {
                    self.tell();
                    return Ok(done);
                }
                () = board.broken() => return Err(Ended::Broken),
                () = self.watch.woken.notified() => {}
                () = self.due(until) => {}
            }
        }
    }

    /// Tells the caller of progress it has not seen.
    fn tell(&self) {
        while let Some(progress) = self.watch.unread() {
            let Some(callback) = &self.on_progress else { continue };
            if catch_unwind(AssertUnwindSafe(|| callback(&progress))).is_err() {
                tracing::warn!("the callback for progress panicked; the call goes on");
            }
        }
    }

    async fn due(&self, until: Option<Duration>) {
        // A limit beyond the end of the clock is no limit.
        match until.and_then(|until| self.watch.began().checked_add(until)) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn report(&self, limit: Limit) -> TimedOut {
        let patience = self.watch.patience();
        let elapsed = self.watch.began().elapsed();
        let limits = patience.limits();
        let length = match limit {
            Limit::Idle => limits.timeout,
            Limit::Total => limits.max_total_timeout,
        };
        TimedOut {
            limit,
            length: length.unwrap_or_default(),
            elapsed,
            notes: patience.notes(),
            last_note: patience.last_note().map(|at| elapsed.saturating_sub(at)),
            told: true,
            task: None,
        }
    }
}

/// A request that was handed over. Dropped before its answer, it is taken back.
struct Pending<'a> {
    link: &'a Link,
    handle: Option<RequestHandle<RoleClient>>,
}

impl Pending<'_> {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        match &mut self.handle {
            Some(handle) => (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed)),
            None => Err(ServiceError::TransportClosed),
        }
    }

    /// Takes it back; whether the server could be told in time.
    async fn cancel(mut self, reason: &'static str) -> bool {
        let Some(handle) = self.handle.take() else { return true };
        self.link.board.forget(&handle.id);
        let words = self.link.peer.send_notification(cancelled(handle.id, reason));
        matches!(tokio::time::timeout(CANCEL_GRACE, words).await, Ok(Ok(())))
    }

    fn done(mut self) {
        self.handle = None;
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        self.link.board.forget(&handle.id);
        let words = cancelled(handle.id, "the caller has left");
        self.link.later(async move {
            // Whoever has stopped listening need not hear it.
            drop(tokio::time::timeout(CANCEL_GRACE, handle.peer.send_notification(words)).await);
        });
    }
}

fn cancelled(id: RequestId, reason: &str) -> ClientNotification {
    let params = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
    CancelledNotification::new(params).into()
}

impl TimedOut {
    /// For the server.
    fn reason(&self) -> &'static str {
        match self.limit {
            Limit::Idle => "the client's timeout was reached",
            Limit::Total => "the client's total timeout was reached",
        }
    }
}
