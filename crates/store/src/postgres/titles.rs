//! The index of titles. Only this file knows its tables.

use std::ops::Range;
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_core::StoreError;
use tokio::time::Instant;

use super::StoreShared;
use super::fault::Fault;
use super::rows::get;
use super::step::Durability;
use super::text::unescape;
use super::tx::Tx;
use crate::titles::{self, TitleParts};

/// The next segment to index, the segment of the newest job, the transactions that have ended, and those that have begun.
const STATE: &str = sql!(postgres::titles::state);

/// The pause before the next look for transactions that have not ended, and the number of looks.
const PAUSE: Duration = Duration::from_secs(2);
const LOOKS: u32 = 15;

/// The pause after a segment, as a multiple of its duration. It leaves the database to callers that wait for an answer.
const REST: u32 = 2;

impl StoreShared {
    /// Indexes the titles of complete segments.
    ///
    /// A job may become visible after jobs with higher numbers. So a segment is complete once every transaction has ended that
    /// had begun when a job of a later segment was seen.
    pub(super) async fn index_titles(&self) -> Result<TitlesLeft, StoreError> {
        let state = self.title_state().await?;
        if state.next >= state.newest {
            return Ok(TitlesLeft::None);
        }
        for _ in 0..LOOKS {
            if self.title_state().await?.ended >= state.begun {
                self.index_segments(state.newest).await?;
                return Ok(TitlesLeft::None);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(TitlesLeft::BehindTransactions)
    }

    async fn index_segments(&self, until: i64) -> Result<(), StoreError> {
        loop {
            let began = Instant::now();
            let step =
                self.try_step(Durability::Soon, &until, |until, tx| index_next(tx, *until).boxed());
            if step.await?.0 == IndexProgress::None {
                return Ok(());
            }
            tokio::time::sleep(began.elapsed() * REST).await;
        }
    }

    async fn title_state(&self) -> Result<TitleState, Fault> {
        let rows = self.read(STATE, &[]).await?;
        let row = rows.first().ok_or_else(|| crate::unavailable("the index has no state"))?;
        Ok(TitleState {
            next: get(row, "next")?,
            newest: get(row, "newest")?,
            ended: get(row, "ended")?,
            begun: get(row, "begun")?,
        })
    }

    /// The segment after the indexed ones.
    pub(super) async fn titles_end(&self) -> Result<i64, Fault> {
        let select = sql!(postgres::titles::titles_end);
        let rows = self.read(select, &[]).await?;
        rows.first().map_or(Ok(0), |row| get(row, "next"))
    }

    /// Returns the jobs of these segments whose titles may contain the text, newest first.
    pub(super) async fn title_candidates(
        &self,
        parts: &TitleParts,
        segments: Range<i64>,
        before: i64,
    ) -> Result<Vec<i64>, Fault> {
        // Reads one segment after the other by the key, whatever the database expects of its tables.
        let all = sql!(postgres::titles::sets_of_all);
        let one = sql!(postgres::titles::sets_of_one);
        let Range { start, end } = segments;
        let mut rows = self.read(all, &[&start, &end, &parts.all]).await?;
        if let Some((first, last)) = parts.one_from {
            rows.extend(self.read(one, &[&start, &end, &first, &last]).await?);
        }
        let set = |row| Ok((get(row, "segment")?, get(row, "part")?, get(row, "jobs")?));
        let sets: Vec<_> = rows.iter().map(set).collect::<Result<_, Fault>>()?;
        Ok(titles::candidates(parts, sets, before))
    }
}

/// Complete segments whose titles are not indexed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TitlesLeft {
    None,
    /// A transaction that had begun before them has not ended.
    BehindTransactions,
}

struct TitleState {
    next: i64,
    newest: i64,
    ended: i64,
    begun: i64,
}

/// Shows whether there was a segment to index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IndexProgress {
    One,
    None,
}

async fn index_next(tx: &mut Tx, until: i64) -> Result<IndexProgress, Fault> {
    const ALONE: &str = sql!(postgres::titles::alone);
    const TITLES: &str = sql!(postgres::titles::titles);
    const FORGET_OLD: &str = sql!(postgres::titles::forget_old);
    const ADD: &str = sql!(postgres::titles::add);
    let [alone] = tx.load([(ALONE, &[])]).await?;
    if !alone.first().map_or(Ok(false), |row| row.try_get("is_alone"))? {
        return Ok(IndexProgress::None);
    }
    // A second statement, which sees what the process did that had the lock before.
    let [state] = tx.load([(STATE, &[])]).await?;
    let next: i64 = state.first().map_or(Ok(until), |row| get(row, "next"))?;
    if next >= until {
        return Ok(IndexProgress::None);
    }
    let (first, end) = (titles::first_of(next), titles::first_of(next + 1));
    let [jobs] = tx.load([(TITLES, &[&first, &end])]).await?;
    let title = |row| -> Result<_, Fault> {
        let (owner, title) = (get(row, "owner")?, get(row, "title_folded")?);
        Ok((get(row, "seq")?, unescape(owner), unescape(title)))
    };
    let jobs = jobs.iter().map(title).collect::<Result<Vec<_>, _>>()?;
    let (parts, sets): (Vec<i64>, Vec<Vec<u8>>) =
        titles::sets(jobs.into_iter()).into_iter().unzip();
    tx.write(FORGET_OLD, vec![]).await?;
    tx.write(ADD, vec![Box::new(next), Box::new(parts), Box::new(sets)]).await?;
    tx.write(sql!(postgres::titles::index_next), vec![Box::new(next)]).await?;
    Ok(IndexProgress::One)
}
