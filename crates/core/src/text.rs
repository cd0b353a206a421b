//! Filters for text from outside that is shown.

use std::borrow::Cow;

/// Returns whether a character is not readable itself but controls the display, or hides words in it. These are
/// control characters; characters that change the direction of the text around them, so that an address can look like
/// another; and the invisible tags and selectors of plane 14, which spell words that a model reads and a person does
/// not see. Direction marks that right-to-left writing needs are not among them.
pub fn is_terminal_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a character is shown: every character that does not control the display, and newlines and tabs.
pub fn is_shown(character: char) -> bool {
    !is_terminal_control(character) || matches!(character, '\n' | '\t')
}

/// Returns the text without the characters that are not shown. Text from outside is filtered by this before a person
/// or a model gets it.
pub fn printable(text: &str) -> String {
    // Allocated at once: a report that grows by doubling takes three times its size.
    let mut clean = String::with_capacity(text.len());
    clean.extend(text.chars().filter(|character| is_shown(*character)));
    clean
}

/// Returns whether a character is invisible or reorders the text around it: direction controls, zero-width
/// characters, byte order marks and the tags and selectors of plane 14. They hide words from a person that a model
/// reads. The joiners and direction marks that scripts and emoji need are not among them.
pub fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Prepares text from outside for a person: control characters are removed, and hidden ones appear by their number,
/// such as `<U+E0041>`. This must be the last step before printing, because decoding an entity can produce either.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|character| !is_shown(character) || is_hidden(character)) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            hidden if is_hidden(hidden) => {
                visible.push_str(&format!("<U+{:04X}>", u32::from(hidden)));
            }
            shown if is_shown(shown) => visible.push(shown),
            _ => {}
        }
    }
    Cow::Owned(visible)
}

/// Returns the text without hidden characters, for titles.
pub fn without_hidden(text: &str) -> String {
    text.chars().filter(|character| !is_hidden(*character)).collect()
}

/// Returns an address on one line: control characters, line ends, hidden characters and angle brackets are
/// percent-encoded, so that an address cannot end its line or its link.
pub fn address_line(address: &str) -> Cow<'_, str> {
    let is_plain = |character: char| {
        let breaks = character.is_control() || (character.is_whitespace() && character != ' ');
        !breaks && !is_hidden(character) && !matches!(character, '<' | '>')
    };
    if address.chars().all(is_plain) {
        return Cow::Borrowed(address);
    }
    let mut line = String::with_capacity(address.len() + 16);
    for character in address.chars() {
        if is_plain(character) {
            line.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                line.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    Cow::Owned(line)
}

/// Escapes the characters of JSON that are not shown or are hidden. Programs read the same value, and nothing
/// controls a terminal.
pub fn escape_json(json: String) -> String {
    let is_plain = |character: char| is_shown(character) && !is_hidden(character);
    if json.chars().all(is_plain) {
        // The usual case. A long report is not copied.
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if is_plain(character) {
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
        let escaped = escape_json(json);
        assert!(escaped.chars().all(is_shown), "{escaped:?}");
        assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap()["t"][0], text);
    }

    #[test]
    fn hidden_characters_are_visible_to_a_person_and_absent_from_a_title() {
        let table = [
            ("plain é 👩\u{200d}👩 \u{5d0}\u{200f}", "plain é 👩\u{200d}👩 \u{5d0}\u{200f}"),
            ("a\u{e0041}b", "a<U+E0041>b"),
            ("\u{202e}x\u{2066}", "<U+202E>x<U+2066>"),
            ("\u{feff}\u{200b}\u{2060}", "<U+FEFF><U+200B><U+2060>"),
            ("\x1b]52;c;x\x07\u{9d}\u{9b}\r\n\t", "]52;c;x\n\t"),
        ];
        for (text, expected) in table {
            assert_eq!(visible(text), expected, "{text:?}");
        }
        assert_eq!(without_hidden("a\u{202e}b\u{200b}\u{2060}\u{feff}\u{e0041}c"), "abc");
    }

    #[test]
    fn an_address_stays_on_its_line_and_inside_its_link() {
        let table = [
            ("https://a.example/x?y=[1](2) z", "https://a.example/x?y=[1](2) z"),
            ("https://a.example/\n# Title\r\t", "https://a.example/%0A# Title%0D%09"),
            ("https://a.example/> <b", "https://a.example/%3E %3Cb"),
            ("a\u{202e}\u{2028}\x1b", "a%E2%80%AE%E2%80%A8%1B"),
        ];
        for (address, expected) in table {
            assert_eq!(address_line(address), expected, "{address:?}");
        }
    }
}
