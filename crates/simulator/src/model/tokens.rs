//! Tokens of a text, counted in a simple way that no text cheats: four letters are a token, as is every other
//! character.

const LETTERS_PER_TOKEN: u64 = 4;

/// Returns the number of tokens.
pub(super) fn count(text: &str) -> u64 {
    let mut tokens = 0;
    let mut letters = 0;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            letters += 1;
            continue;
        }
        tokens += u64::div_ceil(letters, LETTERS_PER_TOKEN);
        letters = 0;
        // A space belongs to the word that follows.
        tokens += u64::from(c != ' ');
    }
    tokens + u64::div_ceil(letters, LETTERS_PER_TOKEN)
}

/// Returns the beginning of the text with at most this many tokens.
pub(super) fn truncate(text: &str, tokens: u64) -> &str {
    if count(text) <= tokens {
        return text;
    }
    let ends = text.char_indices().map(|(place, _)| place).collect::<Vec<_>>();
    let place = ends.partition_point(|end| count(&text[..*end]) <= tokens);
    &text[..ends[place.saturating_sub(1)]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_marks_are_tokens() {
        assert_eq!(count("One word."), 3);
        assert_eq!(count("extraordinary"), 4);
        assert_eq!(count("日本"), 2);
        assert_eq!(truncate("one two three four", 3), "one two thre");
        assert_eq!(truncate("one", 3), "one");
    }
}
