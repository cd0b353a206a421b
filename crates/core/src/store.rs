//! The port to the database of jobs.
//!
//! Each method is one whole domain step. It is atomic, and durable on return unless its documentation states
//! otherwise. An adapter locks, loads, asks [`crate::rules`] and saves; it decides nothing.
//! `outlast_testkit::store_suite` is this text in executable form, and every adapter passes it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::rules::KeyRecord;
use crate::{
    AnswerOutcome, BudgetRefusal, ChangeWait, Changes, Checkpoint, ClaimedJob, ClaimedNotice,
    CloseReason, ConversationId, ConversationPage, ConversationQuery, Cost, Failure, Job, JobId,
    JobPage, JobQuery, JournalStep, Key, Lease, LedgerRow, NewJob, NewQuestion, NewStep,
    NoticeClaim, NoticeOutcome, Output, OwnerId, Page, Profile, Progress, Question, RemoteRun,
    RemoteStop, Reservation, ResolveOutcome, Rev, SpendQuery, SpendSum, StateCount, StateKind,
    StepDecision, StepEnd, StepOutput, StepStart, Takeover, Timestamp, WorkerId,
};

/// A database of jobs.
#[async_trait]
pub trait Store: Send + Sync {
    /// Returns the present time by the clock that dates everything in this store.
    fn now(&self) -> Timestamp;

    /// Returns the number of the latest change, from which a caller can start to follow [`Store::changes`].
    async fn rev(&self) -> Result<Rev, StoreError>;

    /// Makes a job durable, or finds the one that its key already names.
    ///
    /// Key, busy conversation and quota are decided in the same step as the insert: of two concurrent callers,
    /// exactly one creates the job. A held research call ([`crate::Key::identity`]) finds the newest job of the same
    /// call, an unfinished one first. If the previous version created the job, the call finds the one that the
    /// previous form of its key names ([`crate::rules::newest_call`]). If the key of a call no longer names a job
    /// that left a run behind, the call resumes that run ([`crate::rules::attach`]), unless [`Insert::resumed_run`]
    /// names another. A call that gives out the id of a held job makes it a promised one ([`crate::rules::promise`]).
    /// Refusals, in this order: [`StoreError::KeyConflict`], [`StoreError::NotFound`]
    /// for an unknown subject, [`StoreError::ConversationBusy`],
    /// [`StoreError::TooManyJobs`], [`StoreError::TooManyBytes`], [`StoreError::BudgetExceeded`].
    ///
    /// A paid job is entered into the ledger in the same step ([`crate::LedgerRow`]). A resumed run is already paid
    /// for: its row moves to the new job. A job that continues a run from its journal ([`Insert::takeover`]) gets the
    /// run, its steps and its pages in the same step, and its row replaces the one of the ended job
    /// ([`crate::rules::release_run`]). Every later step of the job changes its row as [`crate::rules::charge`]
    /// decides.
    async fn insert(&self, insert: Insert) -> Result<InsertOutcome, StoreError>;

    /// Gives `worker` the next job that it can run and raises the job's fence. Owners share the slots: the next owner
    /// in turn ([`crate::rules::Turn`]) is served, with the job of highest priority, then the oldest.
    ///
    /// Of several concurrent callers one wins; the others get `None` or another job, never an error. A crash after
    /// this leaves a running job that [`Store::rescue`] returns to the queue.
    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError>;

    /// Gives `worker` this job, promised or not, if it is in the state Queued, due, and of one of these profiles;
    /// raises its fence. Returns `None` otherwise. This does not register the worker for the profiles: it takes
    /// nothing from the queue.
    async fn claim_by_id(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError>;

    /// Returns the held calls of these profiles in the state Queued: no process runs them, or one is about to.
    async fn unclaimed_held_calls(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError>;

    /// Extends these leases by `lease` from now and returns the jobs whose lease is lost.
    ///
    /// Matches the fence, never the clock: a late renewal is valid if no other worker has claimed the job since.
    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError>;

    /// Records the progress of the work for the worker that continues after a crash.
    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError>;

    /// Shows progress. Readers see it soon; a crash may lose it.
    async fn show_progress(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError>;

    /// Shows the text that the attempt has written so far. It replaces the text that was shown before, and the job
    /// keeps it until the attempt ends (G8). A crash may lose it. Not a change: the rev stays the same.
    async fn show_text(&self, lease: &Lease, text: &str) -> Result<(), StoreError>;

    /// Begins a step of a run, or finds it ([`crate::rules::begin_step`]). [`StepStart::New`] is durable before the
    /// caller sends the request. Not a change: the rev stays the same.
    ///
    /// Refused with [`StoreError::TooManyBytes`] if the run or its owner has no room for another step.
    async fn begin_step(&self, lease: &Lease, step: &NewStep) -> Result<StepStart, StoreError>;

    /// Records the end of a step that this claim has begun ([`crate::rules::end_step`]); the first end is kept. Not a
    /// change: the rev stays the same.
    async fn end_step(&self, lease: &Lease, key: &str, end: &StepEnd) -> Result<(), StoreError>;

    /// Records the decision of a person about a step whose end is not known ([`crate::rules::resolve_step`]). Not a
    /// change: the rev stays the same. It presents no lease, because no worker may have the job.
    ///
    /// Fails with [`StoreError::NotFound`] if `scope` sees no such job.
    async fn resolve_step(
        &self,
        scope: &Scope,
        job: &JobId,
        key: &str,
        decision: StepDecision,
    ) -> Result<ResolveOutcome, StoreError>;

    /// Keeps a page that a run has read ([`crate::rules::save_page`]), unless the owner has it already. It is removed
    /// with the last job that has read it. Not a change: the rev stays the same.
    ///
    /// Refused with [`StoreError::TooManyBytes`] if the run has no room, or the owner, who may have `max_bytes`.
    async fn save_page(&self, lease: &Lease, page: &Page, max_bytes: u64)
    -> Result<(), StoreError>;

    /// Asks the owner of the job a question, or finds it ([`crate::rules::ask`]). It is durable before it is shown.
    async fn ask(&self, lease: &Lease, question: &NewQuestion) -> Result<Question, StoreError>;

    /// Removes the question of this key ([`crate::rules::close_question`]).
    async fn close_question(
        &self,
        lease: &Lease,
        key: &str,
        reason: CloseReason,
    ) -> Result<(), StoreError>;

    /// Answers the open question of a job ([`crate::rules::answer`]): of several callers, the first one. `question` is
    /// its id, if the caller knows which one it answers. It presents no lease: the caller is the owner of the job.
    async fn answer(
        &self,
        scope: &Scope,
        id: &JobId,
        question: Option<&str>,
        text: &str,
    ) -> Result<AnswerOutcome, StoreError>;

    /// Ends an attempt: state and output in one write. The lease ends, whatever the settlement.
    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError>;

    /// Ends an unfinished job at once, drops its lease and records whether a remote stop is pending.
    ///
    /// If the job's own end was committed first, that end is kept and returned as [`CancelOutcome::Already`].
    async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<CancelOutcome, StoreError>;

    /// Returns the jobs of dead workers to the state Queued; spends no attempt.
    async fn rescue(&self, dead: &RescueBy) -> Result<RescueOutcome, StoreError>;

    /// Records the remote run of a job that was cancelled while its request was on the way.
    ///
    /// Allowed on cancelled jobs only. It presents no lease, because the cancel dropped it.
    async fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> Result<(), StoreError>;

    /// Returns the remote runs of cancelled jobs that a worker with one of these profiles should stop, oldest job
    /// first.
    async fn pending_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError>;

    /// Records the outcome of a pending stop, and the cost of the run as far as it is known. With
    /// [`RemoteStop::Owed`] the stop stays pending, if there is a run to stop.
    async fn record_stop(
        &self,
        id: &JobId,
        outcome: RemoteStop,
        cost: Cost,
    ) -> Result<(), StoreError>;

    /// Gives the caller the notice that has been due longest, for the time of `lease`. Until then no other caller
    /// gets it. After that any caller may get it, because the process that had it may have crashed (G7).
    ///
    /// If the store was configured so ([`crate::EndNotices`]), it records a notice ([`crate::rules::notice`]), due at
    /// once, in the same write as each end. Neither a claim nor its outcome is a change: the rev stays the same.
    async fn claim_notice(&self, lease: Duration) -> Result<NoticeClaim, StoreError>;

    /// Records the outcome of a claimed notice. Does nothing if another caller has claimed it since.
    async fn record_notice(
        &self,
        claimed: &ClaimedNotice,
        outcome: NoticeOutcome,
    ) -> Result<(), StoreError>;

    /// Records that a call was answered with the outcome of this job. This shortens the time that its key and the
    /// identity of its call are valid ([`crate::KeyLife`]). Only the first answer counts.
    ///
    /// Does nothing to a job without a key, to an unfinished job, and to a removed one.
    async fn record_answer(&self, id: &JobId) -> Result<(), StoreError>;

    /// Returns whether a live worker that can run jobs of this profile is known.
    ///
    /// A worker is known from its first [`Store::claim`] on, with every profile that it claimed for, until it is
    /// deregistered or found dead.
    async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError>;

    /// Counts the jobs that wait in the queue for a worker with one of these profiles, now or later. Held calls are
    /// not in the queue.
    async fn count_queued(&self, profiles: &[Profile]) -> Result<u64, StoreError>;

    /// Counts the jobs of the same profile in the queue that are claimed before this one if nothing ends and no job
    /// is added ([`crate::rules::jobs_ahead`]). Returns zero for a job that is not in the queue.
    async fn queue_position(&self, id: &JobId) -> Result<u64, StoreError>;

    /// Deregisters a worker that is shutting down. The jobs that it still holds can be rescued at once.
    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError>;

    /// Removes finished jobs with everything that belongs to them, jobs about them included ([`NewJob::subject`]);
    /// otherwise never an unfinished one, and never one whose remote run still has a pending stop.
    ///
    /// A conversation is removed in one step. All other jobs are removed in small steps, so that no other call waits
    /// long for this; a crash in between leaves each job whole or removed. Not a change: no waiter is woken, and the
    /// rev stays the same.
    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<PruneOutcome, StoreError>;

    /// Removes the journals of runs of this provider whose jobs ended before this moment ([`crate::rules::is_forgotten`]):
    /// their steps with the outputs, and the pages that no other job has read. The jobs themselves stay. Returns the
    /// number of these jobs. Not a change: the rev stays the same. A crash leaves each journal whole or removed.
    async fn forget_runs(&self, provider: &str, ended_before: Timestamp)
    -> Result<u32, StoreError>;

    /// Returns the job, if `scope` may see it and its retention has not ended. A foreign job is the same as an
    /// unknown one.
    async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError>;

    /// Returns the jobs that `scope` may see, newest first.
    async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError>;

    /// Counts the jobs in each state that `scope` may see, in the order of [`crate::StateKind::ALL`]; counts at most
    /// `at_most` in each.
    async fn counts(&self, scope: &Scope, at_most: u32) -> Result<Vec<StateCount>, StoreError>;

    /// Returns the turns of a conversation in order, hidden ones included; empty if `scope` sees no such
    /// conversation. For the operator: the turns of every owner who has a conversation of that name, one owner after
    /// the other.
    async fn turns(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<Job>, StoreError>;

    /// Returns the newest job about this one ([`NewJob::subject`]) in one of these states, or in any state if none is
    /// given; `None` if `scope` sees no such job.
    async fn newest_about(
        &self,
        scope: &Scope,
        subject: &JobId,
        states: &[StateKind],
    ) -> Result<Option<Job>, StoreError>;

    /// Returns the recorded steps of a job, without their outputs, in the order of their start, then of their keys;
    /// none for a job in another scope.
    async fn steps(&self, scope: &Scope, job: &JobId) -> Result<Vec<JournalStep>, StoreError>;

    /// Returns the outputs of the ended steps of these kinds, in the order of their start, then of their keys; none for
    /// a job in another scope.
    async fn step_outputs(
        &self,
        scope: &Scope,
        job: &JobId,
        kinds: &[&str],
    ) -> Result<Vec<StepOutput>, StoreError>;

    /// Returns the page of an owner by its digest.
    async fn page(&self, owner: &OwnerId, digest: &[u8; 32]) -> Result<Option<Page>, StoreError>;

    /// Returns the owner's conversations, those with the newest turn first. Turns hidden from conversation tools
    /// (held calls that have not succeeded) do not count.
    async fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError>;

    /// Returns the amounts spent on the runs that `scope` may see, by key. The ledger outlives its jobs: rows stay
    /// for 400 days, until [`Prune::Expired`] removes them ([`crate::rules::ledger_removable_until`]).
    async fn spend(&self, scope: &Scope, query: &SpendQuery) -> Result<Vec<SpendSum>, StoreError>;

    /// Returns the ledger rows of a job's paid runs, oldest first; none for a job in another scope.
    async fn ledger_rows(&self, scope: &Scope, job: &JobId) -> Result<Vec<LedgerRow>, StoreError>;

    /// Returns the value that [`Store::put_setting`] stored under this name.
    async fn get_setting(&self, name: &str) -> Result<Option<String>, StoreError>;

    /// Stores `value` under `name` until it is replaced; replaces an earlier value. Not a change: the rev stays the
    /// same.
    async fn put_setting(&self, name: &str, value: &str) -> Result<(), StoreError>;

    /// Stores `value` under a name that has no value, and returns the value that the name has then: of several processes
    /// that create a setting at once, all get the same value. Not a change: the rev stays the same.
    async fn create_setting(&self, name: &str, value: &str) -> Result<String, StoreError>;

    /// Waits until something changed after `after`, at most `wait.at_most`, and returns the changes.
    ///
    /// This process's own changes are seen at once; those of other processes within `wait.look_every`.
    /// Level-triggered: nothing that happened between two calls is missed. Cancel-safe.
    async fn changes(&self, after: Rev, wait: ChangeWait) -> Result<Changes, StoreError>;
}

/// The jobs that a read of a store may see.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Those of one owner, who sees only their own.
    Owner(OwnerId),
    /// Those of all owners, for the person who runs this machine.
    Operator,
}

impl Scope {
    /// Returns the owner who reads; `None` for the operator.
    pub fn owner(&self) -> Option<&OwnerId> {
        match self {
            Self::Owner(owner) => Some(owner),
            Self::Operator => None,
        }
    }

    /// Returns whether a job of `owner` is visible in this scope.
    pub fn sees(&self, owner: &OwnerId) -> bool {
        self.owner().is_none_or(|me| me == owner)
    }
}

/// The arguments of [`Store::insert`].
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub job: NewJob,
    /// The caller's idempotency key, if there is one.
    pub key: Option<Key>,
    /// The maximum number of this owner's unfinished jobs, including this one.
    pub max_unfinished: u32,
    /// The maximum number of bytes that this owner may have stored ([`crate::Record::bytes`] of all jobs), including
    /// this job's request.
    pub max_bytes: u64,
    /// The provider's run that an earlier job left: this job resumes it and begins none.
    pub resumed_run: Option<RemoteRun>,
    /// The ended job whose run it takes over with its journal. If that job has no such run any more, this job begins
    /// a new one.
    pub takeover: Option<Takeover>,
    /// The amount that it may cost; `None` for a job that is free.
    pub reservation: Option<Reservation>,
    /// The worker that runs it from the start; `None` for a job that waits until a worker claims or takes it.
    pub initial_worker: Option<InitialWorker>,
}

/// A worker that owns a new job from its creation ([`crate::rules::claim_on_insert`]): one step and one commit instead of
/// three. A store whose answers can be lost ignores it: the job is in the state Queued, to be claimed by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitialWorker {
    pub worker: WorkerId,
    /// The time that the job belongs to the worker.
    pub lease: Duration,
}

/// The finished jobs to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prune {
    /// Those whose retention has ended, except for jobs whose key is still valid. Such jobs stay, hidden from
    /// readers, until the key expires, so that a repeated call under that key finds its job instead of paying for a
    /// second.
    Expired,
    /// Those that ended before this moment and do not belong to a conversation, with their keys.
    EndedBefore(Timestamp),
    /// All turns of this conversation, with their keys. Fails with [`StoreError::ConversationBusy`] while one is
    /// unfinished, and with [`StoreError::NotFound`] if there is none.
    Conversation(ConversationId),
}

/// The result of a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneOutcome {
    /// The number of removed jobs.
    pub jobs: u32,
    /// The time when [`Prune::Expired`] can remove the next job in this scope, as far as it is known now.
    pub next_expiry: Option<Timestamp>,
}

/// The result of an insert.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertOutcome {
    /// A new job was created.
    New(Job),
    /// The key already named this job.
    Existing {
        job: Job,
        /// The key, as it is stored.
        key: KeyRecord,
    },
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    Succeed {
        output: Arc<Output>,
        /// The provider's final response, unchanged: a parser can be corrected later, but the money is spent.
        raw: Option<Arc<Vec<u8>>>,
    },
    /// The attempt failed; another follows after a wait.
    Retry {
        failure: Failure,
        /// The wait before the next attempt.
        wait: Duration,
        /// The point from which the next attempt continues.
        checkpoint: Checkpoint,
    },
    /// The job failed for good.
    Fail {
        failure: Failure,
        /// The provider's final response, if there was one.
        raw: Option<Arc<Vec<u8>>>,
    },
    /// The worker returns the job to the queue as it is; no attempt is spent.
    Release,
    /// As [`Settlement::Release`], but no worker claims the job before its open question is answered, or the deadline
    /// of the question is over (M4).
    Wait,
}

/// The result of a cancel.
#[derive(Clone, Debug, PartialEq)]
pub enum CancelOutcome {
    /// This call ended the job.
    Now(Job),
    /// The job had ended before, and keeps that end.
    Already(Job),
}

/// The workers whose jobs to rescue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RescueBy {
    /// Workers that the store itself can prove dead; none if it cannot prove this.
    DeadProcess,
    /// Workers whose lease has ended, as far as [`crate::rules::lease_is_void`] allows.
    ExpiredLease,
    /// One live worker that does not run some of the jobs that the store records for it: those whose lease has ended
    /// and that it does not hold ([`crate::rules::is_unheld`]). Only that worker may request this.
    UnheldByWorker {
        worker: WorkerId,
        /// The jobs that it runs.
        held: Vec<JobId>,
    },
}

/// The result of a rescue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RescueOutcome {
    /// The number of jobs returned to the queue.
    pub jobs: u32,
    /// The number of other workers that still hold jobs; if it is not zero, another check is worthwhile.
    pub watched: u32,
}

/// Any error, kept as a source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a store operation failed, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The key names a job with other input.
    #[error("the idempotency key belongs to job {0}, which was asked something else")]
    KeyConflict(JobId),
    /// The conversation has an unfinished job.
    #[error("the conversation is busy with job {0}")]
    ConversationBusy(JobId),
    #[error("the owner has too many unfinished jobs")]
    TooManyJobs,
    /// The owner's jobs use all the space that one owner may use.
    #[error("the owner's jobs take all the room one owner may take")]
    TooManyBytes,
    /// The job may cost more than may be spent.
    #[error("{0}")]
    BudgetExceeded(BudgetRefusal),
    /// Another worker has the job, or it has ended. The caller's work on it is void.
    #[error("the lease is lost")]
    LeaseLost,
    /// There is no such job, or its state does not allow the operation.
    #[error("no such job")]
    NotFound,
    /// The store has no space left; finished jobs can still be read.
    #[error("the store has no room left")]
    Full,
    /// The data is damaged.
    #[error("the store is damaged at {at}")]
    Corrupt {
        /// The damaged part.
        at: String,
    },
    /// A newer version of this program wrote the store.
    #[error("the store has schema {schema}, which is newer than this program knows")]
    Newer {
        /// Its schema number.
        schema: u32,
    },
    /// The store is an earlier copy of a store that was used after it. Its unfinished jobs may have been paid for
    /// since.
    #[error("the store is an older copy: {why}")]
    Outdated {
        /// The evidence for this.
        why: String,
    },
    /// The store cannot be reached at present.
    #[error("the store cannot be used")]
    Unavailable(#[source] BoxError),
    /// As [`StoreError::Unavailable`], for an insert that certainly stored nothing.
    #[error("the store cannot be used; no job was stored")]
    NotInserted(#[source] BoxError),
    /// The connection was lost before the store confirmed the write.
    #[error("the store did not say whether this was written")]
    Unconfirmed(#[source] BoxError),
    /// As [`StoreError::Unconfirmed`], for an insert. Its job may be found under this id later.
    #[error("the store did not say whether job {job} was written")]
    InsertUnconfirmed {
        /// The id under which the job may have been stored.
        job: JobId,
        #[source]
        source: BoxError,
    },
}
