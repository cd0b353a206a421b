//! A PostgreSQL database as the source or the target of a copy.

use std::collections::HashMap;

use async_trait::async_trait;
use outlast_core::{LedgerRow, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::alone::Alone;
use super::fault::Fault;
use super::rows::{self, StoredRow, get, params};
use super::text::escape;
use super::tx::{InOrder, Param, Sent, borrow_all, columns_of};
use super::{identities, journal, ledger, lineage, schema};
use crate::columns::{Columns as _, to_signed};
use crate::copy_side::{BATCH_JOBS, BATCH_ROWS, CopyRefusal, CopySide, JobCounts, WholeJob};
use crate::journal_columns::JournalColumns as _;
use crate::ledger_columns::LedgerColumns as _;
use crate::{tables, unavailable};

/// New numbers continue after the copied ones, and each owner's bytes are added up.
const COMPLETE: &str = "begin;
     delete from room;
     delete from title_segments;
     delete from title_parts;
     update owners set bytes = (select coalesce(sum(jobs.bytes), 0)::bigint from jobs where jobs.owner = owners.owner);
     select setval(pg_get_serial_sequence('jobs', 'seq'), (select coalesce(max(seq), 0) + 1 from jobs), false);
     select setval('rev', greatest((select last_value from rev), (select max(rev) from revs)));
     update meta set copying = null;
     commit";

const REV: &str = sql!(postgres::transfer::rev);
const OWNER: &str = sql!(postgres::transfer::owner);

const DELETES: [&str; 4] = [
    sql!(postgres::transfer::delete_keys),
    sql!(postgres::transfer::delete_revs),
    sql!(postgres::transfer::delete_bodies),
    sql!(postgres::transfer::delete_jobs),
];

/// A database that no server is using.
pub(crate) struct PostgresSide {
    alone: Alone,
    id: i64,
}

impl PostgresSide {
    /// Opens a database as the source of a copy. The database is not changed.
    pub(crate) async fn source(url: &str) -> Result<Self, CopyRefusal> {
        // One transaction over the whole copy, so that a server that was not detected cannot write either.
        const HOLD: &str = "begin; set local idle_in_transaction_session_timeout = 0;
             lock table jobs, keys, ledger in share mode";
        let alone = Alone::connect(url).await?;
        match schema::version(&alone.client).await? {
            (None, _) => return Err(CopyRefusal::Missing),
            (schema, newest) => refuse_other(schema, newest)?,
        }
        let side = Self::lock(alone).await?;
        side.alone.client.batch_execute(HOLD).await?;
        Ok(side)
    }

    /// Opens a database as the target of a copy, and creates the tables if there are none.
    pub(crate) async fn target(url: &str) -> Result<Self, CopyRefusal> {
        let mut alone = Alone::connect(url).await?;
        match schema::version(&alone.client).await? {
            (None, _) => schema::migrate(&mut alone.client).await?,
            (schema, newest) => refuse_other(schema, newest)?,
        }
        Self::lock(alone).await
    }

    async fn lock(alone: Alone) -> Result<Self, CopyRefusal> {
        if !alone.lock().await? {
            return Err(CopyRefusal::InUse);
        }
        let id = lineage::store_id(&alone.client).await?;
        let id = Uuid::parse_str(&id).map_err(unavailable)?.as_u64_pair().0;
        Ok(Self { alone, id: id.cast_signed() })
    }

    async fn query(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, CopyRefusal> {
        Ok(self.alone.client.query(sql, params).await?)
    }

    /// Runs the writes in one transaction.
    async fn write(&mut self, writes: Vec<(&'static str, Vec<Param>)>) -> Result<(), Fault> {
        let tx = self.alone.client.transaction().await?;
        let mut statements = HashMap::new();
        for (sql, _) in &writes {
            if !statements.contains_key(sql) {
                statements.insert(*sql, tx.prepare(sql).await?);
            }
        }
        let mut sent: Vec<Sent<'_, u64>> = Vec::with_capacity(writes.len());
        for (sql, params) in &writes {
            let (Some(statement), tx) = (statements.get(sql), &tx) else { continue };
            sent.push(Box::pin(async move { tx.execute(statement, &borrow_all(params)).await }));
        }
        InOrder::new(sent).await?;
        Ok(tx.commit().await?)
    }
}

fn refuse_other(schema: Option<u32>, newest: u32) -> Result<(), CopyRefusal> {
    let schema = schema.unwrap_or(0);
    match schema.cmp(&newest) {
        std::cmp::Ordering::Less => Err(CopyRefusal::OldSchema { schema, newest }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(StoreError::Newer { schema }.into()),
    }
}

impl From<Fault> for CopyRefusal {
    fn from(fault: Fault) -> Self {
        Self::Store(fault.into())
    }
}

impl From<tokio_postgres::Error> for CopyRefusal {
    fn from(error: tokio_postgres::Error) -> Self {
        Fault::Sql(error).into()
    }
}

#[async_trait]
impl CopySide for PostgresSide {
    fn id(&self) -> i64 {
        self.id
    }

    async fn counts(&mut self) -> Result<JobCounts, CopyRefusal> {
        const COUNT: &str = sql!(postgres::transfer::count);
        let rows = self.query(COUNT, &[]).await?;
        let row = rows.first().ok_or_else(|| unavailable("its jobs cannot be counted"))?;
        Ok(JobCounts {
            jobs: row.count("jobs")?,
            unfinished: row.count("unfinished")?,
            runs: row.count("runs")?,
        })
    }

    async fn sizes(&mut self, after: i64) -> Result<Vec<(i64, u64)>, CopyRefusal> {
        let select = sql!(postgres::transfer::sizes);
        let found = self.query(select, &[&after, &to_signed(BATCH_JOBS as u64)]).await?;
        let sizes = found.iter().map(|row| Ok((row.number("seq")?, row.count("bytes")?)));
        Ok(sizes.collect::<Result<_, Fault>>()?)
    }

    async fn jobs(&mut self, after: i64, last: i64) -> Result<Vec<WholeJob>, CopyRefusal> {
        let columns = "select bodies.raw, keys.text as key, ";
        let whole = rows::WHOLE.replacen("select ", columns, 1);
        let select = format!("{whole} where jobs.seq > $1 and jobs.seq <= $2 order by jobs.seq");
        let found = self.query(&select, &[&after, &last]).await?;
        let mut identities = HashMap::new();
        let of_jobs = "where call_identities.job > $1 and call_identities.job <= $2";
        let of_jobs = format!("{} {of_jobs}", identities::SELECT);
        for row in self.query(&of_jobs, &[&after, &last]).await? {
            identities.insert(row.number("job")?, identities::of_row(&row)?);
        }
        let (mut steps, mut pages) = (HashMap::<i64, Vec<_>>::new(), HashMap::<i64, Vec<_>>::new());
        for row in self.query(journal::STEPS_OF_JOBS, &[&after, &last]).await? {
            steps.entry(row.number("job")?).or_default().push(row.stored_step()?);
        }
        for row in self.query(journal::PAGES_OF_JOBS, &[&after, &last]).await? {
            pages.entry(row.number("job")?).or_default().push(row.page()?);
        }
        let with_rows = |row| {
            let mut job = whole_job(row)?;
            job.identity = identities.remove(&job.seq);
            job.steps = steps.remove(&job.seq).unwrap_or_default();
            job.pages = pages.remove(&job.seq).unwrap_or_default();
            Ok(job)
        };
        Ok(found.iter().map(with_rows).collect::<Result<_, Fault>>()?)
    }

    async fn source(&mut self) -> Result<Option<i64>, CopyRefusal> {
        let rows = self.query(sql!(postgres::transfer::source), &[]).await?;
        Ok(rows.first().map_or(Ok(None), |row| row.maybe_number("copying"))?)
    }

    async fn begin(&mut self, source: i64) -> Result<(), CopyRefusal> {
        self.query(sql!(postgres::transfer::begin), &[&source]).await.map(drop)
    }

    async fn replace(
        &mut self,
        after: i64,
        last: i64,
        jobs: &[WholeJob],
    ) -> Result<(), CopyRefusal> {
        let mut writes: Vec<(&'static str, Vec<Param>)> = Vec::new();
        for delete in DELETES {
            writes.push((delete, vec![Box::new(after), Box::new(last)]));
        }
        for job in jobs {
            add(&mut writes, job)?;
        }
        Ok(self.write(writes).await?)
    }

    async fn ledger(&mut self, after: Option<&LedgerRow>) -> Result<Vec<LedgerRow>, CopyRefusal> {
        let (job, run) = after.map_or_else(Default::default, |row| (row.job.to_string(), row.run));
        let limit = to_signed(BATCH_ROWS as u64);
        let rows = self.query(ledger::AFTER, &[&job, &i64::from(run), &limit]).await?;
        Ok(rows.iter().map(|row| row.ledger_row()).collect::<Result<_, Fault>>()?)
    }

    async fn clear_ledger(&mut self) -> Result<(), CopyRefusal> {
        self.query(sql!(postgres::transfer::clear_ledger), &[]).await.map(drop)
    }

    async fn add_to_ledger(&mut self, rows: &[LedgerRow]) -> Result<(), CopyRefusal> {
        let writes = rows.iter().map(|row| Ok((ledger::ADD.as_str(), ledger::row(row)?)));
        Ok(self.write(writes.collect::<Result<_, StoreError>>()?).await?)
    }

    async fn complete(&mut self) -> Result<(), CopyRefusal> {
        Ok(self.alone.client.batch_execute(COMPLETE).await?)
    }

    async fn close(self: Box<Self>) {
        self.alone.close().await;
    }
}

fn whole_job(row: &Row) -> Result<WholeJob, Fault> {
    let StoredRow { seq, mut record, key } = rows::read_stored(row)?;
    // Its worker ended together with its process.
    record.job.partial = None;
    let key = row.maybe_text("key")?.zip(key);
    let (steps, pages) = (Vec::new(), Vec::new());
    Ok(WholeJob { seq, record, key, identity: None, raw: get(row, "raw")?, steps, pages })
}

/// Adds the job as it was when it was new, then updates it to its current state.
fn add(
    writes: &mut Vec<(&'static str, Vec<Param>)>,
    WholeJob { seq, record, key, identity, raw, steps, pages }: &WholeJob,
) -> Result<(), Fault> {
    let (seq, job) = (*seq, &record.job);
    let owner = escape(job.new.owner.as_str());
    writes.push((OWNER, vec![Box::new(owner.clone())]));
    writes.push((&rows::ADD, rows::insert_params(seq, record)?));
    writes.push((rows::FILL, rows::output_params(seq, job.output(), raw.as_deref())?));
    let saved = rows::update_params(seq, record, key.as_ref().map(|(_, key)| key))?;
    writes.push((&rows::SAVE, columns_of(vec![saved])));
    if let Some(questions) = rows::questions_params(seq, job)? {
        writes.push((rows::SAVE_QUESTIONS, questions));
    }
    writes.push((REV, vec![Box::new(seq), Box::new(to_signed(job.rev.0))]));
    if let Some((text, key)) = key {
        writes.push((&rows::TAKE_KEY, params(tables::key(&job.new.owner, text, key, seq)?)));
    }
    if let Some(identity) = identity {
        writes.push((&identities::ADD, params(tables::identity(&job.new.owner, identity, seq)?)));
    }
    for step in steps {
        writes.extend(journal::step_rows(seq, step)?);
    }
    for page in pages {
        writes.extend(journal::page_rows(seq, &job.new.owner, page)?);
    }
    Ok(())
}
