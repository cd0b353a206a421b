//! A memory store that fails or delays its caller when a test requests it, and records every call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    ChangeWait, Changes, Checkpoint, ClaimedJob, ConversationId, EndNotices, Insert, InsertOutcome,
    Job, JobId, Lease, Profile, Progress, RemoteRun, RescueBy, RescueOutcome, Rev, Scope,
    Settlement, Store, StoreError, StoreMethod, StoreWrapper, WorkerId,
};
use outlast_store::MemoryStore;
use outlast_testkit::clock::{START, TokioClock};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The methods that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Method {
    Rev,
    Insert,
    Claim,
    Take,
    Orphans,
    Renew,
    Checkpoint,
    Note,
    Settle,
    Owe,
    OwedStops,
    Changes,
    Rescue,
    Job,
    /// Its fault takes effect after the read: the result may be old by then.
    Turns,
}

/// The behaviour of the next call.
#[derive(Clone)]
pub(crate) enum Mood {
    /// The store is full; nothing is written.
    Full,
    /// The store cannot be reached; nothing is written.
    Unavailable,
    /// The write happens, and its answer is lost.
    AnswerLost,
    /// The store has a defect.
    Panics,
    /// The caller waits for this; then the call succeeds.
    After(Arc<Notify>),
}

impl Mood {
    /// The call succeeds at once. Later calls use the moods that follow.
    pub(crate) fn ready() -> Self {
        let notify = Arc::new(Notify::new());
        notify.notify_one();
        Self::After(notify)
    }
}

pub(crate) struct Moody {
    pub(crate) clock: Arc<TokioClock>,
    inner: MemoryStore,
    moods: Mutex<HashMap<Method, Vec<Mood>>>,
    calls: Mutex<Vec<(Method, Instant)>>,
    looking: Mutex<u32>,
    claimants: Mutex<Vec<WorkerId>>,
}

impl Moody {
    pub(crate) fn new() -> Arc<Self> {
        let clock = Arc::new(TokioClock::new(START));
        Arc::new(Self {
            inner: MemoryStore::new(clock.clone()).with_notices(EndNotices::Kept),
            clock,
            moods: Mutex::default(),
            calls: Mutex::default(),
            looking: Mutex::default(),
            claimants: Mutex::default(),
        })
    }

    /// Sets the behaviour of the next calls of `method`, in order. Calls after these succeed.
    pub(crate) fn next(&self, method: Method, moods: impl IntoIterator<Item = Mood>) {
        self.moods.lock().unwrap().entry(method).or_default().extend(moods);
    }

    /// Returns the times of the calls of `method`.
    pub(crate) fn calls(&self, method: Method) -> Vec<Instant> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(called, _)| *called == method).map(|(_, at)| *at).collect()
    }

    /// Returns the workers that won the claims so far, in order.
    pub(crate) fn claimants(&self) -> Vec<WorkerId> {
        self.claimants.lock().unwrap().clone()
    }

    /// Returns the number of callers that look for changes at present.
    pub(crate) fn looking(&self) -> u32 {
        *self.looking.lock().unwrap()
    }

    async fn mood(&self, method: Method) -> Result<Option<Mood>, StoreError> {
        self.calls.lock().unwrap().push((method, Instant::now()));
        let mood = {
            let mut moods = self.moods.lock().unwrap();
            moods.get_mut(&method).filter(|moods| !moods.is_empty()).map(|moods| moods.remove(0))
        };
        match mood {
            Some(Mood::Panics) => panic!("moody"),
            Some(Mood::Full) => Err(StoreError::Full),
            Some(Mood::Unavailable) => Err(unavailable()),
            Some(Mood::After(notify)) => {
                notify.notified().await;
                Ok(None)
            }
            Some(Mood::AnswerLost) | None => Ok(mood),
        }
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("moody".into())
}

fn answered<T>(mood: Option<Mood>, result: Result<T, StoreError>) -> Result<T, StoreError> {
    match mood {
        Some(_) => result.and(Err(unavailable())),
        None => result,
    }
}

struct Looking<'a>(&'a Moody);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        *self.0.looking.lock().unwrap() -= 1;
    }
}

#[async_trait]
impl StoreWrapper for Moody {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn after(&self, _: StoreMethod, _: Option<&StoreError>) {}

    async fn rev(&self) -> Result<Rev, StoreError> {
        let mood = self.mood(Method::Rev).await?;
        answered(mood, self.inner.rev().await)
    }

    async fn insert(&self, insert: Insert) -> Result<InsertOutcome, StoreError> {
        let mood = self.mood(Method::Insert).await?;
        answered(mood, self.inner.insert(insert).await)
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let mood = self.mood(Method::Claim).await?;
        let claimed = answered(mood, self.inner.claim(worker, profiles, lease).await)?;
        if claimed.is_some() {
            self.claimants.lock().unwrap().push(worker.clone());
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
        let mood = self.mood(Method::Take).await?;
        answered(mood, self.inner.claim_by_id(worker, profiles, id, lease).await)
    }

    async fn unclaimed_held_calls(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError> {
        let mood = self.mood(Method::Orphans).await?;
        answered(mood, self.inner.unclaimed_held_calls(profiles).await)
    }

    async fn turns(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<Job>, StoreError> {
        let turns = self.inner.turns(scope, conversation).await;
        self.mood(Method::Turns).await?;
        turns
    }

    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError> {
        let mood = self.mood(Method::Renew).await?;
        answered(mood, self.inner.renew(leases, lease).await)
    }

    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let mood = self.mood(Method::Checkpoint).await?;
        answered(mood, self.inner.checkpoint(lease, checkpoint).await)
    }

    async fn show_progress(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError> {
        let mood = self.mood(Method::Note).await?;
        answered(mood, self.inner.show_progress(lease, progress).await)
    }

    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError> {
        let mood = self.mood(Method::Settle).await?;
        answered(mood, self.inner.settle(lease, settlement).await)
    }

    async fn rescue(&self, dead: &RescueBy) -> Result<RescueOutcome, StoreError> {
        let mood = self.mood(Method::Rescue).await?;
        answered(mood, self.inner.rescue(dead).await)
    }

    async fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> Result<(), StoreError> {
        let mood = self.mood(Method::Owe).await?;
        answered(mood, self.inner.record_late_run(id, run).await)
    }

    async fn pending_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError> {
        let mood = self.mood(Method::OwedStops).await?;
        answered(mood, self.inner.pending_stops(profiles, limit).await)
    }

    async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.mood(Method::Job).await?;
        self.inner.job(scope, id).await
    }

    async fn changes(&self, after: Rev, wait: ChangeWait) -> Result<Changes, StoreError> {
        *self.looking.lock().unwrap() += 1;
        let _looking = Looking(self);
        let mood = self.mood(Method::Changes).await?;
        answered(mood, self.inner.changes(after, wait).await)
    }
}
