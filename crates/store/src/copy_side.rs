//! The operations of a store that is copied, or copied to: see `transfer`.

use async_trait::async_trait;
use outlast_core::rules::{IdentityRecord, KeyRecord, StoredStep};
use outlast_core::{LedgerRow, Page, Record, StoreError};

/// The maximum number of jobs in memory at a time.
pub(crate) const BATCH_JOBS: usize = 200;

/// The maximum number of ledger rows in memory at a time.
pub(crate) const BATCH_ROWS: usize = 1000;

/// The error for a server that opens a store which is being copied or restored.
pub(crate) const IS_CLOSED: &str =
    "it is being copied or restored by `outlast store`; try again when that is done";

/// The error for a server that opens the target of an interrupted copy.
pub(crate) const IS_PARTIAL: &str =
    "the copy into it was interrupted; run the same `outlast store copy` again to complete it";

/// The reason why a store cannot be the source or the target of a copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyRefusal {
    /// A server, a worker or another command is using the store.
    #[error("it is in use")]
    InUse,
    /// The store does not exist.
    #[error("there is no job store")]
    Missing,
    /// The store's tables are those of an older version.
    #[error("it has schema {schema}, and this program copies schema {newest}")]
    OldSchema {
        /// The version of its schema.
        schema: u32,
        /// The current version of the schema.
        newest: u32,
    },
    /// The store has jobs or ledger rows that are not part of this copy.
    #[error("it has its own jobs: {jobs}, and paid runs: {runs}")]
    NotEmpty {
        /// The number of jobs.
        jobs: u64,
        /// The number of paid runs in its ledger.
        runs: u64,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A job with all its related rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WholeJob {
    /// The job's number in the order of arrival.
    pub(crate) seq: i64,
    pub(crate) record: Record,
    /// The name of the job's key, and the key.
    pub(crate) key: Option<(String, KeyRecord)>,
    /// The identity of its call, if it is a held research call.
    pub(crate) identity: Option<IdentityRecord>,
    /// The provider's last response, unchanged.
    pub(crate) raw: Option<Vec<u8>>,
    /// The steps of its run, in the order of their keys.
    pub(crate) steps: Vec<StoredStep>,
    /// The pages that its run has read, in the order of their digests.
    pub(crate) pages: Vec<Page>,
}

/// The numbers of a store's jobs and ledger rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobCounts {
    pub(crate) jobs: u64,
    pub(crate) unfinished: u64,
    pub(crate) runs: u64,
}

/// A store that is copied, or copied to. No server can use the store while it is open.
#[async_trait]
pub(crate) trait CopySide: Send {
    /// An id that distinguishes this store from others.
    fn id(&self) -> i64;

    async fn counts(&mut self) -> Result<JobCounts, CopyRefusal>;

    /// The numbers and sizes in bytes of the next jobs after this one, at most [`BATCH_JOBS`].
    async fn sizes(&mut self, after: i64) -> Result<Vec<(i64, u64)>, CopyRefusal>;

    /// The jobs after `after`, up to and including `last`.
    async fn jobs(&mut self, after: i64, last: i64) -> Result<Vec<WholeJob>, CopyRefusal>;

    /// The id of the store that is being copied to this one, if a copy was begun and not completed.
    async fn source(&mut self) -> Result<Option<i64>, CopyRefusal>;

    /// Records that the store `source` is being copied to this one. From then on, servers refuse to open it.
    async fn begin(&mut self, source: i64) -> Result<(), CopyRefusal>;

    /// Replaces the jobs after `after`, up to and including `last`, in one transaction.
    async fn replace(
        &mut self,
        after: i64,
        last: i64,
        jobs: &[WholeJob],
    ) -> Result<(), CopyRefusal>;

    /// The ledger rows after this one, at most [`BATCH_ROWS`], in the order of their jobs.
    async fn ledger(&mut self, after: Option<&LedgerRow>) -> Result<Vec<LedgerRow>, CopyRefusal>;

    /// Empties the ledger.
    async fn clear_ledger(&mut self) -> Result<(), CopyRefusal>;

    /// Adds rows to the ledger, in one transaction.
    async fn add_to_ledger(&mut self, rows: &[LedgerRow]) -> Result<(), CopyRefusal>;

    /// Marks the store as complete, so that servers can open it. New numbers continue after the copied ones.
    async fn complete(&mut self) -> Result<(), CopyRefusal>;

    /// Closes the store, so that servers can open it again.
    async fn close(self: Box<Self>);
}
