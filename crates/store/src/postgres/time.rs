//! What time it is: the server's, or a test's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::{Clock, StoreError, Timestamp};
use tokio::time::Instant;
use tokio_postgres::Client;

use super::fault::Fault;

/// How far the clock of this machine may run from the server's, as a part of the time that passes.
const DRIFT: u32 = 1_000;

/// The clock that dates everything.
pub(super) enum Time {
    /// The server's time by its best answer, counted on by the monotonic clock of this machine.
    Server(Mutex<Answered>),
    /// A clock that was given.
    Given(Arc<dyn Clock>),
}

/// What the server said, when it was, and by how much that may be wrong.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    then: Timestamp,
    at: Instant,
    wrong_by: Duration,
}

impl Answered {
    /// An answer that came now to what was asked then.
    fn new(then: Timestamp, asked: Instant) -> Self {
        let half = asked.elapsed() / 2;
        Self { then, at: asked + half, wrong_by: half }
    }
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
        Ok(Self::Server(Mutex::new(Answered::new(then, asked))))
    }

    /// Learns what time it was at the server when it answered what was asked at this moment.
    pub(super) fn learn(&self, then: Timestamp, asked: Instant) {
        let Self::Server(known) = self else { return };
        let new = Answered::new(then, asked);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if new.wrong_by <= known.wrong_by + known.at.elapsed() / DRIFT {
            *known = new;
        }
    }

    /// The present moment.
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Server(known) => {
                let known = *known.lock().unwrap_or_else(PoisonError::into_inner);
                known.then.after(known.at.elapsed())
            }
            Self::Given(clock) => clock.now(),
        }
    }

    /// The time for statements, where it is not the server's.
    pub(super) fn given(&self) -> Option<Timestamp> {
        match self {
            Self::Server(_) => None,
            Self::Given(clock) => Some(clock.now()),
        }
    }
}
