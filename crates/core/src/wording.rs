//! The words of a request, kept out of what others say about it: an upstream's error is logged whole, and may repeat
//! what it was asked. Letters and digits alone are compared, so that quotes, escapes and line ends hide nothing.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

/// What stands in place of the words of a request.
const HIDDEN: &str = "[redacted]";

/// So many letters in a row are a piece of the request, wherever they stand; shorter texts count as a whole.
const PIECE: usize = 12;

/// Shorter texts hide nothing: they are in every message.
const SHORTEST: usize = 3;

/// Fields whose values are words of ours.
const OURS: [&str; 6] = ["kind", "role", "effort", "recency", "context_size", "country"];

/// The texts of one request.
#[derive(Debug)]
pub struct Wording {
    /// Letters and digits only, in lower case.
    texts: Vec<Vec<char>>,
}

impl Wording {
    /// Every text in a stored request.
    pub fn of(ask: &Value) -> Self {
        let mut wording = Self { texts: Vec::new() };
        wording.add(ask);
        wording
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                let letters: Vec<char> = text.chars().flat_map(letter).collect();
                if letters.len() >= SHORTEST {
                    self.texts.push(letters);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(fields) => {
                let theirs = fields.iter().filter(|(name, _)| !OURS.contains(&name.as_str()));
                theirs.for_each(|(_, value)| self.add(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text with every piece of the request hidden.
    pub fn kept_out_of(&self, text: &str) -> String {
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

/// A letter of a text, and where it stands in it.
type Spelt = (char, Range<usize>);

/// Marks what has a piece of a long text in it.
fn hide_pieces(texts: &[&Vec<char>], spelt: &[Spelt], hidden: &mut [bool]) {
    let letters: Vec<char> = spelt.iter().map(|(letter, _)| *letter).collect();
    let mut places: HashMap<&[char], Vec<usize>> = HashMap::new();
    for (at, piece) in letters.windows(PIECE).enumerate() {
        places.entry(piece).or_default().push(at);
    }
    for piece in texts.iter().flat_map(|text| text.windows(PIECE)) {
        // Taken out: a piece that stands in the request a thousand times is marked once.
        for at in places.remove(piece).unwrap_or_default() {
            hidden[at..at + PIECE].fill(true);
        }
    }
}

/// Marks a short text where it stands alone: as a part of longer words it means nothing.
fn hide_whole(text: &[char], spelt: &[Spelt], hidden: &mut [bool]) {
    // In scripts without spaces words do not stand alone.
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

fn without(text: &str, spelt: &[Spelt], hidden: &[bool]) -> String {
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

/// The letters of a text as its reader would see them: escapes of JSON, URLs and HTML are one character each, or none.
fn spelt(text: &str) -> Vec<Spelt> {
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

/// What a text that begins with an escape begins with, and how long the escape is.
fn escape(text: &str) -> Option<(char, usize)> {
    let code =
        |from: usize, digits: usize| u32::from_str_radix(text.get(from..from + digits)?, 16).ok();
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
        // A byte of a longer character is no letter, and hides none.
        [b'%', ..] => code(1, 2).map(|code| (char::from_u32(code).unwrap_or(' '), 3)),
        [b'&', ..] => {
            let end = text.bytes().take(9).position(|byte| byte == b';')?;
            let name = text[1..end].bytes();
            name.clone().all(|byte| byte.is_ascii_alphanumeric() || byte == b'#').then_some(())?;
            Some((' ', end + 1))
        }
        _ => None,
    }
}

/// The character as it is compared; nothing where it is no letter and no digit.
fn letter(character: char) -> impl Iterator<Item = char> {
    character.to_lowercase().filter(|character| character.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn without_the_words_of(question: &str, text: &str) -> String {
        let ask = json!({"kind": "research", "messages": [{"role": "user", "content": question}]});
        Wording::of(&ask).kept_out_of(text)
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
            // Less than a piece is nobody's.
            ("Ask Ann", "Ask Ann"),
            ("user research", "user research"),
        ];
        for (given, expected) in cases {
            assert_eq!(without_the_words_of(question, given), expected, "{given}");
        }
    }

    #[test]
    fn a_short_question_is_hidden_where_it_stands_alone() {
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
        let wording = Wording::of(&ask);
        let text =
            "medium research: FIRST secret here; a month: second-secret-here, or private.example";
        let expected = "medium research: [redacted]; a month: [redacted], or [redacted]";
        assert_eq!(wording.kept_out_of(text), expected);
    }

    /// What repeats itself, or is cut inside an escape, costs no more than it should and breaks nothing.
    #[test]
    fn odd_texts_are_taken_as_they_are() {
        let ask = json!(["a".repeat(100_000)]);
        let text = "a".repeat(10_000);
        assert_eq!(Wording::of(&ask).kept_out_of(&text), "[redacted]");
        let wording = Wording::of(&json!(["question of mine"]));
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
            "&",
            "&;",
            "&é;",
            "",
        ] {
            assert_eq!(wording.kept_out_of(odd), odd);
            let around = format!("{odd} question of mine {odd}");
            let expected = format!("{odd} [redacted] {odd}");
            assert_eq!(wording.kept_out_of(&around), expected);
        }
    }
}
