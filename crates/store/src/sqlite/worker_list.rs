//! The table of workers: a row for each profile that a worker claimed for. A listed worker may be dead ([`super::liveness`]).

use outlast_core::{Profile, WorkerId};
use rusqlite::{Connection, Params};

use super::fault::Fault;
use super::sql;

/// Lists the worker. Called at every claim, but writes only at the first: a lookup is cheap, and a second list in memory
/// could differ from the one that other processes see.
pub(super) fn add(
    connection: &Connection,
    worker: &WorkerId,
    profiles: &[Profile],
) -> Result<(), Fault> {
    let insert = sql!(sqlite::worker_list::add);
    for profile in profiles {
        sql::execute(connection, insert, (worker.as_str(), profile.as_str()))?;
    }
    Ok(())
}

/// Removes workers from the list.
pub(super) fn remove(connection: &Connection, workers: &[WorkerId]) -> Result<(), Fault> {
    for worker in workers {
        sql::execute(connection, sql!(sqlite::worker_list::remove), [worker.as_str()])?;
    }
    Ok(())
}

/// All listed workers.
pub(super) fn all(connection: &Connection) -> Result<Vec<WorkerId>, Fault> {
    query_workers(connection, sql!(sqlite::worker_list::all), [])
}

/// The listed workers with this profile.
pub(super) fn of_profile(
    connection: &Connection,
    profile: &Profile,
) -> Result<Vec<WorkerId>, Fault> {
    let select = sql!(sqlite::worker_list::of_profile);
    query_workers(connection, select, [profile.as_str()])
}

/// The workers that hold jobs, listed or not.
pub(super) fn holders(connection: &Connection) -> Result<Vec<WorkerId>, Fault> {
    query_workers(connection, sql!(sqlite::worker_list::holders), [])
}

fn query_workers(
    connection: &Connection,
    select: &str,
    parameters: impl Params,
) -> Result<Vec<WorkerId>, Fault> {
    let names: Vec<String> = sql::column(connection, select, parameters)?;
    Ok(names.into_iter().map(WorkerId::new).collect())
}
