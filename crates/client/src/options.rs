//! How to connect, and how long to wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::ClientError;
use crate::patience::Limits;
use crate::progress::Progress;

/// How long the server may take to receive a cancellation.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(1);

type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// How long to wait for one call, and what to do with its progress.
///
/// The default waits for ever.
#[derive(Clone, Default)]
pub struct CallOptions {
    limits: Limits,
    pub(crate) cancel_on_give_up: bool,
    pub(crate) on_progress: Option<OnProgress>,
}

impl CallOptions {
    /// Options with these limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Gives up after so long without an answer; see [`CallOptions::reset_timeout_on_progress`].
    pub fn timeout(mut self, window: Duration) -> Self {
        self.limits.timeout = Some(window);
        self
    }

    /// Lets progress begin the window of [`CallOptions::timeout`] anew.
    pub fn reset_timeout_on_progress(mut self) -> Self {
        self.limits.reset_timeout_on_progress = true;
        self
    }

    /// Gives up so long after the start, whatever happens.
    pub fn max_total_timeout(mut self, ceiling: Duration) -> Self {
        self.limits.max_total_timeout = Some(ceiling);
        self
    }

    /// Has the server cancel a task that the call became, when the caller gives it up: at a limit, or by dropping it.
    /// Without this the wait ends and the task goes on.
    pub fn cancel_on_give_up(mut self) -> Self {
        self.cancel_on_give_up = true;
        self
    }

    /// Calls this with each progress, or with the latest when there is more than it can take. Should it panic, the
    /// call goes on.
    pub fn on_progress(mut self, callback: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(callback));
        self
    }

    /// The limits, unless one of them is zero.
    pub(crate) fn limits(&self) -> Result<Limits, ClientError> {
        let given = [
            ("timeout", self.limits.timeout),
            ("max_total_timeout", self.limits.max_total_timeout),
        ];
        match given.iter().find(|(_, limit)| limit.is_some_and(|limit| limit.is_zero())) {
            Some((name, _)) => {
                Err(ClientError::Usage(format!("{name} is zero; leave it out to wait without it")))
            }
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

/// How to connect.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// How long the handshake may take.
    pub handshake_timeout: Duration,
    /// Which revisions of the protocol to speak.
    pub era: Era,
    /// Whether calls may be answered with a task, which is then followed to its end. Only the stateless era has tasks.
    pub tasks: bool,
    /// The longest message to take, in bytes; a longer one ends the connection.
    pub longest_message: usize,
    /// The name to give to the server.
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

/// Which revisions of the protocol to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// The newest the server knows; asks it first.
    #[default]
    Auto,
    /// Up to 2025-11-25, which begin with `initialize`.
    Initialize,
    /// 2026-07-28, in which every request stands alone.
    Stateless,
}
