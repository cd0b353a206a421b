//! The journals of runs: their steps and pages, and the jobs about other jobs. No write here is a change: the rev stays
//! the same.

use std::sync::{Arc, LazyLock};

use futures_util::FutureExt as _;
use outlast_core::rules::{JournalUsage, RunLeft, StoredStep};
use outlast_core::{
    Checkpoint, Job, JobId, JournalStep, Lease, NewJob, NewStep, OwnerId, Page, Resend,
    ResolveOutcome, Scope, StateKind, StepCosts, StepDecision, StepEnd, StepOutput, StepStart,
    StoreError, Takeover, Timestamp, rules,
};

use super::fault::Fault;
use super::rows::{self, StoredRow, params};
use super::step::Durability;
use super::text::{escape, escape_owner};
use super::tx::{Param, Tx};
use super::{StoreShared, ledger, room, writes};
use crate::columns::{Columns as _, to_signed};
use crate::journal_columns::JournalColumns as _;
use crate::ledger_columns::LedgerColumns as _;
use crate::tables::{self, PAGES, STEPS, assignments, insert, names};

const STEP: &str = sql!(postgres::journal::step);
const USAGE: &str = sql!(postgres::journal::usage);
const HAS_READ: &str = sql!(postgres::journal::has_read);

/// Reads all steps of a range of jobs with their outputs, for a copy.
pub(super) const STEPS_OF_JOBS: &str = sql!(postgres::journal::steps_of_jobs);
/// Reads all pages of a range of jobs, for a copy.
pub(super) const PAGES_OF_JOBS: &str = sql!(postgres::journal::pages_of_jobs);

static SAVE_STEP: LazyLock<String> = LazyLock::new(|| {
    let insert = insert("insert into steps", &names(STEPS));
    format!("{insert} on conflict (job, key) do update set {}", assignments(STEPS, "excluded"))
});

/// Keeps the page that is there, but locks it, so that no other step removes it meanwhile.
static ADD_PAGE: LazyLock<String> = LazyLock::new(|| {
    let insert = insert("insert into pages", &names(PAGES));
    format!("{insert} on conflict (owner, digest) do update set status = pages.status")
});

/// Begins a step, or finds it.
pub(super) async fn begin_step(
    tx: &mut Tx,
    lease: &Lease,
    new: &NewStep,
) -> Result<StepStart, Fault> {
    let (id, key) = (lease.job.to_string(), escape(&new.key));
    let ids = vec![id.clone()];
    let light = light();
    let [_, job, step, usage] = tx
        .load([(writes::LOCK, &[&ids]), (&light, &[&ids]), (STEP, &[&id, &key]), (USAGE, &[&id])])
        .await?;
    let mut held = LeasedJob::of(&job)?;
    let found = step.first().map(|row| row.stored_step()).transpose()?;
    let usage = match usage.first() {
        Some(row) => {
            JournalUsage { steps: row.count("steps")?, owner_bytes: row.count("owner_bytes")? }
        }
        None => JournalUsage::default(),
    };
    let record = &mut held.stored.record;
    let (start, saved) = rules::begin_step(record, lease, found, new, usage, tx.now())?;
    if let Some(step) = saved {
        tx.write(&SAVE_STEP, params(tables::step(&step, held.stored.seq)?)).await?;
        held.save_bytes(tx).await?;
    }
    Ok(start)
}

/// Ends a step.
pub(super) async fn end_step(
    tx: &mut Tx,
    lease: &Lease,
    key: &str,
    end: &StepEnd,
) -> Result<(), Fault> {
    let (id, key) = (lease.job.to_string(), escape(key));
    let ids = vec![id.clone()];
    let [_, job, step] =
        tx.load([(writes::LOCK, &[&ids]), (&light(), &[&ids]), (STEP, &[&id, &key])]).await?;
    let mut held = LeasedJob::of(&job)?;
    let found = step.first().map(|row| row.step()).transpose()?;
    let ended = rules::end_step(&mut held.stored.record, lease, found, end, tx.now())?;
    if let Some(ended) = ended {
        for (sql, params) in step_rows(held.stored.seq, &ended)? {
            tx.write(sql, params).await?;
        }
        held.save_bytes(tx).await?;
    }
    Ok(())
}

/// Records the decision of a person about a step whose end is not known.
pub(super) async fn resolve_step(
    tx: &mut Tx,
    scope: &Scope,
    job: &JobId,
    key: &str,
    decision: StepDecision,
) -> Result<ResolveOutcome, Fault> {
    let (id, key) = (job.to_string(), escape(key));
    let ids = vec![id.clone()];
    let select = format!("{} where jobs.id = any($1::text[])", rows::WHOLE);
    let [_, job, step] =
        tx.load([(writes::LOCK, &[&ids]), (&select, &[&ids]), (STEP, &[&id, &key])]).await?;
    let found = job.first().map(rows::read_stored).transpose()?;
    let found = found.filter(|stored| scope.sees(&stored.record.job.new.owner));
    let StoredRow { seq, record, .. } = found.ok_or(StoreError::NotFound)?;
    let found = step.first().map(|row| row.step()).transpose()?;
    let (outcome, resolved) = rules::resolve_step(&record.job, found, decision, tx.now());
    if let Some(resolved) = resolved {
        for (sql, params) in step_rows(seq, &resolved)? {
            tx.write(sql, params).await?;
        }
    }
    Ok(outcome)
}

/// Keeps a page that the run has read.
pub(super) async fn save_page(
    tx: &mut Tx,
    lease: &Lease,
    page: &Page,
    max_bytes: u64,
) -> Result<(), Fault> {
    let (id, digest) = (lease.job.to_string(), page.digest.to_vec());
    let ids = vec![id.clone()];
    let [_, job, read, usage] = tx
        .load([
            (writes::LOCK, &[&ids]),
            (&light(), &[&ids]),
            (HAS_READ, &[&id, &digest]),
            (USAGE, &[&id]),
        ])
        .await?;
    let mut held = LeasedJob::of(&job)?;
    let owner_bytes = usage.first().map_or(Ok(0), |row| row.count("owner_bytes"))?;
    let room = (owner_bytes, max_bytes);
    let record = &mut held.stored.record;
    if let Some(page) = rules::save_page(record, lease, page, !read.is_empty(), room)? {
        for (sql, params) in page_rows(held.stored.seq, &record.job.new.owner, &page)? {
            tx.write(sql, params).await?;
        }
        held.save_bytes(tx).await?;
    }
    Ok(())
}

/// Returns the cost of a job's run, if its steps decide the charge for it.
pub(super) async fn costs(
    tx: &mut Tx,
    before: &Checkpoint,
    job: &Job,
) -> Result<Option<StepCosts>, Fault> {
    if !rules::is_charged_by_steps(before, job) {
        return Ok(None);
    }
    let everyone: Option<String> = None;
    let [found] =
        tx.load([(sql!(postgres::journal::steps), &[&job.id.to_string(), &everyone])]).await?;
    let steps = found.iter().map(|row| row.step()).collect::<Result<Vec<_>, Fault>>()?;
    Ok(Some(StepCosts::sum(&steps)))
}

/// The run of an ended job that a new job takes over.
pub(super) struct TakenRun {
    /// The ended job, without the run.
    ended: StoredRow,
    /// The number of bytes that the ended job took.
    bytes: u64,
    pub(super) left: RunLeft,
    takeover: Takeover,
}

/// Locks an ended job and returns its run, if a new job may take it over.
pub(super) async fn run_left(
    tx: &mut Tx,
    takeover: Takeover,
    new: &NewJob,
) -> Result<Option<TakenRun>, Fault> {
    let ids = vec![takeover.job.to_string()];
    let row = to_signed(rules::JOURNAL_ROW_BYTES);
    let select = format!("{} where jobs.id = any($1::text[])", rows::WHOLE);
    let [_, found, bytes, charges] = tx
        .load([
            (writes::LOCK, &[&ids]),
            (&select, &[&ids]),
            (sql!(postgres::journal::bytes), &[&ids[0], &row]),
            (ledger::OF_JOBS, &[&ids]),
        ])
        .await?;
    let Some(mut ended) = found.first().map(rows::read_stored).transpose()? else {
        return Ok(None);
    };
    let before = ended.record.bytes;
    let bytes = bytes.first().map_or(Ok(0), |row| row.count("bytes"))?;
    let Some(checkpoint) = rules::release_run(&mut ended.record, new, bytes) else {
        return Ok(None);
    };
    let row = charges.last().map(|row| row.ledger_row()).transpose()?;
    Ok(Some(TakenRun { ended, bytes: before, left: RunLeft { checkpoint, bytes, row }, takeover }))
}

/// Moves the steps and pages of a run to a new job, and saves the job that had it.
pub(super) async fn move_to(tx: &mut Tx, taken: TakenRun, to: i64) -> Result<(), Fault> {
    let TakenRun { ended: StoredRow { seq: from, record, key }, bytes, takeover, .. } = taken;
    let is_allowed = takeover.open_steps == Resend::Allow;
    // An output needs its step, so the steps are copied first.
    let copy: Vec<Param> = vec![Box::new(from), Box::new(to), Box::new(is_allowed)];
    tx.write(sql!(postgres::journal::copy_steps), copy).await?;
    tx.write(sql!(postgres::journal::move_outputs), vec![Box::new(from), Box::new(to)]).await?;
    tx.write(sql!(postgres::journal::remove_steps), vec![Box::new(from)]).await?;
    tx.write(sql!(postgres::journal::move_pages), vec![Box::new(from), Box::new(to)]).await?;
    room::move_bytes(tx, &record.job.new.owner, bytes, record.bytes).await?;
    rows::save(tx, from, &record, key.as_ref()).await
}

/// A job whose journal may be removed.
struct OldRun {
    id: String,
    provider: String,
    ended_before: Timestamp,
}

/// Removes the journal of an old run. Returns false if the job has none that may be removed.
async fn forget(tx: &mut Tx, run: &OldRun) -> Result<bool, Fault> {
    let ids = vec![run.id.clone()];
    let row = to_signed(rules::JOURNAL_ROW_BYTES);
    let select = format!("{} where jobs.id = any($1::text[])", rows::WHOLE);
    let [_, found, bytes] = tx
        .load([
            (writes::LOCK, &[&ids]),
            (&select, &[&ids]),
            (sql!(postgres::journal::bytes), &[&run.id, &row]),
        ])
        .await?;
    let Some(stored) = found.first().map(rows::read_stored).transpose()? else {
        return Ok(false);
    };
    let bytes = bytes.first().map_or(Ok(0), |row| row.count("bytes"))?;
    let is_old = rules::is_forgotten(&stored.record.job, &run.provider, run.ended_before);
    if bytes == 0 || !is_old {
        return Ok(false);
    }
    let mut held = LeasedJob { bytes: stored.record.bytes, stored };
    let seq = held.stored.seq;
    tx.write(sql!(postgres::journal::remove_steps), vec![Box::new(seq)]).await?;
    tx.write(sql!(postgres::journal::remove_pages), vec![Box::new(seq)]).await?;
    held.stored.record.bytes = held.bytes.saturating_sub(bytes);
    held.save_bytes(tx).await?;
    Ok(true)
}

/// Returns the rows of a copied step or of one that ends.
pub(super) fn step_rows(
    seq: i64,
    StoredStep { step, output }: &StoredStep,
) -> Result<Vec<(&'static str, Vec<Param>)>, StoreError> {
    let mut writes = vec![(SAVE_STEP.as_str(), params(tables::step(step, seq)?))];
    if let Some(output) = output {
        let row: Vec<Param> =
            vec![Box::new(seq), Box::new(escape(&step.key)), Box::new(escape(output))];
        writes.push((sql!(postgres::journal::add_output), row));
    }
    Ok(writes)
}

/// Returns the rows of a page that a job has read.
pub(super) fn page_rows(
    seq: i64,
    owner: &OwnerId,
    page: &Page,
) -> Result<Vec<(&'static str, Vec<Param>)>, StoreError> {
    let reader: Vec<Param> =
        vec![Box::new(seq), Box::new(escape(owner.as_str())), Box::new(page.digest.to_vec())];
    Ok(vec![
        (ADD_PAGE.as_str(), params(tables::page(owner, page)?)),
        (sql!(postgres::journal::add_reader), reader),
    ])
}

/// The job of a lease, and the number of bytes that it took.
struct LeasedJob {
    stored: StoredRow,
    bytes: u64,
}

impl LeasedJob {
    /// Reads the job. Only a running job has a holder; in any other state the lease is lost.
    fn of(found: &[tokio_postgres::Row]) -> Result<Self, Fault> {
        let row = found.first().ok_or(StoreError::LeaseLost)?;
        let stored = rows::read_stored(row)?;
        Ok(Self { bytes: stored.record.bytes, stored })
    }

    async fn save_bytes(&self, tx: &mut Tx) -> Result<(), Fault> {
        let StoredRow { seq, record, .. } = &self.stored;
        let row: Vec<Param> = vec![Box::new(*seq), Box::new(to_signed(record.bytes))];
        tx.write(sql!(postgres::journal::save_bytes), row).await?;
        room::move_bytes(tx, &record.job.new.owner, self.bytes, record.bytes).await
    }
}

fn light() -> String {
    format!("{} where jobs.id = any($1::text[]) and jobs.state = 'running'", rows::LIGHT)
}

impl StoreShared {
    /// Returns the steps of a job, without their outputs.
    pub(super) async fn steps(
        &self,
        scope: &Scope,
        job: &JobId,
    ) -> Result<Vec<JournalStep>, StoreError> {
        let select = sql!(postgres::journal::steps);
        let rows = self.read(select, &[&job.to_string(), &escape_owner(scope)]).await?;
        Ok(rows.iter().map(|row| row.step()).collect::<Result<_, Fault>>()?)
    }

    /// Returns the outputs of a job's ended steps of these kinds.
    pub(super) async fn step_outputs(
        &self,
        scope: &Scope,
        job: &JobId,
        kinds: &[&str],
    ) -> Result<Vec<StepOutput>, StoreError> {
        let select = sql!(postgres::journal::step_outputs);
        let kinds: Vec<String> = kinds.iter().map(|kind| escape(kind)).collect();
        let rows = self.read(select, &[&job.to_string(), &escape_owner(scope), &kinds]).await?;
        Ok(rows.iter().map(|row| row.step_output()).collect::<Result<_, Fault>>()?)
    }

    /// Removes the journals of expired runs, each in a step.
    pub(super) async fn forget_runs(
        self: &Arc<Self>,
        provider: &str,
        ended_before: Timestamp,
    ) -> Result<u32, StoreError> {
        let select = sql!(postgres::journal::ended_before);
        let found = self.read(select, &[&escape(provider), &ended_before.as_millis()]).await?;
        let mut forgotten = 0;
        for row in &found {
            let run = OldRun { id: row.text("id")?, provider: provider.to_owned(), ended_before };
            let step = self.step(Durability::Commit, run, |run, tx| forget(tx, run).boxed());
            forgotten += u32::from(step.await?.0);
        }
        Ok(forgotten)
    }

    /// Returns a page of an owner.
    pub(super) async fn page(
        &self,
        owner: &OwnerId,
        digest: &[u8; 32],
    ) -> Result<Option<Page>, StoreError> {
        let select = sql!(postgres::journal::page);
        let rows = self.read(select, &[&escape(owner.as_str()), &digest.to_vec()]).await?;
        Ok(rows.first().map(|row| row.page()).transpose()?)
    }

    /// Returns the newest job about this one in one of these states.
    pub(super) async fn newest_about(
        &self,
        scope: &Scope,
        subject: &JobId,
        states: &[StateKind],
    ) -> Result<Option<Job>, StoreError> {
        const NEWEST: &str = sql!(postgres::journal::newest_about);
        let states: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
        let now = self.now().as_millis();
        let select = format!("{} where jobs.seq = ({NEWEST})", rows::WHOLE);
        let rows = self
            .read(&select, &[&subject.to_string(), &escape_owner(scope), &now, &states])
            .await?;
        let found = rows.first().map(rows::read_stored).transpose()?;
        Ok(found.map(|stored| stored.record.job))
    }
}
