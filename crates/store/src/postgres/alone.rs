//! A connection of a command that needs the database for itself: to copy it, or to restore it.
//!
//! Every process that serves the store shares a lock; the command takes it alone, and servers that come meanwhile are refused.

use outlast_core::StoreError;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::connect::Target;
use super::fault::Fault;
use super::rows::get;
use super::upkeep;
use crate::copy_side::{IS_CLOSED, IS_PARTIAL};
use crate::unavailable;

/// Refuses a store that a command has for itself, and the target of a copy that is not complete. The lock lasts only as long
/// as the statement: behind a pooler it could not be let go.
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

/// Two connections: one to work with, and one whose open transaction keeps the others away, which a pooler leaves in its place as well.
pub(super) struct Alone {
    pub(super) client: Client,
    guard: Client,
    driving: [JoinHandle<Result<(), tokio_postgres::Error>>; 2],
}

impl Alone {
    /// Connects.
    pub(super) async fn connect(url: &str) -> Result<Self, StoreError> {
        let target = Target::parse(url)?;
        let (client, connection) = target.connect().await?;
        let driving = tokio::spawn(connection);
        let (guard, connection) = target.connect().await?;
        let alone = Self { client, guard, driving: [driving, tokio::spawn(connection)] };
        for client in [&alone.client, &alone.guard] {
            target.prepare(client).await?;
        }
        Ok(alone)
    }

    /// Keeps servers and workers away from now on; false while there is one. The tables must be there.
    pub(super) async fn lock(&self) -> Result<bool, Fault> {
        const BEGIN: &str = "begin; set local idle_in_transaction_session_timeout = 0";
        const TAKE: &str = "select pg_try_advisory_xact_lock(lock_class('meta') | 1) as is_taken";
        self.guard.batch_execute(BEGIN).await?;
        let is_taken: bool = get(&self.guard.query_one(TAKE, &[]).await?, "is_taken")?;
        // Behind a pooler that gives no connection of its own, processes hold no lock and say that they live.
        Ok(is_taken && upkeep::look(&self.client).await?.live_workers == 0)
    }

    /// Lets servers in.
    pub(super) async fn close(self) {
        for client in [&self.client, &self.guard] {
            // Where the connection is broken the transaction is gone already.
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
