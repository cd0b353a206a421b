//! The journal as a run sees it: bound to the lease of its job.

use std::sync::Arc;

use crate::{JournalStep, Lease, NewStep, Page, Scope, StepEnd, StepStart, Store, StoreError};

/// The journal of one attempt. A worker that has lost its lease records nothing more.
#[derive(Clone)]
pub struct RunJournal {
    store: Arc<dyn Store>,
    lease: Lease,
    max_bytes: u64,
}

impl RunJournal {
    /// Binds the journal of a store to a lease. `max_bytes` is the limit of the owner.
    pub fn new(store: Arc<dyn Store>, lease: Lease, max_bytes: u64) -> Self {
        Self { store, lease, max_bytes }
    }

    /// The maximum number of bytes that the owner may have stored, for [`NewStep::max_bytes`].
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Begins a step, or finds it; see [`Store::begin_step`].
    pub async fn begin_step(&self, step: &NewStep) -> Result<StepStart, StoreError> {
        self.store.begin_step(&self.lease, step).await
    }

    /// Records the end of a step; see [`Store::end_step`].
    pub async fn end_step(&self, key: &str, end: &StepEnd) -> Result<(), StoreError> {
        self.store.end_step(&self.lease, key, end).await
    }

    /// Keeps a page that the run has read; see [`Store::save_page`].
    pub async fn save_page(&self, page: &Page) -> Result<(), StoreError> {
        self.store.save_page(&self.lease, page, self.max_bytes).await
    }

    /// Returns the steps that were recorded so far, without their outputs; see [`Store::steps`].
    pub async fn steps(&self) -> Result<Vec<JournalStep>, StoreError> {
        self.store.steps(&Scope::Operator, &self.lease.job).await
    }

    /// Returns a page that the run has kept.
    pub async fn page(&self, digest: &[u8; 32]) -> Result<Option<Page>, StoreError> {
        let Some(job) = self.store.job(&Scope::Operator, &self.lease.job).await? else {
            return Ok(None);
        };
        self.store.page(&job.new.owner, digest).await
    }
}
