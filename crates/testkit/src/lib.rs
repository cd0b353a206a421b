//! Test doubles and suites for the tests of every crate. Never shipped.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a suite stops the test at the first thing that is not as promised"
)]

pub mod clock;
pub mod isolation;
pub mod issuer;
pub mod mcp_process;
pub mod model;
pub mod peer;
pub mod postgres;
pub mod scripted;
pub mod store_suite;
