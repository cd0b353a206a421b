//! Ends jobs that may have been paid for since a dump was made, in a database to which the dump was restored.

use std::path::Path;

use outlast_core::rules::{self, RestoredOutcome};
use outlast_core::{EndNotices, Profile, RecoverySemantics, Request, Timestamp};
use tokio_postgres::Transaction;

use super::alone::Alone;
use super::fault::Fault;
use super::lineage::{self, FoundDatabase};
use super::rows::{self, StoredRow};
use super::tx::{CHANGED, borrow_all, columns_of};
use super::{PostgresStore, ledger, notices, schema};
use crate::ledger_columns::LedgerColumns as _;
use crate::restored::{RestoreError, Restored, RestoredJob};

impl PostgresStore {
    /// Decides about all unfinished jobs of a database that was restored from a dump, and makes it the store's own database.
    /// Ends jobs only if something shows that the database is an older copy, or with `force`. `notices` sets whether notices
    /// of these ends are stored. `semantics` returns the recovery semantics of the provider of these jobs for a request.
    pub async fn restore_in_place(
        url: &str,
        state_dir: Option<&Path>,
        semantics: &(dyn Fn(&Profile, &Request) -> Option<RecoverySemantics> + Sync),
        notices: EndNotices,
        force: bool,
    ) -> Result<Restored, RestoreError> {
        let mut alone = Alone::connect(url).await?;
        schema::migrate(&mut alone.client).await?;
        if !alone.lock().await? {
            return Err(RestoreError::InUse);
        }
        let store = lineage::store_id(&alone.client).await?;
        let found = FoundDatabase::look(&alone.client).await?;
        let is_outdated =
            lineage::explain_outdated(&alone.client, &found, state_dir).await?.is_some();
        let tx = alone.client.transaction().await.map_err(Fault::from)?;
        // A server that was not detected cannot write meanwhile.
        let lock = "lock table jobs, keys, ledger in share row exclusive mode";
        tx.batch_execute(lock).await.map_err(Fault::from)?;
        let decided = decide(&tx, semantics).await?;
        let ended = decided.iter().filter(|(_, fate)| *fate == RestoredOutcome::Ended).count();
        let may_end = ended == 0 || is_outdated || force;
        let saved = if may_end {
            let adopted = lineage::adopt(tx.client(), &found, &store, state_dir).await?;
            save(tx, &decided, notices).await.map(|()| Some(adopted))
        } else {
            tx.rollback().await.map(|()| None).map_err(Fault::from)
        };
        alone.close().await;
        let Some((mark, position)) = saved? else {
            return Err(RestoreError::Current { jobs: ended });
        };
        mark.replace(&position);
        let jobs = decided.into_iter();
        let jobs = jobs.map(|(stored, fate)| RestoredJob { job: stored.record.job, fate });
        Ok(Restored { jobs: jobs.collect(), kept: None })
    }
}

impl From<Fault> for RestoreError {
    fn from(fault: Fault) -> Self {
        Self::Store(fault.into())
    }
}

/// Returns all unfinished jobs in their new state, oldest first. Writes nothing.
async fn decide(
    tx: &Transaction<'_>,
    semantics: &(dyn Fn(&Profile, &Request) -> Option<RecoverySemantics> + Sync),
) -> Result<Vec<(StoredRow, RestoredOutcome)>, Fault> {
    let now = sql!(postgres::restore::now);
    let now = Timestamp::from_millis(tx.query_one(now, &[]).await?.try_get(0)?);
    let select = format!("{} where jobs.ended_at is null order by jobs.seq", rows::WHOLE);
    let mut decided = Vec::new();
    for row in tx.query(&select, &[]).await? {
        let mut stored = rows::read_stored(&row)?;
        let new = &stored.record.job.new;
        let semantics = semantics(&new.profile, &new.request);
        let fate = rules::restore(&mut stored.record, semantics, now);
        decided.extend(fate.map(|fate| (stored, fate)));
    }
    Ok(decided)
}

/// Saves the decisions.
async fn save(
    tx: Transaction<'_>,
    decided: &[(StoredRow, RestoredOutcome)],
    notices: EndNotices,
) -> Result<(), Fault> {
    tx.batch_execute("delete from worker_profiles; delete from workers").await?;
    let (mut writes, mut saved) = (Vec::new(), Vec::with_capacity(decided.len()));
    for (StoredRow { seq, record, key }, fate) in decided {
        saved.push(rows::update_params(*seq, record, key.as_ref())?);
        let job = &record.job;
        let runs = tx.query(ledger::OF_JOBS, &[&[job.id.to_string()].as_slice()]).await?;
        let mut latest = runs.last().map(|row| row.ledger_row()).transpose()?;
        // The journal lacks the steps that were taken after the backup.
        let steps = None;
        writes.extend(ledger::charge_params(
            &job.checkpoint,
            job,
            steps,
            &mut latest,
            job.updated_at,
        )?);
        let max_failures = i64::from(job.new.max_failures);
        writes.push((
            sql!(postgres::restore::set_max_failures),
            vec![Box::new(*seq), Box::new(max_failures)],
        ));
        if notices.max(record.notice) == EndNotices::Kept && *fate == RestoredOutcome::Ended {
            let notice = notices::insert_params(job, job.updated_at);
            writes.extend(notice.map(|notice| (notices::ADD, notice)));
        }
    }
    if !saved.is_empty() {
        writes.push((rows::SAVE.as_str(), columns_of(saved)));
    }
    for (sql, params) in &writes {
        tx.execute(*sql, &borrow_all(params)).await?;
    }
    let seqs: Vec<i64> = decided.iter().map(|(stored, _)| stored.seq).collect();
    tx.query(CHANGED, &[&seqs]).await?;
    Ok(tx.commit().await?)
}
