//! The current time: the server's, or a test's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::{Clock, StoreError, Timestamp};
use tokio::time::Instant;
use tokio_postgres::Client;

use super::fault::Fault;

/// The assumed maximum drift of this machine's clock from the server's: the elapsed time divided by this number.
const DRIFT: u32 = 1_000;

/// The clock for all stored times.
pub(super) enum Time {
    /// The server's time according to its most accurate response, extrapolated by this machine's monotonic clock.
    Server(Mutex<TimeReading>),
    /// A given clock, for tests.
    Given(Arc<dyn Clock>),
}

/// The server's time at a local instant, and its maximum error.
#[derive(Clone, Copy)]
pub(super) struct TimeReading {
    then: Timestamp,
    at: Instant,
    wrong_by: Duration,
}

impl TimeReading {
    /// Creates the estimate from a response that arrived now to a request sent at `asked`.
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
        let row = client.query_one(sql!(postgres::time::of), &[]).await.map_err(Fault::from)?;
        let then = Timestamp::from_millis(row.try_get(0).map_err(Fault::from)?);
        Ok(Self::Server(Mutex::new(TimeReading::new(then, asked))))
    }

    /// Updates the time from the server's response to a request sent at `asked`.
    pub(super) fn learn(&self, then: Timestamp, asked: Instant) {
        let Self::Server(known) = self else { return };
        let new = TimeReading::new(then, asked);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if new.wrong_by <= known.wrong_by + known.at.elapsed() / DRIFT {
            *known = new;
        }
    }

    /// The current time.
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Server(known) => {
                let known = *known.lock().unwrap_or_else(PoisonError::into_inner);
                known.then.after(known.at.elapsed())
            }
            Self::Given(clock) => clock.now(),
        }
    }

    /// The time to pass to statements, if it is not the server's.
    pub(super) fn given_time(&self) -> Option<Timestamp> {
        match self {
            Self::Server(_) => None,
            Self::Given(clock) => Some(clock.now()),
        }
    }
}
