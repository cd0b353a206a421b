//! Kill points: places on the one path where a process can be made to kill itself with SIGKILL, so that tests need
//! neither sleeps nor luck. They are in a wrapper around the store and in observers between the others, so the path
//! itself does not depend on them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clap::ValueEnum;
use outlast_core::{
    Checkpoint, ClaimedJob, FollowUp, Insert, InsertOutcome, Job, JobId, Lease, Observer, Profile,
    Settlement, Store, StoreError, StoreEvent, StoreMethod, StoreWrapper, WorkerId,
};
use rustix::process::Signal;

/// The prefix with which a provider that first creates a free container records its paid step (`anthropic/cursor.rs`).
const SENDING: &str = "sending@";
const SENT: &str = "sent";

/// The point at which the process kills itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KillPoint {
    /// The job is durable, its caller has no answer
    AfterInsert,
    /// The insert is counted, no other process is notified of it
    AfterCounting,
    /// Other processes are notified of the insert, files of its conversation are not written
    AfterNotifying,
    /// The files of its conversation are written, its caller has no answer
    AfterFiles,
    /// A worker holds it
    AfterClaim,
    /// It is recorded that the request is about to be sent
    AfterBeginning,
    /// The process of a command was started, its guard does not know of it
    AfterSpawn,
    /// The provider has begun a run, nothing of it is recorded
    AfterAnswer,
    /// The remote run is recorded
    AfterRunning,
    /// It is recorded that the step which costs money is about to be sent inside the remote run
    AfterSending,
    /// That step was answered, nothing of it is recorded
    BeforeSent,
    /// The result is here, nothing is recorded
    BeforeSettle,
    /// The result is recorded, no caller has received it
    AfterSettle,
}

impl KillPoint {
    /// Kills this process.
    pub(crate) fn die() {
        let died = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
        // Not reached. If it were, a test that waits for a death by SIGKILL would see another exit.
        tracing::error!(?died, "a kill point did not kill");
        std::process::abort();
    }
}

/// An observer that kills its process when it is notified of an insert.
pub(crate) struct KillingObserver {
    pub(crate) point: KillPoint,
}

impl Observer for KillingObserver {
    fn observe<'a>(&'a self, event: &StoreEvent<'a>) -> Option<FollowUp<'a>> {
        match (event, self.point) {
            // After the work of the observers before it.
            (StoreEvent::Inserted(_), KillPoint::AfterFiles) => {
                Some(Box::pin(async { KillPoint::die() }))
            }
            (StoreEvent::Inserted(_), _) => {
                KillPoint::die();
                None
            }
            _ => None,
        }
    }
}

/// A store that kills its process at a point.
pub(crate) struct KillPointStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) point: KillPoint,
}

impl KillPointStore {
    /// Kills this process if this is the chosen point.
    fn reach(&self, here: KillPoint) {
        if self.point == here {
            KillPoint::die();
        }
    }
}

#[async_trait]
impl StoreWrapper for KillPointStore {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn after(&self, method: StoreMethod, _error: Option<&StoreError>) {
        match method {
            StoreMethod::Insert => self.reach(KillPoint::AfterInsert),
            StoreMethod::Settle => self.reach(KillPoint::AfterSettle),
            // These reach a point only with a certain result or argument: see below.
            StoreMethod::Claim | StoreMethod::ClaimById | StoreMethod::Checkpoint => {}
            StoreMethod::Rev
            | StoreMethod::UnclaimedHeldCalls
            | StoreMethod::Renew
            | StoreMethod::ShowProgress
            | StoreMethod::ShowText
            | StoreMethod::BeginStep
            | StoreMethod::EndStep
            | StoreMethod::ResolveStep
            | StoreMethod::SavePage
            | StoreMethod::Ask
            | StoreMethod::CloseQuestion
            | StoreMethod::Answer
            | StoreMethod::Cancel
            | StoreMethod::Rescue
            | StoreMethod::RecordLateRun
            | StoreMethod::PendingStops
            | StoreMethod::RecordStop
            | StoreMethod::ClaimNotice
            | StoreMethod::RecordNotice
            | StoreMethod::RecordAnswer
            | StoreMethod::GetSetting
            | StoreMethod::PutSetting
            | StoreMethod::CreateSetting
            | StoreMethod::HasWorker
            | StoreMethod::CountQueued
            | StoreMethod::QueuePosition
            | StoreMethod::DeregisterWorker
            | StoreMethod::Prune
            | StoreMethod::Job
            | StoreMethod::List
            | StoreMethod::Turns
            | StoreMethod::NewestAbout
            | StoreMethod::Steps
            | StoreMethod::ForgetRuns
            | StoreMethod::StepOutputs
            | StoreMethod::Page
            | StoreMethod::Conversations
            | StoreMethod::Counts
            | StoreMethod::LedgerRows
            | StoreMethod::Spend
            | StoreMethod::Changes => {}
        }
    }

    async fn insert(&self, mut insert: Insert) -> Result<InsertOutcome, StoreError> {
        // Only inserted, as if the process had no worker for it.
        insert.initial_worker =
            insert.initial_worker.filter(|_| self.point != KillPoint::AfterInsert);
        let inserted = self.store.insert(insert).await?;
        if let InsertOutcome::New(Job { checkpoint: Checkpoint::Beginning { .. }, .. }) = &inserted
        {
            self.reach(KillPoint::AfterBeginning);
        }
        Ok(inserted)
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let claimed = self.store.claim(worker, profiles, lease).await?;
        if claimed.is_some() {
            self.reach(KillPoint::AfterClaim);
        }
        Ok(claimed)
    }

    async fn claim_by_id(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let claimed = self.store.claim_by_id(worker, profiles, id, lease).await?;
        if claimed.is_some() {
            self.reach(KillPoint::AfterClaim);
        }
        Ok(claimed)
    }

    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        if let Checkpoint::Running(run) = checkpoint {
            self.reach(KillPoint::AfterAnswer);
            if run.cursor.as_deref() == Some(SENT) {
                self.reach(KillPoint::BeforeSent);
            }
        }
        self.store.checkpoint(lease, checkpoint).await?;
        match checkpoint {
            Checkpoint::NotBegun => {}
            Checkpoint::Beginning { .. } => self.reach(KillPoint::AfterBeginning),
            Checkpoint::Running(run) => {
                self.reach(KillPoint::AfterRunning);
                if run.cursor.as_deref().is_some_and(|cursor| cursor.starts_with(SENDING)) {
                    self.reach(KillPoint::AfterSending);
                }
            }
        }
        Ok(())
    }

    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError> {
        self.reach(KillPoint::BeforeSettle);
        self.store.settle(lease, settlement).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scripts and the fixtures of earlier versions name them.
    #[test]
    fn kill_points_keep_their_names() {
        let points = KillPoint::value_variants().iter().filter_map(KillPoint::to_possible_value);
        let names: Vec<_> = points.map(|point| point.get_name().to_owned()).collect();
        let expected = [
            "after-insert",
            "after-counting",
            "after-notifying",
            "after-files",
            "after-claim",
            "after-beginning",
            "after-spawn",
            "after-answer",
            "after-running",
            "after-sending",
            "before-sent",
            "before-settle",
            "after-settle",
        ];
        assert_eq!(names, expected);
    }
}
