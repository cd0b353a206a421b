//! Options for connections and calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::ClientError;
use crate::patience::RequestLimits;
use crate::progress::Progress;

/// The time the server has to receive a cancellation.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(1);

type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// The limits of one call, and the callback for its progress.
///
/// By default a call waits forever.
#[derive(Clone, Default)]
pub struct CallOptions {
    limits: RequestLimits,
    pub(crate) cancel_on_give_up: bool,
    pub(crate) traceparent: Option<String>,
    pub(crate) on_progress: Option<OnProgress>,
}

impl CallOptions {
    /// Creates options with these limits.
    pub fn with_limits(limits: RequestLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Gives up after this long without an answer; see [`CallOptions::reset_timeout_on_progress`].
    pub fn timeout(mut self, window: Duration) -> Self {
        self.limits.timeout = Some(window);
        self
    }

    /// Restarts [`CallOptions::timeout`] with every progress notification.
    pub fn reset_timeout_on_progress(mut self) -> Self {
        self.limits.reset_timeout_on_progress = true;
        self
    }

    /// Gives up after this long in total, even with progress.
    pub fn max_total_timeout(mut self, ceiling: Duration) -> Self {
        self.limits.max_total_timeout = Some(ceiling);
        self
    }

    /// Asks the server to cancel the task of a call when the caller gives it up: at a limit, or by dropping it.
    /// Without this option only the wait ends, and the task keeps running.
    pub fn cancel_on_give_up(mut self) -> Self {
        self.cancel_on_give_up = true;
        self
    }

    /// Sends this W3C `traceparent` in the `_meta` of the call.
    pub fn traceparent(mut self, trace: impl Into<String>) -> Self {
        self.traceparent = Some(trace.into());
        self
    }

    /// Sets a callback for progress. If the callback is slower than the server, intermediate notifications are
    /// skipped. If it panics, the call continues.
    pub fn on_progress(mut self, callback: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(callback));
        self
    }

    /// Returns the limits, unless one of them is zero.
    pub(crate) fn limits(&self) -> Result<RequestLimits, ClientError> {
        let given = [
            ("timeout", self.limits.timeout),
            ("max_total_timeout", self.limits.max_total_timeout),
        ];
        match given.iter().find(|(_, limit)| limit.is_some_and(|limit| limit.is_zero())) {
            Some((name, _)) => Err(ClientError::Usage(format!(
                "{name} is zero; omit it to wait without this limit"
            ))),
            None => Ok(self.limits),
        }
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("limits", &self.limits)
            .field("cancel_on_give_up", &self.cancel_on_give_up)
            .finish_non_exhaustive()
    }
}

/// Options for connecting to a server.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The maximum duration of the handshake.
    pub handshake_timeout: Duration,
    /// The revisions of the protocol to use.
    pub era: Era,
    /// Accepts tasks as answers to calls; a task is then followed to its end. Only the stateless era has tasks.
    pub tasks: bool,
    /// The maximum size of a message in bytes; a larger one ends the connection.
    pub longest_message: usize,
    /// The client's name in the handshake.
    pub name: String,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(30),
            era: Era::Auto,
            tasks: true,
            longest_message: 16 * 1024 * 1024,
            name: "outlast".to_owned(),
        }
    }
}

/// The revisions of the protocol to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// The newest revision that the server supports; the client asks for it first.
    #[default]
    Auto,
    /// Revisions up to 2025-11-25, which begin with `initialize`.
    Initialize,
    /// Revision 2026-07-28, in which every request is self-contained.
    Stateless,
}
