//! The engine's handle, which every face has: starts and cancels jobs. Cheap to clone; the owner is in every call.

use std::path::Path;
use std::sync::Arc;

use outlast_core::rules::{self, Replay};
use outlast_core::{
    Cancelled, ConversationId, Insert, Inserted, Job, JobId, Key, NewJob, OwnerId, Prune, Pruned,
    RemoteRun, Rev, Scope, Store, StoreError,
};
use tokio::task::JoinHandle;

use crate::mirror::{self, ArchiveError, Archived, Mirror};
use crate::options::{Options, Providers};
pub(crate) use crate::shared::Shared;
use crate::shutdown::Shutdown;
use crate::wakeups::Wakeups;
use crate::{follower, remote_stops};

/// Starts, polls, cancels and reads jobs.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

/// What came of a start.
#[derive(Clone, Debug)]
pub struct Started {
    /// The job, made or found.
    pub job: Job,
    /// Whether the caller's key named the job already.
    pub existed: bool,
    /// Since when and until when this outcome is a replay, if a call was answered with it before.
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
        // Taken before a caller can wait for a job, so that no change falls between.
        let rev: Rev = store.rev().await?;
        let wakeups = Arc::new(Wakeups::default());
        let follower = tokio::spawn(follower::follow(
            Arc::clone(&store),
            Arc::clone(&wakeups),
            rev,
            stop.clone(),
        ));
        let shared = Shared { store, providers, options, wakeups, stop };
        Ok((Self { shared: Arc::new(shared) }, follower))
    }

    /// Writes the files of the mirror's conversations, in turn with other processes, until `stop` is asked; then
    /// once more. Best asked after the workers have left, so that the files show what they left behind. `None` without
    /// a mirror.
    pub fn run_mirror(&self, stop: Shutdown) -> Option<JoinHandle<()>> {
        let mirror = self.shared.options.mirror.clone()?;
        Some(tokio::spawn(mirror::follow(Arc::clone(&self.shared), mirror, stop)))
    }

    /// Makes a job durable; a worker is told of it at once. Never waits on a provider. The files of a promised turn of
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
                self.shared.warn_of_cost(&job);
                Started { job, existed: false, replay: None }
            }
            Inserted::Existing { job, key } => {
                Started { replay: rules::replay(&key, &job), job, existed: true }
            }
        };
        if let Some(mirror) = &self.shared.options.mirror {
            // Also of one that existed: the process that made it may have died before its files were there.
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
                Ok(Some(Cancelled::Now(remote_stops::without_vain_stop(&self.shared, job).await)))
            }
            Ok(Cancelled::Already(job)) => Ok(Some(Cancelled::Already(job))),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
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
        // Of every owner: the files of another owner's conversation are no archive.
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
}
