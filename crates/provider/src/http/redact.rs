//! Upstream text made fit for a log: keys out, length bounded.

/// What upstream said, at most so many characters of it.
const LONGEST: usize = 2_000;

/// Replaces anything that looks like a key, and `secret` wherever it stands; drops control characters; cuts.
pub(crate) fn redacted(text: &str, secret: &str) -> String {
    let text = if secret.is_empty() { text.to_owned() } else { text.replace(secret, "[redacted]") };
    let mut clean = String::new();
    let mut word = String::new();
    for character in text.chars().take(LONGEST) {
        if character.is_ascii_alphanumeric() || matches!(character, '-' | '_') {
            word.push(character);
            continue;
        }
        push_word(&mut clean, &word);
        word.clear();
        clean.push(if character.is_control() { ' ' } else { character });
    }
    push_word(&mut clean, &word);
    clean
}

fn push_word(clean: &mut String, word: &str) {
    let is_key = word.contains("pplx-") || word.starts_with("sk-");
    clean.push_str(if is_key { "[redacted]" } else { word });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_control_characters_never_reach_a_log() {
        let cases = [
            ("plain words", "plain words"),
            ("key pplx-abc123 is bad", "key [redacted] is bad"),
            ("key=a-pplx-abc123", "key=[redacted]"),
            (r#"{"key":"sk-live_9"}"#, r#"{"key":"[redacted]"}"#),
            ("token hunter2!", "token [redacted]!"),
            ("a\x1b[31mred\nline", "a [31mred line"),
        ];
        for (given, expected) in cases {
            assert_eq!(redacted(given, "hunter2"), expected);
        }
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(redacted(&"\u{e9}".repeat(5_000), "").chars().count(), LONGEST);
    }
}
