//! Proves that workers are alive: while a worker is running, its process holds a lock on a file named after the worker.
//!
//! The kernel frees the lock when the process ends, however it ends. A process that can take the lock, or finds no file,
//! therefore knows immediately and without a clock that the worker is dead.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_core::{StoreError, WorkerId};

use super::fault::file_error;
use super::files::{directory_of, make_private_dir, make_private_file};
use crate::unavailable;

/// The locks of this store's own workers, and the location of other workers' files.
pub(super) struct Liveness {
    dir: PathBuf,
    own: Mutex<HashMap<WorkerId, File>>,
}

impl Liveness {
    /// Uses the directory `workers` next to the database. Creates it when the first worker of this store claims.
    pub(super) fn of_database(path: &Path) -> Self {
        Self { dir: directory_of(path).join("workers"), own: Mutex::default() }
    }

    /// Returns true if the worker claims through this store.
    pub(super) fn is_own(&self, worker: &WorkerId) -> bool {
        self.own().contains_key(worker)
    }

    /// Locks the worker's file. The file must exist before the first claim; otherwise the worker would look dead.
    pub(super) fn hold(&self, worker: &WorkerId) -> Result<(), StoreError> {
        let path = self.path(worker)?;
        let mut own = self.own();
        if own.contains_key(worker) {
            return Ok(());
        }
        make_private_dir(&self.dir)?;
        // Lock it under another name first, so that a file with the final name is never unlocked.
        let locked_first = path.with_extension("new");
        let lock = || {
            remove(&locked_first)?;
            let file = make_private_file(&locked_first)?;
            file.try_lock()?;
            fs::rename(&locked_first, &path)?;
            Ok(file)
        };
        let file = lock().map_err(file_error(&path))?;
        own.insert(worker.clone(), file);
        Ok(())
    }

    /// Returns true if a worker is alive or if that is uncertain.
    pub(super) fn is_alive(&self, worker: &WorkerId) -> bool {
        let Ok(path) = self.path(worker) else { return true };
        if self.is_own(worker) {
            return true;
        }
        let error = match File::options().write(true).open(&path) {
            // A shared lock, so that two processes that test at the same time do not mistake each other for the worker.
            Ok(file) => match file.try_lock_shared() {
                Ok(()) => return false,
                Err(TryLockError::WouldBlock) => return true,
                Err(TryLockError::Error(error)) => error,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return false,
            Err(error) => error,
        };
        tracing::warn!(%worker, %error, "cannot tell whether a worker is alive; its lease will show");
        true
    }

    /// All workers that have a file here, dead or alive.
    pub(super) fn present(&self) -> Vec<WorkerId> {
        let Ok(files) = fs::read_dir(&self.dir) else { return Vec::new() };
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        names.filter_map(|name| Some(WorkerId::new(name.strip_suffix(".lock")?))).collect()
    }

    /// Removes the file of a dead worker that has nothing left to rescue.
    pub(super) fn remove_lock(&self, worker: &WorkerId) {
        let Ok(path) = self.path(worker) else { return };
        if let Err(error) = remove(&path) {
            tracing::warn!(%worker, %error, "a dead worker's file could not be removed");
        }
    }

    /// Unlocks and removes the file of a worker of this store. Does nothing for another process's worker.
    pub(super) fn dismiss(&self, worker: &WorkerId) {
        if self.own().remove(worker).is_some() {
            self.remove_lock(worker);
        }
    }

    /// Unlocks and removes all files.
    pub(super) fn close(&self) {
        let workers: Vec<WorkerId> = self.own().drain().map(|(worker, _)| worker).collect();
        workers.iter().for_each(|worker| self.remove_lock(worker));
    }

    fn own(&self) -> MutexGuard<'_, HashMap<WorkerId, File>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path of the worker's file. A name may contain only letters, digits and dashes.
    fn path(&self, worker: &WorkerId) -> Result<PathBuf, StoreError> {
        let name = worker.as_str();
        let plain = (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !plain {
            return Err(unavailable("a worker's name is 1 to 64 letters, digits and dashes"));
        }
        Ok(self.dir.join(format!("{name}.lock")))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn two_stores(dir: &TempDir) -> (Liveness, Liveness) {
        let path = dir.path().join("jobs.db");
        (Liveness::of_database(&path), Liveness::of_database(&path))
    }

    #[test]
    fn a_worker_is_alive_exactly_as_long_as_its_lock() {
        let dir = TempDir::new().unwrap();
        let (here, there) = two_stores(&dir);
        let worker = WorkerId::new("w-1");
        assert!(!there.is_alive(&worker), "it has no file");
        here.hold(&worker).unwrap();
        here.hold(&worker).unwrap();
        assert!(here.is_alive(&worker) && there.is_alive(&worker));
        drop(here);
        assert!(!there.is_alive(&worker));
        assert_eq!(there.present(), std::slice::from_ref(&worker));
        there.remove_lock(&worker);
        assert_eq!(fs::read_dir(&there.dir).unwrap().count(), 0);
        there.remove_lock(&worker);
    }

    #[test]
    fn what_is_gone_is_removed_and_what_stays_is_reported() {
        let dir = TempDir::new().unwrap();
        remove(&dir.path().join("gone")).unwrap();
        assert!(remove(dir.path()).is_err(), "a directory stays");
    }

    #[test]
    fn two_processes_that_look_at_once_do_not_take_each_other_for_the_worker() {
        let dir = TempDir::new().unwrap();
        let (here, there) = two_stores(&dir);
        let worker = WorkerId::new("w-1");
        here.hold(&worker).unwrap();
        drop(here);
        let looking = File::options().write(true).open(there.path(&worker).unwrap()).unwrap();
        looking.try_lock_shared().unwrap();
        assert!(!there.is_alive(&worker));
    }

    #[test]
    fn a_dismissed_worker_is_dead_and_leaves_no_file() {
        let dir = TempDir::new().unwrap();
        let (here, there) = two_stores(&dir);
        let worker = WorkerId::new("w-1");
        here.hold(&worker).unwrap();
        there.dismiss(&worker);
        assert!(there.is_alive(&worker), "another process's worker cannot be dismissed");
        here.dismiss(&worker);
        assert!(!here.is_alive(&worker) && !there.is_alive(&worker));
        assert_eq!(fs::read_dir(&there.dir).unwrap().count(), 0);
    }

    #[test]
    fn only_plain_names_become_file_names() {
        let dir = TempDir::new().unwrap();
        let (liveness, _) = two_stores(&dir);
        let long = "a".repeat(65);
        for bad in ["", "../up", "a/b", "a.b", "a b", "ä", "a\0", &long] {
            let held = liveness.hold(&WorkerId::new(bad));
            assert!(matches!(held, Err(StoreError::Unavailable(_))), "{bad:?}");
            assert!(liveness.is_alive(&WorkerId::new(bad)), "{bad:?}");
        }
        liveness.hold(&WorkerId::new("a".repeat(64))).unwrap();
    }
}
