//! Held calls: the caller waits for the result of the call, and may give up and call again. The same call (owner,
//! tool, input) is the same job for as long as its key is valid ([`outlast_core::KeyLife`]). The process that
//! accepted the call runs its job, at once and past the queue. The held call of a process that crashed is an orphan,
//! which the next worker with its profile runs.

use std::time::Duration;

use outlast_core::{ClaimedJob, Profile, WorkerId};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::shared::Shared;
use crate::wakeups::{WorkerSignals, lock, until};

/// The age from which a held call in the state Queued counts as abandoned by a process that crashed before it claimed
/// the call.
const TAKEN_BY_NOW: Duration = Duration::from_secs(1);
/// The wait after an error of the store, before the next look.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The worker's part in held calls: it claims them by id and keeps the attempts at them.
pub(crate) struct HeldCalls {
    /// The attempts under way.
    pub(crate) tries: JoinSet<()>,
    /// The time of the next look for orphans.
    look_at: Option<Instant>,
}

impl HeldCalls {
    /// Looks for orphans first: an earlier process may have left some.
    pub(crate) fn new() -> Self {
        Self { tries: JoinSet::new(), look_at: Some(Instant::now()) }
    }

    /// Waits until there may be a held call to run, or an attempt at one has ended. Cancel-safe.
    pub(crate) async fn next(&mut self, signals: &WorkerSignals) -> Result<(), JoinError> {
        tokio::select! {
            () = signals.carry_asked.notified() => {}
            () = signals.orphaned.notified() => self.look_at = Some(Instant::now()),
            () = signals.untaken.notified() => {
                self.look_at.get_or_insert_with(|| Instant::now() + TAKEN_BY_NOW);
            }
            () = until(self.look_at) => {}
            Some(ended) = self.tries.join_next() => return ended,
        }
        Ok(())
    }

    /// Claims the held calls that this process was asked to run, and orphans. Calls that another worker has claimed
    /// are left to that worker.
    pub(crate) async fn take(
        &mut self,
        shared: &Shared,
        worker: &WorkerId,
        profiles: &[Profile],
        signals: &WorkerSignals,
    ) -> Vec<ClaimedJob> {
        let mut asked_for = std::mem::take(&mut lock(&signals.to_carry).named);
        if self.look_at.is_some_and(|moment| moment <= Instant::now()) {
            self.look_at = None;
            match shared.store.unclaimed_held_calls(profiles).await {
                Ok(orphans) => asked_for.extend(orphans),
                Err(error) => {
                    tracing::warn!(%error, "failed to look for held calls without a worker; will try again");
                    self.look_at = Some(Instant::now() + AFTER_ERROR);
                }
            }
        }
        let mut taken = Vec::new();
        for id in asked_for {
            let taking = async {
                if let Some(handover) = shared.options.dispatch.handover()
                    && !handover.may_take(&*shared.store, &id).await?
                {
                    return Ok(None);
                }
                shared.take(worker, profiles, &id).await
            };
            match taking.await {
                Ok(claimed) => taken.extend(claimed),
                Err(error) => {
                    tracing::warn!(job.id = %id, %error, "a held call cannot be taken, will try again");
                    lock(&signals.to_carry).named.push(id);
                    self.look_at = Some(Instant::now() + AFTER_ERROR);
                }
            }
        }
        taken
    }
}
