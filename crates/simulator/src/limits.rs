//! The headers every answer of the vendor carries. The rate limit is shown, never enforced.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::ids::uuid;
use crate::wall;

const PER_MINUTE: u64 = 50;
const WINDOW_SECONDS: u64 = 60;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Requests in the current minute.
#[derive(Default)]
pub(crate) struct Limits {
    window: AtomicU64,
    used: AtomicU64,
}

impl Limits {
    /// Counts one request and marks its answer.
    pub(crate) fn mark(&self, status: StatusCode, headers: &mut HeaderMap) {
        let window = wall::unix_seconds() / WINDOW_SECONDS;
        if self.window.swap(window, Ordering::Relaxed) != window {
            self.used.store(0, Ordering::Relaxed);
        }
        let mut used = (self.used.fetch_add(1, Ordering::Relaxed) + 1).min(PER_MINUTE);
        if status == StatusCode::TOO_MANY_REQUESTS {
            used = PER_MINUTE;
        }
        for (name, value) in [
            ("x-ratelimit-limit", PER_MINUTE),
            ("x-ratelimit-remaining", PER_MINUTE - used),
            ("x-ratelimit-used", used),
            ("x-ratelimit-reset", (window + 1) * WINDOW_SECONDS),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
        }
        headers.insert(header::SERVER, HeaderValue::from_static("drsim"));
        if !headers.contains_key(REQUEST_ID)
            && let Ok(id) = HeaderValue::from_str(&uuid(&mut fastrand::Rng::new()).to_string())
        {
            headers.insert(REQUEST_ID, id);
        }
    }
}
