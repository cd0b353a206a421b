//! Following a run: sleeps until the next event is due or something changed, never ticks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::frame::Frame;
use crate::run::Opening;
use crate::runs::{Runs, Step};

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
    while let Step::Wait { until, mut changed, .. } = runs.end(id) {
        wait(&runs.clock, until, None, &mut changed).await;
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
                Step::Frames(frames) => {
                    self.next += 1;
                    if frames.is_empty() {
                        continue;
                    }
                    self.allowance = self.allowance.map(|left| left - 1);
                    return Some(Ok(self.bytes(frames)));
                }
                Step::Wait { until, ping, mut changed } => {
                    let woken = wait(&self.runs.clock, until, ping, &mut changed).await;
                    if woken == Woken::ToPing {
                        return Some(Ok(Bytes::from_static(b": ping\n\n")));
                    }
                }
                Step::Over => return None,
            }
        }
    }

    fn bytes(&self, frames: Vec<Frame>) -> Bytes {
        let mut text = String::new();
        for mut frame in frames {
            if self.naming == Naming::Nameless {
                frame.hide_id();
            }
            text.push_str(&frame.text());
            if frame.closes() {
                text.push_str("data: [DONE]\n\n");
            }
        }
        text.into()
    }
}

#[derive(PartialEq)]
enum Woken {
    ToLook,
    ToPing,
}

async fn wait(
    clock: &Clock,
    until: Option<Duration>,
    ping: Option<Duration>,
    changed: &mut watch::Receiver<()>,
) -> Woken {
    let ping = ping.map(|ping| clock.now() + ping);
    tokio::select! {
        () = due(clock, until) => Woken::ToLook,
        // An error means the run is gone, which the next look finds out.
        _ = changed.changed() => Woken::ToLook,
        () = due(clock, ping) => Woken::ToPing,
    }
}

async fn due(clock: &Clock, at: Option<Duration>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
