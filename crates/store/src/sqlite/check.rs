//! Whether the store is sound: the file, the references, and what this program promises itself about its rows.

use outlast_core::{Checkpoint, JobState, Record, RemoteStop, StoreError, Timestamp, rules};
use rusqlite::{Connection, ErrorCode};

use super::fault::Fault;
use super::{SqliteStore, keys, rows};

/// More would help nobody.
const MOST: usize = 100;

impl SqliteStore {
    /// Looks through everything, as it is at one moment, and says what is wrong; nothing when it is sound.
    ///
    /// Reads the whole file, so it takes its time on a large one; nobody waits for it.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.readers.run(problems).await
    }
}

fn problems(connection: &Connection) -> Result<Vec<String>, Fault> {
    let snapshot = connection.unchecked_transaction()?;
    let mut problems = file(&snapshot)?;
    // What is damaged below tells nothing about what stands on it.
    if problems.is_empty() {
        problems.extend(by_query(&snapshot)?);
        problems.extend(by_rule(&snapshot)?);
    }
    problems.truncate(MOST);
    Ok(problems)
}

/// Refuses a file that is not sound.
pub(super) fn refuse_damaged(connection: &Connection) -> Result<(), StoreError> {
    match file(connection)?.into_iter().next() {
        Some(at) => Err(StoreError::Corrupt { at }),
        None => Ok(()),
    }
}

/// The file's own soundness: pages, indices, constraints, references.
fn file(connection: &Connection) -> Result<Vec<String>, Fault> {
    let integrity = lines(connection, "SELECT integrity_check FROM pragma_integrity_check");
    let references = lines(
        connection,
        r#"SELECT "table" || ' row ' || coalesce(rowid, '?') || ' has no ' || parent
           FROM pragma_foreign_key_check"#,
    );
    let mut problems = Vec::new();
    for found in [integrity, references] {
        match found {
            Ok(found) => problems.extend(found.into_iter().filter(|line| line != "ok")),
            Err(Fault::Sql(rusqlite::Error::SqliteFailure(failure, why)))
                if failure.code == ErrorCode::DatabaseCorrupt =>
            {
                problems.push(why.unwrap_or_else(|| failure.to_string()));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(problems)
}

/// What a query can say about many rows at once. Each selects a line for everything that is wrong.
fn by_query(connection: &Connection) -> Result<Vec<String>, Fault> {
    const QUERIES: [&str; 5] = [
        "SELECT 'job ' || id || ' has no body' FROM jobs
         WHERE NOT EXISTS (SELECT 1 FROM bodies WHERE bodies.job = jobs.seq)",
        "SELECT 'job ' || id || ' is ' || state || ' and has an output'
         FROM jobs JOIN bodies ON bodies.job = jobs.seq
         WHERE state <> 'succeeded' AND (output IS NOT NULL OR text IS NOT NULL)",
        "SELECT 'conversation ' || conversation || ' of ' || owner || ' has ' || count(*) || ' unfinished jobs'
         FROM jobs NOT INDEXED
         WHERE conversation IS NOT NULL AND ended_at IS NULL
         GROUP BY owner, conversation HAVING count(*) > 1",
        "SELECT 'job ' || id || ' has a change number that was never given out' FROM jobs
         WHERE rev > (SELECT value FROM meta WHERE name = 'rev')",
        "SELECT 'owner ' || owner || ' has wrong counts' FROM owners
         WHERE (queued, running, bytes) <> (
           SELECT count(*) FILTER (WHERE state = 'queued' AND visibility = 'promised'),
             count(*) FILTER (WHERE state = 'running' AND visibility = 'promised'), coalesce(sum(jobs.bytes), 0)
           FROM jobs WHERE jobs.owner = owners.owner)
         UNION ALL SELECT 'owner ' || owner || ' is not known' FROM jobs
         WHERE owner NOT IN (SELECT owner FROM owners) GROUP BY owner",
    ];
    let mut problems = Vec::new();
    for query in QUERIES {
        problems.extend(lines(connection, query)?);
    }
    Ok(problems)
}

/// What only the rules can say: every job can be read, and its columns are what they make of it.
fn by_rule(connection: &Connection) -> Result<Vec<String>, Fault> {
    let mut problems = Vec::new();
    let mut statement = connection.prepare("SELECT seq, expires_at, removable_at FROM jobs")?;
    let mut all = statement.query([])?;
    while let Some(row) = all.next()? {
        let (seq, expires_at, removable_at): (i64, Option<i64>, Option<i64>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        match rows::whole(connection, "seq = ?1", seq) {
            Ok(Some(stored)) => {
                let Record { job, holder, bytes: _ } = &stored.record;
                let key = keys::of_job(connection, seq)?;
                if rules::expires_at(job).map(Timestamp::as_millis) != expires_at {
                    problems.push(format!("job {} has a wrong expires_at", job.id));
                }
                if rules::removable_at(job, key.as_ref()).map(Timestamp::as_millis) != removable_at
                {
                    problems.push(format!("job {} has a wrong removable_at", job.id));
                }
                let owed =
                    matches!(job.state, JobState::Cancelled { remote: RemoteStop::Owed, .. });
                if owed && !matches!(job.checkpoint, Checkpoint::Running(_)) {
                    problems.push(format!("job {} is owed a stop and has no remote run", job.id));
                }
                if holder.is_some() && !job.was_claimed() {
                    problems.push(format!("job {} is held and was never claimed", job.id));
                }
            }
            // Without a body; said by a query.
            Ok(None) => {}
            Err(Fault::Refused(StoreError::Corrupt { at })) => problems.push(at),
            Err(other) => return Err(other),
        }
        if problems.len() >= MOST {
            break;
        }
    }
    Ok(problems)
}

fn lines(connection: &Connection, query: &str) -> Result<Vec<String>, Fault> {
    let mut statement = connection.prepare(query)?;
    let lines = statement.query_map([], |row| row.get(0))?.take(MOST).collect::<Result<_, _>>()?;
    Ok(lines)
}
