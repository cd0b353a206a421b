//! When a worker leaves, also by itself.

use std::ops::ControlFlow;
use std::time::Duration;

use outlast_core::{Profile, StoreError};
use tokio::time::Instant;

use crate::engine::Engine;
use crate::shared::Shared;

/// How long a worker that leaves when idle stays while the store cannot be read, whatever it has in hand. The process that started the
/// worker may have removed the store since, and then no process would ever ask the worker to leave.
const GIVES_UP: Duration = Duration::from_secs(300);
/// How often such a worker at least looks whether what is left has gone: a job that is not due, a stop that is owed.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// The part of the time after which it leaves that passes between two looks.
const LOOKS_UNTIL_IDLE: u32 = 12;
/// How often it looks whether the store can be read.
const LOOK_AT_STORE: Duration = Duration::from_secs(10);

/// When a worker leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When it is asked to.
    Asked,
    /// When for so long there has been nothing left that it could do, or it is asked to, or the store cannot be read for
    /// minutes.
    IdleFor(Duration),
}

/// Since when a worker has had nothing to do.
pub(crate) struct Idleness {
    until: Until,
    since: Option<Instant>,
    /// Since when it has had nothing in hand and the store has given it nothing.
    refused_since: Option<Instant>,
}

impl Idleness {
    pub(crate) fn new(until: Until) -> Self {
        Self { until, since: None, refused_since: None }
    }

    /// Judges a worker that could not claim: with nothing in hand it leaves after some minutes. A store may be readable all the same,
    /// and refuse every claim for good.
    pub(crate) fn without_claims(&mut self, has_tries: bool) -> ControlFlow<()> {
        if self.until == Until::Asked || has_tries {
            self.refused_since = None;
        } else if self.refused_since.get_or_insert_with(Instant::now).elapsed() >= GIVES_UP {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// What a worker does that found no job: it leaves, or waits for news, so long at most.
    pub(crate) async fn without_jobs(
        &mut self,
        shared: &Shared,
        profiles: &[Profile],
        has_tries: bool,
    ) -> ControlFlow<(), Option<Duration>> {
        self.refused_since = None;
        let Until::IdleFor(limit) = self.until else { return ControlFlow::Continue(None) };
        if has_tries {
            self.since = None;
            return ControlFlow::Continue(None);
        }
        if !nothing_left(shared, profiles).await {
            self.since = None;
            return ControlFlow::Continue(Some(LOOK_AGAIN.max(limit / LOOKS_UNTIL_IDLE)));
        }
        // News of a job wake the worker before.
        match limit.saturating_sub(self.since.get_or_insert_with(Instant::now).elapsed()) {
            Duration::ZERO => ControlFlow::Break(()),
            left => ControlFlow::Continue(Some(left)),
        }
    }
}

impl Engine {
    /// Whether neither a job nor an owed stop is left for a worker with this engine's providers.
    pub async fn is_idle(&self) -> bool {
        let profiles: Vec<Profile> = self.shared.providers.keys().cloned().collect();
        nothing_left(&self.shared, &profiles).await
    }
}

/// Whether neither a job nor an owed stop is left for a worker with these profiles, now or later.
async fn nothing_left(shared: &Shared, profiles: &[Profile]) -> bool {
    let store = &shared.store;
    let look = async || {
        Ok::<bool, StoreError>(
            store.queued(profiles).await? == 0
                && store.orphans(profiles).await?.is_empty()
                && store.owed_stops(profiles, 1).await?.is_empty(),
        )
    };
    look().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "what is left cannot be read, will try again");
        false
    })
}

/// Waits until the store could not be read for so long that it will not come back.
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
