//! Follows a run: sleeps until the next event is due or something changed, without polling.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::faults::{Cut, Malformation};
use crate::frame::Frame;
use crate::run::Opening;
use crate::runs::{Runs, Step};
use crate::socket::Hangup;

/// Events that are due together are sent together, up to about this number of bytes.
const BATCH: usize = 32 * 1024;
/// The interval at which `gap` leaves out an event.
const GAP_EVERY: usize = 4;

/// Selects whether the events contain the id of the run.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Naming {
    Named,
    Nameless,
}

/// The body of a stream of server-sent events.
pub(crate) fn events(runs: Arc<Runs>, opening: Opening, naming: Naming, hangup: Hangup) -> Body {
    let follower = Follower { runs, opening, naming, hangup, over: false };
    Body::from_stream(stream::unfold(follower, async |mut follower| {
        let chunk = follower.chunk().await?;
        Some((chunk, follower))
    }))
}

/// Waits for the end of a run; a stuck one never ends.
pub(crate) async fn finished(runs: &Runs, id: &str) {
    while let Step::Wait { until, mut changed, .. } = runs.end(id) {
        wait(&runs.clock, until, None, &mut changed).await;
    }
}

struct Follower {
    runs: Arc<Runs>,
    opening: Opening,
    naming: Naming,
    hangup: Hangup,
    over: bool,
}

impl Follower {
    /// Returns the next piece of the body: frames, a ping, the break of the connection, or `None` at the end.
    async fn chunk(&mut self) -> Option<io::Result<Bytes>> {
        let mut batch = Vec::new();
        loop {
            let clock = &self.runs.clock;
            self.over |= self.opening.ends_at.is_some_and(|at| at <= clock.now());
            if self.over {
                return (!batch.is_empty()).then(|| Ok(batch.into()));
            }
            if let Some(cut) = self.opening.cut_after
                && cut.after_events == Some(0)
            {
                if !batch.is_empty() {
                    return Some(Ok(batch.into()));
                }
                return Some(Err(self.break_connection(cut).await));
            }
            match self.runs.step(&self.opening.id, self.opening.next) {
                Step::Frames(frames) => {
                    self.write(frames, &mut batch);
                    self.opening.next += 1;
                    if batch.len() >= BATCH {
                        return Some(Ok(batch.into()));
                    }
                }
                Step::Wait { .. } if !batch.is_empty() => return Some(Ok(batch.into())),
                Step::Wait { until, ping, mut changed } => {
                    let until = [until, self.opening.ends_at].into_iter().flatten().min();
                    let woken = wait(&self.runs.clock, until, ping, &mut changed).await;
                    if woken == Woken::ToPing {
                        return Some(Ok(Bytes::from_static(b": ping\n\n")));
                    }
                }
                Step::Over => self.over = true,
            }
        }
    }

    async fn break_connection(&mut self, cut: Cut) -> io::Error {
        self.over = true;
        // Lets hyper flush: an immediate error would swallow the events before it.
        tokio::task::yield_now().await;
        if cut.rst {
            self.hangup.reset();
        }
        io::ErrorKind::ConnectionAborted.into()
    }

    fn write(&mut self, frames: Vec<Frame>, batch: &mut Vec<u8>) {
        let sse = self.opening.sse;
        for mut frame in frames {
            let left_out =
                sse.gap && self.opening.next % GAP_EVERY == GAP_EVERY - 1 && !frame.terminal;
            if left_out {
                continue;
            }
            if self.naming == Naming::Nameless {
                frame.hide_id();
            }
            let at = batch.len();
            self.write_oddities(batch);
            let done = frame.terminal && sse.done.unwrap_or(frame.closes());
            match self.opening.transport.malformed.filter(|_| frame.terminal) {
                Some(malformed) => {
                    batch.extend(frame.corrupted_bytes(&malformed));
                    self.over |= malformed.kind == Malformation::Truncated;
                }
                None => {
                    let bytes = frame.bytes();
                    batch.extend_from_slice(&bytes);
                    if sse.dup {
                        batch.extend_from_slice(&bytes);
                    }
                }
            }
            if done {
                batch.extend_from_slice(b"data: [DONE]\n\n");
            }
            if sse.crlf {
                let lines = batch.split_off(at);
                for byte in lines {
                    if byte == b'\n' {
                        batch.push(b'\r');
                    }
                    batch.push(byte);
                }
            }
            if let Some(cut) = &mut self.opening.cut_after {
                cut.after_events = Some(cut.after_events.unwrap_or(1).saturating_sub(1));
                if cut.after_events == Some(0) {
                    return;
                }
            }
        }
    }

    /// Writes frames that a client can ignore.
    fn write_oddities(&self, batch: &mut Vec<u8>) {
        let Opening { sse, transport, .. } = &self.opening;
        if sse.pings {
            batch.extend_from_slice(b": ping\n\nevent: ping\ndata: still here\n\n");
        }
        if sse.unknown || transport.malformed.is_some_and(|m| m.kind == Malformation::UnknownItem) {
            let unknown = br#"{"type":"response.mystery","payload":{"answer":42}}"#;
            batch.extend_from_slice(b"event: response.mystery\ndata: ");
            batch.extend_from_slice(unknown);
            batch.extend_from_slice(b"\n\n");
        }
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
        // An error means that the run is gone, which the next check notices.
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
