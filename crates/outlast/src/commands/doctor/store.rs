//! Checks of the job store: can it be written, whose is it, do locks hold where it lives, is a worker there.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use super::check::Check;
use crate::config::{Config, StoreUrl};
use crate::wire::store_hint;

const STORE: &str = "store";
const WORKER: &str = "worker";
const LOCKS: &str = "locks";

/// What another process says about locks it should not have been given.
const GAVE_WAY: u8 = 3;

/// The store can be written, and a worker works on it.
pub(super) fn inspected(config: Option<&Config>) -> impl FnOnce() -> [Check; 2] + Send + 'static {
    let url = config.map(|config| config.store.clone());
    move || match url {
        None => [STORE, WORKER].map(Check::unconfigured),
        Some(StoreUrl::Memory) => {
            let fix = "leave OUTLAST_STORE out to keep jobs in a file";
            let line = "in memory: jobs are gone with the process that started them";
            [
                Check::warn(STORE, line, fix),
                Check::skipped(WORKER, "a store in memory has none to see"),
            ]
        }
        Some(StoreUrl::Sqlite(path)) => file(&path),
    }
}

fn file(path: &Path) -> [Check; 2] {
    let shown = path.display();
    match outlast_store::inspect(path) {
        Err(error) => {
            let fix = store_hint(&error);
            let check =
                Check::fail(STORE, format!("{shown}: {:#}", anyhow::Error::new(error)), fix);
            [check, Check::skipped(WORKER, "not looked at: the store cannot be used")]
        }
        Ok(None) => [unmade(path), Check::skipped(WORKER, "none yet; `outlast serve` brings one")],
        Ok(Some(found)) => {
            let schema = match found.schema == found.newest_schema {
                true => format!("schema {}", found.schema),
                false => {
                    format!("schema {}, to be brought to {}", found.schema, found.newest_schema)
                }
            };
            let store = Check::pass(STORE, format!("{shown} can be written ({schema})"));
            let worker = match (found.live_workers, found.unfinished) {
                (0, 0) => Check::pass(WORKER, "none is running, and no job waits for one"),
                (0, jobs) => Check::warn(
                    WORKER,
                    format!("{} and no worker is running", unfinished(jobs)),
                    "start `outlast serve`, or `outlast worker`",
                ),
                (1, jobs) => Check::pass(WORKER, format!("one is running; {}", unfinished(jobs))),
                (workers, jobs) => {
                    Check::pass(WORKER, format!("{workers} are running; {}", unfinished(jobs)))
                }
            };
            [store, worker]
        }
    }
}

fn unfinished(jobs: u64) -> String {
    match jobs {
        0 => "no job is unfinished".to_owned(),
        1 => "one job is unfinished".to_owned(),
        jobs => format!("{jobs} jobs are unfinished"),
    }
}

/// A store that is still to be made.
fn unmade(path: &Path) -> Check {
    let shown = path.display();
    let dir = nearest(path);
    match tempfile::tempfile_in(&dir) {
        Ok(_) => Check::pass(STORE, format!("{shown} will be made when it is needed")),
        Err(error) => Check::fail(
            STORE,
            format!("{shown} cannot be made: {} cannot be written: {error}", dir.display()),
            "give --data-dir or OUTLAST_DATA_DIR a folder that can be written",
        ),
    }
}

/// Locks keep two processes apart where the store is.
pub(super) fn locks(config: Option<&Config>) -> impl FnOnce() -> [Check; 1] + Send + 'static {
    let url = config.map(|config| config.store.clone());
    move || {
        [match url {
            None => Check::unconfigured(LOCKS),
            Some(StoreUrl::Memory) => Check::skipped(LOCKS, "a store in memory needs none"),
            Some(StoreUrl::Sqlite(path)) => tried(&nearest(&path)),
        }]
    }
}

fn tried(dir: &Path) -> Check {
    let shown = dir.display();
    let asked = || -> anyhow::Result<Option<i32>> {
        let folder = tempfile::Builder::new().prefix(".outlast-doctor-").tempdir_in(dir)?;
        let _held = outlast_store::hold_locks(folder.path())?;
        // Another process: one's own locks never stand in one's way.
        let mut other = Command::new(std::env::current_exe()?);
        other.args(["doctor", "--try-locks"]).arg(folder.path()).stdin(Stdio::null());
        Ok(other.stdout(Stdio::null()).stderr(Stdio::null()).status()?.code())
    };
    match asked() {
        Ok(Some(0)) => Check::pass(LOCKS, format!("keep processes apart in {shown}")),
        Ok(Some(code)) if code == i32::from(GAVE_WAY) => Check::fail(
            LOCKS,
            format!("do not keep processes apart in {shown}"),
            "give --data-dir a folder on a local disk: two servers would damage the store here",
        ),
        Ok(_) => Check::warn(
            LOCKS,
            "could not be tried by another process",
            "run `outlast doctor` again",
        ),
        Err(error) => Check::fail(
            LOCKS,
            format!("cannot be made in {shown}: {error:#}"),
            "give --data-dir a folder that can be written",
        ),
    }
}

/// The other process: fails when it is given what another process holds.
pub(super) fn try_locks(dir: &Path) -> ExitCode {
    match outlast_store::locks_that_give_way(dir) {
        Ok(given) if given.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(GAVE_WAY),
        Err(_) => ExitCode::FAILURE,
    }
}

/// The folder of this path, or the nearest above it that is there.
fn nearest(path: &Path) -> PathBuf {
    let above = path.ancestors().skip(1).find(|above| above.is_dir());
    match above {
        Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}
