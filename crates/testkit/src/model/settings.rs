//! The number and the seeds of the cases. The only place in the tests that reads the environment.

/// The settings from the environment.
pub(super) struct Settings {
    pub(super) cases: u64,
    /// The seed of the first case; the others follow.
    pub(super) seed: u64,
}

const CASES: &str = "MODEL_CASES";
const SEED: &str = "MODEL_SEED";

impl Settings {
    /// Reads the settings; by default, the same `cases` cases every time.
    pub(super) fn read(cases: u64) -> Self {
        Self { cases: number(CASES).unwrap_or(cases), seed: number(SEED).unwrap_or(0) }
    }
}

/// The command that repeats one case.
pub(super) fn replay(seed: u64) -> String {
    format!("the same test with {SEED}={seed} {CASES}=1")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the choice of cases is not part of the program's configuration"
)]
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}
