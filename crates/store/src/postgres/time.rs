//! What time it is: the server's, or a test's.

use std::sync::Arc;

use outlast_core::{Clock, StoreError, Timestamp};
use tokio::time::Instant;
use tokio_postgres::Client;

use super::fault::Fault;

/// The clock that dates everything.
pub(super) enum Time {
    /// The server's time at the opening, counted on by the monotonic clock of this machine.
    Server { then: Timestamp, at: Instant },
    /// A clock that was given.
    Given(Arc<dyn Clock>),
}

impl Time {
    /// Asks the server, unless a clock is given.
    pub(super) async fn of(
        clock: Option<Arc<dyn Clock>>,
        client: &Client,
    ) -> Result<Self, StoreError> {
        if let Some(clock) = clock {
            return Ok(Self::Given(clock));
        }
        let asked = Instant::now();
        let row = client
            .query_one("select (extract(epoch from clock_timestamp()) * 1000)::bigint", &[])
            .await
            .map_err(Fault::from)?;
        let then = Timestamp::from_millis(row.try_get(0).map_err(Fault::from)?);
        Ok(Self::Server { then, at: asked + asked.elapsed() / 2 })
    }

    /// The present moment.
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Server { then, at } => then.after(at.elapsed()),
            Self::Given(clock) => clock.now(),
        }
    }

    /// The time for statements, where it is not the server's.
    pub(super) fn given(&self) -> Option<Timestamp> {
        match self {
            Self::Server { .. } => None,
            Self::Given(clock) => Some(clock.now()),
        }
    }
}
