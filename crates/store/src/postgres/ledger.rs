//! The ledger, which records the cost of each paid run. Only this file knows its columns.

use std::sync::{Arc, LazyLock};

use outlast_core::{
    Checkpoint, CountedSpend, Day, Job, LedgerRow, NanoUsd, Record, RemoteRun, Scope, SpendBy,
    StepCosts, StoreError, Timestamp, rules,
};

use super::StoreShared;
use super::fault::Fault;
use super::rows::params;
use super::step::Durability;
use super::text::{escape, escape_owner};
use super::tx::{Param, Tx};
use crate::columns::Columns as _;
use crate::ledger_columns::{self, sum_counted};
use crate::tables::{self, LEDGER, insert, names, update};

/// Adds a row. Takes the parameters of [`row`].
pub(super) static ADD: LazyLock<String> =
    LazyLock::new(|| insert("insert into ledger", &names(LEDGER)));

/// Selects the next rows after a given one.
pub(super) const AFTER: &str = sql!(postgres::ledger::after);

/// Selects the rows of these jobs; the row of a job's latest run comes last.
pub(super) const OF_JOBS: &str = sql!(postgres::ledger::of_jobs);

/// Changes the row of a run, unless the run has moved to another job. Takes the parameters of [`row`].
static SAVE: LazyLock<String> =
    LazyLock::new(|| update("ledger", &names(LEDGER), "job = $1 and run = $2"));

/// The parameters for a row.
pub(super) fn row(row: &LedgerRow) -> Result<Vec<Param>, StoreError> {
    tables::ledger(row).map(params)
}

/// The amount that the owner's runs of this day count for. The caller has locked the owner's row.
pub(super) async fn sum_of_day(tx: &mut Tx, owner: &str, day: Day) -> Result<NanoUsd, Fault> {
    let sum = sum_counted("");
    let select = format!("select {sum} as counted from ledger where owner = $1 and day = $2");
    let [rows] = tx.load([(&select, &[&owner, &day.0])]).await?;
    rows.first().map_or(Ok(NanoUsd(0)), |row| Ok(NanoUsd(row.count("counted")?)))
}

/// Limits the cost of another run of the job, if the step before queued one.
pub(super) async fn bind_another_run(
    tx: &mut Tx,
    before: &Checkpoint,
    record: &mut Record,
) -> Result<(), Fault> {
    const LOCK_OWNER: &str = sql!(postgres::ledger::lock_owner);
    if !rules::begins_another_run(before, &record.job) {
        return Ok(());
    }
    let (owner, id) = (escape(record.job.new.owner.as_str()), record.job.id.to_string());
    let select = format!("select {} as counted from ledger where job = $1", sum_counted(""));
    let [_, of_job] = tx.load([(LOCK_OWNER, &[&owner]), (&select, &[&id])]).await?;
    let job = of_job.first().map_or(Ok(0), |row| row.count("counted")).map(NanoUsd)?;
    let day = sum_of_day(tx, &owner, tx.now().day()).await?;
    let now = tx.now();
    rules::reserve_another_run(record, CountedSpend { day, job }, now);
    Ok(())
}

/// Moves the row of a run to the job that resumes the run.
pub(super) async fn move_row(tx: &mut Tx, run: &RemoteRun, job: &Job) -> Result<(), Fault> {
    const MOVE: &str = sql!(postgres::ledger::move_row);
    let params: Vec<Param> = vec![
        Box::new(job.id.to_string()),
        Box::new(escape(&run.id)),
        Box::new(escape(job.new.owner.as_str())),
    ];
    tx.write(MOVE, params).await
}

/// Removes a row.
pub(super) async fn remove(tx: &mut Tx, row: &LedgerRow) -> Result<(), Fault> {
    let params: Vec<Param> = vec![Box::new(row.job.to_string()), Box::new(i64::from(row.run))];
    tx.write(sql!(postgres::ledger::remove), params).await
}

/// Returns the ledger writes for a step of the job: the outcome of its latest run, and the run that follows it. `steps` is
/// the cost of the run by its journal, if the journal is complete.
pub(super) fn charge_params(
    before: &Checkpoint,
    job: &Job,
    steps: Option<StepCosts>,
    latest: &mut Option<LedgerRow>,
    now: Timestamp,
) -> Result<Vec<(&'static str, Vec<Param>)>, StoreError> {
    let Some((charge, before)) = rules::charge(before, job, steps).zip(latest.as_ref()) else {
        return Ok(Vec::new());
    };
    let (ended, next) = charge.apply(before, job.allowance.as_ref(), now);
    let mut writes = vec![(SAVE.as_str(), row(&ended)?)];
    if let Some(next) = &next {
        writes.push((&ADD, row(next)?));
    }
    *latest = Some(next.unwrap_or(ended));
    Ok(writes)
}

/// The tables whose sums together equal those of the ledger.
const DAYS: [&str; 2] = ["ledger_days", "ledger_changes"];

/// The columns that form the key of both tables.
const DAY_KEY: &str = "owner, day, provider, has_model, model, state";

/// The maximum number of changes that a sum may read: some milliseconds.
const FEW_CHANGES: i64 = 2_000;

/// Selects the amounts spent from a day (`$1`) on, by one owner (`$2`) or all.
pub(super) fn sums_of(scope: &Scope, by: SpendBy) -> String {
    let owned = if scope.owner().is_some() { "owner = $2" } else { "$2::text is null" };
    ledger_columns::sums(by, &format!("day >= $1 and {owned}"), &DAYS)
}

impl StoreShared {
    /// Adds the changes of the ledger to its days, if sums would take long otherwise.
    pub(super) async fn fold_many_ledger_changes(self: &Arc<Self>) {
        const MANY: &str = sql!(postgres::ledger::many_changes);
        let many = self.read(MANY, &[&FEW_CHANGES]).await;
        if many.is_ok_and(|many| !many.is_empty()) {
            self.fold_ledger_changes().await;
        }
    }

    /// Adds the changes of the ledger to its days. Sums are the same before and after, even if this fails.
    pub(super) async fn fold_ledger_changes(self: &Arc<Self>) {
        let fold = self.try_step(Durability::Soon, &(), |(), tx| Box::pin(fold_changes(tx))).await;
        if let Err(error) = fold {
            tracing::debug!(%error, "failed to add up changes of the ledger; the next writer tries again");
        }
    }

    /// Records that old rows were found today. Removes old rows after such records exist for enough days.
    pub(super) async fn shorten_ledger(self: &Arc<Self>, scope: &Scope) -> Result<(), StoreError> {
        const OLD: &str = sql!(postgres::ledger::has_old);
        let (old, owner) = (rules::ledger_old_until(self.now().day()), escape_owner(scope));
        if self.read(OLD, &[&old.0, &owner]).await?.is_empty() {
            return Ok(());
        }
        let step = self.step(Durability::Commit, owner, |owner, tx| {
            Box::pin(async move { remove_old(tx, owner.as_deref()).await })
        });
        step.await.map(drop)
    }
}

async fn fold_changes(tx: &mut Tx) -> Result<(), Fault> {
    // One process at a time: two would wait for each other's days, and the second would find nothing to do.
    const ALONE: &str = sql!(postgres::ledger::fold_alone);
    let [alone] = tx.load([(ALONE, &[])]).await?;
    if !alone.first().map_or(Ok(false), |row| row.try_get("is_alone"))? {
        return Ok(());
    }
    let fold = format!(
        "with taken as (delete from ledger_changes returning *)
         insert into ledger_days ({DAY_KEY}, runs, dollars, rest)
           select {DAY_KEY}, sum(runs), sum(dollars), sum(rest) from taken group by {DAY_KEY}
         on conflict ({DAY_KEY}) do update set runs = ledger_days.runs + excluded.runs,
           dollars = ledger_days.dollars + excluded.dollars, rest = ledger_days.rest + excluded.rest"
    );
    let [_] = tx.load([(&fold, &[])]).await?;
    Ok(())
}

async fn remove_old(tx: &mut Tx, owner: Option<&str>) -> Result<(), Fault> {
    const RECORD: &str = sql!(postgres::ledger::record_sweep);
    const FORGET: &str = sql!(postgres::ledger::forget_sweeps);
    const DAYS: &str = sql!(postgres::ledger::sweeps);
    const EMPTY: &str = sql!(postgres::ledger::remove_empty_days);
    const DELETE: &str = sql!(postgres::ledger::remove_old);
    // The server's clock is known after the first answer.
    let [_] = tx.load([(DAYS, &[])]).await?;
    let today = tx.now().day();
    let needed = rules::sweeps_needed_from(today);
    let [_, _, rows] =
        tx.load([(RECORD, &[&today.0]), (FORGET, &[&needed.0]), (DAYS, &[])]).await?;
    let days = rows.iter().map(|row| row.number("day").map(Day)).collect::<Result<Vec<_>, _>>()?;
    if let Some(until) = rules::ledger_removable_until(&days, today) {
        tx.load([(DELETE, &[&until.0, &owner]), (EMPTY, &[&until.0])]).await?;
    }
    Ok(())
}
