//! Checks of the job store: that it can be written, its owner, that locks work in its folder, and that it has a worker.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use outlast_core::{EndNotices, StoreError};
use outlast_store::{
    DatabaseInspection, Judgement, PostgresOptions, PostgresStore, SqliteFile, WakeupMode,
};
use tokio::runtime::Handle;

use super::check::Check;
use crate::config::{Config, LOCAL, Secret, StoreUrl};
use crate::error::documentation;
use crate::open_store::{marks_of, store_hint};

/// The exit code of a process that was given locks that it should not have been given.
const GAVE_WAY: u8 = 3;

/// Checks that the store can be written, and that a worker works on it.
pub(super) fn inspect(config: Option<&Config>) -> impl FnOnce() -> [Check; 2] + Send + 'static {
    let url = config.map(|config| config.store.clone());
    let state_dir = config.and_then(|config| config.state_dir.clone());
    let marks = config.map(|config| marks_of(config).to_owned());
    move || match url {
        None => [Check::skip_unconfigured(), Check::skip_unconfigured()],
        Some(StoreUrl::Memory) => {
            let fix = "leave OUTLAST_STORE out to keep jobs in a file";
            let line = "in memory: jobs are gone with the process that started them";
            [Check::warn(line, fix), Check::skip("a store in memory has none to see")]
        }
        Some(StoreUrl::Sqlite(path)) => file(&path, state_dir.as_deref()),
        Some(StoreUrl::Postgres(Secret(ref address))) => {
            let found =
                Handle::current().block_on(PostgresStore::inspect(address, marks.as_deref()));
            database(&url.unwrap_or(StoreUrl::Memory), found)
        }
    }
}

/// Reports the owner of the jobs that commands and stdio servers of this machine start; `None` if jobs belong to this
/// machine alone.
pub(super) fn owner(config: Option<&Config>) -> Option<Check> {
    let config = config.filter(|config| matches!(config.store, StoreUrl::Postgres(_)))?;
    let owner = &config.owner;
    Some(match owner.as_str() {
        LOCAL => Check::warn(
            "OUTLAST_OWNER is not set: commands and stdio servers refuse a store that many machines share without it; \
             workers, and servers over HTTP with tokens, do not need it",
            "set OUTLAST_OWNER to your name",
        ),
        _ => Check::pass(format!("jobs that are started here belong to `{owner}`")),
    })
}

fn database(url: &StoreUrl, found: Result<DatabaseInspection, StoreError>) -> [Check; 2] {
    let unusable = |line: String, fix: &str| {
        let store = Check::fail(format!("{url}: {line}"), fix);
        [store, Check::skip("not looked at: the store cannot be used")]
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let fix = store_hint(&error, url);
            return unusable(format!("{:#}", anyhow::Error::new(error)), fix);
        }
    };
    if let Some(why) = found.outdated {
        let error = StoreError::Outdated { why };
        return unusable(error.to_string(), store_hint(&error, url));
    }
    if found.is_standby {
        let line = format!("{url}: the server is a standby: it can be read and not written");
        let fix =
            "to run jobs, name the primary, or all hosts with target_session_attrs=read-write";
        let workers = Check::skip("not looked at: a standby does not see who is alive");
        return [Check::warn(line, fix), workers];
    }
    let schema = match found.schema {
        Some(newest) if newest == found.newest_schema => schema(newest, newest),
        Some(schema) if schema > found.newest_schema => {
            let line = format!("schema {schema} is newer than this program knows");
            return unusable(line, "update outlast on this machine");
        }
        _ if !found.may_create => {
            let line =
                format!("its user may not make the tables of schema {}", found.newest_schema);
            return unusable(
                line,
                &format!(
                    "run `outlast store migrate` as a user who may: {}",
                    documentation("postgres.md")
                ),
            );
        }
        Some(older) => schema(older, found.newest_schema),
        None => "its tables will be made when they are needed".to_owned(),
    };
    let (used, allowed) = found.connections;
    let line = format!(
        "{url}: PostgreSQL {}, {schema}, {used} of {allowed} connections in use",
        found.server
    );
    let store = if found.is_identified {
        Check::pass(line)
    } else {
        let line = format!("{line}; its user may not call pg_control_system()");
        Check::warn(
            line,
            "grant it, so that a dump restored to another server is always recognized",
        )
    };
    [store, workers(found.live_workers, found.unfinished)]
}

fn schema(is: u32, newest: u32) -> String {
    match is == newest {
        true => format!("schema {is}"),
        false => format!("schema {is}, to be brought to {newest}"),
    }
}

fn file(path: &Path, state_dir: Option<&Path>) -> [Check; 2] {
    let shown = path.display();
    match outlast_store::inspect(SqliteFile { path, state_dir }) {
        Err(error) => {
            let fix = store_hint(&error, &StoreUrl::Sqlite(path.to_owned()));
            let check = Check::fail(format!("{shown}: {:#}", anyhow::Error::new(error)), fix);
            [check, Check::skip("not looked at: the store cannot be used")]
        }
        Ok(None) => [unmade(path), Check::skip("none yet; `outlast serve` brings one")],
        Ok(Some(found)) => {
            let schema = schema(found.schema, found.newest_schema);
            let store = Check::pass(format!("{shown} can be written ({schema})"));
            [store, workers(found.live_workers, found.unfinished)]
        }
    }
}

fn workers(live: u32, jobs: u64) -> Check {
    match (live, jobs) {
        (0, 0) => Check::pass("none is running, and no job waits for one"),
        (0, jobs) => Check::warn(
            format!("{} and no worker is running", describe_unfinished(jobs)),
            "start `outlast serve`, or `outlast worker`",
        ),
        (1, jobs) => Check::pass(format!("one is running; {}", describe_unfinished(jobs))),
        (workers, jobs) => {
            Check::pass(format!("{workers} are running; {}", describe_unfinished(jobs)))
        }
    }
}

fn describe_unfinished(jobs: u64) -> String {
    match jobs {
        0 => "no job is unfinished".to_owned(),
        1 => "one job is unfinished".to_owned(),
        jobs => format!("{jobs} jobs are unfinished"),
    }
}

/// Returns the finding for a store that does not exist yet.
fn unmade(path: &Path) -> Check {
    let shown = path.display();
    let dir = nearest(path);
    match tempfile::tempfile_in(&dir) {
        Ok(_) => Check::pass(format!("{shown} will be made when it is needed")),
        Err(error) => Check::fail(
            format!("{shown} cannot be made: {} cannot be written: {error}", dir.display()),
            "give --data-dir or OUTLAST_DATA_DIR a folder that can be written",
        ),
    }
}

/// Checks that locks exclude two processes from each other in the store's folder.
pub(super) fn locks(config: Option<&Config>) -> impl FnOnce() -> [Check; 1] + Send + 'static {
    let url = config.map(|config| config.store.clone());
    let marks = config.map(|config| marks_of(config).to_owned());
    move || {
        [match url {
            None => Check::skip_unconfigured(),
            Some(StoreUrl::Memory) => Check::skip("a store in memory needs none"),
            Some(StoreUrl::Sqlite(path)) => try_writing(&nearest(&path)),
            Some(StoreUrl::Postgres(Secret(address))) => {
                Handle::current().block_on(sessions(address, marks))
            }
        }]
    }
}

/// Reports how processes on a database notify each other. Skipped without tables, because the check would create them.
async fn sessions(address: String, marks: Option<PathBuf>) -> Check {
    let Ok(found) = PostgresStore::inspect(&address, marks.as_deref()).await else {
        return Check::skip("not tried: the database cannot be used");
    };
    if found.schema != Some(found.newest_schema) {
        return Check::skip("not tried: the database has no tables of this version");
    }
    if found.is_standby || found.outdated.is_some() {
        return Check::skip("not tried: the database cannot be written");
    }
    let options = PostgresOptions {
        url: address,
        clock: None,
        judgement: Judgement::default(),
        notices: EndNotices::Off,
        limits: outlast_store::ConnectionLimits::default(),
        state_dir: marks,
    };
    match PostgresStore::open(options).await {
        Ok(store) => {
            let mode = store.wakeup_mode();
            store.close().await;
            match mode {
                WakeupMode::Sessions => Check::pass(
                    "changes are noticed at once, and dead workers known by their locks",
                ),
                WakeupMode::Looking => Check::warn(
                    "changes are looked for, and dead workers known by their leases alone",
                    "connect to PostgreSQL itself, or through a pooler in session mode",
                ),
            }
        }
        Err(error) => Check::fail(format!("{:#}", anyhow::Error::new(error)), "see the line above"),
    }
}

fn try_writing(dir: &Path) -> Check {
    let shown = dir.display();
    let asked = || -> anyhow::Result<Option<i32>> {
        let folder = tempfile::Builder::new().prefix(".outlast-doctor-").tempdir_in(dir)?;
        let _held = outlast_store::hold_locks(folder.path())?;
        // Another process is necessary: a process's own locks never block it.
        let mut other = Command::new(std::env::current_exe()?);
        other.args(["doctor", "--try-locks"]).arg(folder.path()).stdin(Stdio::null());
        Ok(other.stdout(Stdio::null()).stderr(Stdio::null()).status()?.code())
    };
    match asked() {
        Ok(Some(0)) => Check::pass(format!("keep processes apart in {shown}")),
        Ok(Some(code)) if code == i32::from(GAVE_WAY) => Check::fail(
            format!("do not keep processes apart in {shown}"),
            "give --data-dir a folder on a local disk: two servers would damage the store here",
        ),
        Ok(_) => Check::warn("could not be tried by another process", "run `outlast doctor` again"),
        Err(error) => Check::fail(
            format!("cannot be made in {shown}: {error:#}"),
            "give --data-dir a folder that can be written",
        ),
    }
}

/// Runs as the other process: fails if it gets a lock that another process holds.
pub(super) fn try_locks(dir: &Path) -> ExitCode {
    match outlast_store::locks_that_give_way(dir) {
        Ok(given) if given.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(GAVE_WAY),
        Err(_) => ExitCode::FAILURE,
    }
}

/// Returns the folder of this path, or the nearest existing one above it.
fn nearest(path: &Path) -> PathBuf {
    let above = path.ancestors().skip(1).find(|above| above.is_dir());
    match above {
        Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}
