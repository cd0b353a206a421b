//! Which database the store was written in and how far it had come, so that a restored dump is not served as if nothing had happened
//! since.
//!
//! A dump keeps rows and no identity of the database they were in. So the store has a row that names its database and its tables: in
//! any other database, or in tables that were made again, it is an older copy. What a dump cannot change is what each process saw: the
//! latest durable change number, in memory and in a file of the user (the mark). A database behind it has lost changes, by a rollback
//! or, on a newer timeline, by a failover.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_core::{Rev, StoreError, Timestamp};
use tokio_postgres::{Client, Row};
use tokio_util::sync::CancellationToken;

use super::fault::Fault;
use super::mark::{MarkFile, Position};
use super::rows::get;
use super::schema;
use crate::columns::{self, Columns as _};
use crate::unavailable;

/// The name of the row that says where the store was written.
const ORIGIN: &str = "database";

/// How far behind the mark file may be.
const MARK_DELAY: Duration = Duration::from_secs(2);

/// A database, told from every other one, and its tables, told from those that a dump makes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatabaseIdentity {
    /// The server's identifier; `None` if its user may not ask for it.
    pub(super) system: Option<i64>,
    pub(super) database: i64,
    pub(super) tables: i64,
}

impl DatabaseIdentity {
    /// Describes how the database differs from the one that the store was written in, if it does.
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
            .then(|| "its tables were made again since: a dump was restored".to_owned())
    }
}

/// The row that says where the store was written, and when a dump was made the store again.
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

/// A database as one connection finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundDatabase {
    pub(super) identity: DatabaseIdentity,
    /// Where its server stands in its history; `None` if its user may not ask for it.
    timeline: Option<u32>,
    rev: Rev,
    /// Whether the server is a standby, which cannot be written.
    pub(super) is_standby: bool,
    /// Whether a commit that was answered survives a crash of the server.
    commits_last: bool,
}

impl FoundDatabase {
    /// Looks at the database of this connection.
    pub(super) async fn look(client: &Client) -> Result<Self, Fault> {
        const STATE: &str = "select 'meta'::regclass::oid::bigint as tables,
               (select oid::bigint from pg_database where datname = current_database()) as database,
               (select last_value - (not is_called)::int from rev) as rev, pg_is_in_recovery() as is_standby,
               current_setting('synchronous_commit') <> 'off' as commits_last";
        // The first eight digits of the name of a log file are its timeline; the control file follows a promotion late.
        const TIMELINE: &str =
            "select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint";
        const SYSTEM: &str = "select system_identifier from pg_control_system()";
        let (row, system, timeline) = tokio::join!(
            one_row(client, STATE),
            permitted(client, SYSTEM),
            permitted(client, TIMELINE)
        );
        let row = row?;
        let identity = DatabaseIdentity {
            system: system?,
            database: get(&row, "database")?,
            tables: get(&row, "tables")?,
        };
        Ok(Self {
            identity,
            timeline: timeline?.and_then(|timeline| u32::try_from(timeline).ok()),
            rev: columns::rev(get(&row, "rev")?),
            is_standby: get(&row, "is_standby")?,
            commits_last: get(&row, "commits_last")?,
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

/// Asks what a managed database may refuse to say.
async fn permitted(client: &Client, sql: &str) -> Result<Option<i64>, Fault> {
    match one_row(client, sql).await {
        Ok(row) => Ok(row.try_get(0)?),
        Err(Fault::Sql(error)) if error.code().is_some() && !Fault::is_sql_transient(&error) => {
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// A position against the one that was seen before.
#[derive(Clone, Debug, PartialEq, Eq)]
enum History {
    /// It goes on.
    Continues,
    /// A standby was promoted that had not received this many of the latest change numbers.
    FailedOver { lost: u64 },
    /// An older state, or another one.
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

/// Recognizes the database that a process has opened on every connection and in every step.
pub(super) struct Lineage {
    origin: Origin,
    seen: Mutex<Position>,
    /// Counts failovers: a number that was drawn before one says nothing after it.
    failovers: AtomicU64,
    commits_last: AtomicBool,
    file: MarkFile,
}

/// What a step has to find in the database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    tables: i64,
    rev: Rev,
    failovers: u64,
}

impl Expected {
    /// Refuses tables that were made again, and numbers behind those that were drawn before.
    pub(super) fn check(&self, tables: i64, rev: i64) -> Result<(), StoreError> {
        if tables != self.tables {
            let why = "its tables were made again: a dump was restored".to_owned();
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
    /// Recognizes the database of this connection, whose tables are of this version, or refuses it.
    pub(super) async fn open(
        client: &Client,
        store: &str,
        state_dir: Option<&Path>,
    ) -> Result<Self, Fault> {
        let found = FoundDatabase::look(client).await?;
        if found.is_standby {
            return Err(unavailable(STANDBY).into());
        }
        let origin = match recorded(client).await? {
            Some(origin) => origin,
            None => record_first(client, &found).await?,
        };
        let file = MarkFile::of(state_dir, store, &found.identity);
        // A restore that this process did not see decided about everything that was unfinished.
        let mark = file.read().filter(|mark| mark.restored_at >= origin.restored_at);
        // Other processes go on meanwhile: only a database that is looked at after the mark cannot be behind it.
        let found = FoundDatabase::look(client).await?;
        let position = found.position(&origin);
        // The number that is found may have been drawn by a commit that a crash still undoes.
        let start = Position { rev: Rev::default(), ..position };
        let seen = mark.unwrap_or(start);
        let lineage = Self {
            origin,
            seen: Mutex::new(seen),
            failovers: 0.into(),
            commits_last: AtomicBool::new(found.commits_last),
            file,
        };
        lineage.recognize(&found, &seen)?;
        Ok(lineage)
    }

    /// Returns the position that was seen last. A database that is looked at afterwards is not behind it.
    pub(super) fn seen(&self) -> Position {
        *locked(&self.seen)
    }

    /// Refuses a database that is not the one that was opened, or is behind what was seen before it was looked at; a failover is
    /// logged.
    pub(super) fn recognize(
        &self,
        found: &FoundDatabase,
        before: &Position,
    ) -> Result<(), StoreError> {
        if let Some(why) = found.identity.difference(&self.origin.identity) {
            return Err(StoreError::Outdated { why });
        }
        if found.is_standby {
            // It is behind, and refuses the first write.
            return Ok(());
        }
        self.commits_last.store(found.commits_last, Ordering::Relaxed);
        let position = found.position(&self.origin);
        let mut seen = locked(&self.seen);
        match History::of(&position, before) {
            // Another connection has noticed the failover already.
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

    /// Returns what a step that begins now has to find.
    pub(super) fn expected(&self) -> Expected {
        let seen = locked(&self.seen);
        Expected {
            tables: self.origin.identity.tables,
            rev: seen.rev,
            failovers: self.failovers.load(Ordering::Relaxed),
        }
    }

    /// Remembers a number whose commit was answered.
    pub(super) fn saw(&self, expected: &Expected, rev: Rev) {
        let mut seen = locked(&self.seen);
        if self.commits_last.load(Ordering::Relaxed)
            && self.failovers.load(Ordering::Relaxed) == expected.failovers
        {
            seen.rev = seen.rev.max(rev);
        }
    }

    /// Writes the mark every few seconds, until the store is closed.
    pub(super) async fn keep_mark(self: Arc<Self>, closed: CancellationToken) {
        let mut written = Rev::default();
        loop {
            let seen = *locked(&self.seen);
            if seen.rev != written {
                written = seen.rev;
                let lineage = Arc::clone(&self);
                // A folder that hangs holds up nothing but this.
                drop(tokio::task::spawn_blocking(move || lineage.write_mark()).await);
            }
            tokio::select! {
                () = closed.cancelled() => return self.write_mark(),
                () = tokio::time::sleep(MARK_DELAY) => {}
            }
        }
    }

    /// Writes the mark.
    pub(super) fn write_mark(&self) {
        let seen = *locked(&self.seen);
        if seen.rev > Rev::default() {
            self.file.write(&seen);
        }
    }
}

/// The refusal of a server that cannot be written.
pub(super) const STANDBY: &str = "the server is a standby, which can only be read: name the primary, or all hosts with target_session_attrs=read-write";

/// Returns why the database is an older copy of its store, if it is. Tables of an older version may not say where they were made.
pub(super) async fn outdated(
    client: &Client,
    found: &FoundDatabase,
    state_dir: Option<&Path>,
) -> Result<Option<String>, Fault> {
    let Some(origin) = recorded(client).await? else { return Ok(None) };
    if let Some(why) = found.identity.difference(&origin.identity) {
        return Ok(Some(why));
    }
    // A standby is behind.
    if found.is_standby {
        return Ok(None);
    }
    let store = schema::store_id(client).await?;
    let Some(seen) = MarkFile::of(state_dir, &store, &found.identity).read() else {
        return Ok(None);
    };
    // Other processes go on meanwhile: only a database that is looked at after the mark cannot be behind it.
    let found = FoundDatabase::look(client).await?;
    Ok(match History::of(&found.position(&origin), &seen) {
        History::Outdated { why } => Some(why),
        History::Continues | History::FailedOver { .. } => None,
    })
}

/// Makes this database the store's own, within a transaction, with change numbers above every one that it may have given out since the
/// dump; returns what is to be written to the mark after the commit.
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
    let row = client.query_one(RAISE, &[&columns::signed(floor.0)]).await?;
    let now = Timestamp::from_millis(get(&row, "now")?);
    let previous = mark.map(|mark| mark.restored_at.after(Duration::from_millis(1)));
    let restored_at = previous.map_or(now, |previous| previous.max(now));
    let origin = Origin { identity: found.identity, restored_at };
    client.execute(REPLACE, &[&ORIGIN, &origin.text()]).await?;
    let rev = columns::rev(get(&row, "rev")?);
    Ok((file, Position { rev, ..found.position(&origin) }))
}

const REPLACE: &str = "insert into kept (name, value) values ($1, $2)
     on conflict (name) do update set value = excluded.value";

/// Reads the row that says where the store was written; `None` in tables that have none yet.
async fn recorded(client: &Client) -> Result<Option<Origin>, Fault> {
    const IS_THERE: &str = "select exists (select from pg_class
         where relname = 'kept' and relkind = 'r' and pg_table_is_visible(oid)) as is_there";
    if !get::<bool>(&one_row(client, IS_THERE).await?, "is_there")? {
        return Ok(None);
    }
    let select = format!("select value from kept where name = '{ORIGIN}'");
    let rows = client.query_typed(&select, &[]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let text = row.text("value")?;
    let origin = Origin::parse(&text);
    origin.map(Some).ok_or_else(|| StoreError::Corrupt { at: format!("kept.{ORIGIN}") }.into())
}

/// Two processes may be the first.
async fn record_first(client: &Client, found: &FoundDatabase) -> Result<Origin, Fault> {
    const ADD: &str =
        "insert into kept (name, value) values ($1, $2) on conflict (name) do nothing";
    let origin = Origin { identity: found.identity, restored_at: Timestamp::from_millis(0) };
    client.execute(ADD, &[&ORIGIN, &origin.text()]).await?;
    Ok(recorded(client).await?.unwrap_or(origin))
}

/// A lock whose holder panicked guards nothing that could be half-written here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(restored_at: i64, timeline: u32, rev: u64) -> Position {
        let timeline = (timeline != 0).then_some(timeline);
        Position { restored_at: Timestamp::from_millis(restored_at), timeline, rev: Rev(rev) }
    }

    /// F6, B9a: only a newer timeline explains numbers that are gone.
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
    fn b9a_a_database_is_told_from_every_other_and_from_tables_of_a_dump() {
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
