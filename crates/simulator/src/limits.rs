//! The rate limit headers of every response. This limit is shown but never enforced; `bucket` enforces one.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::bucket::Allowance;
use crate::ids::uuid;
use crate::wall_clock;

const PER_MINUTE: u64 = 50;
const WINDOW_SECONDS: u64 = 60;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const LIMIT: &str = "x-ratelimit-limit";

/// Shows the remaining requests of an enforced limit.
pub(crate) fn show(allowance: &Allowance, headers: &mut HeaderMap) {
    let reset = wall_clock::unix_seconds() + seconds(allowance.wait);
    write(headers, allowance.limit, allowance.remaining, reset);
}

/// Whole seconds, rounded up, so that a client does not retry too early.
pub(crate) fn seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1_000) as u64
}

fn write(headers: &mut HeaderMap, limit: u64, remaining: u64, reset: u64) {
    for (name, value) in [
        (LIMIT, limit),
        ("x-ratelimit-remaining", remaining),
        ("x-ratelimit-used", limit.saturating_sub(remaining)),
        ("x-ratelimit-reset", reset),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
    }
}

/// Adds the headers to every response; an enforced limit has already set its own.
pub(crate) fn mark(status: StatusCode, headers: &mut HeaderMap) {
    if !headers.contains_key(LIMIT) {
        let limited = status == StatusCode::TOO_MANY_REQUESTS;
        let remaining = if limited { 0 } else { PER_MINUTE - 1 };
        write(headers, PER_MINUTE, remaining, wall_clock::unix_seconds() + WINDOW_SECONDS);
    }
    headers.insert(header::SERVER, HeaderValue::from_static("drsim"));
    if !headers.contains_key(REQUEST_ID)
        && let Ok(id) = HeaderValue::from_str(&uuid(&mut fastrand::Rng::new()).to_string())
    {
        headers.insert(REQUEST_ID, id);
    }
}
