//! Identifies the database in which the store was written and the store's latest state, so that a restored dump is detected.
//!
//! A dump contains rows, but not the identity of the database in which they were. So the store has a row that names its
//! database and its tables. In another database, or in tables that were created again, the store is an older copy. A dump
//! cannot change the observations of each process: the latest durable change number, in memory and in a file of the user (the
//! mark). A database behind it has lost changes: by a rollback or, on a newer timeline, by a failover.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_core::{Rev, StoreError, Timestamp};
use tokio::sync::Notify;
use tokio_postgres::{Client, Row};
use tokio_util::sync::CancellationToken;

use super::fault::Fault;
use super::mark::{DatabaseIdentity, MarkFile, Position};
use crate::columns::{self, Columns as _};
use crate::unavailable;

/// The name of the row that identifies the store's original database.
const ORIGIN: &str = "database";

/// The maximum delay of the mark file.
const MARK_DELAY: Duration = Duration::from_secs(2);

impl DatabaseIdentity {
    /// Describes the difference between this database and the store's original database, if there is one.
    fn difference(&self, origin: &Self) -> Option<String> {
        if let (Some(here), Some(there)) = (self.system, origin.system)
            && here != there
        {
            return Some(format!(
                "it was written by the server {there}, and this is the server {here} (system identifiers): a dump was restored, or \
                 the server was upgraded with pg_upgrade"
            ));
        }
        if self.database != origin.database {
            return Some(format!(
                "it was written in the database with the oid {}, and this one's is {}: a dump was restored, or the database was \
                 copied",
                origin.database, self.database
            ));
        }
        (self.tables != origin.tables)
            .then(|| "its tables were created again since: a dump was restored".to_owned())
    }
}

/// The row that identifies the store's original database, and the time of the last restore of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    identity: DatabaseIdentity,
    restored_at: Timestamp,
}

impl Origin {
    fn text(&self) -> String {
        let Self { identity: DatabaseIdentity { system, database, tables }, restored_at } = self;
        let system = system.map_or_else(|| "-".to_owned(), |system| system.to_string());
        format!("{system} {database} {tables} {}", restored_at.as_millis())
    }

    fn parse(text: &str) -> Option<Self> {
        let [system, database, tables, restored_at] =
            <[&str; 4]>::try_from(text.split(' ').collect::<Vec<_>>()).ok()?;
        let system = if system == "-" { None } else { Some(system.parse().ok()?) };
        let identity = DatabaseIdentity {
            system,
            database: database.parse().ok()?,
            tables: tables.parse().ok()?,
        };
        Some(Self { identity, restored_at: Timestamp::from_millis(restored_at.parse().ok()?) })
    }
}

/// The state of a database as one connection reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundDatabase {
    pub(super) identity: DatabaseIdentity,
    /// The server's current timeline; `None` if its user may not read it.
    timeline: Option<u32>,
    rev: Rev,
    /// True if the server is a standby, which is read-only.
    pub(super) is_standby: bool,
    /// True if an acknowledged commit survives a crash of the server.
    commits_last: bool,
}

impl FoundDatabase {
    /// Reads the state of this connection's database.
    pub(super) async fn look(client: &Client) -> Result<Self, Fault> {
        const STATE: &str = "select 'meta'::regclass::oid::bigint as tables,
               (select oid::bigint from pg_database where datname = current_database()) as database,
               (select last_value - (not is_called)::int from rev) as rev, pg_is_in_recovery() as is_standby,
               current_setting('synchronous_commit') <> 'off' as commits_last";
        // The first eight digits of a log file's name are its timeline. The control file is updated only some time after a
        // promotion.
        const TIMELINE: &str =
            "select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint";
        const SYSTEM: &str = "select system_identifier from pg_control_system()";
        let (row, system, timeline) = tokio::join!(
            one_row(client, STATE),
            query_if_permitted(client, SYSTEM),
            query_if_permitted(client, TIMELINE)
        );
        let row = row?;
        let identity = DatabaseIdentity {
            system: system?,
            database: row.try_get("database")?,
            tables: row.try_get("tables")?,
        };
        Ok(Self {
            identity,
            timeline: timeline?.and_then(|timeline| u32::try_from(timeline).ok()),
            rev: columns::rev(row.try_get("rev")?),
            is_standby: row.try_get("is_standby")?,
            commits_last: row.try_get("commits_last")?,
        })
    }

    fn position(&self, origin: &Origin) -> Position {
        Position { restored_at: origin.restored_at, timeline: self.timeline, rev: self.rev }
    }
}

async fn one_row(client: &Client, sql: &str) -> Result<Row, Fault> {
    let rows = client.query_typed(sql, &[]).await?;
    rows.into_iter().next().ok_or_else(|| unavailable("the database returned no row").into())
}

/// Reads a value that a managed database may not let the user read.
async fn query_if_permitted(client: &Client, sql: &str) -> Result<Option<i64>, Fault> {
    match one_row(client, sql).await {
        Ok(row) => Ok(row.try_get(0)?),
        Err(Fault::Sql(error)) if error.code().is_some() && !Fault::is_sql_transient(&error) => {
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// The relation of a position to the one seen before.
#[derive(Clone, Debug, PartialEq, Eq)]
enum History {
    /// The history continues.
    Continues,
    /// A standby was promoted that had not received this many of the latest change numbers.
    FailedOver { lost: u64 },
    /// The state is older, or belongs to another history.
    Outdated { why: String },
}

impl History {
    fn of(found: &Position, seen: &Position) -> Self {
        if seen.restored_at != found.restored_at {
            return if seen.restored_at < found.restored_at {
                Self::Continues
            } else {
                Self::Outdated {
                    why: "it is older than its last `outlast store restore`".to_owned(),
                }
            };
        }
        let timelines = found.timeline.zip(seen.timeline);
        if let Some((here, there)) = timelines
            && here < there
        {
            let why = format!(
                "its server is on timeline {here}, and the store had gone on on timeline {there}: this is a former primary"
            );
            return Self::Outdated { why };
        }
        if found.rev >= seen.rev {
            return Self::Continues;
        }
        match timelines {
            Some((here, there)) if here > there => {
                Self::FailedOver { lost: seen.rev.0 - found.rev.0 }
            }
            _ => Self::Outdated { why: behind(found.rev, seen.rev) },
        }
    }
}

fn behind(found: Rev, seen: Rev) -> String {
    format!("its latest change is number {}, and it had reached {}", found.0, seen.0)
}

/// Verifies, on every connection and in every step, that the database is the one that the process opened.
pub(super) struct Lineage {
    origin: Origin,
    seen: Mutex<Position>,
    /// Notified when the position has advanced.
    advanced: Notify,
    /// Counts failovers: a number that was drawn before a failover proves nothing after it.
    failovers: AtomicU64,
    commits_last: AtomicBool,
    file: MarkFile,
}

/// The values that a step must find in the database.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedLineage {
    tables: i64,
    rev: Rev,
    failovers: u64,
}

impl ExpectedLineage {
    /// Refuses tables that were created again, and numbers below those drawn before.
    pub(super) fn check(&self, tables: i64, rev: i64) -> Result<(), StoreError> {
        if tables != self.tables {
            let why = "its tables were created again: a dump was restored".to_owned();
            return Err(StoreError::Outdated { why });
        }
        let found = columns::rev(rev);
        if found < self.rev {
            return Err(StoreError::Outdated { why: behind(found, self.rev) });
        }
        Ok(())
    }
}

impl Lineage {
    /// Verifies the database of this connection, whose tables are of this version, or refuses it.
    pub(super) async fn open(
        client: &Client,
        store: &str,
        state_dir: Option<&Path>,
    ) -> Result<Self, Fault> {
        let found = FoundDatabase::look(client).await?;
        if found.is_standby {
            return Err(unavailable(STANDBY).into());
        }
        let origin = match read_recorded(client).await? {
            Some(origin) => origin,
            None => record_first(client, &found).await?,
        };
        let file = MarkFile::of(state_dir, store, &found.identity);
        // A restore that this process did not see has decided about all unfinished jobs.
        let mark = file.read().filter(|mark| mark.restored_at >= origin.restored_at);
        // Other processes write meanwhile, so the database must be read after the mark: only then is it never behind the mark.
        let found = FoundDatabase::look(client).await?;
        let position = found.position(&origin);
        // A commit that a crash may still undo may have drawn the number found here.
        let start = Position { rev: Rev::default(), ..position };
        let seen = mark.unwrap_or(start);
        let lineage = Self {
            origin,
            seen: Mutex::new(seen),
            advanced: Notify::new(),
            failovers: 0.into(),
            commits_last: AtomicBool::new(found.commits_last),
            file,
        };
        lineage.recognize(&found, &seen)?;
        Ok(lineage)
    }

    /// Returns the latest position that was seen. A database that is read afterwards is not behind it.
    pub(super) fn last_seen(&self) -> Position {
        *lock_mutex(&self.seen)
    }

    /// Refuses a database that is not the one that was opened, or that is behind `before`, the position seen before it was read.
    /// Logs a failover.
    pub(super) fn recognize(
        &self,
        found: &FoundDatabase,
        before: &Position,
    ) -> Result<(), StoreError> {
        if let Some(why) = found.identity.difference(&self.origin.identity) {
            return Err(StoreError::Outdated { why });
        }
        if found.is_standby {
            // A standby lags behind, and refuses the first write.
            return Ok(());
        }
        self.commits_last.store(found.commits_last, Ordering::Relaxed);
        let position = found.position(&self.origin);
        let mut seen = lock_mutex(&self.seen);
        match History::of(&position, before) {
            // Another connection has already detected the failover.
            History::FailedOver { .. } if seen.timeline == position.timeline => {}
            History::Continues => seen.timeline = position.timeline.or(seen.timeline),
            History::FailedOver { lost } => {
                tracing::warn!(
                    lost,
                    timeline = position.timeline,
                    "the database failed over to a standby that was behind: up to {lost} change numbers were lost"
                );
                *seen = Position { rev: Rev::default(), ..position };
                self.failovers.fetch_add(1, Ordering::Relaxed);
            }
            History::Outdated { why } => return Err(StoreError::Outdated { why }),
        }
        Ok(())
    }

    /// Returns the values that a step that begins now must find.
    pub(super) fn expected_values(&self) -> ExpectedLineage {
        let seen = lock_mutex(&self.seen);
        ExpectedLineage {
            tables: self.origin.identity.tables,
            rev: seen.rev,
            failovers: self.failovers.load(Ordering::Relaxed),
        }
    }

    /// Remembers a change number whose commit was acknowledged.
    pub(super) fn saw(&self, expected: &ExpectedLineage, rev: Rev) {
        let mut seen = lock_mutex(&self.seen);
        if self.commits_last.load(Ordering::Relaxed)
            && self.failovers.load(Ordering::Relaxed) == expected.failovers
            && seen.rev < rev
        {
            seen.rev = rev;
            self.advanced.notify_one();
        }
    }

    /// Writes the mark within seconds of each change, until the store is closed.
    pub(super) async fn keep_mark(self: Arc<Self>, closed: CancellationToken) {
        let mut written = Rev::default();
        loop {
            let seen = *lock_mutex(&self.seen);
            if seen.rev != written {
                written = seen.rev;
                let lineage = Arc::clone(&self);
                // A folder that does not respond blocks only this task.
                drop(tokio::task::spawn_blocking(move || lineage.write_mark()).await);
            }
            tokio::select! {
                () = closed.cancelled() => return self.write_mark(),
                () = self.advanced.notified() => {}
            }
            tokio::select! {
                () = closed.cancelled() => return self.write_mark(),
                () = tokio::time::sleep(MARK_DELAY) => {}
            }
        }
    }

    /// Writes the mark.
    pub(super) fn write_mark(&self) {
        let seen = *lock_mutex(&self.seen);
        if seen.rev > Rev::default() {
            self.file.write(&seen);
        }
    }
}

/// The error for a server that is read-only.
pub(super) const STANDBY: &str = "the server is a standby, which can only be read: name the primary, or all hosts with target_session_attrs=read-write";

/// Returns the reason why the database is an older copy of its store, if it is. Tables of an older version may not record
/// their origin.
pub(super) async fn explain_outdated(
    client: &Client,
    found: &FoundDatabase,
    state_dir: Option<&Path>,
) -> Result<Option<String>, Fault> {
    let Some(origin) = read_recorded(client).await? else { return Ok(None) };
    if let Some(why) = found.identity.difference(&origin.identity) {
        return Ok(Some(why));
    }
    // A standby lags behind.
    if found.is_standby {
        return Ok(None);
    }
    let store = store_id(client).await?;
    let Some(seen) = MarkFile::of(state_dir, &store, &found.identity).read() else {
        return Ok(None);
    };
    // Other processes write meanwhile, so the database must be read after the mark: only then is it never behind the mark.
    let found = FoundDatabase::look(client).await?;
    Ok(match History::of(&found.position(&origin), &seen) {
        History::Outdated { why } => Some(why),
        History::Continues | History::FailedOver { .. } => None,
    })
}

/// Makes this the store's own database, within a transaction, and sets change numbers above all those that may have been
/// assigned since the dump. Returns the mark to write after the commit.
pub(super) async fn adopt(
    client: &Client,
    found: &FoundDatabase,
    store: &str,
    state_dir: Option<&Path>,
) -> Result<(MarkFile, Position), Fault> {
    const RAISE: &str =
        "select setval('rev', greatest((select last_value from rev), $1) + 1000000) as rev,
           (extract(epoch from clock_timestamp()) * 1000)::bigint as now";
    let file = MarkFile::of(state_dir, store, &found.identity);
    let mark = file.read();
    let floor = mark.map_or(Rev::default(), |mark| mark.rev);
    let row = client.query_one(RAISE, &[&columns::to_signed(floor.0)]).await?;
    let now = Timestamp::from_millis(row.try_get("now")?);
    let previous = mark.map(|mark| mark.restored_at.after(Duration::from_millis(1)));
    let restored_at = previous.map_or(now, |previous| previous.max(now));
    let origin = Origin { identity: found.identity, restored_at };
    client.execute(REPLACE, &[&ORIGIN, &origin.text()]).await?;
    let rev = columns::rev(row.try_get("rev")?);
    Ok((file, Position { rev, ..found.position(&origin) }))
}

const REPLACE: &str = "insert into kept (name, value) values ($1, $2)
     on conflict (name) do update set value = excluded.value";

/// Reads the row that identifies the store's original database; returns `None` if the tables do not have it yet.
async fn read_recorded(client: &Client) -> Result<Option<Origin>, Fault> {
    const IS_THERE: &str = "select exists (select from pg_class
         where relname = 'kept' and relkind = 'r' and pg_table_is_visible(oid)) as is_there";
    if !one_row(client, IS_THERE).await?.try_get::<_, bool>("is_there")? {
        return Ok(None);
    }
    let select = format!("select value from kept where name = '{ORIGIN}'");
    let rows = client.query_typed(&select, &[]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let text = row.text("value")?;
    let origin = Origin::parse(&text);
    origin.map(Some).ok_or_else(|| StoreError::Corrupt { at: format!("kept.{ORIGIN}") }.into())
}

/// Records the origin. Two processes may do so at the same time.
async fn record_first(client: &Client, found: &FoundDatabase) -> Result<Origin, Fault> {
    const ADD: &str =
        "insert into kept (name, value) values ($1, $2) on conflict (name) do nothing";
    let origin = Origin { identity: found.identity, restored_at: Timestamp::from_millis(0) };
    client.execute(ADD, &[&ORIGIN, &origin.text()]).await?;
    Ok(read_recorded(client).await?.unwrap_or(origin))
}

/// Locks the mutex even if a holder panicked: the values here are never half written.
fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The id that the store was given at its creation.
pub(super) async fn store_id(client: &Client) -> Result<String, Fault> {
    Ok(client.query_one("select store::text from meta", &[]).await?.try_get(0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(restored_at: i64, timeline: u32, rev: u64) -> Position {
        let timeline = (timeline != 0).then_some(timeline);
        Position { restored_at: Timestamp::from_millis(restored_at), timeline, rev: Rev(rev) }
    }

    /// F6, B9a: only a newer timeline explains missing numbers.
    #[test]
    fn f6_a_database_behind_the_mark_has_failed_over_or_is_outdated() {
        let continues = |found, seen| History::of(&found, &seen) == History::Continues;
        assert!(continues(at(0, 1, 7), at(0, 1, 7)));
        assert!(continues(at(0, 2, 8), at(0, 1, 7)));
        assert!(continues(at(0, 0, 8), at(0, 1, 7)), "a timeline that is not known says nothing");
        assert!(continues(at(9, 1, 1), at(0, 2, 7)), "restored on another machine");
        let failed_over = History::of(&at(0, 2, 5), &at(0, 1, 7));
        assert_eq!(failed_over, History::FailedOver { lost: 2 });
        for (found, seen) in [
            (at(0, 1, 5), at(0, 1, 7)),
            (at(0, 0, 5), at(0, 1, 7)),
            (at(0, 2, 5), at(0, 0, 7)),
            (at(0, 1, 9), at(0, 2, 7)),
            (at(0, 1, 9), at(3, 1, 7)),
        ] {
            let history = History::of(&found, &seen);
            assert!(matches!(history, History::Outdated { .. }), "{found:?} {seen:?}");
        }
    }

    #[test]
    fn b9a_a_database_is_distinguished_from_every_other_and_from_tables_of_a_dump() {
        let here = DatabaseIdentity { system: Some(-5), database: 5, tables: 16_390 };
        assert_eq!(here.difference(&here), None);
        assert_eq!(here.difference(&DatabaseIdentity { system: None, ..here }), None);
        for other in [
            DatabaseIdentity { system: Some(6), ..here },
            DatabaseIdentity { database: 6, ..here },
            DatabaseIdentity { tables: 16_400, ..here },
        ] {
            assert!(here.difference(&other).is_some(), "{other:?}");
        }
        for system in [Some(-5), None] {
            let identity = DatabaseIdentity { system, ..here };
            let origin = Origin { identity, restored_at: Timestamp::from_millis(7) };
            assert_eq!(Origin::parse(&origin.text()), Some(origin));
        }
        assert_eq!(Origin::parse("1 2 3"), None);
    }
}
