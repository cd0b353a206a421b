//! The handle every face holds. Cheap to clone; owner in every call.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::conversation::Conversation;
use outlast_core::rules::{Replay, Sharing};
use outlast_core::{
    Cancelled, ConversationId, ConversationPage, ConversationQuery, Cost, Dead, Insert, Inserted,
    Job, JobId, JobPage, JobQuery, JobState, Key, NewJob, OwnerId, Profile, Provider, Prune,
    Pruned, RemoteRun, RemoteStop, Rev, Scope, Store, StoreError, Timestamp, rules,
};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::follower;
use crate::mirror::{self, ArchiveError, Archived, Mirror};
use crate::shutdown::Shutdown;
use crate::wakeups::{PollLimits, Wakeups};

/// Who does the work, by the profile a job asks for.
pub type Providers = HashMap<Profile, Arc<dyn Provider>>;

/// What the engine is told once.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many jobs one worker runs at a time.
    pub concurrency: usize,
    /// How long a worker may be silent before others may take its jobs.
    pub lease: Duration,
    /// The wait after a first failure.
    pub retry_base: Duration,
    /// How many unfinished jobs an owner may have.
    pub max_unfinished: u32,
    /// How many bytes of requests and results an owner may have stored.
    pub max_bytes: u64,
    /// How late expired jobs may be removed.
    pub sweep_interval: Duration,
    /// How many polls may wait at a time.
    pub polls: PollLimits,
    /// The files that show an owner's conversations, if there are any.
    pub mirror: Option<Arc<Mirror>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 5,
            lease: Duration::from_secs(30),
            retry_base: Duration::from_secs(2),
            max_unfinished: 1000,
            max_bytes: 1 << 30,
            sweep_interval: Duration::from_secs(300),
            polls: PollLimits { in_all: 10_000, per_job: 100, sharing: Sharing::OneOwner },
            mirror: None,
        }
    }
}

/// Starts, polls, cancels and lists jobs.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) providers: Providers,
    pub(crate) options: Options,
    pub(crate) hub: Arc<Wakeups>,
    pub(crate) stop: Shutdown,
}

impl Shared {
    pub(crate) fn expects(&self, profile: &Profile, ask: &Value) -> Expected {
        let provider = self.providers.get(profile);
        Expected {
            model: provider.and_then(|provider| provider.expected_model(ask)),
            cost: provider.map_or(Cost::Unknown, |provider| provider.typical_cost(ask)),
        }
    }
}

/// What is known of a request before it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The model that will answer it.
    pub model: Option<String>,
    /// What it usually costs.
    pub cost: Cost,
}

/// What came of a start.
#[derive(Clone, Debug)]
pub struct Started {
    /// The job, made or found.
    pub job: Job,
    /// Whether the caller's key named it already.
    pub existed: bool,
    /// If it has ended and a call was answered with it before: since when, and until when it is told again.
    pub replay: Option<Replay>,
}

impl Engine {
    /// Makes an engine over an open store. The returned task follows the store's changes; it ends after `stop`
    /// was asked.
    pub async fn new(
        store: Arc<dyn Store>,
        providers: Providers,
        options: Options,
        stop: Shutdown,
    ) -> Result<(Self, JoinHandle<()>), StoreError> {
        // Taken before anybody can wait for anything, so that no change falls between.
        let rev: Rev = store.rev().await?;
        let hub = Arc::new(Wakeups::default());
        let follower =
            tokio::spawn(follower::follow(Arc::clone(&store), Arc::clone(&hub), rev, stop.clone()));
        let shared = Shared { store, providers, options, hub, stop };
        Ok((Self { shared: Arc::new(shared) }, follower))
    }

    /// The store's clock.
    pub fn now(&self) -> Timestamp {
        self.shared.store.now()
    }

    /// Writes the files of the mirror's conversations, in turn with other processes, until `stop` is asked; then
    /// once more. Best asked after the workers have left, so that the files show what they left behind. `None` without
    /// a mirror.
    pub fn run_mirror(&self, stop: Shutdown) -> Option<JoinHandle<()>> {
        let mirror = self.shared.options.mirror.clone()?;
        Some(tokio::spawn(mirror::follow(Arc::clone(&self.shared), mirror, stop)))
    }

    /// Makes a job durable; a worker hears of it at once. Never waits on a provider. The files of a promised turn of
    /// a mirrored conversation are there on return, unless they cannot be written.
    pub async fn start(&self, job: NewJob, key: Option<Key>) -> Result<Started, StoreError> {
        self.insert(job, key, None).await
    }

    /// The same for a job that goes on with the run `failed` left behind, if it left one.
    pub async fn start_after(
        &self,
        failed: &Job,
        job: NewJob,
        key: Option<Key>,
    ) -> Result<Started, StoreError> {
        self.insert(job, key, failed.run_left().cloned()).await
    }

    async fn insert(
        &self,
        job: NewJob,
        key: Option<Key>,
        takes_up: Option<RemoteRun>,
    ) -> Result<Started, StoreError> {
        let Options { max_unfinished, max_bytes, .. } = self.shared.options;
        let insert = Insert { job, key, max_unfinished, max_bytes, takes_up };
        let inserted = self.shared.store.insert(insert).await?;
        let started = match inserted {
            Inserted::New(job) => {
                tracing::info!(
                    job.id = %job.id,
                    conversation.id = job.new.conversation_id(),
                    tool = job.new.tool(),
                    "Job enqueued"
                );
                self.warn_of_cost(&job);
                Started { job, existed: false, replay: None }
            }
            Inserted::Existing { job, key } => {
                Started { replay: rules::replay(&key, &job), job, existed: true }
            }
        };
        if let Some(mirror) = &self.shared.options.mirror {
            // Also of one that existed: whoever made it may have died before its files were there.
            mirror.promise(&self.shared, &started.job).await;
        }
        Ok(started)
    }

    /// Ends an unfinished job; `None` when the caller has no such job.
    pub async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<Option<Cancelled>, StoreError> {
        match self.shared.store.cancel(scope, id).await {
            Ok(Cancelled::Now(job)) => {
                tracing::info!(
                    job.id = %job.id,
                    conversation.id = job.new.conversation_id(),
                    tool = job.new.tool(),
                    "Job cancelled"
                );
                Ok(Some(Cancelled::Now(self.without_vain_stop(job).await)))
            }
            Ok(Cancelled::Already(job)) => Ok(Some(Cancelled::Already(job))),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A cancelled job whose provider is known to have no way to stop a run: that is said at once, and no worker is left
    /// to find it out.
    async fn without_vain_stop(&self, mut job: Job) -> Job {
        let JobState::Cancelled { at, remote: RemoteStop::Owed } = job.state else { return job };
        let provider = self.shared.providers.get(&job.new.profile);
        if provider.is_none_or(|provider| provider.nature(&job.new.ask).stops) {
            return job;
        }
        job.state = JobState::Cancelled { at, remote: RemoteStop::Unsupported };
        if let Err(error) = self.shared.store.record_stop(&job.id, RemoteStop::Unsupported).await {
            tracing::warn!(job.id = %job.id, %error, "that a run cannot be stopped is not stored; a worker will see to it");
        }
        job
    }

    /// C10: before anything is spent.
    fn warn_of_cost(&self, job: &Job) {
        let expected = self.expects(&job.new.profile, &job.new.ask);
        if let Some(cost) = expected.cost.over_a_dollar() {
            let conversation = job.new.conversation.as_ref().map(ConversationId::as_str);
            tracing::warn!(job.id = %job.id, conversation.id = conversation, estimate = %cost, "this question is likely to cost over $1");
        }
    }

    /// The job as it stands; `None` when the caller has no such job.
    pub async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.shared.store.job(scope, id).await
    }

    /// Removes finished jobs for good, and a conversation's files with it.
    pub async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<Pruned, StoreError> {
        let (Prune::Conversation(id), Some(mirror)) = (prune, &self.shared.options.mirror) else {
            return self.shared.store.prune(scope, prune).await;
        };
        let going = mirror.will_forget(&self.shared, scope, id).await;
        let pruned = self.shared.store.prune(scope, prune).await;
        if let Some(going) = going {
            mirror.forget(&self.shared, going).await;
        }
        pruned
    }

    /// A conversation of an older server, or of a store that is gone, from its files; `None` when the store knows the
    /// conversation, when there is no such folder, and for every owner but the mirror's.
    pub async fn archived(
        &self,
        owner: &OwnerId,
        id: &ConversationId,
    ) -> Result<Option<Archived>, ArchiveError> {
        let Some(mirror) = self.mirror_of(owner) else { return Ok(None) };
        // Whoever's it is: the files of another owner's conversation are no archive.
        if !self.shared.store.turns(&Scope::Operator, id).await?.is_empty() {
            return Ok(None);
        }
        let (mirror, id) = (Arc::clone(mirror), id.clone());
        let reading = tokio::task::spawn_blocking(move || mirror.archived(&id));
        reading.await.map_err(|error| StoreError::Unavailable(error.into()))?
    }

    /// Where this owner's conversations are shown as files, if they are.
    pub fn logs_dir(&self, owner: &OwnerId) -> Option<&Path> {
        self.mirror_of(owner).map(|mirror| mirror.logs_dir())
    }

    fn mirror_of(&self, owner: &OwnerId) -> Option<&Arc<Mirror>> {
        self.shared.options.mirror.as_ref().filter(|mirror| mirror.owner() == owner)
    }

    /// What is known of a request before it is made: the model that will answer it, and what that usually costs.
    pub fn expects(&self, profile: &Profile, ask: &Value) -> Expected {
        self.shared.expects(profile, ask)
    }

    /// Puts the jobs of workers that are known to be dead back into the queue, so that what is read next is true. Best
    /// effort: a store that cannot be written is read as it is.
    pub async fn find_dead_workers(&self) {
        if let Err(error) = self.shared.store.rescue(&Dead::Proven).await {
            tracing::warn!(%error, "dead workers cannot be looked for");
        }
    }

    /// Whether this process has the provider for jobs of this profile.
    pub fn has_provider(&self, profile: &Profile) -> bool {
        self.shared.providers.contains_key(profile)
    }

    /// Whether a worker that takes jobs of this profile from the queue is known to live.
    pub async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        self.shared.store.has_worker(profile).await
    }

    /// A conversation with the turns that may be shown; `None` when the owner has no such conversation.
    pub async fn conversation(
        &self,
        owner: &OwnerId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        let turns = self.shared.store.turns(&Scope::Owner(owner.clone()), id).await?;
        Ok(Conversation::of(id.clone(), turns))
    }

    /// The owner's conversations, newest first.
    pub async fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        self.shared.store.conversations(owner, query).await
    }

    /// The caller's jobs, newest first.
    pub async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError> {
        self.shared.store.list(scope, query).await
    }
}
