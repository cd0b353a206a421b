//! Exclusive access to the database for a command that copies or restores it.
//!
//! Every process that serves the store holds a shared lock. The command takes the exclusive lock, and servers that start
//! meanwhile are refused.

use outlast_core::StoreError;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::connect::DatabaseTarget;
use super::fault::Fault;
use super::rows::get;
use super::upkeep;
use crate::copy_side::{IS_CLOSED, IS_PARTIAL};
use crate::unavailable;

/// Refuses a store that a command is using exclusively, and the target of an incomplete copy. The lock lasts only for the
/// statement, because behind a pooler it could not be released.
pub(super) async fn refuse_closed(client: &Client) -> Result<(), StoreError> {
    const LOOK: &str = "select pg_try_advisory_xact_lock_shared(lock_class('meta') | 1) as is_open,
         (select copying from meta) is not null as is_partial";
    let row = client.query_one(LOOK, &[]).await.map_err(Fault::from)?;
    if !get::<bool>(&row, "is_open")? {
        return Err(unavailable(IS_CLOSED));
    }
    if get::<bool>(&row, "is_partial")? {
        return Err(unavailable(IS_PARTIAL));
    }
    Ok(())
}

/// Two connections: one for work, and one whose open transaction excludes other processes. A pooler keeps an open transaction
/// on its connection, too.
pub(super) struct Alone {
    pub(super) client: Client,
    guard: Client,
    driving: [JoinHandle<Result<(), tokio_postgres::Error>>; 2],
}

impl Alone {
    /// Opens both connections.
    pub(super) async fn connect(url: &str) -> Result<Self, StoreError> {
        let target = DatabaseTarget::parse(url)?;
        let (client, connection) = target.connect().await?;
        let driving = tokio::spawn(connection);
        let (guard, connection) = target.connect().await?;
        let alone = Self { client, guard, driving: [driving, tokio::spawn(connection)] };
        for client in [&alone.client, &alone.guard] {
            target.prepare(client).await?;
        }
        Ok(alone)
    }

    /// Excludes servers and workers from now on; returns false if one is running. The tables must exist.
    pub(super) async fn lock(&self) -> Result<bool, Fault> {
        const BEGIN: &str = "begin; set local idle_in_transaction_session_timeout = 0";
        const TAKE: &str = "select pg_try_advisory_xact_lock(lock_class('meta') | 1) as is_taken";
        self.guard.batch_execute(BEGIN).await?;
        let is_taken: bool = get(&self.guard.query_one(TAKE, &[]).await?, "is_taken")?;
        // Behind a pooler without dedicated connections, processes hold no lock and send heartbeats instead.
        Ok(is_taken && upkeep::look(&self.client).await?.live_workers == 0)
    }

    /// Releases the lock, so that servers can connect.
    pub(super) async fn close(self) {
        for client in [&self.client, &self.guard] {
            // If the connection is broken, the transaction has already ended.
            let _ = client.batch_execute("rollback").await;
        }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        for driving in &self.driving {
            driving.abort();
        }
    }
}
