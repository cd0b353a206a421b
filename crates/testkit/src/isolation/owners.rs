//! The owners: their names, their tokens, and the words that identify their questions.

/// The names of the owners. Every question contains the name of its owner, except those that all owners ask
/// alike, and no report contains such words by itself. So wherever another owner reads one, something has
/// leaked.
pub const NAMES: [&str; 3] = ["zqann", "zqbob", "zqcyd"];

/// The owner whose conversations are mirrored as files.
pub(super) const MIRRORED: usize = 0;

/// The token of an owner.
pub(super) fn token(owner: usize) -> String {
    format!("{}-token-0123456789abcdef", NAMES[owner].replace("zq", "zx"))
}

/// All tokens, in the format of the servers' configuration.
pub(super) fn tokens() -> String {
    let all = (0..NAMES.len()).map(|owner| format!("{}={}", NAMES[owner], token(owner)));
    all.collect::<Vec<_>>().join(",")
}
