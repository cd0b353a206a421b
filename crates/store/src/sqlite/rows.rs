//! Loads and saves jobs in SQLite's tables.

use std::cell::Cell;
use std::sync::Arc;

use outlast_core::rules::KeyRecord;
use outlast_core::{ConversationId, Record, Timestamp, rules};
use rusqlite::{Connection, Row, Statement, ToSql, named_params};
use serde_json::Value;

use super::fault::Fault;
use super::sql;
use super::writer::Tx;
use super::{bodies, keys, search};
use crate::columns::{
    Columns, StateColumns, allowance, checkpoint_column, damaged, json, millis, notice, parse,
    signed, word,
};

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
pub(super) struct Stored {
    pub(super) seq: i64,
    pub(super) record: Record,
}

/// Selects all columns that [`whole_row`] needs, except the text of a long report.
pub(super) const WHOLE: &str =
    "SELECT jobs.*, bodies.ask, bodies.output, bodies.text IS NOT NULL AS has_text,
       CASE jobs.state WHEN 'running' THEN (SELECT text FROM partials WHERE partials.job = jobs.seq) END AS partial
     FROM jobs JOIN bodies ON bodies.job = jobs.seq";

/// Loads a job with its request and result. `condition` has one parameter.
pub(super) fn whole(
    connection: &Connection,
    condition: &str,
    parameter: impl ToSql,
) -> Result<Option<Stored>, Fault> {
    let mut statement = connection.prepare_cached(&format!("{WHOLE} WHERE {condition}"))?;
    let mut rows = statement.query([parameter])?;
    rows.next()?.map(|row| whole_row(connection, row)).transpose()
}

/// Reads a row of [`WHOLE`]: the job, its request and its result.
pub(super) fn whole_row(connection: &Connection, row: &Row<'_>) -> Result<Stored, Fault> {
    let seq = row.number("seq")?;
    let id = row.text("id")?;
    let ask = row.json(&id, "ask")?;
    // Borrowed from the row, because it may be megabytes.
    let output = row.get_ref(place(row, "output")?)?;
    let output = output.as_str_or_null().map_err(|_| damaged(&id, "output"))?;
    let mut output = output.map(|text| parse(&id, "output", text)).transpose()?;
    if row.number("has_text")? != 0 {
        // The same snapshot as the row, because the row's statement is still open.
        let without = output.ok_or_else(|| damaged(&id, "output"))?;
        let with = bodies::with_text(connection, seq, without)?;
        output = Some(with.ok_or_else(|| damaged(&id, "text"))?);
    }
    let partial = row.maybe_text("partial")?.map(Arc::from);
    let mut record = row.record(ask, output)?;
    record.job.partial = partial;
    Ok(Stored { seq, record })
}

/// Loads a job without its request, for writes that change neither request nor result. `condition` has one parameter and must
/// exclude succeeded jobs, because those need their result.
pub(super) fn light(
    connection: &Connection,
    condition: &str,
    parameter: impl ToSql,
) -> Result<Option<Stored>, Fault> {
    let select = format!("SELECT * FROM jobs WHERE {condition}");
    let mut statement = connection.prepare_cached(&select)?;
    let mut rows = statement.query([parameter])?;
    let stored = |row: &Row<'_>| {
        Ok(Stored { seq: row.number("seq")?, record: row.record(Value::Null, None)? })
    };
    rows.next()?.map(stored).transpose()
}

/// Saves the fields of a job that may change, under this commit's rev. Bodies are not touched.
pub(super) fn save(tx: &mut Tx<'_>, seq: i64, record: &mut Record) -> Result<(), Fault> {
    record.job.rev = tx.rev()?;
    let Record { job, holder, bytes, notice: _ } = &*record;
    let StateColumns { run_at, since, remote } = StateColumns::of(&job.state)?;
    let expires_at = rules::expires_at(job);
    // Only the end of a job depends on its key. The many writes before the end do not look for one.
    let key = expires_at.and_then(|_| keys::of_job(tx.connection, seq).transpose()).transpose()?;
    tx.connection
        .prepare_cached(
            "UPDATE jobs SET state = :state, run_at = :run_at, since = :since, ended_at = :ended_at,
               remote = :remote, fence = :fence, worker = :worker, lease_until = :lease_until,
               checkpoint = :checkpoint, failures = :failures, percent = :percent, message = :message,
               updated_at = :updated_at, expires_at = :expires_at,
               removable_at = :removable_at, bytes = :bytes, allowance = :allowance, rev = :rev
             WHERE seq = :seq",
        )?
        .execute(named_params! {
            ":state": job.state.kind().as_str(),
            ":run_at": run_at,
            ":since": since,
            ":ended_at": job.ended_at().map(Timestamp::as_millis),
            ":remote": remote,
            ":fence": signed(job.fence.0),
            ":worker": holder.as_ref().map(|holder| holder.worker.as_str()),
            ":lease_until": holder.as_ref().map(|holder| holder.until.as_millis()),
            ":checkpoint": checkpoint_column(job)?,
            ":failures": json(&job.failures)?,
            ":percent": job.progress.as_ref().and_then(|progress| progress.percent),
            ":message": job.progress.as_ref().map(|progress| progress.message.as_str()),
            ":updated_at": job.updated_at.as_millis(),
            ":expires_at": expires_at.map(Timestamp::as_millis),
            ":removable_at": rules::removable_at(job, key.as_ref()).map(Timestamp::as_millis),
            ":bytes": signed(*bytes),
            ":allowance": allowance(job)?,
            ":rev": signed(job.rev.0),
            ":seq": seq,
        })?;
    tx.changed(seq, job);
    Ok(())
}

/// Stores the time at which a job becomes removable, after its key changed or moved to another job. Not a change: no rev.
pub(super) fn save_removable_at(
    connection: &Connection,
    stored: &Stored,
    key: Option<&KeyRecord>,
) -> Result<(), Fault> {
    let removable_at = rules::removable_at(&stored.record.job, key).map(Timestamp::as_millis);
    let update = "UPDATE jobs SET removable_at = ?2 WHERE seq = ?1";
    sql::execute(connection, update, (stored.seq, removable_at)).map(drop)
}

/// Adds a queued job and its request under this commit's rev: as the next job, or with this number of arrival.
pub(super) fn add(
    tx: &mut Tx<'_>,
    seq: Option<i64>,
    record: &mut Record,
    run_at: Timestamp,
) -> Result<i64, Fault> {
    record.job.rev = tx.rev()?;
    let Record { job, holder: _, bytes, notice: wanted } = &*record;
    let new = &job.new;
    tx.connection
        .prepare_cached(
            "INSERT INTO jobs (seq, id, owner, conversation, turn, profile, workflow, title, title_folded,
               priority, visibility, max_failures, attempt_timeout, life, keep, state, run_at, fence,
               checkpoint, failures, created_at, updated_at, bytes, allowance, notice, rev)
             VALUES (:seq, :id, :owner, :conversation, :turn, :profile, :workflow, :title, :title_folded,
               :priority, :visibility, :max_failures, :attempt_timeout, :life, :keep, 'queued', :run_at, 0,
               :checkpoint, '[]', :created_at, :created_at, :bytes, :allowance, :notice, :rev)",
        )?
        .execute(named_params! {
            ":seq": seq,
            ":id": job.id.to_string(),
            ":owner": new.owner.as_str(),
            ":conversation": new.conversation.as_ref().map(ConversationId::as_str),
            ":turn": job.turn,
            ":profile": new.profile.as_str(),
            ":workflow": new.workflow,
            ":title": new.title,
            ":title_folded": new.title.to_lowercase(),
            ":priority": new.priority,
            ":visibility": word(&new.visibility)?,
            ":max_failures": new.max_failures,
            ":attempt_timeout": millis(new.attempt_timeout),
            ":life": new.life.map(millis),
            ":keep": new.keep.map(millis),
            ":run_at": run_at.as_millis(),
            ":checkpoint": json(&job.checkpoint)?,
            ":created_at": job.created_at.as_millis(),
            ":bytes": signed(*bytes),
            ":allowance": allowance(job)?,
            ":notice": notice(*wanted),
            ":rev": signed(job.rev.0),
        })?;
    let seq = tx.connection.last_insert_rowid();
    let insert = "INSERT INTO bodies (job, ask) VALUES (?1, ?2)";
    sql::execute(tx.connection, insert, (seq, json(&new.request)?))?;
    search::owe(tx.connection, seq)?;
    tx.changed(seq, job);
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
