//! The search index of jobs. Words are indexed some time after their jobs were written, because their index costs more than
//! all other writes of a job.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_core::{StoreError, search};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::StoreShared;
use super::fault::Fault;
use super::rows;
use super::step::Durability;
use super::titles::TitlesLeft;
use super::tx::Tx;

/// The delay between the write of a job and the indexing of its words, so that a job that ends soon is indexed once.
const DELAY: Duration = Duration::from_secs(2);

/// The maximum time that a search waits for pending words. After a flood of jobs, a search is still answered, but finds the
/// newest jobs only later.
const WAIT: Duration = Duration::from_secs(2);

/// The maximum number of jobs that one step indexes. A step blocks other writers of these jobs.
const TOGETHER: i64 = 32;

/// The pause after a step, as a multiple of its duration. It leaves the database to callers that wait for an answer.
const REST: u32 = 4;

const TAKE: &str = sql!(postgres::words::take);

const PUT: &str = sql!(postgres::words::put);

/// Indexes words whenever some are pending, including those that an exited process left.
pub(super) async fn run(shared: Weak<StoreShared>, owed: Arc<Notify>, closed: CancellationToken) {
    let put_all = async {
        loop {
            tokio::time::sleep(DELAY).await;
            let Some(shared) = shared.upgrade() else { return };
            if let Err(error) = shared.put_owed_words().await {
                tracing::debug!(%error, "words could not be put; the next writer or search tries again");
            }
            shared.fold_ledger_changes().await;
            let left = shared.index_titles().await.unwrap_or_else(|error| {
                tracing::debug!(%error, "titles could not be indexed; the next writer tries again");
                TitlesLeft::None
            });
            drop(shared);
            if left == TitlesLeft::None {
                owed.notified().await;
            }
        }
    };
    closed.run_until_cancelled(put_all).await;
}

impl StoreShared {
    async fn put_owed_words(&self) -> Result<(), StoreError> {
        loop {
            let began = Instant::now();
            if self.put_some_words().await? == Taken::None {
                return Ok(());
            }
            tokio::time::sleep(began.elapsed() * REST).await;
        }
    }

    async fn put_some_words(&self) -> Result<Taken, StoreError> {
        // If a crash of the database undoes the step, its words are pending again.
        Ok(self.try_step(Durability::Soon, &(), |(), tx| put(tx).boxed()).await?.0)
    }

    /// Indexes the pending words before a search.
    pub(super) async fn put_words(&self) {
        let until = Instant::now() + WAIT;
        while Instant::now() < until {
            match self.read(sql!(postgres::words::has_owed), &[]).await {
                Ok(owed) if !owed.is_empty() => {}
                Ok(_) | Err(_) => return,
            }
            match self.put_some_words().await {
                Ok(Taken::Some) => {}
                // Another process is indexing them.
                Ok(Taken::None) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => {
                    return tracing::warn!(%error, "words could not be put; the last jobs may not be found");
                }
            }
        }
    }
}

/// Shows whether there was a job to index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Some,
    None,
}

/// Indexes the words of the next jobs.
async fn put(tx: &mut Tx) -> Result<Taken, Fault> {
    let [taken] = tx.load([(TAKE, &[&TOGETHER])]).await?;
    let seqs: Vec<i64> =
        taken.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<_, Fault>>()?;
    if seqs.is_empty() {
        return Ok(Taken::None);
    }
    // A second statement, so that it sees every job as it was when its record of pending words was written. A locked job
    // cannot be removed. The jobs are read in a third statement: a statement that waits for a lock combines the new row of a
    // job with the old rows of other tables, and a job that ended meanwhile would look damaged.
    let lock = sql!(postgres::words::lock_jobs);
    let select = format!("{} where jobs.seq = any($1::bigint[]) order by jobs.seq", rows::WHOLE);
    let [_, jobs] = tx.load([(lock, &[&seqs]), (&select, &[&seqs])]).await?;
    for row in &jobs {
        match rows::read_stored(row) {
            Ok(stored) => {
                let words: Vec<String> =
                    search::words_and_marks(&stored.record.job).into_iter().collect();
                tx.write(PUT, vec![Box::new(stored.seq), Box::new(words)]).await?;
            }
            // No search finds an unreadable job, and it blocks no other job.
            Err(Fault::Refused(StoreError::Corrupt { at })) => {
                tracing::warn!(at, "a job has no words: it is damaged");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(Taken::Some)
}
