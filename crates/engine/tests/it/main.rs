//! The path of a job under every interruption: memory store, scripted provider, paused time. Nothing here waits in
//! real time, and nothing depends on luck.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench stops the test at the first thing that is not as promised"
)]

mod bench;
mod moody;
mod overheard;

mod asking;
mod cancelling;
mod carrying;
mod checking;
mod crashing;
mod holding;
mod leaving;
mod observing;
mod polling;
mod progress;
mod reading;
mod retrying;
mod spending;
mod storing;
mod telling;
mod timing;
mod upkeep;
mod winding_down;
