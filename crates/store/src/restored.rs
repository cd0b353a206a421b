//! The report of a restore: of a backup file, or of a database that was restored by other means.

use std::path::PathBuf;

use outlast_core::rules::RestoredOutcome;
use outlast_core::{Job, StoreError};

/// The result of a restore.
#[derive(Debug)]
pub struct Restored {
    /// All jobs that were unfinished in the backup, oldest first.
    pub jobs: Vec<RestoredJob>,
    /// The path at which the previous store is kept, if there was one.
    pub kept: Option<PathBuf>,
}

/// A job that was unfinished in the backup.
#[derive(Debug)]
pub struct RestoredJob {
    /// The job in its new state.
    pub job: Job,
    /// The job's outcome.
    pub fate: RestoredOutcome,
}

/// The reason why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Another process has the store open.
    #[error("the store is in use")]
    InUse,
    /// A store already exists.
    #[error("there is a store already, {}", contents(*.jobs))]
    Exists {
        /// The number of its jobs, if it can be read.
        jobs: Option<u64>,
    },
    /// Nothing shows that the store is an older copy, and the restore would end this many jobs.
    #[error("nothing shows that the store is an older copy, and it would end {}", jobs_of(*.jobs as u64))]
    Current {
        /// The number of jobs.
        jobs: usize,
    },
    /// The store, or the backup, cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn contents(jobs: Option<u64>) -> String {
    jobs.map_or("which cannot be read".to_owned(), |jobs| format!("with {}", jobs_of(jobs)))
}

fn jobs_of(number: u64) -> String {
    if number == 1 { "1 job".to_owned() } else { format!("{number} jobs") }
}
