//! Test doubles and suites: what every crate's tests stand on. Never shipped.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a suite's job is to stop the test at the first thing that is not as promised"
)]

pub mod clock;
pub mod mcp_process;
pub mod model;
pub mod peer;
pub mod scripted;
pub mod store_suite;
