//! Fields as this API sends them: of any type, or none.
//!
//! Each is first seen as the text it is, and read from there: a report is megabytes, and what is read into a tree of
//! values first is in memory three times over.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A field, if it has the type we know.
pub(in crate::perplexity) fn known<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let field = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(field.get()).ok())
}

/// A word; empty when it is null or no word.
pub(super) fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(known(deserializer)?.unwrap_or_default())
}

/// A list, without the items whose type we do not know.
pub(in crate::perplexity) fn known_items<'de, D, T>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items = items(deserializer)?;
    Ok(items.map(|items: Vec<Option<T>>| items.into_iter().flatten().collect()))
}

/// A list in which the place of an item counts: one whose type we do not know is kept, empty.
pub(in crate::perplexity) fn known_places<'de, D, T>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let items = items(deserializer)?;
    let kept = |item: Option<T>| item.unwrap_or_default();
    Ok(items.map(|items| items.into_iter().map(kept).collect()))
}

/// The items of a list, each if it has the type we know.
fn items<'de, D, T>(deserializer: D) -> Result<Option<Vec<Option<T>>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let field = <&RawValue>::deserialize(deserializer)?;
    let items: Option<Vec<&RawValue>> = serde_json::from_str(field.get()).ok();
    let known = |item: &RawValue| serde_json::from_str(item.get()).ok();
    Ok(items.map(|items| items.into_iter().map(known).collect()))
}

/// A text that may be long, if it is one.
pub(super) fn long_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    Ok(unescaped(<&RawValue>::deserialize(deserializer)?.get()))
}

/// What a string of JSON says, in one piece of memory; to gather it, the parser would take as much again.
fn unescaped(literal: &str) -> Option<String> {
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = rest.find('\\') {
        let (plain, escaped) = rest.split_at(at);
        let (escape, after) = escaped.split_at_checked(escape_length(escaped))?;
        text.push_str(plain);
        text.push_str(&serde_json::from_str::<String>(&format!("\"{escape}\"")).ok()?);
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

/// How long the escape is that a text begins with: a letter, a code, or the codes of a pair.
fn escape_length(escaped: &str) -> usize {
    let code = |at: usize| {
        let digits = escaped.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    match code(0) {
        Some(0xd800..=0xdbff) if code(6).is_some() => 12,
        Some(_) => 6,
        None => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_what_the_parser_would_have_made_of_it() {
        let literals = [
            r#""""#,
            r#""plain""#,
            r#""a\nb\t\"c\" \\n \/ \b\f\r""#,
            r#""\u00e9 \u20AC \ud83d\ude00 x \u0000""#,
            r#""\\\\\"""#,
            "\"é € 😀\\n\"",
            r#""\ud83d""#,
            r#""\ud83d\u0041""#,
            r#""\udc00""#,
            r#""\q""#,
            r#""\u12""#,
            r#""\""#,
            "null",
            "12",
            r#"{"a":"b"}"#,
        ];
        for literal in literals {
            let parsed: Option<String> = serde_json::from_str(literal).ok();
            assert_eq!(unescaped(literal), parsed, "{literal}");
        }
    }
}
