//! The recorded requests, for tests. Keys are never recorded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderName, Method, Uri, header};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::app::API_KEY;
use crate::gemini::GOOGLE_KEY;

/// Anthropic's header for a key.
const ANTHROPIC_KEY: &str = "x-api-key";

/// A simulator that runs for days keeps only the newest requests.
const MAX_REQUESTS: usize = 10_000;

/// One recorded request to the provider's endpoints.
#[derive(Clone, Debug, Serialize)]
pub struct SeenRequest {
    /// The HTTP method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// All headers except those with a key, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON, otherwise as a string; null if there was none.
    pub body: Value,
    /// Milliseconds since the simulator started.
    pub at_ms: u64,
}

pub(crate) struct Journal {
    started: Instant,
    seen: Mutex<VecDeque<SeenRequest>>,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), seen: Mutex::default() }
    }

    pub(crate) fn note(&self, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) {
        let is_key = |name: &HeaderName| {
            [&header::AUTHORIZATION, &API_KEY].contains(&name)
                || name == GOOGLE_KEY
                || name == ANTHROPIC_KEY
        };
        let kept = headers.iter().filter(|(name, _)| !is_key(name));
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let request = SeenRequest {
            method: method.to_string(),
            path: uri.to_string(),
            headers: kept.map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
            body: match body {
                [] => Value::Null,
                body => serde_json::from_slice(body).unwrap_or_else(|_| text(body).into()),
            },
            at_ms: self.started.elapsed().as_millis() as u64,
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() == MAX_REQUESTS {
            seen.pop_front();
        }
        seen.push_back(request);
    }

    pub(crate) fn requests(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
