//! The real binary: over real pipes, on real files, killed for real.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers end the test, like the tests"
)]

mod support;

mod cli;
mod crash;
mod demo;
mod faults;
mod requirements;
mod research_jobs;
mod sharing;
