//! Validates conversation ids as names of folders. Checked before any path is built from an id.

use outlast_core::ConversationId;

/// The id of a conversation that is safe as the name of a folder: `[A-Za-z0-9_-]{8,64}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FolderName(String);

impl FolderName {
    /// Returns the id as a name, or `None` if it is not safe as one.
    pub(crate) fn of(id: &ConversationId) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let text = id.as_str();
        let safe = (8..=64).contains(&text.len()) && text.bytes().all(plain);
        safe.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A hash that is the same in every version (FNV-1a), because every process must choose the same lock file.
pub(crate) fn stable_hash(text: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_ids_become_folder_names() {
        let long = "a".repeat(65);
        let bad = [
            "",
            "short",
            "../../etc",
            "..........",
            "a/b/c/d/e",
            "a\\b\\c\\d\\e",
            "/etc/passwd",
            "with space",
            "nul\0nul\0nul",
            "dotted.name",
            "%2e%2e%2f%2e%2e",
            "umlaut-\u{e4}\u{e4}",
            &long,
        ];
        for text in bad {
            assert_eq!(FolderName::of(&ConversationId::new(text)), None, "{text:?}");
        }
        let longest = "a".repeat(64);
        for good in ["20251031-1761930000000", "0f8fad5bd9cb469fa16570867728950e", &longest] {
            let name = FolderName::of(&ConversationId::new(good)).unwrap();
            assert_eq!(name.as_str(), good);
        }
    }
}
