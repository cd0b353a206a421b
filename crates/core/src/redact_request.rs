//! Removes the words of a request from what others return about it: an upstream's error is logged whole, and may
//! repeat the request. Only letters and digits are compared, so that quotes, escapes and line ends do not prevent a
//! match.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

/// The text that replaces the words of a request.
const HIDDEN: &str = "[redacted]";

/// The number of consecutive letters that count as a piece of the request, wherever they occur. Shorter texts count
/// only as a whole.
const PIECE: usize = 12;

/// The shortest text that is hidden. Shorter ones occur in every message.
const SHORTEST: usize = 3;

/// The fields of [`ResearchRequest`](crate::ResearchRequest) that hold our words. A field of the same name anywhere else
/// holds the caller's words.
const OURS: [&[&str]; 6] = [
    &["kind"],
    &["tool"],
    &["effort"],
    &["messages", "role"],
    &["filters", "recency"],
    &["filters", "context_size"],
];

/// The maximum length of an HTML entity with a number; one with a name is shorter.
const NUMBERED: usize = 12;
const NAMED: usize = 9;

/// The texts of one request.
#[derive(Debug)]
pub struct RequestWords {
    /// Letters and digits only, in lower case.
    texts: Vec<Vec<char>>,
}

impl RequestWords {
    /// Collects every text in a stored request.
    pub fn collect(ask: &Value) -> Self {
        let mut wording = Self { texts: Vec::new() };
        wording.add(ask, &mut Vec::new());
        wording
    }

    /// Adds the texts at this path; positions in lists are not part of the path.
    fn add<'a>(&mut self, value: &'a Value, path: &mut Vec<&'a str>) {
        if OURS.contains(&path.as_slice()) {
            return;
        }
        match value {
            Value::String(text) => {
                let letters: Vec<char> = text.chars().flat_map(letter).collect();
                if letters.len() >= SHORTEST {
                    self.texts.push(letters);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item, path)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    path.push(name);
                    self.add(value, path);
                    path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the text with every piece of the request hidden.
    pub fn redact(&self, text: &str) -> String {
        let spelt = spelt(text);
        let mut hidden = vec![false; spelt.len()];
        let (long, short): (Vec<_>, Vec<_>) =
            self.texts.iter().partition(|letters| letters.len() >= PIECE);
        hide_pieces(&long, &spelt, &mut hidden);
        for letters in short {
            hide_whole(letters, &spelt, &mut hidden);
        }
        without(text, &spelt, &hidden)
    }
}

/// A letter of a text and its place in the text.
type LetterForm = (char, Range<usize>);

/// Marks every piece of a long text.
fn hide_pieces(texts: &[&Vec<char>], spelt: &[LetterForm], hidden: &mut [bool]) {
    let letters: Vec<char> = spelt.iter().map(|(letter, _)| *letter).collect();
    let mut places: HashMap<&[char], Vec<usize>> = HashMap::new();
    for (at, piece) in letters.windows(PIECE).enumerate() {
        places.entry(piece).or_default().push(at);
    }
    for piece in texts.iter().flat_map(|text| text.windows(PIECE)) {
        // Removed from the map, so that a piece that occurs a thousand times in the request is marked once.
        for at in places.remove(piece).unwrap_or_default() {
            hidden[at..at + PIECE].fill(true);
        }
    }
}

/// Marks a short text if it is a whole word: as a part of longer words it means nothing.
fn hide_whole(text: &[char], spelt: &[LetterForm], hidden: &mut [bool]) {
    // In scripts without spaces, nothing separates words.
    let spaced = text.iter().all(char::is_ascii);
    let joined = |at: usize| {
        let next = at.checked_sub(1).and_then(|before| Some((&spelt[before], spelt.get(at)?)));
        spaced && next.is_some_and(|((_, before), (_, after))| before.end == after.start)
    };
    for (at, piece) in spelt.windows(text.len()).enumerate() {
        let end = at + text.len();
        let same = piece.iter().map(|(letter, _)| letter).eq(text);
        if same && !joined(at) && !joined(end) {
            hidden[at..end].fill(true);
        }
    }
}

fn without(text: &str, spelt: &[LetterForm], hidden: &[bool]) -> String {
    let mut clean = String::with_capacity(text.len());
    let (mut done, mut inside) = (0, false);
    for ((_, place), hidden) in spelt.iter().zip(hidden) {
        if *hidden {
            if !inside {
                clean.push_str(&text[done..place.start]);
                clean.push_str(HIDDEN);
            }
            done = place.end;
        }
        inside = *hidden;
    }
    clean.push_str(&text[done..]);
    clean
}

/// Returns the letters of a text as its reader would see them: an escape of JSON, URLs or HTML is one character, or
/// none.
fn spelt(text: &str) -> Vec<LetterForm> {
    let mut spelt = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let (character, length) = escape(&text[at..]).unwrap_or((next, next.len_utf8()));
        let place = at..at + length;
        spelt.extend(letter(character).map(|letter| (letter, place.clone())));
        at = place.end;
    }
    spelt
}

/// Returns the character of the escape that begins the text, and the length of the escape.
fn escape(text: &str) -> Option<(char, usize)> {
    let code = |from: usize, digits: usize| number(text.get(from..from + digits)?, 16);
    match text.as_bytes() {
        [b'\\', b'u', ..] => match code(2, 4)? {
            high @ 0xd800..=0xdbff if text.get(6..8) == Some("\\u") => {
                let low = code(8, 4).filter(|low| (0xdc00..=0xdfff).contains(low))?;
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                Some((char::from_u32(code)?, 12))
            }
            code => Some((char::from_u32(code).unwrap_or(' '), 6)),
        },
        [b'\\', b'b' | b'f' | b'n' | b'r' | b't', ..] => Some((' ', 2)),
        [b'%', ..] => percent_encoded(text),
        [b'&', b'#', ..] => {
            let end = text.bytes().take(NUMBERED).position(|byte| byte == b';')?;
            let digits = &text[2..end];
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(digits) => number(digits, 16)?,
                None => number(digits, 10)?,
            };
            Some((char::from_u32(code).unwrap_or(' '), end + 1))
        }
        [b'&', ..] => {
            let end = text.bytes().take(NAMED).position(|byte| byte == b';')?;
            let is_name = text[1..end].bytes().all(|byte| byte.is_ascii_alphanumeric());
            is_name.then_some((' ', end + 1))
        }
        _ => None,
    }
}

/// Returns the character whose percent-encoded bytes begin the text. A byte that does not begin a character is not a
/// letter.
fn percent_encoded(text: &str) -> Option<(char, usize)> {
    let byte = |nth: usize| {
        let digits = text.get(3 * nth..3 * nth + 3)?.strip_prefix('%')?;
        u8::try_from(number(digits, 16)?).ok()
    };
    let length = match byte(0)? {
        ..0xc0 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
    };
    let bytes: Option<Vec<u8>> = (0..length).map(byte).collect();
    let character = bytes.and_then(|bytes| str::from_utf8(&bytes).ok()?.chars().next());
    Some(character.map_or((' ', 3), |character| (character, 3 * length)))
}

/// Parses digits and nothing else: a sign is not part of any escape.
fn number(digits: &str, radix: u32) -> Option<u32> {
    let are_digits = digits.chars().all(|digit| digit.is_digit(radix));
    are_digits.then(|| u32::from_str_radix(digits, radix).ok())?
}

/// Returns the character as it is compared; nothing if it is neither a letter nor a digit.
fn letter(character: char) -> impl Iterator<Item = char> {
    character.to_lowercase().filter(|character| character.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ContextSize, Effort, Message, Recency, ResearchRequest, Role, SearchFilters};

    fn without_the_words_of(question: &str, text: &str) -> String {
        let ask = json!({"kind": "research", "messages": [{"role": "user", "content": question}]});
        RequestWords::collect(&ask).redact(text)
    }

    #[test]
    fn a_question_is_hidden_however_it_is_repeated() {
        let question = "Is \"Grüße\" a word?\nAsk Ann & Bob in 2026.";
        let cases = [
            ("nothing of it", "nothing of it"),
            ("bad: Is \"Grüße\" a word?\nAsk Ann & Bob in 2026.", "bad: [redacted]."),
            (
                r#"{"m":"Is \"Grüße\" a word?\nAsk Ann & Bob in 2026.","c":1}"#,
                r#"{"m":"[redacted].","c":1}"#,
            ),
            (r#"is \"gr\u00fc\u00DFe\" a word?\nask ann \u0026 bob..."#, "[redacted]..."),
            ("<b>a word? Ask Ann &amp; Bob</b>", "<b>[redacted]</b>"),
            ("?q=a%20word%3F%0AAsk+Ann+%26+Bob&x=1", "?q=[redacted]&x=1"),
            ("cut off: `Is \"Grüße\" a word`; why?", "cut off: `[redacted]`; why?"),
            // Less than a piece could be anyone's words.
            ("Ask Ann", "Ask Ann"),
            ("user research", "user research"),
        ];
        for (given, expected) in cases {
            assert_eq!(without_the_words_of(question, given), expected, "{given}");
        }
    }

    /// Each escape of a non-ASCII character is that character, and none of its bytes is a letter.
    #[test]
    fn a_question_in_any_script_is_hidden_however_it_is_escaped() {
        let german = "Dürfen Bäcker früh öffnen? 😀";
        let chinese = "北京明天的天气怎么样会不会下雨呢";
        for question in [german, chinese, "上海天气"] {
            let of_bytes = |digit: fn(&u8) -> String| question.bytes().map(|b| digit(&b)).collect();
            let of_codes = |entity: fn(char) -> String| question.chars().map(entity).collect();
            let plain_in_url = |byte: &u8| match byte {
                byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
                byte => format!("%{byte:02X}"),
            };
            let repeated: [String; 5] = [
                of_bytes(plain_in_url),
                of_bytes(|byte| format!("%{byte:02x}")),
                of_codes(|code| format!("&#{};", u32::from(code))),
                of_codes(|code| format!("&#x{:X};", u32::from(code))),
                of_codes(|code| format!("&#X{:06x};", u32::from(code))),
            ];
            for text in repeated {
                let text = format!("bad: <{text}>");
                let hidden = without_the_words_of(question, &text);
                let rest = hidden.strip_prefix("bad: <[redacted]").expect(&text);
                // Nothing after the last letter is a letter.
                assert!(spelt(rest).is_empty(), "{text}: {hidden}");
            }
        }
        // A truncated escape at the end does not keep the complete question before it from being hidden.
        let cut = "q=D%C3%BCrfen+B%C3%A4cker+fr%C3%BCh+%C3";
        assert_eq!(without_the_words_of(german, cut), "q=[redacted]+%C3");
    }

    #[test]
    fn a_short_question_is_hidden_if_it_is_alone() {
        let cases = [
            ("Why?", "why? is no question; whyever", "[redacted]? is no question; whyever"),
            ("age", "the message: \\\"AGE\\\"", "the message: \\\"[redacted]\\\""),
            ("a?", "a question", "a question"),
            ("上海天气", "查询上海天气失败", "查询[redacted]失败"),
            ("😀😀😀", "😀😀😀", "😀😀😀"),
        ];
        for (question, given, expected) in cases {
            assert_eq!(without_the_words_of(question, given), expected, "{given}");
        }
    }

    #[test]
    fn every_text_of_a_request_counts_and_our_own_words_do_not() {
        let ask = json!({"kind": "research", "effort": "medium", "message": "first secret here",
            "arguments": {"deep": ["second secret here", 7, null]},
            "filters": {"recency": "month", "domains": ["private.example"]}});
        let wording = RequestWords::collect(&ask);
        let text =
            "medium research: FIRST secret here; a month: second-secret-here, or private.example";
        let expected = "medium research: [redacted]; a month: [redacted], or [redacted]";
        assert_eq!(wording.redact(text), expected);
    }

    /// The arguments of a workflow may have any name, including the names of our fields.
    #[test]
    fn a_name_that_is_ours_elsewhere_hides_its_text_in_arguments() {
        let shapes = [
            json!({"arguments": {"role": "a pirate of old", "kind": "gold coins", "country": "Atlantis",
                "effort": "heroic", "recency": "bygone"}}),
            json!({"arguments": {"filters": {"recency": "bygone", "country": "Atlantis"},
                "messages": [{"role": "a pirate of old"}],
                "list": [{"kind": "gold coins", "effort": "heroic"}]}}),
        ];
        let text = "role: a pirate of old, no gold coins, no Atlantis, no heroic, no bygone";
        let expected =
            "role: [redacted], no [redacted], no [redacted], no [redacted], no [redacted]";
        for ask in shapes {
            assert_eq!(RequestWords::collect(&ask).redact(text), expected, "{ask}");
        }
    }

    /// A whole ask as it is stored: none of the words that we chose are hidden.
    #[test]
    fn what_a_stored_ask_says_in_our_words_stays() {
        let filters = SearchFilters {
            recency: Some(Recency::Month),
            context_size: Some(ContextSize::Medium),
            country: Some("DE".to_owned()),
            ..SearchFilters::default()
        };
        let message = Message { role: Role::Assistant, content: "hidden words".to_owned() };
        let effort = Some(Effort::Minimal);
        let ask = ResearchRequest {
            messages: vec![message],
            effort,
            filters,
            ..ResearchRequest::default()
        };
        let wording = RequestWords::collect(&serde_json::to_value(ask).unwrap());
        let text = "research assistant minimal month medium DE hidden words";
        let expected = "research assistant minimal month medium DE [redacted]";
        assert_eq!(wording.redact(text), expected);
    }

    /// A repetitive text, or one that is cut inside an escape, costs no more than it should and breaks nothing.
    #[test]
    fn odd_texts_are_taken_as_they_are() {
        let ask = json!(["a".repeat(100_000)]);
        let text = "a".repeat(10_000);
        assert_eq!(RequestWords::collect(&ask).redact(&text), "[redacted]");
        let wording = RequestWords::collect(&json!(["question of mine"]));
        for odd in [
            "\\",
            "\\u",
            "\\u12",
            "\\ud83d",
            "\\ud83d\\u0041",
            "\\ué000",
            "%",
            "%é",
            "%4",
            "%+4",
            "%C3",
            "%C3%",
            "%C3%28",
            "%FF",
            "%E4%B8é",
            "&#",
            "&#;",
            "&#x;",
            "&#+1;",
            "&#xD800;",
            "&#9999999999;",
            "&",
            "&;",
            "&é;",
            "",
        ] {
            assert_eq!(wording.redact(odd), odd);
            let around = format!("{odd} question of mine {odd}");
            let expected = format!("{odd} [redacted] {odd}");
            assert_eq!(wording.redact(&around), expected);
        }
    }
}
