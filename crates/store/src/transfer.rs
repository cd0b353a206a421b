//! Copies every job of one store into another, SQLite or PostgreSQL.
//!
//! Batch by batch the target is made equal to the source. So a copy that was interrupted goes on where it stopped, also if the
//! source was served in between. Then all jobs of both are read once more and compared. Neither store can be served meanwhile,
//! and the target not before the copy is complete.

use std::path::Path;

use async_trait::async_trait;
use outlast_core::rules::KeyRecord;
use outlast_core::{Record, StoreError};

use crate::postgres::PostgresSide;
use crate::sqlite::SqliteSide;

/// How many jobs, and how many bytes of them, are in memory at a time; one job of any length is.
pub(crate) const BATCH_JOBS: usize = 200;
const BATCH_BYTES: u64 = 4 * 1024 * 1024;

/// What a server is told that opens a store which is being copied or restored.
pub(crate) const IS_CLOSED: &str =
    "it is being copied or restored by `outlast store`; try again when that is done";

/// What a server is told that opens the target of an interrupted copy.
pub(crate) const IS_PARTIAL: &str =
    "the copy into it was interrupted; run the same `outlast store copy` again to complete it";

/// Where a store is.
#[derive(Clone, Copy, Debug)]
pub enum StorePlace<'a> {
    /// An SQLite file.
    Sqlite(&'a Path),
    /// A PostgreSQL database, by its URL.
    Postgres(&'a str),
}

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Jobs in both stores, all compared.
    pub jobs: u64,
    /// Those that had not been copied before.
    pub written: u64,
    /// Those that have not ended.
    pub unfinished: u64,
}

/// What is being done with the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPass {
    /// They are copied.
    Copying,
    /// All have been copied, and both stores are read and compared.
    Comparing,
}

/// Why a store was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source cannot be copied.
    #[error("the source cannot be copied")]
    From(#[source] CopyRefusal),
    /// The target cannot take it.
    #[error("the target cannot be written")]
    To(#[source] CopyRefusal),
    /// The copy is not equal to the source.
    #[error("the copy differs from the source at {at}")]
    Differs {
        /// Where.
        at: String,
    },
}

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
    /// It has jobs that are no part of this copy.
    #[error("it has jobs of its own: {jobs}")]
    NotEmpty {
        /// How many.
        jobs: u64,
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
    /// The provider's last word as it came.
    pub(crate) raw: Option<Vec<u8>>,
}

/// How many jobs a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobCounts {
    pub(crate) jobs: u64,
    pub(crate) unfinished: u64,
}

/// A store that is copied, or copied to. While it is open no server can use the store.
#[async_trait]
pub(crate) trait CopySide: Send {
    /// Tells one store from another.
    fn id(&self) -> i64;

    async fn counts(&mut self) -> Result<JobCounts, StoreError>;

    /// The numbers and the bytes of the next jobs after this one, at most [`BATCH_JOBS`].
    async fn sizes(&mut self, after: i64) -> Result<Vec<(i64, u64)>, StoreError>;

    /// The jobs after this one, up to and with the last.
    async fn jobs(&mut self, after: i64, last: i64) -> Result<Vec<WholeJob>, StoreError>;

    /// The store that is being copied to this one, if a copy was begun and not completed.
    async fn source(&mut self) -> Result<Option<i64>, StoreError>;

    /// Records that this store is being copied to this one: servers refuse it from now on.
    async fn begin(&mut self, source: i64) -> Result<(), StoreError>;

    /// Replaces the jobs after this one, up to and with the last, by others, in one transaction.
    async fn replace(&mut self, after: i64, last: i64, jobs: &[WholeJob])
    -> Result<(), StoreError>;

    /// Makes it a store that can be served: numbers go on after those that were copied.
    async fn complete(&mut self) -> Result<(), StoreError>;

    /// Lets servers in.
    async fn close(self: Box<Self>);
}

/// Copies every job of a store into another, which must be empty or hold a part of the same copy.
///
/// `progress` is told what is done, and with how many of how many jobs.
pub async fn copy(
    from: StorePlace<'_>,
    to: StorePlace<'_>,
    progress: &mut (dyn FnMut(CopyPass, u64, u64) + Send),
) -> Result<Copied, CopyError> {
    let from = open_source(from).await.map_err(CopyError::From)?;
    let to = open_target(to).await.map_err(CopyError::To)?;
    let mut copying = Copying { from, to, progress };
    let copied = copying.run().await;
    copying.from.close().await;
    copying.to.close().await;
    copied
}

async fn open_source(place: StorePlace<'_>) -> Result<Box<dyn CopySide>, CopyRefusal> {
    let mut side: Box<dyn CopySide> = match place {
        StorePlace::Sqlite(path) => Box::new(SqliteSide::source(path)?),
        StorePlace::Postgres(url) => Box::new(PostgresSide::source(url).await?),
    };
    match side.source().await? {
        Some(_) => Err(StoreError::Unavailable(IS_PARTIAL.into()).into()),
        None => Ok(side),
    }
}

async fn open_target(place: StorePlace<'_>) -> Result<Box<dyn CopySide>, CopyRefusal> {
    Ok(match place {
        StorePlace::Sqlite(path) => Box::new(SqliteSide::target(path)?),
        StorePlace::Postgres(url) => Box::new(PostgresSide::target(url).await?),
    })
}

/// A copy under way.
struct Copying<'a> {
    from: Box<dyn CopySide>,
    to: Box<dyn CopySide>,
    progress: &'a mut (dyn FnMut(CopyPass, u64, u64) + Send),
}

impl Copying<'_> {
    async fn run(&mut self) -> Result<Copied, CopyError> {
        self.begin().await?;
        let JobCounts { jobs, unfinished } = self.from.counts().await.map_err(of_source)?;
        let written = self.write_all(jobs).await?;
        self.compare_all(jobs).await?;
        self.to.complete().await.map_err(of_target)?;
        Ok(Copied { jobs, written, unfinished })
    }

    /// Refuses a target with jobs that are no part of this copy.
    async fn begin(&mut self) -> Result<(), CopyError> {
        let source = self.from.id();
        let begun = self.to.source().await.map_err(of_target)?;
        if begun == Some(source) {
            return Ok(());
        }
        let JobCounts { jobs, .. } = self.to.counts().await.map_err(of_target)?;
        if begun.is_some() || jobs > 0 {
            return Err(CopyError::To(CopyRefusal::NotEmpty { jobs }));
        }
        self.to.begin(source).await.map_err(of_target)
    }

    /// Makes the target equal to the source; returns how many jobs were written.
    async fn write_all(&mut self, total: u64) -> Result<u64, CopyError> {
        let (mut after, mut done, mut written) = (0, 0, 0);
        while let Some((last, jobs)) = self.batch(after).await? {
            if self.to.jobs(after, last).await.map_err(of_target)? != jobs {
                self.to.replace(after, last, &jobs).await.map_err(of_target)?;
                written += jobs.len() as u64;
            }
            after = last;
            done += jobs.len() as u64;
            (self.progress)(CopyPass::Copying, done, total);
        }
        // Jobs of an interrupted copy that the source has removed since.
        self.to.replace(after, i64::MAX, &[]).await.map_err(of_target)?;
        Ok(written)
    }

    /// Reads both stores once more.
    async fn compare_all(&mut self, total: u64) -> Result<(), CopyError> {
        let (mut after, mut done) = (0, 0);
        while let Some((last, jobs)) = self.batch(after).await? {
            let copied = self.to.jobs(after, last).await.map_err(of_target)?;
            if let Some(at) = difference(&jobs, &copied) {
                return Err(CopyError::Differs { at });
            }
            after = last;
            done += jobs.len() as u64;
            (self.progress)(CopyPass::Comparing, done, total);
        }
        let (source, target) = (self.from.counts().await, self.to.counts().await);
        let (source, target) = (source.map_err(of_source)?, target.map_err(of_target)?);
        if source != target || done != total {
            let at = format!("the number of jobs: {} of {}", target.jobs, source.jobs);
            return Err(CopyError::Differs { at });
        }
        Ok(())
    }

    /// The next jobs of the source, and the number of the last.
    async fn batch(&mut self, after: i64) -> Result<Option<(i64, Vec<WholeJob>)>, CopyError> {
        let sizes = self.from.sizes(after).await.map_err(of_source)?;
        let mut bytes = 0;
        let fits = |(_, size): &&(i64, u64)| {
            bytes += size;
            bytes <= BATCH_BYTES
        };
        let fitting = sizes.iter().take_while(fits).count().max(1);
        let Some((last, _)) = sizes.get(fitting - 1).or(sizes.first()) else { return Ok(None) };
        let jobs = self.from.jobs(after, *last).await.map_err(of_source)?;
        // A job that cannot be read whole must not be left out.
        if jobs.len() != fitting {
            let at = format!("the jobs numbered {} to {last}", after + 1);
            return Err(of_source(StoreError::Corrupt { at }));
        }
        Ok(Some((*last, jobs)))
    }
}

fn difference(jobs: &[WholeJob], copied: &[WholeJob]) -> Option<String> {
    let pairs = jobs.iter().zip(copied);
    let differing = pairs.into_iter().find(|(job, copied)| job != copied).map(|(job, _)| job);
    match differing.or(jobs.get(copied.len())) {
        Some(job) => Some(format!("job {}", job.record.job.id)),
        None => copied.get(jobs.len()).map(|extra| format!("job {}", extra.record.job.id)),
    }
}

fn of_source(error: StoreError) -> CopyError {
    CopyError::From(error.into())
}

fn of_target(error: StoreError) -> CopyError {
    CopyError::To(error.into())
}
