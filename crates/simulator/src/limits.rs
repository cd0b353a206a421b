//! The headers every answer of the vendor carries. This rate limit is shown, never enforced; `bucket` enforces one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::bucket::Allowance;
use crate::ids::uuid;
use crate::wall_clock;

const PER_MINUTE: u64 = 50;
const WINDOW_SECONDS: u64 = 60;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const LIMIT: &str = "x-ratelimit-limit";

/// Tells what is left of an enforced limit.
pub(crate) fn show(allowance: &Allowance, headers: &mut HeaderMap) {
    let reset = wall_clock::unix_seconds() + seconds(allowance.wait);
    write(headers, allowance.limit, allowance.remaining, reset);
}

/// Whole seconds, rounded up, so that a client does not come back too early.
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

/// Requests in the current minute.
#[derive(Default)]
pub(crate) struct Limits {
    window: AtomicU64,
    used: AtomicU64,
}

impl Limits {
    /// Counts one request and marks its answer.
    pub(crate) fn mark(&self, status: StatusCode, headers: &mut HeaderMap) {
        let window = wall_clock::unix_seconds() / WINDOW_SECONDS;
        if self.window.swap(window, Ordering::Relaxed) != window {
            self.used.store(0, Ordering::Relaxed);
        }
        let mut used = (self.used.fetch_add(1, Ordering::Relaxed) + 1).min(PER_MINUTE);
        if status == StatusCode::TOO_MANY_REQUESTS {
            used = PER_MINUTE;
        }
        // An enforced limit has said so already.
        if !headers.contains_key(LIMIT) {
            write(headers, PER_MINUTE, PER_MINUTE - used, (window + 1) * WINDOW_SECONDS);
        }
        headers.insert(header::SERVER, HeaderValue::from_static("drsim"));
        if !headers.contains_key(REQUEST_ID)
            && let Ok(id) = HeaderValue::from_str(&uuid(&mut fastrand::Rng::new()).to_string())
        {
            headers.insert(REQUEST_ID, id);
        }
    }
}
