//! What readers ask. Runs on connections of its own, never on the writer's.

use outlast_core::{
    Changes, Checkpoint, Cursor, Job, JobId, JobPage, JobQuery, Profile, RemoteRun, Rev, Scope,
    Timestamp, WorkerId, rules,
};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::fault::Fault;
use super::rows;

/// The job, if `scope` may see it.
pub(super) fn job(
    connection: &Connection,
    scope: &Scope,
    id: &JobId,
    now: Timestamp,
) -> Result<Option<Job>, Fault> {
    let found = rows::whole(connection, "id = ?1", id.to_string())?;
    let job = found.map(|stored| stored.record.job);
    Ok(job.filter(|job| scope.sees(&job.new.owner) && !rules::expired(job, now)))
}

/// A page of the jobs that `scope` may see.
pub(super) fn list(
    connection: &Connection,
    scope: &Scope,
    query: &JobQuery,
    now: Timestamp,
) -> Result<JobPage, Fault> {
    let (select, values) = page_of(scope, query, now);
    let mut statement = connection.prepare_cached(&select)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut page = JobPage { jobs: Vec::new(), next: None };
    let mut last = None;
    while let Some(row) = rows.next()? {
        if page.jobs.len() == query.limit as usize {
            page.next = last;
            break;
        }
        page.jobs.push(rows::summary(row)?);
        last = Some(Cursor(row.get::<_, i64>("seq")?.unsigned_abs()));
    }
    Ok(page)
}

/// The statement for a page, and one row more to know whether there is another.
fn page_of(scope: &Scope, query: &JobQuery, now: Timestamp) -> (String, Vec<Value>) {
    let (conditions, values) = conditions(scope, query, now);
    // A prefix names few jobs, and is the way to find them; else they are walked in their order.
    let order = if query.id_prefix.is_some() { "+seq" } else { "seq" };
    let select = format!(
        "SELECT seq, id, owner, conversation, workflow, title, visibility, state,
           json_array_length(failures) AS failures, fence > 0 AS was_claimed,
           (SELECT CASE json_type(ask, '$.session_id') WHEN 'text' THEN json_extract(ask, '$.session_id') END
            FROM bodies WHERE bodies.job = jobs.seq) AS session,
           percent, message, created_at, updated_at, ended_at
         FROM jobs WHERE {conditions} ORDER BY {order} DESC LIMIT {}",
        u64::from(query.limit) + 1
    );
    (select, values)
}

fn conditions(scope: &Scope, query: &JobQuery, now: Timestamp) -> (String, Vec<Value>) {
    let mut conditions = vec!["(expires_at IS NULL OR expires_at > ?)".to_owned()];
    let mut values = vec![Value::Integer(now.as_millis())];
    match scope {
        Scope::Owner(owner) => {
            let owned = if query.id_prefix.is_some() { "+owner = ?" } else { "owner = ?" };
            conditions.push(owned.to_owned());
            values.push(Value::Text(owner.as_str().to_owned()));
        }
        Scope::Operator => {}
    }
    if let Some(Cursor(seq)) = query.after {
        conditions.push("seq < ?".to_owned());
        values.push(Value::Integer(rows::signed(seq)));
    }
    if !query.states.is_empty() {
        // Words of our own, none of them with a quote.
        let words: Vec<_> =
            query.states.iter().map(|state| format!("'{}'", state.as_str())).collect();
        conditions.push(format!("state IN ({})", words.join(", ")));
    }
    if let Some(text) = &query.search {
        conditions.push("instr(title_folded, ?) > 0".to_owned());
        values.push(Value::Text(text.to_lowercase()));
    }
    if let Some(prefix) = &query.id_prefix {
        // Everything that goes on in hexadecimal sorts below "g".
        conditions.push("id >= ? AND id < ? || 'g'".to_owned());
        values.extend([Value::Text(prefix.clone()), Value::Text(prefix.clone())]);
    }
    (conditions.join(" AND "), values)
}

/// Remote runs that somebody with one of these profiles should stop.
pub(super) fn owed_stops(
    connection: &Connection,
    profiles: &[Profile],
    limit: usize,
) -> Result<Vec<(JobId, RemoteRun)>, Fault> {
    let select = format!(
        "SELECT id, checkpoint FROM jobs WHERE remote = 'owed' AND profile IN ({ONE_OF}) ORDER BY seq LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&select)?;
    let mut rows = statement.query((one_of(profiles)?, rows::signed(limit as u64)))?;
    let mut owed = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        match rows::checkpoint(&id, &row.get::<_, String>(1)?)? {
            Checkpoint::Running(run) => owed.push((rows::job_id(&id)?, run)),
            Checkpoint::NotBegun | Checkpoint::Beginning { .. } => {}
        }
    }
    Ok(owed)
}

/// A list of names as one parameter, `?1`: each once, however often it was given.
const ONE_OF: &str = "SELECT value FROM json_each(?1)";

fn one_of(profiles: &[Profile]) -> Result<String, Fault> {
    rows::json(&profiles)
}

/// Who holds jobs.
pub(super) fn holders(connection: &Connection) -> Result<Vec<WorkerId>, Fault> {
    let select = "SELECT DISTINCT worker FROM jobs WHERE state = 'running'";
    let workers = connection
        .prepare_cached(select)?
        .query_map([], |row| row.get::<_, String>(0).map(WorkerId::new))?
        .collect::<Result<_, _>>()?;
    Ok(workers)
}

/// How many jobs of these profiles wait.
pub(super) fn queued(connection: &Connection, profiles: &[Profile]) -> Result<u64, Fault> {
    let select = format!(
        "SELECT count(*) FROM jobs WHERE state = 'queued' AND visibility = 'promised' AND profile IN ({ONE_OF})"
    );
    let mut statement = connection.prepare_cached(&select)?;
    let queued: i64 = statement.query_row([one_of(profiles)?], |row| row.get(0))?;
    Ok(queued.unsigned_abs())
}

/// Held calls that nobody carries.
pub(super) fn orphans(connection: &Connection, profiles: &[Profile]) -> Result<Vec<JobId>, Fault> {
    let select = format!(
        "SELECT id FROM jobs WHERE state = 'queued' AND visibility <> 'promised' AND profile IN ({ONE_OF}) ORDER BY seq"
    );
    let mut statement = connection.prepare_cached(&select)?;
    let ids = statement.query_map([one_of(profiles)?], |row| row.get::<_, String>(0))?;
    let ids: Vec<String> = ids.collect::<Result<_, _>>()?;
    ids.iter().map(|id| rows::job_id(id)).collect()
}

/// Whether a lease has run out.
pub(super) fn has_expired(connection: &Connection, now: Timestamp) -> Result<bool, Fault> {
    let select = "SELECT EXISTS (SELECT 1 FROM jobs WHERE state = 'running' AND lease_until <= ?1)";
    Ok(connection.prepare_cached(select)?.query_row([now.as_millis()], |row| row.get(0))?)
}

/// The number of the latest change.
pub(super) fn rev(connection: &Connection) -> Result<Rev, Fault> {
    let select = "SELECT value FROM meta WHERE name = 'rev'";
    Ok(rows::rev(connection.prepare_cached(select)?.query_row([], |row| row.get(0))?))
}

/// What changed after `after`, all of it from one moment, so that the rev of the answer covers it.
pub(super) fn changes(
    connection: &Connection,
    after: Rev,
    now: Timestamp,
) -> Result<Changes, Fault> {
    let snapshot = connection.unchecked_transaction()?;
    let rev = rev(&snapshot)?;
    let mut jobs = Vec::new();
    {
        let mut statement = snapshot.prepare_cached(
            "SELECT id, state, visibility, fence > 0 AS was_claimed FROM jobs
             WHERE rev > ?1 ORDER BY rev, seq",
        )?;
        let mut rows = statement.query([rows::signed(after.0)])?;
        while let Some(row) = rows.next()? {
            jobs.push(rows::change(row)?);
        }
    }
    let due = |select: &str, parameters: &[i64]| -> Result<Option<i64>, Fault> {
        let mut statement = snapshot.prepare_cached(select)?;
        Ok(statement.query_row(params_from_iter(parameters), |row| row.get(0))?)
    };
    let queued = due(
        "SELECT min(run_at) FROM jobs WHERE state = 'queued' AND run_at > ?1",
        &[now.as_millis()],
    )?;
    let leased = due("SELECT min(lease_until) FROM jobs WHERE state = 'running'", &[])?;
    let next_due = queued.into_iter().chain(leased).min().map(Timestamp::from_millis);
    Ok(Changes { rev, jobs, next_due })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outlast_core::OwnerId;
    use outlast_testkit::clock::START;
    use tempfile::TempDir;

    use super::*;
    use crate::sqlite::open;
    use crate::sqlite::write_lock::Gate;

    #[test]
    fn lists_are_walked_in_their_order_and_prefixes_found_by_id() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("jobs.db");
        open::make_files(&path).unwrap();
        let gate = Gate::open(&dir.path().join("gate"), Duration::from_secs(60)).unwrap();
        let connection = open::prepare(&path, Some(&gate)).unwrap();
        let alice = Scope::Owner(OwnerId::new("alice"));
        let prefix =
            JobQuery { id_prefix: Some("4d19".to_owned()), limit: 2, ..JobQuery::default() };
        let table = [
            (
                &alice,
                JobQuery { limit: 20, ..JobQuery::default() },
                "SEARCH jobs USING INDEX jobs_owner (owner=?)",
            ),
            (&Scope::Operator, JobQuery { limit: 20, ..JobQuery::default() }, "SCAN jobs"),
            (
                &alice,
                prefix.clone(),
                "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id>? AND id<?)",
            ),
            (
                &Scope::Operator,
                prefix,
                "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id>? AND id<?)",
            ),
        ];
        for (scope, query, expected) in table {
            let (select, values) = page_of(scope, &query, START);
            let mut explained =
                connection.prepare(&format!("EXPLAIN QUERY PLAN {select}")).unwrap();
            let plan: Vec<String> = explained
                .query_map(params_from_iter(values), |row| row.get("detail"))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert_eq!(plan.first().map(String::as_str), Some(expected), "{plan:?}");
            let sorts = plan.iter().any(|line| line.contains("TEMP B-TREE"));
            assert_eq!(sorts, query.id_prefix.is_some(), "only what is few is sorted: {plan:?}");
        }
    }
}
