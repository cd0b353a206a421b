//! Queries for readers. They use the readers' connections, never the writer's.

use outlast_core::{
    Changes, Cursor, Job, JobId, JobPage, JobQuery, OwnerId, Profile, RemoteRun, Rev, Scope,
    StateCount, StateKind, Summary, Timestamp, rules,
};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::fault::Fault;
use super::{rows, search, sql, titles};
use crate::columns::{self, Columns as _};
use crate::titles::{TitleSpans, first_of, portions};
use crate::{count, ledger_columns, listing, page};

/// Returns the job, if `scope` may see it.
pub(super) fn job(
    connection: &Connection,
    scope: &Scope,
    id: &JobId,
    now: Timestamp,
) -> Result<Option<Job>, Fault> {
    let found = rows::whole(connection, "id = ?1", id.to_string())?;
    let job = found.map(|stored| stored.record.job);
    Ok(job.filter(|job| scope.sees(&job.new.owner) && !rules::is_expired(job, now)))
}

/// Returns the newest job about this one in one of these states.
pub(super) fn newest_about(
    connection: &Connection,
    scope: &Scope,
    subject: &JobId,
    states: &[StateKind],
    now: Timestamp,
) -> Result<Option<Job>, Fault> {
    let states: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
    let owner = scope.owner().map(OwnerId::as_str);
    let parameters = rusqlite::named_params! {
        ":subject": subject.to_string(),
        ":states": columns::json(&states)?,
        ":owner": owner,
        ":now": now.as_millis(),
    };
    let seq: Option<i64> =
        sql::optional(connection, sql!(sqlite::reads::newest_about), parameters)?;
    let Some(seq) = seq else { return Ok(None) };
    Ok(rows::whole(connection, "seq = ?1", seq)?.map(|stored| stored.record.job))
}

/// Returns a page of the jobs that `scope` may see.
pub(super) fn list(
    connection: &Connection,
    scope: &Scope,
    query: &JobQuery,
    now: Timestamp,
) -> Result<JobPage, Fault> {
    let Some(parts) = listing::title_parts(scope, query) else {
        let rows = rows_of(connection, scope, query, now, ListScope::All)?;
        return finish_page(rows, query.limit);
    };
    let snapshot = connection.unchecked_transaction()?;
    let end = titles::end(&snapshot)?;
    let newest = ListScope::From(first_of(end));
    let mut rows = rows_of(&snapshot, scope, query, now, newest)?;
    let mut spans = TitleSpans::new(end, query.after);
    while rows.len() <= query.limit as usize
        && let Some(segments) = spans.next()
    {
        let candidates = titles::candidates(&snapshot, &parts, segments, spans.before)?;
        for some in portions(&candidates) {
            let rest = JobQuery { limit: query.limit - count(rows.len()), ..query.clone() };
            rows.extend(rows_of(&snapshot, scope, &rest, now, ListScope::These(some))?);
            if rows.len() > query.limit as usize {
                break;
            }
        }
    }
    finish_page(rows, query.limit)
}

fn finish_page(rows: Vec<(u64, Summary)>, limit: u32) -> Result<JobPage, Fault> {
    let (jobs, next) = page(rows.into_iter().map(Ok::<_, Fault>), limit)?;
    Ok(JobPage { jobs, next })
}

/// The jobs among which a list is looked for.
#[derive(Clone, Copy)]
enum ListScope<'a> {
    All,
    /// The jobs from a number on.
    From(i64),
    /// Jobs with these numbers.
    These(&'a [i64]),
}

/// Returns the rows of a page plus one row, which shows whether there is another page.
fn rows_of(
    connection: &Connection,
    scope: &Scope,
    query: &JobQuery,
    now: Timestamp,
    among: ListScope<'_>,
) -> Result<Vec<(u64, Summary)>, Fault> {
    let (select, values) = page_of(connection, scope, query, now, among)?;
    let mut statement = connection.prepare_cached(&select)?;
    statement.query_and_then(params_from_iter(values), |row| row.summary())?.collect()
}

/// Builds the statement of [`rows_of`].
fn page_of(
    connection: &Connection,
    scope: &Scope,
    query: &JobQuery,
    now: Timestamp,
    among: ListScope<'_>,
) -> Result<(String, Vec<Value>), Fault> {
    let (mut conditions, mut values) = conditions(scope, query, now);
    let (mut from, mut order) = (table(query), "seq");
    if let Some(expression) = search::expression(connection, scope, query)? {
        // Start from the words and keep their order, so that the search ends with the page.
        from = "search CROSS JOIN jobs ON jobs.seq = search.rowid AND search MATCH ?";
        order = "search.rowid";
        values.insert(0, Value::Text(expression));
    }
    match among {
        ListScope::All => {}
        ListScope::From(first) => {
            conditions += " AND seq >= ?";
            values.push(Value::Integer(first));
        }
        ListScope::These(seqs) => {
            from = "jobs NOT INDEXED";
            conditions += " AND seq IN (SELECT value FROM json_each(?))";
            values.push(Value::Text(columns::json(&seqs)?));
        }
    }
    let select = format!(
        "SELECT seq, id, owner, conversation, workflow, title, visibility, {}, state,
           CASE failures WHEN '[]' THEN 0 ELSE json_array_length(failures) END AS failed, fence,
           (SELECT CASE json_type(ask, '$.session_id') WHEN 'text' THEN json_extract(ask, '$.session_id') END
            FROM bodies WHERE bodies.job = jobs.seq) AS session,
           percent, message, created_at, updated_at, ended_at, provider, {}, {LAST_CODE} AS code
         FROM {from} WHERE {conditions} ORDER BY {order} DESC LIMIT {}",
        listing::waiting_column("jobs"),
        ledger_columns::charge_columns(),
        u64::from(query.limit) + 1
    );
    Ok((select, values))
}

/// The code of the last failed attempt. Most jobs have none, and for them no JSON is parsed.
const LAST_CODE: &str =
    "CASE failures WHEN '[]' THEN NULL ELSE json_extract(failures, '$[#-1].code') END";

fn conditions(scope: &Scope, query: &JobQuery, now: Timestamp) -> (String, Vec<Value>) {
    let mut conditions = vec!["(expires_at IS NULL OR expires_at > ?)".to_owned()];
    let mut values = vec![Value::Integer(now.as_millis())];
    if let Some(owner) = scope.owner() {
        let owned = if query.id_prefix.is_some() { "+owner = ?" } else { "owner = ?" };
        conditions.push(owned.to_owned());
        values.push(Value::Text(owner.as_str().to_owned()));
    }
    if let Some(Cursor(seq)) = query.after {
        let has_words = !search::collect_words(query).is_empty();
        conditions.push(if has_words { "search.rowid < ?" } else { "seq < ?" }.to_owned());
        values.push(Value::Integer(columns::to_signed(seq)));
    }
    conditions.extend(listing::of_states(&query.states, "jobs"));
    if let Some(provider) = &query.provider {
        conditions.push("provider = ?".to_owned());
        values.push(Value::Text(provider.clone()));
    }
    if let Some(code) = query.code {
        conditions.push(format!("({LAST_CODE}) = ?"));
        values.push(Value::Text(code.as_str().to_owned()));
    }
    if let Some(text) = &query.search {
        conditions.push("instr(title_folded, ?) > 0".to_owned());
        values.push(Value::Text(text.to_lowercase()));
    }
    if let Some(prefix) = &query.id_prefix {
        // All hexadecimal continuations sort below "g".
        conditions.push("id >= ? AND id < ? || 'g'".to_owned());
        values.extend([Value::Text(prefix.clone()), Value::Text(prefix.clone())]);
    }
    (conditions.join(" AND "), values)
}

/// Chooses the source of a list. Unfinished jobs are few and have a separate index. SQLite would not choose it, because it
/// does not know how few there are.
fn table(query: &JobQuery) -> &'static str {
    let is_unfinished = listing::all_unfinished(&query.states) && query.id_prefix.is_none();
    if is_unfinished { "jobs INDEXED BY jobs_unfinished" } else { "jobs" }
}

/// Counts the jobs in each state, up to `at_most`.
pub(super) fn counts(
    connection: &Connection,
    scope: &Scope,
    at_most: u32,
    now: Timestamp,
) -> Result<Vec<StateCount>, Fault> {
    let count_of = |state: StateKind| {
        let query = JobQuery { states: vec![state], ..JobQuery::default() };
        let (conditions, values) = conditions(scope, &query, now);
        let select = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {} WHERE {conditions} LIMIT {at_most})",
            table(&query)
        );
        let jobs: i64 = sql::value(connection, &select, params_from_iter(values))?;
        Ok(StateCount { state, jobs: u32::try_from(jobs).unwrap_or(u32::MAX) })
    };
    StateKind::ALL.into_iter().map(count_of).collect()
}

/// Remote runs that a worker with one of these profiles must stop.
pub(super) fn owed_stops(
    connection: &Connection,
    profiles: &[Profile],
    limit: usize,
) -> Result<Vec<(JobId, RemoteRun)>, Fault> {
    let select = format!(
        "SELECT id, checkpoint FROM jobs WHERE remote = 'owed' AND profile IN ({ONE_OF}) ORDER BY seq LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&select)?;
    let asked = (columns::json(&profiles)?, columns::to_signed(limit as u64));
    let owed = statement.query_and_then(asked, |row| row.read_owed_stop())?;
    owed.filter_map(Result::transpose).collect()
}

/// A JSON list as one parameter, `?1`. Each name counts once, even if it is repeated.
const ONE_OF: &str = "SELECT value FROM json_each(?1)";

/// The number of queued jobs with these profiles.
pub(super) fn count_queued(connection: &Connection, profiles: &[Profile]) -> Result<u64, Fault> {
    let select = format!(
        "SELECT count(*) FROM jobs WHERE state = 'queued' AND visibility = 'promised' AND profile IN ({ONE_OF})"
    );
    let queued: i64 = sql::value(connection, &select, [columns::json(&profiles)?])?;
    Ok(queued.unsigned_abs())
}

/// Held calls that no process is running.
pub(super) fn orphans(connection: &Connection, profiles: &[Profile]) -> Result<Vec<JobId>, Fault> {
    let select = format!(
        "SELECT id FROM jobs WHERE state = 'queued' AND visibility <> 'promised' AND profile IN ({ONE_OF}) ORDER BY seq"
    );
    let mut statement = connection.prepare_cached(&select)?;
    statement.query_and_then([columns::json(&profiles)?], |row| row.job_id())?.collect()
}

/// Returns true if a lease has expired.
pub(super) fn has_expired(connection: &Connection, now: Timestamp) -> Result<bool, Fault> {
    let select = sql!(sqlite::reads::has_expired);
    sql::value(connection, select, [now.as_millis()])
}

/// The number of the latest change.
pub(super) fn rev(connection: &Connection) -> Result<Rev, Fault> {
    Ok(columns::rev(sql::value(connection, sql!(sqlite::reads::rev), [])?))
}

/// Returns the changes after `after` from one snapshot, so that the rev of the answer covers all of them.
pub(super) fn changes(
    connection: &Connection,
    after: Rev,
    now: Timestamp,
) -> Result<Changes, Fault> {
    let snapshot = connection.unchecked_transaction()?;
    let rev = rev(&snapshot)?;
    let jobs = snapshot
        .prepare_cached(sql!(sqlite::reads::changes))?
        .query_and_then([columns::to_signed(after.0)], |row| row.change())?
        .collect::<Result<_, _>>()?;
    let next_due = next_due(&snapshot, now)?;
    Ok(Changes { rev, jobs, next_due })
}

/// The next time at which something becomes due without a change.
pub(super) fn next_due(
    connection: &Connection,
    now: Timestamp,
) -> Result<Option<Timestamp>, Fault> {
    let queued = sql!(sqlite::reads::next_due_queued);
    let queued: Option<i64> = sql::value(connection, queued, [now.as_millis()])?;
    let leased = sql!(sqlite::reads::next_due_leased);
    let leased: Option<i64> = sql::value(connection, leased, [])?;
    Ok(queued.into_iter().chain(leased).min().map(Timestamp::from_millis))
}

#[cfg(test)]
mod tests {
    use outlast_testkit::clock::START;
    use tempfile::TempDir;

    use super::*;
    use crate::sqlite::open;

    /// J1: the check of a report is found by its report.
    #[test]
    fn j1_a_job_about_another_one_is_found_in_an_index() {
        let dir = TempDir::new().unwrap();
        let plan = sql::plan(&open::made_for_test(&dir), sql!(sqlite::reads::newest_about));
        assert_eq!(plan[0], "SEARCH jobs USING INDEX jobs_subject (subject=?)", "{plan:?}");
        assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE FOR")), "{plan:?}");
    }

    #[test]
    fn lists_are_read_in_their_order_and_prefixes_found_by_id() {
        let dir = TempDir::new().unwrap();
        let connection = open::made_for_test(&dir);
        let alice = Scope::Owner(OwnerId::new("alice"));
        let prefix =
            JobQuery { id_prefix: Some("4d19".to_owned()), limit: 2, ..JobQuery::default() };
        let state = JobQuery { states: vec![StateKind::Failed], limit: 20, ..JobQuery::default() };
        let of =
            JobQuery { provider: Some("library".to_owned()), limit: 20, ..JobQuery::default() };
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
                &alice,
                state.clone(),
                "SEARCH jobs USING INDEX jobs_ended_state (owner=? AND state=?)",
            ),
            (
                &alice,
                JobQuery { provider: Some("library".to_owned()), ..state.clone() },
                "SEARCH jobs USING INDEX jobs_unsuccessful (owner=? AND provider=? AND state=?)",
            ),
            (
                &Scope::Operator,
                JobQuery { provider: Some("library".to_owned()), ..state.clone() },
                "SEARCH jobs USING INDEX jobs_all_unsuccessful (provider=? AND state=?)",
            ),
            (&Scope::Operator, state, "SEARCH jobs USING INDEX jobs_all_ended_state (state=?)"),
            (&alice, of.clone(), "SEARCH jobs USING INDEX jobs_provider (owner=? AND provider=?)"),
            (&Scope::Operator, of, "SEARCH jobs USING INDEX jobs_all_provider (provider=?)"),
            (
                &Scope::Operator,
                prefix,
                "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id>? AND id<?)",
            ),
        ];
        for (scope, query, expected) in table {
            let (select, _) = page_of(&connection, scope, &query, START, ListScope::All).unwrap();
            let plan = sql::plan(&connection, &select);
            assert_eq!(plan.first().map(String::as_str), Some(expected), "{plan:?}");
            let sorts = plan.iter().any(|line| line.contains("TEMP B-TREE"));
            assert_eq!(sorts, query.id_prefix.is_some(), "only what is few is sorted: {plan:?}");
        }
    }
}
