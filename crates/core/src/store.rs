//! The port to where jobs live.
//!
//! A method is a whole domain step, atomic and durable on return unless it says otherwise. An adapter locks,
//! loads, asks [`crate::rules`], saves; it decides nothing. `outlast_testkit::store_suite` is this text made
//! executable, and every adapter passes it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::rules::KeyRecord;
use crate::{
    BudgetRefusal, ChangeWait, Changes, Checkpoint, Claimed, ClaimedNotice, ConversationId,
    ConversationPage, ConversationQuery, Cost, Failure, Job, JobId, JobPage, JobQuery, Key, Lease,
    LedgerRow, NewJob, NoticeClaim, NoticeOutcome, Output, OwnerId, Profile, Progress, RemoteRun,
    RemoteStop, Reservation, Rev, SpendQuery, SpendSum, StateCount, Timestamp, WorkerId,
};

/// Where jobs live.
#[async_trait]
pub trait Store: Send + Sync {
    /// The present moment by the clock that dates everything here.
    fn now(&self) -> Timestamp;

    /// The number of the latest change: where to start following [`Store::changes`].
    async fn rev(&self) -> Result<Rev, StoreError>;

    /// Makes a job durable, or finds the one its key already names.
    ///
    /// Key, busy conversation and quota are decided in the same step as the insert: of two callers at once,
    /// exactly one creates. A held research call ([`crate::Key::identity`]) finds the newest job of the same call, an
    /// unfinished one first, or the one that the previous form of its key names if the previous version made it
    /// ([`crate::rules::newest_call`]). A call whose key no longer names a job that left a run behind takes that run up
    /// ([`crate::rules::earlier`]), unless [`Insert::takes_up`] names another. A call that gives out the id of a held job
    /// makes it a promised one ([`crate::rules::promise`]). Refusals, in this order: [`StoreError::KeyConflict`],
    /// [`StoreError::ConversationBusy`], [`StoreError::TooManyJobs`], [`StoreError::TooManyBytes`],
    /// [`StoreError::BudgetExceeded`].
    ///
    /// A paid job is entered into the ledger in the same step ([`crate::LedgerRow`]). A run that is taken up is paid for already:
    /// its row moves to the new job. Every later step of the job changes its row as [`crate::rules::charge`] says.
    async fn insert(&self, insert: Insert) -> Result<Inserted, StoreError>;

    /// Gives `worker` the next job it can run and raises its fence. Slots are shared between owners: the owner whose
    /// turn it is ([`crate::rules::Turn`]) is served, with the job of highest priority, then the oldest.
    ///
    /// Of many callers at once one wins; the others get `None` or another job, never an error. A crash after
    /// this leaves a running job that [`Store::rescue`] puts back.
    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Gives `worker` this job, promised or not, if it is in the state Queued, due, and of one of these profiles; raises its
    /// fence. `None` otherwise. The worker is not known for the profiles by this: it takes nothing from the queue.
    async fn take(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Held calls of these profiles in the state Queued: no process carries them, or one is about to.
    async fn orphans(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError>;

    /// Extends these leases by `lease` from now and returns the jobs whose lease is lost.
    ///
    /// Matches the fence, never the clock: a late renewal of a lease that no other worker took over is valid.
    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError>;

    /// Records how far the work has come, for the worker that goes on after a crash.
    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError>;

    /// Shows progress. Readers see it soon; a crash may lose it.
    async fn note(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError>;

    /// Shows the text that the try has written so far, in the place of what was shown before; the job has it until the try
    /// ends (G8). A crash may lose it. Not a change: no rev is taken.
    async fn show_text(&self, lease: &Lease, text: &str) -> Result<(), StoreError>;

    /// Ends a try: state and output in one write. The lease is over, whatever the settlement.
    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError>;

    /// Ends an unfinished job at once, drops its lease and records whether a remote stop is owed.
    ///
    /// If the job's own end was committed first, that stands and comes back as [`Cancelled::Already`].
    async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<Cancelled, StoreError>;

    /// Puts the jobs of dead workers back to the state Queued; spends no attempt.
    async fn rescue(&self, dead: &Dead) -> Result<Rescued, StoreError>;

    /// Records the remote run of a job that was cancelled while its request was on the way.
    ///
    /// Allowed on cancelled jobs only, and presents no lease, because the cancel took it.
    async fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> Result<(), StoreError>;

    /// Remote runs of cancelled jobs that a worker with one of these profiles should stop, oldest job first.
    async fn owed_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError>;

    /// Records the outcome of an owed stop, and what the run cost as far as that is known. [`RemoteStop::Owed`] leaves it
    /// owed, if there is a run to stop.
    async fn record_stop(
        &self,
        id: &JobId,
        outcome: RemoteStop,
        cost: Cost,
    ) -> Result<(), StoreError>;

    /// Gives the caller the notice that has been due longest, for the time of `lease`: until then no other caller gets it,
    /// and after that any caller may, because the one that had it may have died (G7).
    ///
    /// A store that was told so ([`crate::EndNotices`]) keeps a notice ([`crate::rules::notice`]), due at once, in the same
    /// write as each end. Neither a claim nor its outcome is a change: no rev is taken.
    async fn claim_notice(&self, lease: Duration) -> Result<NoticeClaim, StoreError>;

    /// Records what came of a claimed notice. Does nothing where another caller has claimed it since.
    async fn record_notice(
        &self,
        claimed: &ClaimedNotice,
        outcome: NoticeOutcome,
    ) -> Result<(), StoreError>;

    /// Records that a call was answered with the outcome of this job, which shortens how long its key and the identity of
    /// its call are valid ([`crate::KeyLife`]). Only the first answer counts.
    ///
    /// Does nothing to a job without a key, to one that is unfinished, and to one that is gone.
    async fn record_answer(&self, id: &JobId) -> Result<(), StoreError>;

    /// Whether a worker that can run jobs of this profile is known to live.
    ///
    /// A worker is known from its first [`Store::claim`] on, with every profile it claimed for, until it is
    /// dismissed or found dead.
    async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError>;

    /// How many jobs wait in the queue for a worker with one of these profiles, now or later; held calls are not in it.
    async fn queued(&self, profiles: &[Profile]) -> Result<u64, StoreError>;

    /// How many jobs of the same profile in the queue are claimed before this one as things stand: if nothing ends and
    /// no job comes ([`crate::rules::ahead`]). Zero for a job that is not in the queue.
    async fn ahead(&self, id: &JobId) -> Result<u64, StoreError>;

    /// Takes a worker that leaves off the list of the living. What it still holds can be rescued at once.
    async fn dismiss(&self, worker: &WorkerId) -> Result<(), StoreError>;

    /// Removes finished jobs with everything that belongs to them; never an unfinished one, and never one whose
    /// remote run is still owed a stop.
    ///
    /// A conversation goes in one step. The rest goes in small ones, so that no other call waits long for this; a crash
    /// in between leaves each job whole or gone. Not a change: no waiter is woken, no rev is taken.
    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<Pruned, StoreError>;

    /// The job, if `scope` may see it and its retention has not ended. Foreign is the same as unknown.
    async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError>;

    /// Jobs that `scope` may see, newest first.
    async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError>;

    /// How many jobs that `scope` may see are in each state, in the order of [`crate::StateKind::ALL`]; counts no further than
    /// `at_most` in each.
    async fn counts(&self, scope: &Scope, at_most: u32) -> Result<Vec<StateCount>, StoreError>;

    /// The turns of a conversation in order, hidden ones included; empty when `scope` sees no such conversation. As the
    /// operator: of every owner who has one of that name, one after the other.
    async fn turns(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<Job>, StoreError>;

    /// The owner's conversations, those with the newest turn first. Turns hidden from conversation tools (held calls
    /// that have not succeeded) do not count.
    async fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError>;

    /// What was spent on the runs that `scope` may see, by key. The ledger outlives its jobs: rows stay for 400 days, until
    /// [`Prune::Expired`] removes them ([`crate::rules::ledger_removable_until`]).
    async fn spend(&self, scope: &Scope, query: &SpendQuery) -> Result<Vec<SpendSum>, StoreError>;

    /// The rows of a job's paid runs in the ledger, oldest first; none of a job in another scope.
    async fn ledger_rows(&self, scope: &Scope, job: &JobId) -> Result<Vec<LedgerRow>, StoreError>;

    /// What [`Store::keep`] kept under this name.
    async fn kept(&self, name: &str) -> Result<Option<String>, StoreError>;

    /// Keeps `value` under `name`, in place of what was kept there, until it is replaced. Not a change: no rev.
    async fn keep(&self, name: &str, value: &str) -> Result<(), StoreError>;

    /// Waits until something changed after `after`, at most `wait.at_most`, and says what.
    ///
    /// Own changes are seen at once; those of other processes within `wait.look_every`. Level-triggered: nothing
    /// that happened between two calls is missed. Cancel-safe.
    async fn changes(&self, after: Rev, wait: ChangeWait) -> Result<Changes, StoreError>;
}

/// On whose behalf a store is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One owner, who sees only their own.
    Owner(OwnerId),
    /// The person who runs this machine, who sees all owners.
    Operator,
}

impl Scope {
    /// The owner who reads; `None` for the operator.
    pub fn owner(&self) -> Option<&OwnerId> {
        match self {
            Self::Owner(owner) => Some(owner),
            Self::Operator => None,
        }
    }

    /// Whether a job of `owner` is visible here.
    pub fn sees(&self, owner: &OwnerId) -> bool {
        self.owner().is_none_or(|me| me == owner)
    }
}

/// What [`Store::insert`] is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The job.
    pub job: NewJob,
    /// The caller's idempotency key, if there is one.
    pub key: Option<Key>,
    /// How many unfinished jobs this owner may have, this one included.
    pub max_unfinished: u32,
    /// How many bytes this owner may have stored ([`crate::Record::bytes`] of all jobs), this job's request included.
    pub max_bytes: u64,
    /// The provider's run an earlier job left: this one goes on with it and begins none.
    pub takes_up: Option<RemoteRun>,
    /// What it may cost; `None` for a job that is free.
    pub reservation: Option<Reservation>,
    /// Who carries it from the start; `None` for a job that waits until a worker claims or takes it.
    pub carrier: Option<Carrier>,
}

/// A worker that carries a new job from the moment it is made ([`crate::rules::carry`]): one step and one commit in the place of
/// three. A store whose answers can be lost does without: its job is in the state Queued, to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// The worker.
    pub worker: WorkerId,
    /// For how long the job is its own.
    pub lease: Duration,
}

/// Which finished jobs to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prune {
    /// Those whose retention has ended, except for jobs whose key is still valid: they stay, unseen by readers, until
    /// it does no more, so that a call made again under that key finds its job instead of paying for a second.
    Expired,
    /// Those that ended before this moment and belong to no conversation, with their keys.
    EndedBefore(Timestamp),
    /// All turns of this conversation, with their keys. [`StoreError::ConversationBusy`] while one is unfinished,
    /// [`StoreError::NotFound`] when there is none.
    Conversation(ConversationId),
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Jobs removed.
    pub jobs: u32,
    /// When the next of the jobs that are left in this scope can go as [`Prune::Expired`], as far as is known now.
    pub next_expiry: Option<Timestamp>,
}

/// What came of an insert.
#[derive(Clone, Debug, PartialEq)]
pub enum Inserted {
    /// A job was made.
    New(Job),
    /// The key named this one already.
    Existing {
        /// The job.
        job: Job,
        /// The key, as it is kept.
        key: KeyRecord,
    },
}

/// How a try ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    /// The job has its result.
    Succeed {
        /// The result.
        output: Arc<Output>,
        /// The provider's last word as it came: parsers change, money does not come back.
        raw: Option<Arc<Vec<u8>>>,
    },
    /// The try failed; another follows after a wait.
    Retry {
        /// Why.
        failure: Failure,
        /// How long to wait.
        wait: Duration,
        /// Where the next try goes on.
        checkpoint: Checkpoint,
    },
    /// The job failed for good.
    Fail {
        /// Why.
        failure: Failure,
        /// The provider's last word, if there was one.
        raw: Option<Arc<Vec<u8>>>,
    },
    /// The worker gives the job back as it stands; no attempt is spent.
    Release,
}

/// What came of a cancel.
#[derive(Clone, Debug, PartialEq)]
pub enum Cancelled {
    /// This call ended it.
    Now(Job),
    /// It had ended before, and keeps that end.
    Already(Job),
}

/// Whose jobs to rescue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dead {
    /// Workers that the store can prove dead by itself; none where it cannot.
    Proven,
    /// Workers whose lease has ended, as far as [`crate::rules::lease_is_void`] allows.
    LeasesExpired,
    /// One live worker that does not run these jobs although the store says so: those of its jobs whose lease has ended and that
    /// are not among the ones it holds ([`crate::rules::is_unheld`]). Only that worker may ask for it.
    Unheld {
        /// The worker itself.
        worker: WorkerId,
        /// The jobs that it runs.
        held: Vec<JobId>,
    },
}

/// What came of a rescue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    /// Jobs put back.
    pub jobs: u32,
    /// Other workers that still hold jobs, so that it is worth looking again.
    pub watched: u32,
}

/// Any error, kept as a source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a store could not do what it was asked, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The key names a job with other input.
    #[error("the idempotency key belongs to job {0}, which was asked something else")]
    KeyConflict(JobId),
    /// The conversation has an unfinished job.
    #[error("the conversation is busy with job {0}")]
    ConversationBusy(JobId),
    /// The owner has too many unfinished jobs.
    #[error("the owner has too many unfinished jobs")]
    TooManyJobs,
    /// The owner's jobs take all the room one owner may take.
    #[error("the owner's jobs take all the room one owner may take")]
    TooManyBytes,
    /// The job may cost more than may be spent.
    #[error("{0}")]
    BudgetExceeded(BudgetRefusal),
    /// Another worker has the job, or it has ended. The caller's work on it is void.
    #[error("the lease is lost")]
    LeaseLost,
    /// No such job, or not in a state that allows this.
    #[error("no such job")]
    NotFound,
    /// No room; finished jobs can still be read.
    #[error("the store has no room left")]
    Full,
    /// The data is damaged.
    #[error("the store is damaged at {at}")]
    Corrupt {
        /// What was found damaged.
        at: String,
    },
    /// Written by a newer version of this program.
    #[error("the store has schema {schema}, which is newer than this program knows")]
    Newer {
        /// Its schema number.
        schema: u32,
    },
    /// An earlier state of a store that has gone on since: what it has not finished may have been paid for.
    #[error("the store is an older copy: {why}")]
    Outdated {
        /// How that is known.
        why: String,
    },
    /// Cannot be reached just now.
    #[error("the store cannot be used")]
    Unavailable(#[source] BoxError),
    /// The same of an insert that certainly stored nothing.
    #[error("the store cannot be used; no job was stored")]
    NotInserted(#[source] BoxError),
    /// Went away before it said whether this was written.
    #[error("the store did not say whether this was written")]
    Unconfirmed(#[source] BoxError),
    /// The same of an insert, whose job may be found under this id later.
    #[error("the store did not say whether job {job} was written")]
    InsertUnconfirmed {
        /// The id under which it may have been stored.
        job: JobId,
        /// The cause.
        #[source]
        source: BoxError,
    },
}
