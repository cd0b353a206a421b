//! The owners: what they are called, what they show at the door, and what marks their questions.

/// Their names. Each is in every question its owner asks but those that all ask alike, and no report has such words by
/// itself: wherever one is read by another owner, something has leaked.
pub const NAMES: [&str; 3] = ["zqann", "zqbob", "zqcyd"];

/// The one whose conversations are shown as files.
pub(super) const MIRRORED: usize = 0;

/// What an owner shows at the door.
pub(super) fn token(owner: usize) -> String {
    format!("{}-token-0123456789abcdef", NAMES[owner].replace("zq", "zx"))
}

/// All of them, as the servers are told.
pub(super) fn tokens() -> String {
    let all = (0..NAMES.len()).map(|owner| format!("{}={}", NAMES[owner], token(owner)));
    all.collect::<Vec<_>>().join(",")
}
