//! The client against scripted servers: in memory under paused time, and as real processes and sockets that
//! misbehave.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod support;

mod limits;
mod dropped;
mod cancelled;
mod tasks;
mod processes;
mod children;
mod web;
mod timeouts_page;
