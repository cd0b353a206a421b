//! Loads and saves jobs in SQLite's tables.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use outlast_core::rules::KeyRecord;
use outlast_core::{Record, Timestamp, rules};
use rusqlite::types::{Null, ToSqlOutput};
use rusqlite::{Connection, Row, Statement, ToSql, params_from_iter};

use super::fault::Fault;
use super::sql;
use super::tx::Tx;
use super::{bodies, keys, questions};
use crate::columns::{Columns, StateColumns, allowance, json, notice, parse, report_damage};
use crate::tables::{CHANGED_JOB, NEW_JOB, Value, changed_job, insert, names, new_job, update};

impl Columns for Row<'_> {
    type Fault = Fault;

    fn maybe_text(&self, column: &str) -> Result<Option<String>, Fault> {
        Ok(self.get(place(self, column)?)?)
    }

    fn maybe_number(&self, column: &str) -> Result<Option<i64>, Fault> {
        Ok(self.get(place(self, column)?)?)
    }

    fn maybe_bytes(&self, column: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.get(place(self, column)?)?)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Value::Number(None) | Value::Text(None) => ToSqlOutput::from(Null),
            Value::Number(Some(number)) => ToSqlOutput::from(*number),
            Value::Flag(flag) => ToSqlOutput::from(*flag),
            Value::Text(Some(text)) => ToSqlOutput::from(&**text),
            Value::Bytes(bytes) => ToSqlOutput::from(*bytes),
        })
    }
}

thread_local! {
    /// The position after the last column read.
    static NEXT: Cell<usize> = const { Cell::new(0) };
}

/// Returns the position of a column in its row. The search starts at the last column, because columns are read roughly in
/// order and each comparison of names is a call into SQLite.
fn place(row: &Row<'_>, column: &str) -> Result<usize, Fault> {
    let statement: &Statement<'_> = row.as_ref();
    let count = statement.column_count();
    let next = NEXT.get().min(count);
    let is_it = |at: &usize| statement.column_name(*at).is_ok_and(|name| name == column);
    let found = (next..count).chain(0..next).find(is_it);
    let at = found.ok_or_else(|| rusqlite::Error::InvalidColumnName(column.to_owned()))?;
    NEXT.set(at + 1);
    Ok(at)
}

/// A record and the number of its row.
pub(super) struct StoredRow {
    pub(super) seq: i64,
    pub(super) record: Record,
}

/// Selects all columns that [`whole_row`] needs, except the text of a long report.
pub(super) const WHOLE: &str = sql!(sqlite::rows::whole);

/// Loads a job with its request and result. `condition` has one parameter.
pub(super) fn whole(
    connection: &Connection,
    condition: &str,
    parameter: impl ToSql,
) -> Result<Option<StoredRow>, Fault> {
    let mut statement = connection.prepare_cached(&format!("{WHOLE} WHERE {condition}"))?;
    let mut rows = statement.query([parameter])?;
    rows.next()?.map(|row| whole_row(connection, row)).transpose()
}

/// Reads a row of [`WHOLE`]: the job, its request and its result.
pub(super) fn whole_row(connection: &Connection, row: &Row<'_>) -> Result<StoredRow, Fault> {
    let seq = row.number("seq")?;
    let id = row.text("id")?;
    let ask = row.json(&id, "ask")?;
    // Borrowed from the row, because it may be megabytes.
    let output = row.get_ref(place(row, "output")?)?;
    let output = output.as_str_or_null().map_err(|_| report_damage(&id, "output"))?;
    let mut output = output.map(|text| parse(&id, "output", text)).transpose()?;
    if row.number("has_text")? != 0 {
        // The same snapshot as the row, because the row's statement is still open.
        let without = output.ok_or_else(|| report_damage(&id, "output"))?;
        let with = bodies::with_text(connection, seq, without)?;
        output = Some(with.ok_or_else(|| report_damage(&id, "text"))?);
    }
    let partial = row.maybe_text("partial")?.map(Arc::from);
    let mut record = row.record(ask, output)?;
    record.job.partial = partial;
    Ok(StoredRow { seq, record })
}

/// Loads a job without its request, for writes that change neither request nor result. `condition` has one parameter and must
/// exclude succeeded jobs, because those need their result.
pub(super) fn light(
    connection: &Connection,
    condition: &str,
    parameter: impl ToSql,
) -> Result<Option<StoredRow>, Fault> {
    let select = format!("{} WHERE {condition}", sql!(sqlite::rows::light));
    let mut statement = connection.prepare_cached(&select)?;
    let mut rows = statement.query([parameter])?;
    let stored = |row: &Row<'_>| {
        Ok(StoredRow {
            seq: row.number("seq")?,
            record: row.record(serde_json::Value::Null, None)?,
        })
    };
    rows.next()?.map(stored).transpose()
}

/// The columns that a save may change. SQLite writes an index again when a statement names one of its columns, even if the
/// value stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaveScope {
    /// All columns that may change.
    All,
    /// Those of a job that has not ended, neither before nor after.
    BeforeEnd,
    /// Those that change during an attempt: its state and its lease stay the same.
    WithinAttempt,
}

impl SaveScope {
    const END: [&str; 4] = ["ended_at", "remote", "expires_at", "removable_at"];
    const LEASE: [&str; 6] = ["state", "run_at", "since", "fence", "worker", "lease_until"];

    fn includes(self, column: &str) -> bool {
        match self {
            Self::All => true,
            Self::BeforeEnd => !Self::END.contains(&column),
            Self::WithinAttempt => !Self::END.contains(&column) && !Self::LEASE.contains(&column),
        }
    }

    fn statement(self) -> &'static str {
        static ALL: LazyLock<String> = LazyLock::new(|| SaveScope::All.write_statement());
        static BEFORE_END: LazyLock<String> =
            LazyLock::new(|| SaveScope::BeforeEnd.write_statement());
        static WITHIN_ATTEMPT: LazyLock<String> =
            LazyLock::new(|| SaveScope::WithinAttempt.write_statement());
        match self {
            Self::All => &ALL,
            Self::BeforeEnd => &BEFORE_END,
            Self::WithinAttempt => &WITHIN_ATTEMPT,
        }
    }

    fn write_statement(self) -> String {
        let names =
            [names_of_changed(|name| self.includes(name)), vec!["allowance", "rev"]].concat();
        update("jobs", &names, &format!("seq = ${}", names.len() + 1))
    }
}

/// Returns the names of some of the columns that may change.
fn names_of_changed(is_included: impl Fn(&str) -> bool) -> Vec<&'static str> {
    names(CHANGED_JOB).into_iter().filter(|name| is_included(name)).collect()
}

/// Saves the fields of a job that may change, under this commit's rev. Bodies are not touched.
pub(super) fn save(
    tx: &mut Tx<'_>,
    seq: i64,
    record: &mut Record,
    scope: SaveScope,
) -> Result<(), Fault> {
    record.job.rev = tx.rev()?;
    let job = &record.job;
    // Only the end of a job depends on its key. The many writes before the end do not look for one.
    let key = rules::expires_at(job).and_then(|_| keys::of_job(tx.connection, seq).transpose());
    let key = key.transpose()?;
    let values = changed_job(record, StateColumns::of(&job.state)?, key.as_ref())?;
    let named = names(CHANGED_JOB).into_iter().zip(values);
    let mut values: Vec<_> =
        named.filter(|(name, _)| scope.includes(name)).map(|(_, value)| value).collect();
    values.extend([Value::from(allowance(job)?), Value::from(job.rev.0), Value::from(seq)]);
    sql::execute(tx.connection, scope.statement(), params_from_iter(values))?;
    questions::save(tx.connection, seq, job)?;
    tx.record_change(seq, job);
    Ok(())
}

/// Stores the time at which a job becomes removable, after its key changed or moved to another job. Not a change: no rev.
pub(super) fn save_removable_at(
    connection: &Connection,
    stored: &StoredRow,
    key: Option<&KeyRecord>,
) -> Result<(), Fault> {
    let removable_at = rules::removable_at(&stored.record.job, key).map(Timestamp::as_millis);
    let update = sql!(sqlite::rows::save_removable_at);
    sql::execute(connection, update, (stored.seq, removable_at)).map(drop)
}

/// The state in which a job is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstState {
    Queued,
    /// A worker holds it.
    Claimed,
}

/// Adds a job and its request under this commit's rev: as the next job, or with this number of arrival. Its words are not
/// indexed.
pub(super) fn add(
    tx: &mut Tx<'_>,
    seq: Option<i64>,
    record: &mut Record,
    first: FirstState,
) -> Result<i64, Fault> {
    const OTHERS: [&str; 5] = ["seq", "allowance", "notice", "subject", "rev"];
    static ADD: LazyLock<String> =
        LazyLock::new(|| insert("INSERT INTO jobs", &[&*names(NEW_JOB), &OTHERS].concat()));
    // In one statement, because an update would write the indexes of queued jobs too.
    static ADD_CLAIMED: LazyLock<String> = LazyLock::new(|| {
        let mut names = names(NEW_JOB);
        names.retain(|name| !SaveScope::LEASE.contains(name));
        let claimed = names_of_changed(|name| SaveScope::LEASE.contains(&name));
        insert("INSERT INTO jobs", &[names, claimed, OTHERS.to_vec()].concat())
    });
    record.job.rev = tx.rev()?;
    let job = &record.job;
    let mut values = new_job(record)?;
    let statement = match first {
        FirstState::Queued => &ADD,
        FirstState::Claimed => {
            let mut new = names(NEW_JOB).into_iter();
            values.retain(|_| new.next().is_some_and(|name| !SaveScope::LEASE.contains(&name)));
            let changed = changed_job(record, StateColumns::of(&job.state)?, None)?;
            let named = names(CHANGED_JOB).into_iter().zip(changed);
            let claimed = named.filter(|(name, _)| SaveScope::LEASE.contains(name));
            values.extend(claimed.map(|(_, value)| value));
            &ADD_CLAIMED
        }
    };
    values.extend([Value::from(seq), Value::from(allowance(job)?)]);
    let subject = job.new.subject.map(|subject| subject.to_string());
    values.extend([Value::from(notice(record.notice)), Value::from(subject)]);
    values.push(Value::from(job.rev.0));
    sql::execute(tx.connection, statement, params_from_iter(values))?;
    let seq = tx.connection.last_insert_rowid();
    let insert = sql!(sqlite::rows::add_body);
    sql::execute(tx.connection, insert, (seq, json(&job.new.request)?))?;
    tx.record_change(seq, job);
    Ok(seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::open;

    /// A duplicate name would match either column, depending on the start of the search.
    #[test]
    fn each_column_of_a_job_has_its_own_name_and_is_found_from_any_place() {
        let dir = tempfile::TempDir::new().unwrap();
        let connection = open::made_for_test(&dir);
        let selected = format!("SELECT * FROM (SELECT NULL) LEFT JOIN ({WHOLE}) ON true");
        let mut statement = connection.prepare(&selected).unwrap();
        let names: Vec<String> = statement.column_names().skip(1).map(str::to_owned).collect();
        let mut rows = statement.query([]).unwrap();
        let row = rows.next().unwrap().unwrap();
        for before in &names {
            for (number, name) in names.iter().enumerate() {
                place(row, before).unwrap();
                assert_eq!(place(row, name).unwrap(), number + 1, "{name} after {before}");
            }
        }
        let unknown = place(row, "none");
        assert!(matches!(unknown, Err(Fault::Sql(rusqlite::Error::InvalidColumnName(_)))));
    }
}
