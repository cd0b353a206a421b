//! The conditions under which a worker shuts down, including by itself.

use std::ops::ControlFlow;
use std::time::Duration;

use outlast_core::{Profile, StoreError};
use tokio::time::Instant;

use crate::shared::Shared;

/// The time that a worker which leaves when idle stays while the store cannot be read, even while it has attempts.
/// The process that started the worker may have removed the store since, and then no process would ever ask the
/// worker to leave.
const GIVES_UP: Duration = Duration::from_secs(300);
/// The minimum interval between two looks of such a worker at the work that is left: a job that is not due, or a
/// pending stop.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// The number of looks within the time after which it leaves.
const LOOKS_UNTIL_IDLE: u32 = 12;
/// The interval at which it checks whether the store can be read.
const LOOK_AT_STORE: Duration = Duration::from_secs(60);

/// The time when a worker leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveTime {
    /// It leaves when it is asked to.
    Asked,
    /// It leaves when it has had nothing to do for this long, when it is asked to, or when the store cannot be read
    /// for minutes.
    IdleFor(Duration),
}

/// The time since which a worker has had nothing to do.
pub(crate) struct Idleness {
    until: LeaveTime,
    since: Option<Instant>,
    /// The time since which it has had no attempts and every claim has failed.
    refused_since: Option<Instant>,
}

impl Idleness {
    pub(crate) fn new(until: LeaveTime) -> Self {
        Self { until, since: None, refused_since: None }
    }

    /// Decides about a worker whose claim failed: without attempts it leaves after some minutes. A store may be
    /// readable and still refuse every claim for good.
    pub(crate) fn without_claims(&mut self, has_tries: bool) -> ControlFlow<()> {
        if self.until == LeaveTime::Asked || has_tries {
            self.refused_since = None;
        } else if self.refused_since.get_or_insert_with(Instant::now).elapsed() >= GIVES_UP {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Decides about a worker that found no job: it leaves, or waits for news for at most the returned time.
    pub(crate) async fn without_jobs(
        &mut self,
        shared: &Shared,
        profiles: &[Profile],
        has_tries: bool,
    ) -> ControlFlow<(), Option<Duration>> {
        self.refused_since = None;
        let LeaveTime::IdleFor(limit) = self.until else { return ControlFlow::Continue(None) };
        if has_tries {
            self.since = None;
            return ControlFlow::Continue(None);
        }
        if !nothing_left(shared, profiles).await {
            self.since = None;
            return ControlFlow::Continue(Some(LOOK_AGAIN.max(limit / LOOKS_UNTIL_IDLE)));
        }
        // News of a job wakes the worker earlier.
        match limit.saturating_sub(self.since.get_or_insert_with(Instant::now).elapsed()) {
            Duration::ZERO => ControlFlow::Break(()),
            left => ControlFlow::Continue(Some(left)),
        }
    }
}

/// Returns whether neither a job nor a pending stop is left for a worker with these profiles, now or later.
pub(crate) async fn nothing_left(shared: &Shared, profiles: &[Profile]) -> bool {
    let store = &shared.store;
    let look = async || {
        Ok::<bool, StoreError>(
            store.count_queued(profiles).await? == 0
                && store.unclaimed_held_calls(profiles).await?.is_empty()
                && store.pending_stops(profiles, 1).await?.is_empty(),
        )
    };
    look().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "what is left cannot be read, will try again");
        false
    })
}

/// Waits until the store could not be read for so much time that it will not come back.
pub(crate) async fn store_is_gone(shared: &Shared) -> StoreError {
    let mut since = None;
    loop {
        tokio::time::sleep(LOOK_AT_STORE).await;
        let Err(error) = shared.store.rev().await else {
            since = None;
            continue;
        };
        if since.get_or_insert_with(Instant::now).elapsed() >= GIVES_UP {
            tracing::error!(%error, "the store is gone, leaving");
            return error;
        }
    }
}
