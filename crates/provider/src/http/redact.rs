//! Upstream text made fit for a log: keys out, length bounded.
//!
//! An error of upstream goes to the operator whole, up to a bound that no honest error reaches. Keys are taken out here,
//! the words of the request when a try is settled ([`outlast_core::rules::verdict`]). The body of a success is never
//! shown: it holds a report, so only its shape goes to the operator, or the error in it.

use outlast_core::RequestWords;
use serde_json::Value;

use super::MAX_REFUSAL;

/// The number of characters kept of an upstream message.
const MAX_DETAIL_CHARS: usize = 10_000;

/// The number of fields named of an unusable answer.
const MAX_FIELDS: usize = 20;

/// Replaces anything that looks like a key, and `secret` or a piece of it wherever it is; drops control
/// characters; cuts, and notes that.
pub(crate) fn redact(text: &str, secret: &str) -> String {
    let length = text.len();
    // No more is looked at than may be shown, and what a key could be cut in two by is beyond that.
    let seen = text.char_indices().nth(2 * MAX_DETAIL_CHARS).map_or(length, |(at, _)| at);
    let text = &text[..seen];
    let text = if secret.is_empty() { text.to_owned() } else { text.replace(secret, "[redacted]") };
    let text = RequestWords::collect(&Value::from(secret)).redact(&text);
    let mut clean = String::new();
    let mut word = String::new();
    for character in text.chars().take(MAX_DETAIL_CHARS) {
        if character.is_ascii_alphanumeric() || matches!(character, '-' | '_') {
            word.push(character);
            continue;
        }
        push_word(&mut clean, &word);
        word.clear();
        clean.push(if character.is_control() { ' ' } else { character });
    }
    push_word(&mut clean, &word);
    if text.chars().nth(MAX_DETAIL_CHARS).is_some() {
        clean.push_str(&format!(" [cut: {length} bytes in all]"));
    }
    clean
}

/// Describes a success that cannot be used: the error in it if it has one, otherwise its shape.
pub(crate) fn body_shape(body: &[u8], secret: &str) -> String {
    let parsed = if body.len() > MAX_REFUSAL { None } else { serde_json::from_slice(body).ok() };
    let error = parsed.as_ref().and_then(|body: &Value| body.get("error"));
    match error.filter(|error| !error.is_null()) {
        Some(error) => redact(&error.to_string(), secret),
        None => redact(&format!("{} bytes, {}", body.len(), shape(parsed.as_ref())), secret),
    }
}

/// The names and types of what is there, without any value.
fn shape(body: Option<&Value>) -> String {
    let Some(body) = body else { return "no JSON".to_owned() };
    let Value::Object(fields) = body else { return type_of(body).to_owned() };
    let named = fields.iter().take(MAX_FIELDS);
    let named = named.map(|(name, value)| format!("{} {}", plain(name), type_of(value)));
    let more = if fields.len() > MAX_FIELDS { ", ..." } else { "" };
    format!("an object of {}{more}", named.collect::<Vec<_>>().join(", "))
}

/// A field's name, unless it could be text of the report.
fn plain(name: &str) -> &str {
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    if name.len() <= 32 && name.bytes().all(is_name) { name } else { "?" }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn push_word(clean: &mut String, word: &str) {
    let is_key = word.contains("pplx-") || word.starts_with("sk-") || word.starts_with("AIza");
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
            ("token HUNTER2%21", "token [redacted]%21"),
        ];
        for (given, expected) in cases {
            assert_eq!(redact(given, "hunter2"), expected);
        }
    }

    /// Not every gateway's key has letters to compare.
    #[test]
    fn a_key_of_few_letters_is_a_key() {
        assert_eq!(redact("token +a=/ and a", "+a=/"), "token [redacted] and a");
    }

    /// Some services show the beginning of a key, or its end.
    #[test]
    fn a_piece_of_a_key_is_a_key() {
        let key = "house-of-cards-and-canaries";
        let said = redact("bad key `house-of-cards-an...`; or *s-and-canaries?", key);
        assert_eq!(said, "bad key `[redacted]...`; or *[redacted]?");
    }

    #[test]
    fn a_text_is_kept_whole_and_an_endless_one_is_cut() {
        let whole = "\u{e9}".repeat(MAX_DETAIL_CHARS);
        assert_eq!(redact(&whole, ""), whole);
        let cut = redact(&format!("{whole}x"), "");
        assert_eq!(cut, format!("{whole} [cut: {} bytes in all]", 2 * MAX_DETAIL_CHARS + 1));
    }

    #[test]
    fn an_unusable_success_shows_its_error_or_shape_and_no_value() {
        let body = br#"{"id":"secret","choices":[1],"error":null,"Dear Ann":true,"n":7,"o":{}}"#;
        let expected = "71 bytes, an object of ? boolean, choices array, error null, id string, n number, o object";
        assert_eq!(body_shape(body, ""), expected);
        assert_eq!(body_shape(b"[1,2]", ""), "5 bytes, array");
        assert_eq!(body_shape(b"<html>secret", ""), "12 bytes, no JSON");
        assert_eq!(
            body_shape(br#"{"hunter":1}"#, "hunter"),
            "12 bytes, an object of [redacted] number"
        );
        assert_eq!(body_shape(&vec![b'1'; MAX_REFUSAL + 1], ""), "262145 bytes, no JSON");
        let error = br#"{"id":"secret","error":{"message":"overloaded, hunter"}}"#;
        assert_eq!(body_shape(error, "hunter"), r#"{"message":"overloaded, [redacted]"}"#);
        let wide: String = ('a'..='z').map(|name| format!("\"{name}\":1,")).collect();
        let wide = format!("{{{}}}", wide.trim_end_matches(','));
        assert!(body_shape(wide.as_bytes(), "").ends_with("t number, ..."));
    }
}
