//! Following a run: sleeps until the next event is due or something changed, never ticks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::runs::{Opening, Runs, Step};
use crate::wire;

/// Whether the events name the run.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Naming {
    Named,
    Nameless,
}

/// The body of a stream of server-sent events.
pub(crate) fn events(runs: Arc<Runs>, opening: Opening, naming: Naming) -> Body {
    let follower = Follower {
        runs,
        id: opening.id,
        next: opening.next,
        naming,
        allowance: opening.cut_after,
        broken: false,
    };
    Body::from_stream(stream::unfold(follower, async |mut follower| {
        let chunk = follower.chunk().await?;
        Some((chunk, follower))
    }))
}

/// Waits for the end of a run; a stuck one has none.
pub(crate) async fn finished(runs: &Runs, id: &str) {
    let mut next = 0;
    loop {
        match runs.step(id, next) {
            Step::Event(_) => next += 1,
            Step::Wait { until, mut changed, .. } => {
                wait(until, None, &mut changed).await;
            }
            Step::Over => return,
        }
    }
}

struct Follower {
    runs: Arc<Runs>,
    id: String,
    next: usize,
    naming: Naming,
    /// Events until the connection breaks.
    allowance: Option<usize>,
    broken: bool,
}

impl Follower {
    /// The next piece of the body: a frame, a ping, the break of the connection, or `None` at its end.
    async fn chunk(&mut self) -> Option<io::Result<Bytes>> {
        if self.broken {
            return None;
        }
        if self.allowance == Some(0) {
            self.broken = true;
            // Lets hyper flush what it has: an error in the same breath would swallow the events before it.
            tokio::task::yield_now().await;
            return Some(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        loop {
            match self.runs.step(&self.id, self.next) {
                Step::Event(mut event) => {
                    if self.naming == Naming::Nameless
                        && let Some(response) = event["response"].as_object_mut()
                    {
                        response.remove("id");
                    }
                    self.next += 1;
                    self.allowance = self.allowance.map(|left| left - 1);
                    return Some(Ok(wire::frame(&event).into()));
                }
                Step::Wait { until, ping, mut changed } => {
                    if wait(until, ping, &mut changed).await == Woken::ToPing {
                        return Some(Ok(Bytes::from_static(b": ping\n\n")));
                    }
                }
                Step::Over => return None,
            }
        }
    }
}

#[derive(PartialEq)]
enum Woken {
    ToLook,
    ToPing,
}

async fn wait(
    until: Option<Instant>,
    ping: Option<Duration>,
    changed: &mut watch::Receiver<()>,
) -> Woken {
    tokio::select! {
        () = due(until) => Woken::ToLook,
        // An error means the run is gone, which the next look finds out.
        _ = changed.changed() => Woken::ToLook,
        () = pause(ping) => Woken::ToPing,
    }
}

async fn due(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

async fn pause(ping: Option<Duration>) {
    match ping {
        Some(ping) => sleep(ping).await,
        None => std::future::pending().await,
    }
}
