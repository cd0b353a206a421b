//! Identities of held research calls, which find the newest job of the same call. Only this file knows their columns.

use std::sync::LazyLock;

use outlast_core::rules::{EarlierCall, IdentityRecord};
use outlast_core::{CallIdentity, CallMode, Key, NewJob, OwnerId, StoreError, Timestamp, rules};
use rusqlite::{Connection, Params, named_params, params_from_iter};

use super::fault::Fault;
use super::{keys, rows, sql};
use crate::columns::Columns as _;
use crate::tables::{self, CALL_IDENTITIES, insert, names};

/// Selects identities. Processes of the previous version record answers only in `keys`.
const SELECT: &str = sql!(sqlite::identities::select);

/// `rules::IdentityRecord::is_of`: the newest job of the same call, preferring an unfinished one.
const NEWEST: &str = sql!(sqlite::identities::newest);

/// Returns the job that the call's key names, or else the newest job of the same call.
pub(super) fn earlier_call(
    connection: &Connection,
    new: &NewJob,
    key: &Key,
) -> Result<Option<EarlierCall<i64>>, Fault> {
    let Some(call) = key.deciding_identity() else { return find_named(connection, new, key) };
    let mut identified = None;
    if let Some(seq) = newest(connection, new, call)?
        && let Some(record) = of_job(connection, seq)?
        && let Some(stored) = rows::whole(connection, "seq = ?1", seq)?
    {
        identified = Some(EarlierCall { seq, job: stored.record.job, key: record.key(call) });
    }
    let mut previous = None;
    if key.looks_up_previous_form()
        && let Some((seq, found)) = keys::find(connection, &new.owner, &key.text)?
        // Check this before loading the job: its report may be long, and most jobs have an identity.
        && of_job(connection, seq)?.is_none()
        && let Some(stored) = rows::whole(connection, "seq = ?1", seq)?
    {
        previous = Some(EarlierCall { seq, job: stored.record.job, key: found });
    }
    Ok(rules::newest_call(identified, previous, new))
}

/// Returns the job that the text of the key names.
fn find_named(
    connection: &Connection,
    new: &NewJob,
    key: &Key,
) -> Result<Option<EarlierCall<i64>>, Fault> {
    let Some((seq, key)) = keys::find(connection, &new.owner, &key.text)? else { return Ok(None) };
    let stored = rows::whole(connection, "seq = ?1", seq)?;
    Ok(stored.map(|stored| EarlierCall { seq, job: stored.record.job, key }))
}

fn newest(
    connection: &Connection,
    new: &NewJob,
    call: &CallIdentity,
) -> Result<Option<i64>, Fault> {
    let named = named_params! {
        ":owner": new.owner.as_str(),
        ":question": &call.question[..],
        ":fresh": call.mode == CallMode::Fresh,
        ":named": call.named_provider,
        ":provider": new.profile.provider(),
        ":model": call.model,
    };
    sql::optional(connection, NEWEST, named)
}

/// The identity of the job's call, if it is a held research call.
pub(super) fn of_job(connection: &Connection, seq: i64) -> Result<Option<IdentityRecord>, Fault> {
    let mut statement = connection.prepare_cached(&format!("{SELECT} WHERE job = ?1"))?;
    let mut found = statement.query([seq])?;
    let Some(row) = found.next()? else { return Ok(None) };
    row.identity()?.map_or_else(|| Err(report_damage(seq).into()), |record| Ok(Some(record)))
}

fn report_damage(seq: i64) -> StoreError {
    StoreError::Corrupt { at: format!("the identity of the call of job number {seq}") }
}

/// Records the identity of a new job.
pub(super) fn put(
    connection: &Connection,
    owner: &OwnerId,
    record: &IdentityRecord,
    seq: i64,
) -> Result<(), Fault> {
    static PUT: LazyLock<String> =
        LazyLock::new(|| insert("INSERT INTO call_identities", &names(CALL_IDENTITIES)));
    execute(connection, &PUT, params_from_iter(tables::identity(owner, record, seq)?))
}

/// Records the first time at which a call was answered with the job's outcome.
pub(super) fn record_answer(connection: &Connection, seq: i64, at: Timestamp) -> Result<(), Fault> {
    let update = sql!(sqlite::identities::record_answer);
    execute(connection, update, (seq, at.as_millis()))
}

fn execute(connection: &Connection, statement: &str, parameters: impl Params) -> Result<(), Fault> {
    sql::execute(connection, statement, parameters).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::open;

    #[test]
    fn a_call_looks_at_the_jobs_of_only_its_own_question() {
        let dir = tempfile::TempDir::new().unwrap();
        let plan = sql::plan(&open::made_for_test(&dir), NEWEST);
        let index = "USING INDEX call_identities_question (owner=? AND question=?)";
        assert!(plan[0].ends_with(index), "{plan:?}");
        assert!(plan[1].ends_with("USING INTEGER PRIMARY KEY (rowid=?)"), "{plan:?}");
    }
}
