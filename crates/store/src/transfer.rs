//! Copies all jobs and the ledger of one store into another, SQLite or PostgreSQL.
//!
//! Batch by batch, the copy makes the target equal to the source. An interrupted copy therefore continues at the place where
//! it stopped, even if servers used the source in between. At the end, all jobs of both stores are read once more and
//! compared. Servers can use neither store during the copy, and the target only after the copy is complete.

use outlast_core::StoreError;

use crate::copy_side::{CopyRefusal, CopySide, IS_PARTIAL, JobCounts, WholeJob};
use crate::postgres::PostgresSide;
use crate::sqlite::{SqliteFile, SqliteSide};

/// The maximum number of bytes of jobs in memory at a time. A single job may be larger.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;

/// The location of a store.
#[derive(Clone, Copy, Debug)]
pub enum StorePlace<'a> {
    /// An SQLite file.
    Sqlite(SqliteFile<'a>),
    /// A PostgreSQL database, by its URL.
    Postgres(&'a str),
}

/// The result of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyCounts {
    /// Jobs in both stores, all of them compared.
    pub jobs: u64,
    /// Jobs that had not been copied before.
    pub written: u64,
    /// Jobs that have not ended.
    pub unfinished: u64,
}

/// The phase of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPass {
    /// Jobs are being copied.
    Copying,
    /// All jobs have been copied; both stores are being read and compared.
    Comparing,
}

/// The reason why a store was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source cannot be copied.
    #[error("the source cannot be copied")]
    From(#[source] CopyRefusal),
    /// The target cannot be written.
    #[error("the target cannot be written")]
    To(#[source] CopyRefusal),
    /// The copy is not equal to the source.
    #[error("the copy differs from the source at {at}")]
    Differs {
        /// The place of the first difference.
        at: String,
    },
}

/// Copies all jobs of a store into another, which must be empty or hold a part of the same copy.
///
/// `progress` receives the phase, the number of jobs done and the total.
pub async fn copy(
    from: StorePlace<'_>,
    to: StorePlace<'_>,
    progress: &mut (dyn FnMut(CopyPass, u64, u64) + Send),
) -> Result<CopyCounts, CopyError> {
    let from = open_source(from).await.map_err(CopyError::From)?;
    let to = open_target(to).await.map_err(CopyError::To)?;
    let mut copying = CopyRun { from, to, progress };
    let copied = copying.run().await;
    copying.from.close().await;
    copying.to.close().await;
    copied
}

async fn open_source(place: StorePlace<'_>) -> Result<Box<dyn CopySide>, CopyRefusal> {
    let mut side: Box<dyn CopySide> = match place {
        StorePlace::Sqlite(file) => Box::new(SqliteSide::source(file)?),
        StorePlace::Postgres(url) => Box::new(PostgresSide::source(url).await?),
    };
    match side.source().await? {
        Some(_) => Err(StoreError::Unavailable(IS_PARTIAL.into()).into()),
        None => Ok(side),
    }
}

async fn open_target(place: StorePlace<'_>) -> Result<Box<dyn CopySide>, CopyRefusal> {
    Ok(match place {
        StorePlace::Sqlite(file) => Box::new(SqliteSide::target(file)?),
        StorePlace::Postgres(url) => Box::new(PostgresSide::target(url).await?),
    })
}

/// A copy in progress.
struct CopyRun<'a> {
    from: Box<dyn CopySide>,
    to: Box<dyn CopySide>,
    progress: &'a mut (dyn FnMut(CopyPass, u64, u64) + Send),
}

impl CopyRun<'_> {
    async fn run(&mut self) -> Result<CopyCounts, CopyError> {
        self.begin().await?;
        let JobCounts { jobs, unfinished, .. } =
            self.from.counts().await.map_err(CopyError::From)?;
        let written = self.write_all(jobs).await?;
        self.write_ledger().await?;
        self.compare_all(jobs).await?;
        self.to.complete().await.map_err(CopyError::To)?;
        Ok(CopyCounts { jobs, written, unfinished })
    }

    /// Refuses a target with jobs that are not part of this copy.
    async fn begin(&mut self) -> Result<(), CopyError> {
        let source = self.from.id();
        let begun = self.to.source().await.map_err(CopyError::To)?;
        if begun == Some(source) {
            return Ok(());
        }
        let JobCounts { jobs, runs, .. } = self.to.counts().await.map_err(CopyError::To)?;
        if begun.is_some() || jobs > 0 || runs > 0 {
            return Err(CopyError::To(CopyRefusal::NotEmpty { jobs, runs }));
        }
        self.to.begin(source).await.map_err(CopyError::To)
    }

    /// Makes the target equal to the source. Returns the number of jobs written.
    async fn write_all(&mut self, total: u64) -> Result<u64, CopyError> {
        let (mut after, mut done, mut written) = (0, 0, 0);
        while let Some((last, jobs)) = self.batch(after).await? {
            if self.to.jobs(after, last).await.map_err(CopyError::To)? != jobs {
                self.to.replace(after, last, &jobs).await.map_err(CopyError::To)?;
                written += jobs.len() as u64;
            }
            after = last;
            done += jobs.len() as u64;
            (self.progress)(CopyPass::Copying, done, total);
        }
        // Remove jobs of an interrupted copy that the source has deleted since.
        self.to.replace(after, i64::MAX, &[]).await.map_err(CopyError::To)?;
        Ok(written)
    }

    /// Makes the target's ledger equal to the source's. The ledger is short, so an interrupted copy starts it over.
    async fn write_ledger(&mut self) -> Result<(), CopyError> {
        self.to.clear_ledger().await.map_err(CopyError::To)?;
        let mut last = None;
        loop {
            let rows = self.from.ledger(last.as_ref()).await.map_err(CopyError::From)?;
            if rows.is_empty() {
                return Ok(());
            }
            self.to.add_to_ledger(&rows).await.map_err(CopyError::To)?;
            last = rows.into_iter().last();
        }
    }

    async fn compare_ledgers(&mut self) -> Result<(), CopyError> {
        let mut last = None;
        loop {
            let rows = self.from.ledger(last.as_ref()).await.map_err(CopyError::From)?;
            let copied = self.to.ledger(last.as_ref()).await.map_err(CopyError::To)?;
            if rows != copied {
                return Err(CopyError::Differs { at: "the ledger".to_owned() });
            }
            if rows.is_empty() {
                return Ok(());
            }
            last = rows.into_iter().last();
        }
    }

    /// Reads both stores once more and compares them.
    async fn compare_all(&mut self, total: u64) -> Result<(), CopyError> {
        let (mut after, mut done) = (0, 0);
        while let Some((last, jobs)) = self.batch(after).await? {
            let copied = self.to.jobs(after, last).await.map_err(CopyError::To)?;
            if let Some(at) = difference(&jobs, &copied) {
                return Err(CopyError::Differs { at });
            }
            after = last;
            done += jobs.len() as u64;
            (self.progress)(CopyPass::Comparing, done, total);
        }
        let (source, target) = (self.from.counts().await, self.to.counts().await);
        let (source, target) = (source.map_err(CopyError::From)?, target.map_err(CopyError::To)?);
        if source != target || done != total {
            let at = format!("the number of jobs: {} of {}", target.jobs, source.jobs);
            return Err(CopyError::Differs { at });
        }
        self.compare_ledgers().await
    }

    /// Returns the next jobs of the source, and the number of the last one.
    async fn batch(&mut self, after: i64) -> Result<Option<(i64, Vec<WholeJob>)>, CopyError> {
        let sizes = self.from.sizes(after).await.map_err(CopyError::From)?;
        let mut bytes = 0;
        let fits = |(_, size): &&(i64, u64)| {
            bytes += size;
            bytes <= BATCH_BYTES
        };
        let fitting = sizes.iter().take_while(fits).count().max(1);
        let Some((last, _)) = sizes.get(fitting - 1).or(sizes.first()) else { return Ok(None) };
        let jobs = self.from.jobs(after, *last).await.map_err(CopyError::From)?;
        // A job that cannot be read completely must not be skipped.
        if jobs.len() != fitting {
            let at = format!("the jobs numbered {} to {last}", after + 1);
            return Err(CopyError::From(StoreError::Corrupt { at }.into()));
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
