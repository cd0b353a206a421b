//! What a store can do that is copied, or copied to: see `transfer`.

use async_trait::async_trait;
use outlast_core::rules::{IdentityRecord, KeyRecord};
use outlast_core::{LedgerRow, Record, StoreError};

/// How many jobs are in memory at a time.
pub(crate) const BATCH_JOBS: usize = 200;

/// How many rows of the ledger are.
pub(crate) const BATCH_ROWS: usize = 1000;

/// What a server is told that opens a store which is being copied or restored.
pub(crate) const IS_CLOSED: &str =
    "it is being copied or restored by `outlast store`; try again when that is done";

/// What a server is told that opens the target of an interrupted copy.
pub(crate) const IS_PARTIAL: &str =
    "the copy into it was interrupted; run the same `outlast store copy` again to complete it";

/// Why a store cannot be the source or the target of a copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyRefusal {
    /// A server, a worker or another command uses it.
    #[error("it is in use")]
    InUse,
    /// There is no store.
    #[error("there is no job store")]
    Missing,
    /// Its tables are those of an older version.
    #[error("it has schema {schema}, and this program copies schema {newest}")]
    OldSchema {
        /// Which it has.
        schema: u32,
        /// Which it should have.
        newest: u32,
    },
    /// It has jobs, or rows of the ledger, that are no part of this copy.
    #[error("it has jobs of its own: {jobs}, and paid runs: {runs}")]
    NotEmpty {
        /// How many jobs.
        jobs: u64,
        /// How many runs its ledger has.
        runs: u64,
    },
    /// It cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A job with everything that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WholeJob {
    /// The number of its arrival.
    pub(crate) seq: i64,
    pub(crate) record: Record,
    /// What the key is called that names it, and the key.
    pub(crate) key: Option<(String, KeyRecord)>,
    /// The identity of its call, if it is one of a held research call.
    pub(crate) identity: Option<IdentityRecord>,
    /// The provider's last word as it came.
    pub(crate) raw: Option<Vec<u8>>,
}

/// How many jobs a store has, and how many rows its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobCounts {
    pub(crate) jobs: u64,
    pub(crate) unfinished: u64,
    pub(crate) runs: u64,
}

/// A store that is copied, or copied to. While it is open no server can use the store.
#[async_trait]
pub(crate) trait CopySide: Send {
    /// Tells one store from another.
    fn id(&self) -> i64;

    async fn counts(&mut self) -> Result<JobCounts, CopyRefusal>;

    /// The numbers and the bytes of the next jobs after this one, at most [`BATCH_JOBS`].
    async fn sizes(&mut self, after: i64) -> Result<Vec<(i64, u64)>, CopyRefusal>;

    /// The jobs after this one, up to and with the last.
    async fn jobs(&mut self, after: i64, last: i64) -> Result<Vec<WholeJob>, CopyRefusal>;

    /// The store that is being copied to this one, if a copy was begun and not completed.
    async fn source(&mut self) -> Result<Option<i64>, CopyRefusal>;

    /// Records that this store is being copied to this one: servers refuse it from now on.
    async fn begin(&mut self, source: i64) -> Result<(), CopyRefusal>;

    /// Replaces the jobs after this one, up to and with the last, by others, in one transaction.
    async fn replace(
        &mut self,
        after: i64,
        last: i64,
        jobs: &[WholeJob],
    ) -> Result<(), CopyRefusal>;

    /// The rows of the ledger after this one, at most [`BATCH_ROWS`], in the order of their jobs.
    async fn ledger(&mut self, after: Option<&LedgerRow>) -> Result<Vec<LedgerRow>, CopyRefusal>;

    /// Empties the ledger.
    async fn clear_ledger(&mut self) -> Result<(), CopyRefusal>;

    /// Adds rows to the ledger, in one transaction.
    async fn add_to_ledger(&mut self, rows: &[LedgerRow]) -> Result<(), CopyRefusal>;

    /// Makes it a store that can be served: numbers go on after those that were copied.
    async fn complete(&mut self) -> Result<(), CopyRefusal>;

    /// Lets servers in.
    async fn close(self: Box<Self>);
}
