//! The ledger, which records the cost of each paid run. Only this file knows its columns.

use std::sync::LazyLock;

use outlast_core::{
    Checkpoint, CountedSpend, Day, Job, JobId, LedgerRow, NanoUsd, OwnerId, Record, RemoteRun,
    Scope, SpendBy, SpendQuery, SpendSum, StepCosts, Timestamp, rules,
};
use rusqlite::{Connection, params_from_iter};

use super::fault::Fault;
use super::tx::Tx;
use super::{journal, sql};
use crate::columns::to_signed;
use crate::ledger_columns::{self, LedgerColumns as _, sum_counted};
use crate::tables::{self, LEDGER, Value, insert, names, update};

/// The amount that the owner's runs of this day count for.
pub(super) fn sum_of_day(
    connection: &Connection,
    owner: &OwnerId,
    day: Day,
) -> Result<NanoUsd, Fault> {
    let select = format!("SELECT {} FROM ledger WHERE owner = ?1 AND day = ?2", sum_counted(""));
    let counted: i64 = sql::value(connection, &select, (owner.as_str(), day.0))?;
    Ok(NanoUsd(counted.unsigned_abs()))
}

/// The amount that the job's runs count for.
fn sum_of_job(connection: &Connection, job: JobId) -> Result<NanoUsd, Fault> {
    let select = format!("SELECT {} FROM ledger WHERE job = ?1", sum_counted(""));
    let counted: i64 = sql::value(connection, &select, [job.to_string()])?;
    Ok(NanoUsd(counted.unsigned_abs()))
}

/// Limits the cost of another run of the job, if the step before queued one.
pub(super) fn bind_another_run(
    tx: &Tx<'_>,
    before: &Checkpoint,
    record: &mut Record,
) -> Result<(), Fault> {
    if rules::begins_another_run(before, &record.job) {
        let day = sum_of_day(tx.connection, &record.job.new.owner, tx.now().day())?;
        let job = sum_of_job(tx.connection, record.job.id)?;
        rules::reserve_another_run(record, CountedSpend { day, job }, tx.now());
    }
    Ok(())
}

/// Adds a row, or replaces the row of the same run.
pub(super) fn put(connection: &Connection, row: &LedgerRow) -> Result<(), Fault> {
    static PUT: LazyLock<String> =
        LazyLock::new(|| insert("INSERT OR REPLACE INTO ledger", &names(LEDGER)));
    sql::execute(connection, &PUT, params_from_iter(tables::ledger(row)?)).map(drop)
}

/// Saves the charge of a row. Names only the columns that a charge changes, because SQLite writes the indexes of all named
/// columns again.
fn save_charge(connection: &Connection, row: &LedgerRow) -> Result<(), Fault> {
    const KEPT: [&str; 6] = ["job", "run", "owner", "provider", "at", "day"];
    static SAVE: LazyLock<String> = LazyLock::new(|| {
        let mut names = names(LEDGER);
        names.retain(|name| !KEPT.contains(name));
        let at = names.len();
        update("ledger", &names, &format!("job = ${} AND run = ${}", at + 1, at + 2))
    });
    let named = names(LEDGER).into_iter().zip(tables::ledger(row)?);
    let changed = named.filter(|(name, _)| !KEPT.contains(name)).map(|(_, value)| value);
    let values = changed.chain([Value::from(row.job.to_string()), Value::from(row.run)]);
    sql::execute(connection, &SAVE, params_from_iter(values)).map(drop)
}

/// Moves the row of a run to the job that resumes the run.
pub(super) fn move_row(connection: &Connection, run: &RemoteRun, job: &Job) -> Result<(), Fault> {
    let update = sql!(sqlite::ledger::move_row);
    let found = (job.id.to_string(), &run.id, job.new.owner.as_str());
    sql::execute(connection, update, found).map(drop)
}

/// Removes a row.
pub(super) fn remove(connection: &Connection, row: &LedgerRow) -> Result<(), Fault> {
    let delete = sql!(sqlite::ledger::remove);
    sql::execute(connection, delete, (row.job.to_string(), row.run)).map(drop)
}

/// Updates the charge for the job's latest run after a step of the job.
pub(super) fn charge(tx: &Tx<'_>, before: &Checkpoint, job: &Job) -> Result<(), Fault> {
    let steps = journal::costs(tx.connection, before, job)?;
    charge_with(tx, before, job, steps)
}

/// Updates the charge for the job's latest run, whose cost by its journal is given if the journal is complete.
pub(super) fn charge_with(
    tx: &Tx<'_>,
    before: &Checkpoint,
    job: &Job,
    steps: Option<StepCosts>,
) -> Result<(), Fault> {
    const LATEST: &str = sql!(sqlite::ledger::latest);
    let Some(charge) = rules::charge(before, job, steps) else { return Ok(()) };
    let mut statement = tx.connection.prepare_cached(LATEST)?;
    let mut rows = statement.query([job.id.to_string()])?;
    let Some(row) = rows.next()?.map(|row| row.ledger_row()).transpose()? else { return Ok(()) };
    let (ended, next) = charge.apply(&row, job.allowance.as_ref(), tx.now());
    save_charge(tx.connection, &ended)?;
    next.map_or(Ok(()), |next| put(tx.connection, &next))
}

/// The rows of a job, oldest first.
pub(super) fn of_job(
    connection: &Connection,
    scope: &Scope,
    job: &JobId,
) -> Result<Vec<LedgerRow>, Fault> {
    let select = sql!(sqlite::ledger::of_job);
    let mut statement = connection.prepare_cached(select)?;
    statement.query_and_then((job.to_string(), owner_of(scope)), |row| row.ledger_row())?.collect()
}

/// The amounts spent, by key.
pub(super) fn spend(
    connection: &Connection,
    scope: &Scope,
    query: &SpendQuery,
) -> Result<Vec<SpendSum>, Fault> {
    let mut statement = connection.prepare_cached(&sums_of(scope, query.by))?;
    let sums = statement
        .query_and_then((query.since.0, owner_of(scope)), |row| row.spend_sum(query.by))?
        .collect::<Result<_, Fault>>()?;
    Ok(ledger_columns::in_order(sums))
}

fn sums_of(scope: &Scope, by: SpendBy) -> String {
    // SQLite would read all days to return the owners in order.
    let (owned, table) = match scope.owner() {
        Some(_) => ("owner = ?2", "ledger_days"),
        None => ("?2 IS NULL", "ledger_days INDEXED BY ledger_days_day"),
    };
    ledger_columns::sums(by, &format!("day >= ?1 AND {owned}"), &[table])
}

/// Returns true if the ledger has expired rows.
pub(super) fn has_old(
    connection: &Connection,
    scope: &Scope,
    now: Timestamp,
) -> Result<bool, Fault> {
    let select = sql!(sqlite::ledger::has_old);
    sql::value(connection, select, (rules::ledger_old_until(now.day()).0, owner_of(scope)))
}

/// Records that old rows were found today. Removes old rows after such records exist for enough days.
pub(super) fn remove_old(tx: &Tx<'_>, scope: &Scope) -> Result<(), Fault> {
    let (connection, today) = (tx.connection, tx.now().day());
    sql::execute(connection, sql!(sqlite::ledger::record_sweep), [today.0])?;
    let needed = rules::sweeps_needed_from(today).0;
    sql::execute(connection, sql!(sqlite::ledger::forget_sweeps), [needed])?;
    let days: Vec<i64> = sql::column(connection, sql!(sqlite::ledger::sweeps), [])?;
    let days: Vec<Day> = days.into_iter().map(Day).collect();
    let Some(until) = rules::ledger_removable_until(&days, today) else { return Ok(()) };
    let delete = sql!(sqlite::ledger::remove_old);
    sql::execute(connection, delete, (until.0, owner_of(scope))).map(drop)
}

/// The next rows after this one, in the order of their jobs, for copies.
pub(super) fn after(
    connection: &Connection,
    after: Option<&LedgerRow>,
    limit: usize,
) -> Result<Vec<LedgerRow>, Fault> {
    let select = sql!(sqlite::ledger::after);
    let (job, run) = after.map_or_else(Default::default, |row| (row.job.to_string(), row.run));
    let mut statement = connection.prepare_cached(select)?;
    statement.query_and_then((job, run, to_signed(limit as u64)), |row| row.ledger_row())?.collect()
}

fn owner_of(scope: &Scope) -> Option<&str> {
    scope.owner().map(OwnerId::as_str)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::sqlite::open;

    #[test]
    fn sums_are_made_of_the_days_of_their_owner() {
        let dir = TempDir::new().unwrap();
        let connection = open::made_for_test(&dir);
        let of_owner = "SEARCH ledger_days USING PRIMARY KEY (owner=? AND day>?)";
        let of_all = "SEARCH ledger_days USING INDEX ledger_days_day (day>?)";
        for (scope, expected) in
            [(Scope::Owner(OwnerId::new("ann")), of_owner), (Scope::Operator, of_all)]
        {
            for by in [SpendBy::Day, SpendBy::Provider, SpendBy::Model, SpendBy::Owner] {
                let plan = sql::plan(&connection, &sums_of(&scope, by));
                assert!(plan.iter().any(|line| line == expected), "{plan:?}");
                assert!(!plan.iter().any(|line| line.starts_with("SCAN ledger")), "{plan:?}");
            }
        }
    }
}
