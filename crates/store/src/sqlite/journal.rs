//! The journals of runs: their steps and pages. Only this file knows their columns. No write here is a change: the rev
//! stays the same.

use std::sync::LazyLock;

use outlast_core::rules::{JournalUsage, RunLeft, StoredStep};
use outlast_core::{
    Checkpoint, Job, JobId, JournalStep, Lease, NewJob, NewStep, OwnerId, Page, Resend,
    ResolveOutcome, Scope, StepCosts, StepDecision, StepEnd, StepOutput, StepStart, StoreError,
    Takeover, Timestamp, rules,
};
use rusqlite::{Connection, params_from_iter};

use super::fault::Fault;
use super::rows::{self, SaveScope, StoredRow};
use super::tx::Tx;
use super::{ledger, owners, sql};
use crate::columns::to_signed;
use crate::journal_columns::JournalColumns as _;
use crate::tables::{self, PAGES, STEPS, insert, names};

/// Begins a step, or finds it.
pub(super) fn begin_step(tx: &Tx<'_>, lease: &Lease, new: &NewStep) -> Result<StepStart, Fault> {
    let StoredRow { seq, mut record } = held(tx, lease)?;
    let steps: i64 = sql::value(tx.connection, sql!(sqlite::journal::count), [seq])?;
    let owner_bytes = owners::bytes(tx.connection, &record.job.new.owner)?;
    let usage = JournalUsage { steps: steps.unsigned_abs(), owner_bytes };
    let found = step(tx.connection, seq, &new.key)?;
    let (start, saved) = rules::begin_step(&mut record, lease, found, new, usage, tx.now())?;
    if let Some(step) = saved {
        save_step(tx.connection, seq, &step)?;
        save_bytes(tx.connection, seq, record.bytes)?;
    }
    Ok(start)
}

/// Ends a step.
pub(super) fn end_step(tx: &Tx<'_>, lease: &Lease, key: &str, end: &StepEnd) -> Result<(), Fault> {
    let StoredRow { seq, mut record } = held(tx, lease)?;
    let found = step(tx.connection, seq, key)?.map(|stored| stored.step);
    if let Some(ended) = rules::end_step(&mut record, lease, found, end, tx.now())? {
        save_step(tx.connection, seq, &ended.step)?;
        save_output(tx.connection, seq, &ended)?;
        save_bytes(tx.connection, seq, record.bytes)?;
    }
    Ok(())
}

/// Records the decision of a person about a step whose end is not known.
pub(super) fn resolve_step(
    tx: &Tx<'_>,
    scope: &Scope,
    job: &JobId,
    key: &str,
    decision: StepDecision,
) -> Result<ResolveOutcome, Fault> {
    let found = rows::whole(tx.connection, "id = ?1", job.to_string())?;
    let found = found.filter(|stored| scope.sees(&stored.record.job.new.owner));
    let StoredRow { seq, record } = found.ok_or(StoreError::NotFound)?;
    let found = step(tx.connection, seq, key)?.map(|stored| stored.step);
    let (outcome, resolved) = rules::resolve_step(&record.job, found, decision, tx.now());
    if let Some(resolved) = resolved {
        save_step(tx.connection, seq, &resolved.step)?;
        save_output(tx.connection, seq, &resolved)?;
    }
    Ok(outcome)
}

/// Keeps a page that the run has read.
pub(super) fn save_page(
    tx: &Tx<'_>,
    lease: &Lease,
    page: &Page,
    max_bytes: u64,
) -> Result<(), Fault> {
    let StoredRow { seq, mut record } = held(tx, lease)?;
    let owner = record.job.new.owner.clone();
    let room = (owners::bytes(tx.connection, &owner)?, max_bytes);
    let name = (seq, owner.as_str(), &page.digest[..]);
    let is_known = sql::value(tx.connection, sql!(sqlite::journal::has_read), name)?;
    if let Some(page) = rules::save_page(&mut record, lease, page, is_known, room)? {
        add_page(tx.connection, seq, &owner, &page)?;
        save_bytes(tx.connection, seq, record.bytes)?;
    }
    Ok(())
}

/// Returns the steps of a job, without their outputs.
pub(super) fn steps(
    connection: &Connection,
    scope: &Scope,
    job: &JobId,
) -> Result<Vec<JournalStep>, Fault> {
    let mut statement = connection.prepare_cached(sql!(sqlite::journal::steps))?;
    let owner = scope.owner().map(OwnerId::as_str);
    statement.query_and_then((job.to_string(), owner), |row| row.step())?.collect()
}

/// Returns the outputs of a job's ended steps of these kinds.
pub(super) fn step_outputs(
    connection: &Connection,
    scope: &Scope,
    job: &JobId,
    kinds: &[String],
) -> Result<Vec<StepOutput>, Fault> {
    let mut statement = connection.prepare_cached(sql!(sqlite::journal::step_outputs))?;
    let owner = scope.owner().map(OwnerId::as_str);
    let kinds = serde_json::json!(kinds).to_string();
    statement.query_and_then((job.to_string(), owner, kinds), |row| row.step_output())?.collect()
}

/// Returns a page of an owner.
pub(super) fn page(
    connection: &Connection,
    owner: &OwnerId,
    digest: &[u8; 32],
) -> Result<Option<Page>, Fault> {
    let mut statement = connection.prepare_cached(sql!(sqlite::journal::page))?;
    let mut found = statement.query((owner.as_str(), &digest[..]))?;
    found.next()?.map(|row| row.page()).transpose()
}

/// Returns the whole journal of a job, for a copy.
pub(super) fn of_job(
    connection: &Connection,
    seq: i64,
) -> Result<(Vec<StoredStep>, Vec<Page>), Fault> {
    let mut statement = connection.prepare_cached(sql!(sqlite::journal::steps_of_job))?;
    let steps = statement.query_and_then([seq], |row| row.stored_step())?;
    let steps = steps.collect::<Result<_, Fault>>()?;
    let mut statement = connection.prepare_cached(sql!(sqlite::journal::pages_of_job))?;
    let pages = statement.query_and_then([seq], |row| row.page())?;
    Ok((steps, pages.collect::<Result<_, Fault>>()?))
}

/// Adds the journal of a copied job.
pub(super) fn add(
    connection: &Connection,
    seq: i64,
    owner: &OwnerId,
    steps: &[StoredStep],
    pages: &[Page],
) -> Result<(), Fault> {
    for stored in steps {
        save_step(connection, seq, &stored.step)?;
        save_output(connection, seq, stored)?;
    }
    pages.iter().try_for_each(|page| add_page(connection, seq, owner, page))
}

/// Returns the cost of a job's run, if its steps decide the charge for it.
pub(super) fn costs(
    connection: &Connection,
    before: &Checkpoint,
    job: &Job,
) -> Result<Option<StepCosts>, Fault> {
    if !rules::is_charged_by_steps(before, job) {
        return Ok(None);
    }
    Ok(Some(StepCosts::sum(&steps(connection, &Scope::Operator, &job.id)?)))
}

/// The run of an ended job that a new job takes over.
pub(super) struct TakenRun {
    /// The ended job, without the run.
    ended: StoredRow,
    pub(super) left: RunLeft,
    takeover: Takeover,
}

/// Returns the run that a new job may take over. Writes nothing.
pub(super) fn run_left(
    connection: &Connection,
    takeover: Takeover,
    new: &NewJob,
) -> Result<Option<TakenRun>, Fault> {
    let id = takeover.job.to_string();
    let found = rows::whole(connection, "id = ?1 AND state IN ('failed', 'cancelled')", &id)?;
    let Some(mut ended) = found else { return Ok(None) };
    let select = sql!(sqlite::journal::bytes);
    let row = to_signed(rules::JOURNAL_ROW_BYTES);
    let bytes = sql::value::<i64>(connection, select, (ended.seq, row))?.unsigned_abs();
    let Some(checkpoint) = rules::release_run(&mut ended.record, new, bytes) else {
        return Ok(None);
    };
    let row = ledger::of_job(connection, &Scope::Operator, &takeover.job)?.pop();
    Ok(Some(TakenRun { ended, left: RunLeft { checkpoint, bytes, row }, takeover }))
}

/// Moves the steps and pages of a run to a new job, and saves the job that had it.
pub(super) fn move_to(tx: &mut Tx<'_>, taken: TakenRun, to: i64) -> Result<(), Fault> {
    let TakenRun { mut ended, takeover, .. } = taken;
    let (connection, from) = (tx.connection, ended.seq);
    let is_allowed = takeover.open_steps == Resend::Allow;
    // An output needs its step, so the steps are copied first.
    sql::execute(connection, sql!(sqlite::journal::copy_steps), (from, to, is_allowed))?;
    sql::execute(connection, sql!(sqlite::journal::move_outputs), (from, to))?;
    sql::execute(connection, sql!(sqlite::journal::remove_steps), [from])?;
    sql::execute(connection, sql!(sqlite::journal::move_pages), (from, to))?;
    rows::save(tx, from, &mut ended.record, SaveScope::All)
}

/// Returns the ended jobs of a provider that have a journal.
pub(super) fn ended_before(
    connection: &Connection,
    provider: &str,
    moment: Timestamp,
) -> Result<Vec<i64>, Fault> {
    let select = sql!(sqlite::journal::ended_before);
    sql::column(connection, select, (provider, moment.as_millis()))
}

/// Removes the journal of an old run. Returns false if the job has none that may be removed.
pub(super) fn forget(
    tx: &Tx<'_>,
    seq: i64,
    provider: &str,
    ended_before: Timestamp,
) -> Result<bool, Fault> {
    let found = rows::whole(tx.connection, "jobs.seq = ?1", seq)?;
    let is_old =
        |stored: &StoredRow| rules::is_forgotten(&stored.record.job, provider, ended_before);
    let Some(StoredRow { record, .. }) = found.filter(is_old) else { return Ok(false) };
    let row = to_signed(rules::JOURNAL_ROW_BYTES);
    let bytes = sql::value::<i64>(tx.connection, sql!(sqlite::journal::bytes), (seq, row))?;
    sql::execute(tx.connection, sql!(sqlite::journal::remove_steps), [seq])?;
    sql::execute(tx.connection, sql!(sqlite::journal::remove_pages), [seq])?;
    save_bytes(tx.connection, seq, record.bytes.saturating_sub(bytes.unsigned_abs()))?;
    Ok(bytes > 0)
}

/// Loads the job of a lease. Only a running job has a holder; in any other state the lease is lost.
fn held(tx: &Tx<'_>, lease: &Lease) -> Result<StoredRow, Fault> {
    let found = rows::light(tx.connection, "id = ?1 AND state = 'running'", lease.job.to_string())?;
    found.ok_or_else(|| StoreError::LeaseLost.into())
}

fn step(connection: &Connection, seq: i64, key: &str) -> Result<Option<StoredStep>, Fault> {
    let mut statement = connection.prepare_cached(sql!(sqlite::journal::step))?;
    let mut found = statement.query((seq, key))?;
    found.next()?.map(|row| row.stored_step()).transpose()
}

fn save_step(connection: &Connection, seq: i64, step: &JournalStep) -> Result<(), Fault> {
    static SAVE: LazyLock<String> = LazyLock::new(|| {
        let insert = insert("INSERT INTO steps", &names(STEPS));
        format!(
            "{insert} ON CONFLICT (job, key) DO UPDATE SET {}",
            tables::assignments(STEPS, "excluded")
        )
    });
    sql::execute(connection, &SAVE, params_from_iter(tables::step(step, seq)?)).map(drop)
}

fn save_output(connection: &Connection, seq: i64, stored: &StoredStep) -> Result<(), Fault> {
    let Some(output) = &stored.output else { return Ok(()) };
    let row = (seq, &stored.step.key, output);
    sql::execute(connection, sql!(sqlite::journal::add_output), row).map(drop)
}

fn save_bytes(connection: &Connection, seq: i64, bytes: u64) -> Result<(), Fault> {
    sql::execute(connection, sql!(sqlite::journal::save_bytes), (seq, to_signed(bytes))).map(drop)
}

fn add_page(connection: &Connection, seq: i64, owner: &OwnerId, page: &Page) -> Result<(), Fault> {
    static ADD: LazyLock<String> = LazyLock::new(|| {
        insert("INSERT INTO pages", &names(PAGES)) + " ON CONFLICT (owner, digest) DO NOTHING"
    });
    sql::execute(connection, &ADD, params_from_iter(tables::page(owner, page)?))?;
    let reader = (seq, owner.as_str(), &page.digest[..]);
    sql::execute(connection, sql!(sqlite::journal::add_reader), reader).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::open;

    /// K2: a list of steps reads no output.
    #[test]
    fn k2_a_list_of_steps_never_reads_their_outputs() {
        let dir = tempfile::TempDir::new().unwrap();
        let plan = sql::plan(&open::made_for_test(&dir), sql!(sqlite::journal::steps));
        assert_eq!(plan[0], "SEARCH steps USING PRIMARY KEY (job=?)", "{plan:?}");
        assert!(!plan.iter().any(|line| line.contains("step_outputs")), "{plan:?}");
    }
}
