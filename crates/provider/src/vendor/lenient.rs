//! Fields as vendors send them: of any type, or none.
//!
//! Each is read from its text: a report is megabytes, and read into a tree of values first it would be in memory three
//! times.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The number of items kept of a list: more would take many times the memory of their text.
const MAX_LIST_ITEMS: usize = 10_000;

/// Reads the object in a body; `None` if it is not one. A list is refused, though it could be read as one, field by field.
pub(crate) fn object<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    if !body.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let read = serde_json::from_slice(body).ok();
    read.or_else(|| serde_json::from_slice(&without_odd_numbers(body)?).ok())
}

/// The text that replaces a number JSON does not have, such as NaN.
pub(super) const NOT_A_NUMBER: &str = "NaN";

/// The same body with text in place of NaN and Infinity, which some programs write although JSON has neither; `None` if there
/// are none. A report with such a number in its bill can then be read, and its bill counts as unknown.
fn without_odd_numbers(body: &[u8]) -> Option<Vec<u8>> {
    const ODD: [&[u8]; 4] = [b"-Infinity", b"+Infinity", b"Infinity", NOT_A_NUMBER.as_bytes()];
    let (mut mended, mut rest, mut in_text, mut found) =
        (Vec::with_capacity(body.len() + 16), body, false, false);
    while let Some((&first, after)) = rest.split_first() {
        if !in_text && let Some(odd) = ODD.into_iter().find(|odd| rest.starts_with(odd)) {
            found = true;
            mended.extend_from_slice(b"\"NaN\"");
            rest = rest.get(odd.len()..)?;
            continue;
        }
        mended.push(first);
        rest = after;
        match first {
            b'"' => in_text = !in_text,
            b'\\' if in_text => {
                let (escaped, after) = rest.split_first()?;
                mended.push(*escaped);
                rest = after;
            }
            _ => {}
        }
    }
    found.then_some(mended)
}

/// A field, if it is there and has the type we know.
#[derive(Clone, Debug)]
pub(crate) struct Lenient<T>(pub(crate) Option<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As an option, because serde reads a missing field as `None` only if an option is expected.
        let field = Option::<&RawValue>::deserialize(deserializer)?;
        Ok(Self(field.and_then(|field| serde_json::from_str(field.get()).ok())))
    }
}

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Deref for Lenient<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<T> DerefMut for Lenient<T> {
    fn deref_mut(&mut self) -> &mut Option<T> {
        &mut self.0
    }
}

/// The first items of a list, without those of an unknown type; `None` if it is missing, or not a list.
#[derive(Clone, Debug)]
pub(crate) struct Items<T>(pub(crate) Option<Vec<T>>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let field = Option::<&RawValue>::deserialize(deserializer)?;
        Ok(Self(field.and_then(|field| read_list(field, || None, None))))
    }
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Deref for Items<T> {
    type Target = Option<Vec<T>>;

    fn deref(&self) -> &Option<Vec<T>> {
        &self.0
    }
}

impl<T> DerefMut for Items<T> {
    fn deref_mut(&mut self) -> &mut Option<Vec<T>> {
        &mut self.0
    }
}

/// Reads a string; empty if it is null or has another type.
pub(crate) fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Lenient::deserialize(deserializer)?.0.unwrap_or_default())
}

/// The first items of a list in which the place of an item counts: one whose type we do not know is kept, empty.
pub(crate) fn deserialize_known_places<'de, D, T>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    items(deserializer, || Some(T::default()), None)
}

/// The first items of a list, `unknown` in place of those of an unknown type; `None` if it is not a list.
/// Those that follow are given to `beyond`, which may keep their text, but must not let the list grow with them.
pub(crate) fn items<'de, D, T>(
    deserializer: D,
    unknown: fn() -> Option<T>,
    on_overflow: Option<OnOverflow<T>>,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(read_list(<&RawValue>::deserialize(deserializer)?, unknown, on_overflow))
}

fn read_list<T: DeserializeOwned>(
    field: &RawValue,
    unknown: fn() -> Option<T>,
    on_overflow: Option<OnOverflow<T>>,
) -> Option<Vec<T>> {
    if !field.get().starts_with('[') {
        return None;
    }
    let mut items = Vec::new();
    let list = List { items: &mut items, unknown, on_overflow };
    // It is JSON: the only error is that not all of the list was read.
    drop(serde_json::Deserializer::from_str(field.get()).deserialize_seq(list));
    Some(items)
}

/// Handles an item for which a list has no room.
type OnOverflow<T> = fn(&mut Vec<T>, &RawValue);

/// Reads one item after the other, and keeps no more than is known of it.
struct List<'a, T> {
    items: &'a mut Vec<T>,
    unknown: fn() -> Option<T>,
    on_overflow: Option<OnOverflow<T>>,
}

impl<'de, T: DeserializeOwned> Visitor<'de> for List<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut read = 0;
        while let Some(item) = list.next_element::<&RawValue>()? {
            read += 1;
            if read <= MAX_LIST_ITEMS {
                self.items.extend(serde_json::from_str(item.get()).ok().or_else(self.unknown));
                continue;
            }
            let Some(on_overflow) = self.on_overflow else { break };
            on_overflow(self.items, item);
        }
        Ok(())
    }
}

/// A text that may be long, if it is one.
pub(crate) fn long_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    Ok(unescape(<&RawValue>::deserialize(deserializer)?.get()))
}

/// Unescapes a JSON string into one allocation; the parser would need twice the memory.
fn unescape(literal: &str) -> Option<String> {
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

/// The length of the escape that a text begins with: a letter, a code, or the codes of a pair.
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

    #[derive(Debug, Deserialize)]
    struct Lists {
        items: Items<u8>,
        #[serde(deserialize_with = "deserialize_known_places")]
        places: Option<Vec<u8>>,
    }

    #[test]
    fn a_list_is_read_as_far_as_it_is_known_and_no_further_than_is_honest() {
        let lists = |items: &str| {
            let body = format!(r#"{{"items":{items},"places":{items}}}"#);
            let lists: Lists = object(body.as_bytes()).unwrap();
            (lists.items.0, lists.places)
        };
        assert_eq!(lists(r#"[1,"x",null,{},3]"#), (Some(vec![1, 3]), Some(vec![1, 0, 0, 0, 3])));
        assert_eq!(lists("[]"), (Some(vec![]), Some(vec![])));
        for none in ["null", "7", "{}", r#""[1]""#] {
            assert_eq!(lists(none), (None, None), "{none}");
        }
        for length in [MAX_LIST_ITEMS, MAX_LIST_ITEMS + 1, 3 * MAX_LIST_ITEMS] {
            let (items, places) = lists(&format!("[2{}]", ",1".repeat(length - 1)));
            let mut first = vec![1; MAX_LIST_ITEMS];
            first[0] = 2;
            assert_eq!(items.as_ref(), Some(&first), "{length} items");
            assert_eq!(places, items, "{length} items");
        }
    }

    /// A10: a list of strings would name a run by its first.
    #[test]
    fn a_list_is_no_object() {
        assert!(object::<Lists>(b"[[1],[2]]").is_none());
        assert!(object::<Lists>(b"").is_none());
        assert!(object::<Lists>(b" \n{\"items\":[],\"places\":[]}").is_some());
    }

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
            assert_eq!(unescape(literal), parsed, "{literal}");
        }
    }
}
