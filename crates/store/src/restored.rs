//! What a restore tells: of a backup's file, and of a database that was restored by other means.

use std::path::PathBuf;

use outlast_core::rules::Fate;
use outlast_core::{Job, StoreError};

/// What was restored.
#[derive(Debug)]
pub struct Restored {
    /// Every job that the backup had not finished, oldest first.
    pub jobs: Vec<RestoredJob>,
    /// Where the store that was there before is kept, if there was one.
    pub kept: Option<PathBuf>,
}

/// A job that the backup had not finished.
#[derive(Debug)]
pub struct RestoredJob {
    /// The job, as it is from now on.
    pub job: Job,
    /// What becomes of it.
    pub fate: Fate,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Another process has the store open.
    #[error("the store is in use")]
    InUse,
    /// There is a store already; how many jobs it has, if that can be read.
    #[error("there is a store already, {}", contents(*.jobs))]
    Exists {
        /// How many jobs are in it.
        jobs: Option<u64>,
    },
    /// Nothing shows that the store is an older copy, and this many jobs would be ended.
    #[error("nothing shows that the store is an older copy, and it would end {}", jobs_of(*.jobs as u64))]
    Current {
        /// How many.
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
