//! What of a text from outside may be shown.

/// Whether a character is none to look at but steers what shows it: control characters, and those that turn the
/// direction of the text around them, under which an address can be made to read as another. Marks of direction that
/// right-to-left writing needs stay.
pub fn steers(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_the_direction_steers_and_what_is_written_does_not() {
        for steering in ['\x1b', '\0', '\u{9b}', '\u{202e}', '\u{2066}', '\n'] {
            assert!(steers(steering), "{steering:?}");
        }
        for written in ['a', 'é', 'א', '\u{200f}', '\u{200d}', '👩', ' '] {
            assert!(!steers(written), "{written:?}");
        }
    }
}
