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
    Checkpoint, Claimed, ConversationId, Failure, Job, JobId, Lease, NewJob, Output, OwnerId,
    Profile, Progress, RemoteRun, RemoteStop, Rev, StateKind, Timestamp, Visibility, WorkerId,
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
    /// exactly one creates. A call whose key no longer holds for a job that left a run behind takes that run up
    /// ([`crate::rules::run_taken_up`]), unless [`Insert::takes_up`] names another. Refusals, in this order: [`StoreError::KeyConflict`],
    /// [`StoreError::ConversationBusy`], [`StoreError::TooManyJobs`], [`StoreError::TooManyBytes`].
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

    /// Gives `worker` this job, promised or not, if it is queued and due and of one of these profiles; raises its
    /// fence. `None` otherwise. The worker is not known for the profiles by this: it takes nothing from the queue.
    async fn take(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Held calls of these profiles that are queued: no process carries them, or one is about to.
    async fn orphans(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError>;

    /// Extends these leases by `lease` from now and returns the jobs whose lease is lost.
    ///
    /// Matches the fence, never the clock: a late renewal of a lease nobody took over still holds.
    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError>;

    /// Records how far the work has come, for whoever has to go on after a crash.
    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError>;

    /// Shows progress. Readers see it soon; a crash may lose it.
    async fn note(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError>;

    /// Ends a try: state and output in one write. The lease is over, whatever the settlement.
    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError>;

    /// Ends an unfinished job at once, drops its lease and records whether a remote stop is owed.
    ///
    /// If the job's own end was committed first, that stands and comes back as [`Cancelled::Already`].
    async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<Cancelled, StoreError>;

    /// Puts the jobs of dead workers back into the queue; spends no attempt.
    async fn rescue(&self, dead: &Dead) -> Result<Rescued, StoreError>;

    /// Records the remote run of a job that was cancelled while its request was on the way.
    ///
    /// Allowed on cancelled jobs only, and presents no lease, because the cancel took it.
    async fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> Result<(), StoreError>;

    /// Remote runs of cancelled jobs that somebody with one of these profiles should stop, oldest job first.
    async fn owed_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError>;

    /// Records what came of an owed stop. [`RemoteStop::Owed`] leaves it owed, if there is a run to stop.
    async fn record_stop(&self, id: &JobId, outcome: RemoteStop) -> Result<(), StoreError>;

    /// Records that a call was answered with the outcome of this job, which shortens how long its key holds
    /// ([`KeyLife`]). Only the first answer counts.
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
    /// A conversation goes in one step. The rest goes in small ones, so that nobody waits long for this; a crash
    /// in between leaves each job whole or gone. Not a change: nobody is woken, no rev is taken.
    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<Pruned, StoreError>;

    /// The job, if `scope` may see it and its retention has not ended. Foreign is the same as unknown.
    async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError>;

    /// Jobs that `scope` may see, newest first.
    async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError>;

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
    /// Whoever runs this machine.
    Operator,
}

impl Scope {
    /// Whether a job of `owner` is visible here.
    pub fn sees(&self, owner: &OwnerId) -> bool {
        match self {
            Self::Owner(me) => me == owner,
            Self::Operator => true,
        }
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
}

/// A caller's promise that two requests are the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// What it is called; its scope is the owner.
    pub text: String,
    /// Of the whole request: the same key with other input is a conflict.
    pub input_hash: [u8; 32],
    /// How long it holds. Every key holds as long as its job is unfinished.
    pub life: KeyLife,
}

impl Key {
    /// A key of the caller's own; it holds for a day.
    pub fn given(text: &str, input_hash: [u8; 32]) -> Self {
        const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
        Self { text: format!("given:{text}"), input_hash, life: KeyLife::For(WINDOW) }
    }

    /// The key of a held call that may be made twice on purpose, as of a workflow's tool: the same tool with the same
    /// input is the same call until a call was answered.
    pub fn held(tool: &str, input_hash: [u8; 32]) -> Self {
        Self::of_call(tool, input_hash, KeyLife::UntilAnswered { after_end: UNANSWERED })
    }

    /// The key of a held research call: its report is told again for a while after a call was answered with it.
    pub fn research(tool: &str, input_hash: [u8; 32], answer: HeldAnswer) -> Self {
        let answered = match answer {
            HeldAnswer::Report => Duration::from_secs(10 * 60),
            HeldAnswer::Quick => Duration::from_secs(60),
        };
        Self::of_call(tool, input_hash, KeyLife::Replays { unanswered: UNANSWERED, answered })
    }

    fn of_call(tool: &str, input_hash: [u8; 32], life: KeyLife) -> Self {
        let hash: String = input_hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text: format!("held:{tool}:{hash}"), input_hash, life }
    }
}

/// How long after its job's end the key of a held call holds while no call was answered.
const UNANSWERED: Duration = Duration::from_secs(30 * 60);

/// What a held research call brings: how long it is told again depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldAnswer {
    /// A report that takes minutes.
    Report,
    /// An answer that takes seconds.
    Quick,
}

/// How long a key holds beyond the end of its job. The key of a held call never holds for a cancelled job: the same call
/// made again wants the work done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLife {
    /// A caller's own key: for so long after the job was made.
    For(Duration),
    /// A held call that may be made twice on purpose: until a call was answered with the outcome, at most so long after
    /// the job's end.
    UntilAnswered {
        /// So long.
        after_end: Duration,
    },
    /// A held research call. Whether a client received its answer cannot be known, so a report is told again also after
    /// one; a failure is not, unless beginning anew needs the caller's consent
    /// ([`crate::Code::needs_consent`]).
    Replays {
        /// So long after the job's end while no call was answered with it.
        unanswered: Duration,
        /// So long after the job's end once one was.
        answered: Duration,
    },
}

/// Which finished jobs to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prune {
    /// Those whose retention has ended, except for jobs whose key still holds: they stay, unseen by readers, until
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
}

/// What came of a rescue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    /// Jobs put back.
    pub jobs: u32,
    /// Other workers that still hold jobs, so that it is worth looking again.
    pub watched: u32,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// Only these states; all when empty.
    pub states: Vec<StateKind>,
    /// Only titles that contain this, in any case.
    pub search: Option<String>,
    /// Only ids that start with this.
    pub id_prefix: Option<String>,
    /// At most so many.
    pub limit: u32,
    /// Only what comes after the last page.
    pub after: Option<Cursor>,
}

/// Where a page ended. Opaque to callers; only the store that made it reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub u64);

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPage {
    /// Newest first.
    pub jobs: Vec<Summary>,
    /// Where the next page starts, if there is one.
    pub next: Option<Cursor>,
}

/// A job as lists show it, without its request and result.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Its name.
    pub id: JobId,
    /// Whose it is.
    pub owner: OwnerId,
    /// The conversation it belongs to, if any.
    pub conversation: Option<ConversationId>,
    /// The kind of work.
    pub workflow: String,
    /// The start of the question.
    pub title: String,
    /// Whether its id was promised to the caller.
    pub visibility: Visibility,
    /// Where it stands.
    pub state: StateKind,
    /// Whether any worker has ever held it.
    pub was_claimed: bool,
    /// The session its ask names ([`crate::session_of`]), if any.
    pub session: Option<String>,
    /// How many tries have failed.
    pub failures: u32,
    /// How far the running try has come.
    pub progress: Option<Progress>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
    /// When it ended, if it has.
    pub ended_at: Option<Timestamp>,
}

/// Which conversations to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationQuery {
    /// Only those whose last turn is in one of these states; all when empty.
    pub states: Vec<StateKind>,
    /// At most so many.
    pub limit: u32,
    /// Only what comes after the last page.
    pub after: Option<Cursor>,
}

/// A page of a list of conversations.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationPage {
    /// Newest first.
    pub conversations: Vec<ConversationSummary>,
    /// Where the next page starts, if there is one.
    pub next: Option<Cursor>,
}

/// A conversation as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationSummary {
    /// Its name.
    pub id: ConversationId,
    /// The start of its first question.
    pub title: String,
    /// Where its last turn stands.
    pub state: StateKind,
    /// How many turns it has.
    pub turns: u32,
    /// How many of them have a report.
    pub reports: u32,
    /// When it began.
    pub created_at: Timestamp,
    /// When anything about its last turn changed.
    pub updated_at: Timestamp,
}

/// How [`Store::changes`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeWait {
    /// The wait ends after this long without a change.
    pub at_most: Duration,
    /// How often a store looks for the changes of other processes, where it is not told of them.
    pub look_every: Duration,
}

/// What changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Where to go on.
    pub rev: Rev,
    /// The jobs, each once, in order of change; empty when the wait ended first.
    pub jobs: Vec<Change>,
    /// When the clock alone will make something due: a queued job's time, or a lease's end.
    pub next_due: Option<Timestamp>,
}

/// One changed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub id: JobId,
    /// Where it stands now.
    pub state: StateKind,
    /// Whether it is a held call that no worker carries.
    pub uncarried: Uncarried,
}

/// Whether a job is a held call that no worker carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncarried {
    /// It is not.
    No,
    /// None has carried it: the process that made it is about to, unless that process died.
    NotYet,
    /// One has: its process died or left.
    NoMore,
}

impl Uncarried {
    /// Of a job in this state.
    pub fn of(state: StateKind, visibility: Visibility, was_claimed: bool) -> Self {
        match (state, visibility) {
            (StateKind::Queued, Visibility::Unpromised | Visibility::Task) if was_claimed => {
                Self::NoMore
            }
            (StateKind::Queued, Visibility::Unpromised | Visibility::Task) => Self::NotYet,
            (StateKind::Queued, Visibility::Promised)
            | (StateKind::Running, _)
            | (StateKind::Succeeded | StateKind::Failed | StateKind::Cancelled, _) => Self::No,
        }
    }
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
    /// Somebody else holds the job, or it has ended. The caller's work on it is void.
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
}
