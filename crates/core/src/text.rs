//! What of a text from outside may be shown.

/// Whether a character is not to be read but steers what shows it, or hides words in it: control characters; those that
/// turn the direction of the text around them, under which an address can be made to read as another; and the invisible
/// tags and selectors of plane 14, which spell words that a model reads and a person does not see. Marks of direction that
/// right-to-left writing needs stay.
pub fn is_terminal_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character is shown: everything that does not steer, and newlines and tabs.
pub fn is_shown(character: char) -> bool {
    !is_terminal_control(character) || matches!(character, '\n' | '\t')
}

/// The text without what is not shown. Text from outside goes through this before a person or a model gets it.
pub fn printable(text: &str) -> String {
    // In one piece: a report that grows by doubling takes three times its size.
    let mut clean = String::with_capacity(text.len());
    clean.extend(text.chars().filter(|character| is_shown(*character)));
    clean
}

/// JSON with what is not shown escaped: the same value for a program, and nothing that steers a terminal.
pub fn escaped_json(json: String) -> String {
    if json.chars().all(is_shown) {
        // Nearly always, and a long report is not copied.
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if is_shown(character) {
            escaped.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_turns_the_direction_or_hides_steers_and_what_is_written_does_not() {
        let steering = [
            '\x1b',
            '\0',
            '\u{9b}',
            '\u{202e}',
            '\u{2066}',
            '\n',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
        ];
        for steering in steering {
            assert!(is_terminal_control(steering), "{steering:?}");
        }
        for written in ['a', 'é', 'א', '\u{200f}', '\u{200d}', '👩', ' ', '\u{fe0f}'] {
            assert!(!is_terminal_control(written), "{written:?}");
        }
        assert_eq!(printable("a\x1b[31m\u{e0041}b\0\n\tc"), "a[31mb\n\tc");
    }

    #[test]
    fn escaped_json_is_the_same_value() {
        let text = "a\u{7f}\u{9b}b\u{202e}c\u{e0041}d\n\t\u{1}é👩";
        let json = format!("{:#}", serde_json::json!({ "t": [text] }));
        let escaped = escaped_json(json);
        assert!(escaped.chars().all(is_shown), "{escaped:?}");
        assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap()["t"][0], text);
    }
}
