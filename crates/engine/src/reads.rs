//! Reads: a job and the reason why it waits, lists, conversations, and what is known of a request before it is made.

use outlast_core::conversation::Conversation;
use outlast_core::{
    ChangeWait, Changes, ConversationId, ConversationPage, ConversationQuery, Job, JobId, JobPage,
    JobQuery, JobState, LedgerRow, OwnerId, Profile, Request, Rev, Scope, SpendQuery, SpendSum,
    Standing, StateCount, StoreError, Timestamp, Visibility, Waits,
};

use crate::engine::Engine;
use crate::shared::Expected;

/// A job at the moment when it was read.
#[derive(Clone, Debug)]
pub struct Reading {
    pub job: Job,
    /// The store's clock at that moment.
    pub now: Timestamp,
    /// The reason why it is queued, if it is.
    pub waits: Option<Waits>,
}

impl Reading {
    /// Returns the state of the job, in words (P4).
    pub fn standing(&self) -> Standing<'_> {
        Standing::of(&self.job, self.waits)
    }
}

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
    pub async fn reading(&self, scope: &Scope, id: &JobId) -> Result<Option<Reading>, StoreError> {
        let Some(job) = self.job(scope, id).await? else { return Ok(None) };
        let now = self.now();
        let waits = self.waits(&job, now).await?;
        Ok(Some(Reading { job, now, waits }))
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

    /// Returns what is known of a request before it is made.
    pub fn expects(&self, profile: &Profile, request: &Request) -> Expected {
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

    /// Returns the value that [`Engine::keep`] stored under this name.
    pub async fn kept(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.shared.store.get_setting(name).await
    }

    /// Stores a value under a name until it is replaced.
    pub async fn keep(&self, name: &str, value: &str) -> Result<(), StoreError> {
        self.shared.store.put_setting(name, value).await
    }

    /// Returns a conversation with the turns that may be shown; `None` if the owner has no such conversation.
    pub async fn conversation(
        &self,
        owner: &OwnerId,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        let turns = self.shared.store.turns(&Scope::Owner(owner.clone()), id).await?;
        Ok(Conversation::of(id.clone(), turns))
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
