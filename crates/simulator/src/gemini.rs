//! Gemini's Interactions API, as far as deep-research agents use it: what it accepts and what it says.

pub(crate) mod handlers;
mod request;
pub(crate) mod wire;
pub(crate) mod events;
pub(crate) mod refusal;

pub(crate) mod usage;

/// The header that carries the key.
pub(crate) const GOOGLE_KEY: &str = "x-goog-api-key";

/// How long a stream lasts at most, in live milliseconds.
pub(crate) const STREAM_MS: f64 = 600_000.0;

/// The agents there are.
const AGENTS: [&str; 3] = [
    "deep-research-preview-04-2026",
    "deep-research-max-preview-04-2026",
    "deep-research-pro-preview-12-2025",
];
