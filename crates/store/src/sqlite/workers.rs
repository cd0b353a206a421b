//! Determines which workers are alive, and rescues the jobs of dead workers.

use outlast_core::{Profile, RescueOutcome, StoreError, WorkerId};
use rusqlite::Connection;

use super::{SqliteStore, commands, worker_list};
use crate::{count, unavailable};

impl SqliteStore {
    /// Ensures that other processes can see that the worker is alive before it claims.
    pub(super) async fn show_life(&self, worker: &WorkerId) -> Result<(), StoreError> {
        if self.liveness.is_own(worker) {
            return Ok(());
        }
        let (liveness, worker) = (self.liveness.clone(), worker.clone());
        let task = tokio::task::spawn_blocking(move || liveness.hold(&worker));
        task.await.map_err(unavailable)?
    }

    /// Returns true if a worker with that profile is alive. Removes the dead workers that it finds from the list.
    pub(super) async fn find_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        let (liveness, profile) = (self.liveness.clone(), profile.clone());
        let look = move |connection: &Connection| {
            let mut dead = Vec::new();
            for worker in worker_list::of_profile(connection, &profile)? {
                if liveness.is_alive(&worker) {
                    return Ok((true, dead));
                }
                dead.push(worker);
            }
            Ok((false, dead))
        };
        let (found, dead) = self.readers.run(look).await?;
        // The answer does not depend on this write; the next process that asks tries again. The files of dead workers stay
        // until their jobs are rescued.
        if let Some(writer) = &self.writer
            && !dead.is_empty()
            && let Err(error) =
                writer.run(move |tx| worker_list::remove(tx.connection, &dead)).await
        {
            tracing::warn!(%error, "dead workers could not be taken off the list");
        }
        Ok(found)
    }

    /// Unlocks the worker's file, so that the worker counts as dead, and removes the worker from the list.
    pub(super) async fn release_worker(&self, worker: &WorkerId) -> Result<(), StoreError> {
        let (liveness, worker) = (self.liveness.clone(), [worker.clone()]);
        let [leaver] = worker.clone();
        let task = tokio::task::spawn_blocking(move || liveness.dismiss(&leaver));
        task.await.map_err(unavailable)?;
        self.writer()?.run(move |tx| worker_list::remove(tx.connection, &worker)).await
    }

    /// Tries the locks of other processes' workers and rescues the jobs of the dead ones. Writes only if a dead worker is
    /// listed or holds a job. The lock files of all dead workers are removed: a worker's name is never used twice, so none of
    /// these files can belong to a live worker.
    pub(super) async fn rescue_proven(&self) -> Result<RescueOutcome, StoreError> {
        let liveness = self.liveness.clone();
        let look = move |connection: &Connection| {
            let holders = worker_list::holders(connection)?;
            let mut known = worker_list::all(connection)?;
            known.extend(holders.iter().cloned());
            let mut others = liveness.present();
            others.extend(known.iter().cloned());
            others.sort();
            others.dedup();
            others.retain(|worker| !liveness.is_own(worker));
            let (alive, dead): (Vec<WorkerId>, Vec<WorkerId>) =
                others.into_iter().partition(|worker| liveness.is_alive(worker));
            let watched = alive.iter().filter(|worker| holders.contains(worker)).count();
            let known_dead: Vec<WorkerId> =
                dead.iter().filter(|worker| known.contains(worker)).cloned().collect();
            Ok((dead, known_dead, watched))
        };
        let (dead, known_dead, watched) = self.readers.run(look).await?;
        let jobs = match known_dead.is_empty() {
            true => 0,
            false => {
                self.writer()?.run(move |tx| commands::rescue_workers(tx, &known_dead)).await?
            }
        };
        if !dead.is_empty() {
            let liveness = self.liveness.clone();
            let remove = move || dead.iter().for_each(|worker| liveness.remove_lock(worker));
            tokio::task::spawn_blocking(remove).await.map_err(unavailable)?;
        }
        Ok(RescueOutcome { jobs, watched: count(watched) })
    }
}
