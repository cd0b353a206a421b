//! The wall clock, only for the timestamps the wire carries. Runs go by `tokio::time`.

use std::time::SystemTime;

/// Seconds since 1970, as in `created_at` and `x-ratelimit-reset`.
#[expect(
    clippy::disallowed_methods,
    reason = "clients compare these fields with their own wall clock; no decision here rests on it"
)]
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
