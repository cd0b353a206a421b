//! The words by which jobs are found. They are put some time after the jobs were written, because their index costs more than all
//! else that is written of a job.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_core::{StoreError, search};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::fault::Fault;
use super::rows;
use super::step::Durability;
use super::tx::Tx;

/// How long after a job was written its words are put: a job that ends soon is put once.
const DELAY: Duration = Duration::from_secs(2);

/// How long a search waits for words that are owed: after a flood of jobs it finds the last of them later, and is answered.
const WAIT: Duration = Duration::from_secs(2);

/// How many notes of jobs are taken in one step, which keeps other writers of these jobs waiting.
const TOGETHER: i64 = 32;

/// How long a step rests before the next, as a multiple of what it took: the rest is for those who wait for an answer.
const REST: u32 = 4;

const TAKE: &str = "delete from unindexed where nr in (
       select nr from unindexed order by nr limit $1 for update skip locked) returning job";

const PUT: &str = "insert into search (job, words) values ($1, array_to_tsvector($2::text[]))
     on conflict (job) do update set words = excluded.words";

/// Puts words whenever some are owed, those that an ended process left among them.
pub(super) async fn run(shared: Weak<Shared>, owed: Arc<Notify>, closed: CancellationToken) {
    let put_all = async {
        loop {
            tokio::time::sleep(DELAY).await;
            let Some(shared) = shared.upgrade() else { return };
            if let Err(error) = shared.put_owed_words().await {
                tracing::debug!(%error, "words could not be put; the next writer or search tries again");
            }
            shared.fold_ledger_changes().await;
            drop(shared);
            owed.notified().await;
        }
    };
    closed.run_until_cancelled(put_all).await;
}

impl Shared {
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
        // What a crash of the database undoes is owed again.
        Ok(self.try_step(Durability::Soon, &(), |(), tx| put(tx).boxed()).await?.0)
    }

    /// Puts the words that are owed before a search.
    pub(super) async fn put_words(&self) {
        let until = Instant::now() + WAIT;
        while Instant::now() < until {
            match self.read("select 1 from unindexed limit 1", &[]).await {
                Ok(owed) if !owed.is_empty() => {}
                Ok(_) | Err(_) => return,
            }
            match self.put_some_words().await {
                Ok(Taken::Some) => {}
                // Another process is putting them.
                Ok(Taken::None) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => {
                    return tracing::warn!(%error, "words could not be put; the last jobs may not be found");
                }
            }
        }
    }
}

/// Whether any job was to be put.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Some,
    None,
}

/// Puts the words of the next jobs.
async fn put(tx: &mut Tx) -> Result<Taken, Fault> {
    let [taken] = tx.load([(TAKE, &[&TOGETHER])]).await?;
    let seqs: Vec<i64> =
        taken.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<_, Fault>>()?;
    if seqs.is_empty() {
        return Ok(Taken::None);
    }
    // A second statement, so that it sees every job as it was when its note was written. A job that is locked is not removed.
    // It reads in a statement of its own: one that waits for a lock combines the new row of a job with the old rows of other
    // tables, and a job that ended meanwhile would look damaged.
    let lock = "select 1 from jobs where seq = any($1::bigint[]) order by seq for key share";
    let select = format!("{} where jobs.seq = any($1::bigint[]) order by jobs.seq", rows::WHOLE);
    let [_, jobs] = tx.load([(lock, &[&seqs]), (&select, &[&seqs])]).await?;
    for row in &jobs {
        match rows::stored(row) {
            Ok(stored) => {
                let words: Vec<String> =
                    search::words_and_marks(&stored.record.job).into_iter().collect();
                tx.write(PUT, vec![Box::new(stored.seq), Box::new(words)]).await?;
            }
            // What cannot be read is found by no word, and holds up no other.
            Err(Fault::Refused(StoreError::Corrupt { at })) => {
                tracing::warn!(at, "a job has no words: it is damaged");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(Taken::Some)
}
