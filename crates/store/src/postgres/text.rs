//! Escapes a character that PostgreSQL refuses in text: U+0000, which may occur in callers' titles, keys and names. Escaping
//! is reversible.

use outlast_core::Scope;

/// Begins an escape. A private-use character, so that hardly any text needs escaping.
const ESCAPE: char = '\u{f0000}';

/// Converts text to its stored form.
pub(super) fn escape(text: &str) -> String {
    if !text.contains(['\0', ESCAPE]) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for sign in text.chars() {
        match sign {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, '1']),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Converts the name of the reading owner, if the scope is one owner.
pub(super) fn escape_owner(scope: &Scope) -> Option<String> {
    scope.owner().map(|owner| escape(owner.as_str()))
}

/// Restores the original text.
pub(super) fn unescape(stored: String) -> String {
    if !stored.contains(ESCAPE) {
        return stored;
    }
    stored.replace("\u{f0000}0", "\0").replace("\u{f0000}1", "\u{f0000}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_as_it_was() {
        for text in ["", "plain", "\0", "a\0b", "\u{f0000}", "\u{f0000}0\0", "\u{f0000}1\u{f0000}"]
        {
            let stored = escape(text);
            assert!(!stored.contains('\0'));
            assert_eq!(unescape(stored), text);
        }
    }
}
