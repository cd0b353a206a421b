//! The other calls of the engine's handle: reads, watches of one job, held calls, and upkeep.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_core::conversation::Conversation;
use outlast_core::{
    ChangeWait, Changes, ClaimedJob, ConversationId, ConversationPage, ConversationQuery,
    InitialWorker, Job, JobId, JobPage, JobQuery, JobState, JournalStep, Key, Lease, LedgerRow,
    NewJob, OwnerId, Profile, Prune, PruneOutcome, Request, RescueBy, Resend, ResolveOutcome, Rev,
    Scope, SpendQuery, SpendSum, Standing, StateCount, StateKind, StepDecision, StepOutput, Store,
    StoreError, Takeover, Timestamp, Visibility, Waits,
};
use thiserror::Error;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::engine::{Engine, Predecessor, StartOutcome};
use crate::options::{Options, Providers};
use crate::shared::{RequestForecast, Shared};
use crate::shutdown::Shutdown;
use crate::wakeups::{HeldStart, Wakeups, Watcher};
use crate::wind_downs::WindDowns;
use crate::{follower, idle, leaving, remote_stops};

/// The maximum delay with which a process without a worker notices that another process has crashed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A job at the moment when it was read.
#[derive(Clone, Debug)]
pub struct JobSnapshot {
    pub job: Job,
    /// The store's clock at that moment.
    pub now: Timestamp,
    /// The reason why it is queued, if it is.
    pub waits: Option<Waits>,
}

impl JobSnapshot {
    /// Returns the state of the job, in words (P4).
    pub fn read_standing(&self) -> Standing<'_> {
        Standing::new(&self.job, self.waits)
    }
}

/// The reason why a poll has no answer.
#[derive(Debug, Error)]
pub enum PollError {
    /// Too many callers wait already, in total or for this job; ask again later.
    #[error("too many polls are waiting")]
    TooManyPolls,
    /// The job cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One caller's view of one job; counts as a waiting poll until it is dropped.
pub struct JobWatch {
    engine: Engine,
    scope: Scope,
    id: JobId,
    watcher: Option<Watcher>,
    /// True if a change was received but not read yet: a caller that drops the read must not lose it, least of all
    /// the end.
    unread: bool,
}

impl Engine {
    /// Creates an engine over an open store. The returned task follows the store's changes and ends when `stop` is
    /// asked.
    pub async fn new(
        store: Arc<dyn Store>,
        providers: Providers,
        options: Options,
        stop: Shutdown,
    ) -> Result<(Self, JoinHandle<()>), StoreError> {
        // Read before a caller can wait for a job, so that no change is missed in between.
        let rev: Rev = store.rev().await?;
        let wakeups = Arc::new(Wakeups::default());
        let follower = crate::spawn(follower::follow(
            Arc::clone(&store),
            Arc::clone(&wakeups),
            rev,
            stop.clone(),
        ));
        providers.values().for_each(|provider| provider.set_id_store(&store));
        let shared =
            Shared { store, providers, options, wakeups, stop, wind_downs: WindDowns::default() };
        Ok((Self { shared: Arc::new(shared) }, follower))
    }

    /// Starts a job that repeats an ended one. It resumes the run that `ended` left behind, if it left one. A command
    /// begins again and keeps its finished steps.
    ///
    /// With the owner's consent ([`Resend::Allow`]) it begins another run, whatever the outcome of the first. A run
    /// that has a journal goes on in either case, because nothing of it is bought twice; the consent is for its open
    /// steps.
    pub async fn start_after(
        &self,
        ended: &Job,
        job: NewJob,
        key: Option<Key>,
        consent: Resend,
    ) -> Result<StartOutcome, StoreError> {
        let predecessor = match (ended.journaled_run(), ended.run_left(), consent) {
            (Some(_), _, open_steps) => {
                Predecessor::Journal(Takeover { job: ended.id, open_steps })
            }
            (None, Some(run), Resend::Refuse) => Predecessor::Run(run.clone()),
            (None, _, open_steps) if ended.may_leave_steps() => {
                Predecessor::Journal(Takeover { job: ended.id, open_steps })
            }
            (None, Some(_), Resend::Allow) | (None, None, _) => Predecessor::None,
        };
        self.insert(job, key, predecessor, None).await
    }
}

/// Reads.
impl Engine {
    /// Returns the time of the store's clock.
    pub fn now(&self) -> Timestamp {
        self.shared.store.now()
    }

    /// Returns the job; `None` if the caller has no such job.
    pub async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.shared.store.job(scope, id).await
    }

    /// Returns the job, and the reason why it waits if it does; `None` if the caller has no such job. Never waits.
    pub async fn read(&self, scope: &Scope, id: &JobId) -> Result<Option<JobSnapshot>, StoreError> {
        let Some(job) = self.job(scope, id).await? else { return Ok(None) };
        let now = self.now();
        let waits = self.waits(&job, now).await?;
        Ok(Some(JobSnapshot { job, now, waits }))
    }

    async fn waits(&self, job: &Job, now: Timestamp) -> Result<Option<Waits>, StoreError> {
        let JobState::Queued { run_at } = job.state else { return Ok(None) };
        if job.new.visibility == Visibility::Unpromised {
            // Not in the queue: the process that accepted the call runs it, whatever workers there are.
            return Ok(None);
        }
        Ok(Some(if !self.shared.store.has_worker(&job.new.profile).await? {
            Waits::ForAWorker
        } else if run_at > now {
            Waits::Until(run_at)
        } else {
            Waits::ForItsTurn { ahead: self.shared.store.queue_position(&job.id).await? }
        }))
    }

    /// Returns the ledger rows of a job's paid runs, oldest first.
    pub async fn ledger_rows(
        &self,
        scope: &Scope,
        id: &JobId,
    ) -> Result<Vec<LedgerRow>, StoreError> {
        self.shared.store.ledger_rows(scope, id).await
    }

    /// Returns the recorded steps of a job, without their outputs, in the order of their start.
    pub async fn steps(&self, scope: &Scope, id: &JobId) -> Result<Vec<JournalStep>, StoreError> {
        self.shared.store.steps(scope, id).await
    }

    /// Returns the outputs of the ended steps of these kinds, in the order of their start.
    pub async fn step_outputs(
        &self,
        scope: &Scope,
        id: &JobId,
        kinds: &[&str],
    ) -> Result<Vec<StepOutput>, StoreError> {
        self.shared.store.step_outputs(scope, id, kinds).await
    }

    /// Records the decision of a person about an interrupted step; see [`Store::resolve_step`].
    pub async fn resolve_step(
        &self,
        scope: &Scope,
        id: &JobId,
        key: &str,
        decision: StepDecision,
    ) -> Result<ResolveOutcome, StoreError> {
        self.shared.store.resolve_step(scope, id, key, decision).await
    }

    /// Returns what is known of a request before it is made.
    pub fn expects(&self, profile: &Profile, request: &Request) -> RequestForecast {
        self.shared.expects(profile, request)
    }

    /// Returns whether this process has the provider for jobs of this profile.
    pub fn has_provider(&self, profile: &Profile) -> bool {
        self.shared.providers.contains_key(profile)
    }

    /// Returns whether a live worker that claims jobs of this profile from the queue is known.
    pub async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        self.shared.store.has_worker(profile).await
    }

    /// Returns the value that [`Engine::put_setting`] stored under this name.
    pub async fn get_setting(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.shared.store.get_setting(name).await
    }

    /// Stores a value under a name until it is replaced.
    pub async fn put_setting(&self, name: &str, value: &str) -> Result<(), StoreError> {
        self.shared.store.put_setting(name, value).await
    }

    /// Stores a value under a name that has none, and returns the value that the name has then.
    pub async fn create_setting(&self, name: &str, value: &str) -> Result<String, StoreError> {
        self.shared.store.create_setting(name, value).await
    }

    /// Returns a conversation with the turns that may be shown; `None` if the owner has no such conversation.
    pub async fn conversation(
        &self,
        owner: &OwnerId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        let turns = self.shared.store.turns(&Scope::Owner(owner.clone()), id).await?;
        Ok(Conversation::from_turns(id.clone(), turns))
    }

    /// Returns the owner's conversations, newest first.
    pub async fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        self.shared.store.conversations(owner, query).await
    }

    /// Returns the caller's jobs, newest first.
    pub async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError> {
        self.shared.store.list(scope, query).await
    }

    /// Counts the jobs in each state, at most `at_most` in each (I2).
    pub async fn counts(&self, scope: &Scope, at_most: u32) -> Result<Vec<StateCount>, StoreError> {
        self.shared.store.counts(scope, at_most).await
    }

    /// Returns the number of the latest change, from which a caller can start to follow [`Engine::changes`].
    pub async fn rev(&self) -> Result<Rev, StoreError> {
        self.shared.store.rev().await
    }

    /// Waits until something changed after `after`, and returns the changes; see [`outlast_core::Store::changes`].
    pub async fn changes(&self, after: Rev, wait: ChangeWait) -> Result<Changes, StoreError> {
        self.shared.store.changes(after, wait).await
    }

    /// Returns the amounts spent, by key (G6).
    pub async fn spend(
        &self,
        scope: &Scope,
        query: &SpendQuery,
    ) -> Result<Vec<SpendSum>, StoreError> {
        self.shared.store.spend(scope, query).await
    }
}

/// Watches: a caller follows one job change by change, to show its progress. [`Engine::poll`] is for callers that want its
/// end alone.
impl Engine {
    /// Returns the job and a watch of its later changes; `None` if the caller has no such job.
    pub async fn watch(
        &self,
        scope: &Scope,
        id: &JobId,
    ) -> Result<Option<(JobSnapshot, JobWatch)>, PollError> {
        let watcher = self.shared.wakeups.watch(scope, *id, self.shared.options.polls);
        let Some(reading) = self.read(scope, id).await? else { return Ok(None) };
        // A finished job is returned however many callers wait: nothing will change, so nothing is watched.
        if watcher.is_none() && !reading.job.state.kind().is_terminal() {
            return Err(PollError::TooManyPolls);
        }
        let watch = JobWatch {
            engine: self.clone(),
            scope: scope.clone(),
            id: *id,
            watcher,
            unread: false,
        };
        Ok(Some((reading, watch)))
    }

    /// Waits until no attempt of this process waits for the answers to its last steps. Cancel-safe.
    pub async fn wait_for_wind_downs(&self) {
        self.shared.wind_downs.wait_for_end().await;
    }

    /// Waits until the shutdown is requested. Cancel-safe.
    pub async fn begin_leaving(&self) {
        self.shared.stop.wait().await;
    }
}

impl JobWatch {
    /// Waits until the job has changed and reads it; `None` if it was removed. Cancel-safe: a change is not lost,
    /// only read again.
    pub async fn next_change(&mut self) -> Result<Option<JobSnapshot>, PollError> {
        if !self.unread {
            match &mut self.watcher {
                Some(watcher) => watcher.next_change().await,
                None => std::future::pending().await,
            }
            self.unread = true;
        }
        let end = self.watcher.as_ref().and_then(|watcher| watcher.end.get().cloned());
        let reading = match end {
            Some(job) => Some(JobSnapshot { job, now: self.engine.now(), waits: None }),
            None => self.engine.read(&self.scope, &self.id).await?,
        };
        self.unread = false;
        Ok(reading)
    }
}

/// Held calls: the caller waits for the result, so this process runs the job past the queue.
impl Engine {
    /// Starts a held call, or attaches to the same call made before: while its job is unfinished, and for a while
    /// after its end.
    pub async fn start_held(&self, job: NewJob, key: Key) -> Result<StartOutcome, StoreError> {
        let carrier = self.carrier(&job);
        let started = match carrier {
            Some(carrier) => {
                // A separate task: a caller that disconnects must not leave a held job without an attempt.
                let starting = self.clone().start_carried(job, key, carrier);
                let started = crate::spawn(starting).await;
                started.map_err(|error| StoreError::Unavailable(error.into()))??
            }
            None => self.start(job, Some(key)).await?,
        };
        let state = started.job.state.kind();
        if state.is_terminal() || (!started.existed && state == StateKind::Running) {
            return Ok(started);
        }
        if started.existed {
            // The process that ran the job may have crashed. If so, the job is queued from now on, and this process
            // claims it.
            self.find_dead_workers().await;
        }
        // This includes a promised job in the queue: a caller waits here for it, so it does not wait for a slot.
        self.carry(&started.job.id);
        Ok(started)
    }

    /// Polls a held call that this caller has just made. If this process runs it, nothing is read: its
    /// end is reported here first.
    pub async fn poll_own(
        &self,
        scope: &Scope,
        id: &JobId,
        budget: Duration,
    ) -> Result<Option<JobSnapshot>, PollError> {
        self.wait(scope, id, budget, true).await
    }

    /// Returns this process's worker, if it can run the job from the start. A promised job waits for its turn in the
    /// queue.
    fn carrier(&self, job: &NewJob) -> Option<InitialWorker> {
        if job.visibility.goes_through_queue() || !self.has_provider(&job.profile) {
            return None;
        }
        let worker = self.shared.wakeups.carrier()?;
        Some(InitialWorker { worker, lease: self.shared.options.lease })
    }

    async fn start_carried(
        self,
        job: NewJob,
        key: Key,
        carrier: InitialWorker,
    ) -> Result<StartOutcome, StoreError> {
        let (worker, since) = (carrier.worker.clone(), Instant::now());
        let started = self.insert(job, Some(key), Predecessor::None, Some(carrier)).await?;
        if !started.existed && started.job.state.kind() == StateKind::Running {
            let job = started.job.clone();
            let lease = Lease { job: job.id, worker, fence: job.fence };
            let taken = HeldStart { claimed: ClaimedJob { job, lease }, since };
            if let Err(lease) = self.shared.wakeups.hand_over(taken) {
                // The worker has shut down.
                leaving::release_unsent(&self.shared, &lease).await;
            }
        }
        Ok(started)
    }

    /// Runs the job in this process if it is a held call. A promised job stays in the queue, for its slot.
    pub fn carry_if_held(&self, job: &Job) {
        if !job.new.visibility.goes_through_queue() {
            self.carry(&job.id);
        }
    }

    /// Runs this job in this process now, even past the queue, for a caller who waits for it here.
    pub fn carry(&self, id: &JobId) {
        self.shared.wakeups.carry(*id);
    }

    /// Records that a call was answered with the outcome of this job.
    pub async fn record_answer(&self, id: &JobId) -> Result<(), StoreError> {
        self.shared.store.record_answer(id).await
    }

    /// Records the answer without waiting for the write: every later request of this process to the store finds it
    /// recorded. If it cannot be stored, the outcome is replayed once more than necessary.
    pub fn record_answer_soon(&self, id: &JobId) {
        let (shared, id) = (Arc::clone(&self.shared), *id);
        let mut recording = Box::pin(async move {
            if let Err(error) = shared.store.record_answer(&id).await {
                tracing::warn!(job.id = %id, %error, "not recorded that a call was answered");
            }
        });
        // The request reaches the store here and now, so that no other request precedes it.
        if recording.as_mut().now_or_never().is_none() {
            crate::spawn(recording);
        }
    }
}

/// Upkeep, which serves no job: looks, removals, pending stops, dead workers.
impl Engine {
    /// Looks for changes now, because another process reported one.
    pub fn look_now(&self) {
        self.shared.wakeups.look_now();
    }

    /// Makes this process's worker look for jobs again, whatever it found before.
    pub fn look_for_jobs(&self) {
        self.shared.wakeups.publish_due();
    }

    /// Returns whether neither a job nor a pending stop is left for a worker with this engine's providers.
    pub async fn is_idle(&self) -> bool {
        let profiles: Vec<Profile> = self.shared.providers.keys().cloned().collect();
        idle::nothing_left(&self.shared, &profiles).await
    }

    /// Removes finished jobs for good.
    pub async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<PruneOutcome, StoreError> {
        self.shared.prune(scope, prune).await
    }

    /// Performs the pending stop of a cancelled job, if this process has its provider: asks once, checks the run and
    /// records the outcome. A run that the provider does not stop continues, so that another job may resume it.
    /// Returns the job after that.
    pub async fn settle_stop(&self, job: Job) -> Result<Job, StoreError> {
        remote_stops::settle_stop(&self.shared, job).await
    }

    /// Returns the jobs of workers that are known to be dead to the queue, so that later reads are correct. Best
    /// effort: a store that cannot be written is read as it is.
    pub async fn find_dead_workers(&self) {
        if let Err(error) = self.shared.store.rescue(&RescueBy::DeadProcess).await {
            tracing::warn!(%error, "dead workers cannot be looked for");
        }
    }

    /// Repeats [`Engine::find_dead_workers`] in a process whose workers do not do so. Never ends.
    pub async fn keep_finding_dead_workers(&self) {
        loop {
            self.find_dead_workers().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
