//! The writes of an engine to its store that observers are notified of.

use outlast_core::{
    AnswerOutcome, CancelOutcome, Checkpoint, ClaimedJob, Cost, Job, JobId, Lease, Profile,
    Progress, Prune, PruneOutcome, RemoteRun, RemoteStop, Scope, Settlement, StoreError,
    StoreEvent, WorkerId,
};

use crate::shared::Shared;

impl Shared {
    /// Claims a job from the queue. A claim writes nothing if there is no job.
    pub(crate) async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let claimed = self.store.claim(worker, profiles, self.options.lease).await;
        let observers = &self.options.observers;
        match &claimed {
            Ok(Some(ClaimedJob { job, .. })) => {
                observers.notify(StoreEvent::Claimed { job, now: self.store.now() }).await;
            }
            Ok(None) => {}
            Err(error) => observers.notify(StoreEvent::WriteFailed(error)).await,
        }
        claimed
    }

    /// Claims a job by its id.
    pub(crate) async fn take(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let taken = self.store.claim_by_id(worker, profiles, id, self.options.lease).await?;
        if let Some(ClaimedJob { job, .. }) = &taken {
            self.options.observers.notify(StoreEvent::Taken(job)).await;
        }
        Ok(taken)
    }

    /// Renews leases, of which there is at least one; returns the jobs whose lease is lost.
    pub(crate) async fn renew(&self, leases: &[Lease]) -> Result<Vec<JobId>, StoreError> {
        let renewed = self.store.renew(leases, self.options.lease).await;
        let event = |lost| StoreEvent::Renewed { lost };
        self.options.observers.notify_result(&renewed, |lost| event(lost)).await;
        renewed
    }

    pub(crate) async fn checkpoint(
        &self,
        lease: &Lease,
        checkpoint: &Checkpoint,
    ) -> Result<(), StoreError> {
        let written = self.store.checkpoint(lease, checkpoint).await;
        self.options.observers.notify_result(&written, |()| StoreEvent::Checkpointed).await;
        written
    }

    /// Shows progress, which may be lost.
    pub(crate) async fn note(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError> {
        self.store.show_progress(lease, progress).await?;
        self.options.observers.notify(StoreEvent::Noted).await;
        Ok(())
    }

    pub(crate) async fn settle(
        &self,
        lease: &Lease,
        settlement: &Settlement,
    ) -> Result<Job, StoreError> {
        let settled = self.store.settle(lease, settlement.clone()).await;
        let event = |job| StoreEvent::Settled { job, settlement };
        self.options.observers.notify_result(&settled, event).await;
        settled
    }

    pub(crate) async fn cancel(
        &self,
        scope: &Scope,
        id: &JobId,
    ) -> Result<CancelOutcome, StoreError> {
        let cancelled = self.store.cancel(scope, id).await;
        self.options.observers.notify_result(&cancelled, StoreEvent::Cancelled).await;
        cancelled
    }

    pub(crate) async fn answer(
        &self,
        scope: &Scope,
        id: &JobId,
        question: Option<&str>,
        text: &str,
    ) -> Result<AnswerOutcome, StoreError> {
        let answered = self.store.answer(scope, id, question, text).await;
        self.options.observers.notify_result(&answered, StoreEvent::Answered).await;
        answered
    }

    /// Removes finished jobs. Observers are notified of a conversation alone, before and after.
    pub(crate) async fn prune(
        &self,
        scope: &Scope,
        prune: &Prune,
    ) -> Result<PruneOutcome, StoreError> {
        let Prune::Conversation(conversation) = prune else {
            return self.store.prune(scope, prune).await;
        };
        self.options.observers.notify(StoreEvent::Deleting { scope, conversation }).await;
        let pruned = self.store.prune(scope, prune).await;
        self.options.observers.notify(StoreEvent::Deleted { conversation }).await;
        pruned
    }

    pub(crate) async fn record_late_run(
        &self,
        id: &JobId,
        run: &RemoteRun,
    ) -> Result<(), StoreError> {
        let written = self.store.record_late_run(id, run).await;
        self.options.observers.notify_result(&written, |()| StoreEvent::StopRecorded).await;
        written
    }

    pub(crate) async fn record_stop(
        &self,
        id: &JobId,
        outcome: RemoteStop,
        cost: Cost,
    ) -> Result<(), StoreError> {
        let written = self.store.record_stop(id, outcome, cost).await;
        self.options.observers.notify_result(&written, |()| StoreEvent::StopRecorded).await;
        written
    }
}
