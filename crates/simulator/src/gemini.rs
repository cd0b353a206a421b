//! Gemini's Interactions API, as far as deep-research agents use it: its requests and responses.

pub(crate) mod handlers;
mod request;
pub(crate) mod wire;
pub(crate) mod events;
pub(crate) mod refusal;

pub(crate) mod usage;

/// The header with the key.
pub(crate) const GOOGLE_KEY: &str = "x-goog-api-key";

/// The maximum duration of a stream in milliseconds.
pub(crate) const STREAM_MS: f64 = 600_000.0;

/// The available agents.
const AGENTS: [&str; 3] = [
    "deep-research-preview-04-2026",
    "deep-research-max-preview-04-2026",
    "deep-research-pro-preview-12-2025",
];
