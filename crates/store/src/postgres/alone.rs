//! A connection of a command that needs the database for itself: to copy it, or to restore it.
//!
//! Every process that serves the store shares a lock; the command takes it alone, and servers that come meanwhile are refused.

use outlast_core::StoreError;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::connect::Target;
use super::fault::{Fault, unavailable};
use super::rows::get;
use super::upkeep;
use crate::copy_side::{IS_CLOSED, IS_PARTIAL};

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

/// The connection.
pub(super) struct Alone {
    pub(super) client: Client,
    driving: JoinHandle<Result<(), tokio_postgres::Error>>,
}

impl Alone {
    /// Connects.
    pub(super) async fn connect(url: &str) -> Result<Self, StoreError> {
        let target = Target::parse(url)?;
        let (client, connection) = target.connect().await?;
        let driving = tokio::spawn(connection);
        target.prepare(&client).await?;
        Ok(Self { client, driving })
    }

    /// Keeps servers and workers away from now on; false while there is one. The tables must be there.
    pub(super) async fn lock(&self) -> Result<bool, Fault> {
        const TAKE: &str = "select pg_try_advisory_lock(lock_class('meta') | 1) as is_taken";
        let is_taken: bool = get(&self.client.query_one(TAKE, &[]).await?, "is_taken")?;
        // Behind a pooler that gives no connection of its own, processes hold no lock and say that they live.
        Ok(is_taken && upkeep::look(&self.client).await?.live_workers == 0)
    }

    /// Lets servers in.
    pub(super) async fn close(self) {
        // Where the connection is broken the lock is gone already.
        let _ = self.client.batch_execute("rollback; select pg_advisory_unlock_all()").await;
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.driving.abort();
    }
}
