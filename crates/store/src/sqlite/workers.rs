//! Who works here: a row for each profile a worker claimed for, believed only while its lock is held.

use outlast_core::{Profile, Rescued, StoreError, WorkerId};
use rusqlite::Connection;

use super::fault::{Fault, unavailable};
use super::liveness::Sign;
use super::writer::Tx;
use super::{SqliteStore, commands, reads};

impl SqliteStore {
    /// Makes sure that other processes can see the worker live before it claims.
    pub(super) async fn show_life(&self, worker: &WorkerId) -> Result<(), StoreError> {
        if self.liveness.is_own(worker) {
            return Ok(());
        }
        let (liveness, worker) = (self.liveness.clone(), worker.clone());
        let task = tokio::task::spawn_blocking(move || liveness.hold(&worker));
        task.await.map_err(unavailable)?
    }

    /// Looks for a worker of that profile whose lock is held, and forgets those it finds dead on the way.
    pub(super) async fn find_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        let (liveness, profile) = (self.liveness.clone(), profile.clone());
        let look = move |connection: &Connection| {
            let (mut dead, mut found) = (Vec::new(), false);
            for worker in with_profile(connection, &profile)? {
                match liveness.sign(&worker) {
                    Sign::Alive => {
                        found = true;
                        break;
                    }
                    Sign::Dead => dead.push(worker),
                }
            }
            Ok((found, dead))
        };
        let (found, dead) = self.readers.run(look).await?;
        // The answer stands whether or not they can be forgotten just now; the next process that asks tries again. Their files
        // stay until their jobs are rescued.
        if self.writer.is_some()
            && !dead.is_empty()
            && let Err(error) = self.write(move |tx| forget(tx, &dead)).await
        {
            tracing::warn!(%error, "dead workers could not be taken off the list");
        }
        Ok(found)
    }

    /// Lets the worker's lock go, so that it counts as dead, and takes it off the list.
    pub(super) async fn let_go(&self, worker: &WorkerId) -> Result<(), StoreError> {
        let (liveness, leaver) = (self.liveness.clone(), worker.clone());
        tokio::task::spawn_blocking(move || liveness.dismiss(&leaver))
            .await
            .map_err(unavailable)?;
        let worker = [worker.clone()];
        self.write(move |tx| forget(tx, &worker)).await
    }

    /// Tries the locks of the others; the writer is troubled only if one that is on record is dead. The files of all the
    /// dead go, also of those that hold nothing and are on no list: a worker's name is never used twice, so that what is
    /// removed cannot be a live worker's.
    pub(super) async fn rescue_proven(&self) -> Result<Rescued, StoreError> {
        let liveness = self.liveness.clone();
        let look = move |connection: &Connection| {
            let mut others = liveness.present();
            let holders = reads::holders(connection)?;
            let mut on_record = listed(connection)?;
            on_record.extend(holders.iter().cloned());
            others.extend(on_record.iter().cloned());
            others.sort();
            others.dedup();
            others.retain(|worker| !liveness.is_own(worker));
            let (dead, mut alive): (Vec<WorkerId>, Vec<WorkerId>) =
                others.into_iter().partition(|worker| liveness.sign(worker) == Sign::Dead);
            alive.retain(|worker| holders.contains(worker));
            let mut missed = dead.clone();
            missed.retain(|worker| on_record.contains(worker));
            Ok((dead, missed, alive.len()))
        };
        let (dead, missed, watched) = self.readers.run(look).await?;
        let watched = u32::try_from(watched).unwrap_or(u32::MAX);
        if dead.is_empty() {
            return Ok(Rescued { jobs: 0, watched });
        }
        let jobs = match missed.is_empty() {
            true => 0,
            false => self.write(move |tx| commands::rescue_workers(tx, &missed)).await?,
        };
        let liveness = self.liveness.clone();
        let remove_lock = move || dead.iter().for_each(|worker| liveness.remove_lock(worker));
        tokio::task::spawn_blocking(remove_lock).await.map_err(unavailable)?;
        Ok(Rescued { jobs, watched })
    }
}

/// Puts the worker on the list. Done at every claim, and a write only at the first: a lookup is cheap, and a list
/// kept here as well could differ from the one that others see.
pub(super) fn list(tx: &Tx<'_>, worker: &WorkerId, profiles: &[Profile]) -> Result<(), Fault> {
    let mut statement = tx.connection.prepare_cached(
        "INSERT INTO workers (worker, profile) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    for profile in profiles {
        statement.execute((worker.as_str(), profile.as_str()))?;
    }
    Ok(())
}

/// Takes workers off the list.
pub(super) fn forget(tx: &Tx<'_>, workers: &[WorkerId]) -> Result<(), Fault> {
    let mut statement = tx.connection.prepare_cached("DELETE FROM workers WHERE worker = ?1")?;
    for worker in workers {
        statement.execute([worker.as_str()])?;
    }
    Ok(())
}

fn with_profile(connection: &Connection, profile: &Profile) -> Result<Vec<WorkerId>, Fault> {
    let workers = connection
        .prepare_cached("SELECT worker FROM workers WHERE profile = ?1")?
        .query_map([profile.as_str()], |row| row.get::<_, String>(0).map(WorkerId::new))?
        .collect::<Result<_, _>>()?;
    Ok(workers)
}

/// Everybody on the list, dead or alive.
pub(super) fn listed(connection: &Connection) -> Result<Vec<WorkerId>, Fault> {
    let workers = connection
        .prepare_cached("SELECT DISTINCT worker FROM workers")?
        .query_map([], |row| row.get::<_, String>(0).map(WorkerId::new))?
        .collect::<Result<_, _>>()?;
    Ok(workers)
}
