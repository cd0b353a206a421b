//! How many cases, and which. The one place of the tests that reads the environment.

/// What the environment asks for.
pub(super) struct Settings {
    pub(super) cases: u64,
    /// Of the first case; the others follow.
    pub(super) seed: u64,
}

const CASES: &str = "MODEL_CASES";
const SEED: &str = "MODEL_SEED";

impl Settings {
    /// So many cases, always the same ones, unless told otherwise.
    pub(super) fn read(cases: u64) -> Self {
        Self { cases: number(CASES).unwrap_or(cases), seed: number(SEED).unwrap_or(0) }
    }
}

/// The line that runs one case again.
pub(super) fn replay(seed: u64) -> String {
    format!("the same test with {SEED}={seed} {CASES}=1")
}

#[expect(
    clippy::disallowed_methods,
    reason = "what to run is no part of the program's configuration"
)]
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}
