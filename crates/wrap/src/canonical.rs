//! The canonical form of a JSON text, by which two calls are compared. Equal forms mean equal values: keys are sorted, white
//! space between tokens is dropped and strings are decoded. Numbers keep their text, so none is rounded. Nothing is parsed
//! into `serde_json::Value`, which rejects lone surrogates, deep nesting and `1e999`. Nothing recurses either.

use sha2::{Digest as _, Sha256};

/// Deeper texts have no canonical form.
const MAX_DEPTH: usize = 100_000;
/// The form of an object that is longer than this is replaced by its digest, so that enclosing objects copy no more than that.
const MAX_INLINE: usize = 64;
/// Starts the digest of an object. No other value starts with this byte.
const DIGEST_MARK: u8 = 1;

/// Returns the digest of a JSON text's canonical form. `None` if it is not JSON, or nested deeper than [`MAX_DEPTH`].
pub(crate) fn digest(text: &str) -> Option<[u8; 32]> {
    let mut writer = Writer { input: text.as_bytes(), ..Writer::default() };
    writer.write_value()?;
    writer.skip_space();
    writer.input.is_empty().then(|| Sha256::digest(&writer.form).into())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

/// An object whose end has not been read.
struct OpenObject {
    /// The start of its form.
    start: usize,
    /// The index of its first member in [`Writer::members`].
    first_member: usize,
}

/// A member of an open object: `key:value` in the form.
#[derive(Clone, Copy)]
struct Member {
    start: usize,
    key_end: usize,
    end: usize,
}

/// Reads one text and writes its canonical form.
#[derive(Default)]
struct Writer<'a> {
    input: &'a [u8],
    form: Vec<u8>,
    containers: Vec<Container>,
    objects: Vec<OpenObject>,
    members: Vec<Member>,
}

impl Writer<'_> {
    /// Writes one value of any depth.
    fn write_value(&mut self) -> Option<()> {
        loop {
            // A value starts here.
            self.skip_space();
            let has_ended = match self.peek()? {
                b'{' => self.open(Container::Object)?,
                b'[' => self.open(Container::Array)?,
                b'"' => self.write_string().map(|()| true)?,
                _ => self.write_scalar().map(|()| true)?,
            };
            if !has_ended {
                continue;
            }
            // A value has ended: what follows depends on the container that it is in.
            loop {
                let Some(container) = self.containers.last().copied() else { return Some(()) };
                if container == Container::Object {
                    self.members.last_mut()?.end = self.form.len();
                }
                self.skip_space();
                match (self.take()?, container) {
                    (b',', Container::Array) => {
                        self.form.push(b',');
                        break;
                    }
                    (b',', Container::Object) => {
                        self.write_key()?;
                        break;
                    }
                    (b']', Container::Array) => self.close_array()?,
                    (b'}', Container::Object) => self.close_object()?,
                    _ => return None,
                }
            }
        }
    }

    /// Starts a container. Returns true if it was empty, so that it has ended.
    fn open(&mut self, container: Container) -> Option<bool> {
        if self.containers.len() == MAX_DEPTH {
            return None;
        }
        self.take()?;
        self.skip_space();
        self.containers.push(container);
        match container {
            Container::Array => {
                self.form.push(b'[');
                if self.peek()? != b']' {
                    return Some(false);
                }
                self.take()?;
                self.close_array()?;
            }
            Container::Object => {
                let (start, first_member) = (self.form.len(), self.members.len());
                self.objects.push(OpenObject { start, first_member });
                self.form.push(b'{');
                if self.peek()? != b'}' {
                    self.write_key()?;
                    return Some(false);
                }
                self.take()?;
                self.close_object()?;
            }
        }
        Some(true)
    }

    fn write_key(&mut self) -> Option<()> {
        self.skip_space();
        let start = self.form.len();
        self.write_string()?;
        let key_end = self.form.len();
        self.skip_space();
        (self.take()? == b':').then_some(())?;
        self.form.push(b':');
        self.members.push(Member { start, key_end, end: key_end });
        Some(())
    }

    fn close_array(&mut self) -> Option<()> {
        self.containers.pop()?;
        self.form.push(b']');
        Some(())
    }

    /// Sorts the members of an object. Members with the same key keep their order, because readers differ in which one counts.
    fn close_object(&mut self) -> Option<()> {
        self.containers.pop()?;
        let OpenObject { start, first_member } = self.objects.pop()?;
        let members = self.members.get_mut(first_member..)?;
        let form = &self.form;
        members.sort_by(|one, other| {
            form.get(one.start..one.key_end).cmp(&form.get(other.start..other.key_end))
        });
        let mut sorted = Vec::with_capacity(MAX_INLINE);
        let mut hash = None;
        for member in &*members {
            if sorted.len() > MAX_INLINE {
                hash.get_or_insert_with(Sha256::new).update(&sorted);
                sorted.clear();
            }
            sorted.extend_from_slice(form.get(member.start..member.end)?);
            sorted.push(b',');
        }
        if sorted.len() > MAX_INLINE {
            hash.get_or_insert_with(Sha256::new);
        }
        self.members.truncate(first_member);
        self.form.truncate(start);
        match hash {
            Some(mut hash) => {
                hash.update(&sorted);
                self.form.push(DIGEST_MARK);
                self.form.extend_from_slice(&hash.finalize());
            }
            None => {
                self.form.push(b'{');
                self.form.extend_from_slice(&sorted);
                self.form.push(b'}');
            }
        }
        Some(())
    }

    /// Writes a number as its own text, or one of `true`, `false` and `null`.
    fn write_scalar(&mut self) -> Option<()> {
        let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}') || is_space(*byte);
        let length = self.input.iter().position(is_end).unwrap_or(self.input.len());
        let (scalar, rest) = self.input.split_at_checked(length)?;
        let is_word = matches!(scalar, b"true" | b"false" | b"null");
        let is_number = scalar.first().is_some_and(|byte| matches!(byte, b'-' | b'0'..=b'9'))
            && scalar
                .iter()
                .all(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'));
        (is_word || is_number).then_some(())?;
        self.form.extend_from_slice(scalar);
        self.input = rest;
        Some(())
    }

    /// Writes a string as its decoded value, with no more escapes than are necessary to find its end.
    fn write_string(&mut self) -> Option<()> {
        (self.take()? == b'"').then_some(())?;
        self.form.push(b'"');
        loop {
            let plain = self.input.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            let (text, rest) = self.input.split_at_checked(plain)?;
            self.form.extend_from_slice(text);
            self.input = rest;
            if self.take()? == b'"' {
                self.form.push(b'"');
                return Some(());
            }
            self.write_escape()?;
        }
    }

    fn write_escape(&mut self) -> Option<()> {
        let decoded = match self.take()? {
            byte @ (b'"' | b'\\') => {
                self.form.push(b'\\');
                byte
            }
            b'/' => b'/',
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.write_code_unit(),
            _ => return None,
        };
        self.form.push(decoded);
        Some(())
    }

    /// Writes a character as UTF-8. A surrogate without its other half is written the way UTF-8 would encode its
    /// number, which no valid text contains.
    fn write_code_unit(&mut self) -> Option<()> {
        let mut code = self.take_hex()?;
        if (0xD800..0xDC00).contains(&code)
            && let [b'\\', b'u', ..] = self.input
        {
            let before = self.input;
            self.input = before.get(2..)?;
            let low = self.take_hex()?;
            if (0xDC00..0xE000).contains(&low) {
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            } else {
                self.input = before;
            }
        }
        match char::from_u32(code) {
            Some(found) => {
                if matches!(found, '"' | '\\') {
                    self.form.push(b'\\');
                }
                self.form.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None => {
                let [_, _, high, low] = code.to_be_bytes();
                let middle = 0x80 | (high & 0x0F) << 2 | low >> 6;
                self.form.extend_from_slice(&[0xED, middle, 0x80 | (low & 0x3F)]);
            }
        }
        Some(())
    }

    fn take_hex(&mut self) -> Option<u32> {
        let (digits, rest) = self.input.split_at_checked(4)?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        self.input = rest;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    fn skip_space(&mut self) {
        let length = self.input.iter().position(|byte| !is_space(*byte));
        self.input = self.input.get(length.unwrap_or(self.input.len())..).unwrap_or_default();
    }

    fn peek(&self) -> Option<u8> {
        self.input.first().copied()
    }

    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.input.split_first()?;
        self.input = rest;
        Some(*first)
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> [u8; 32] {
        digest(text).unwrap_or_else(|| panic!("{text:.80}"))
    }

    #[test]
    fn h5_the_same_value_has_one_form_however_it_is_written() {
        let long = "x".repeat(100);
        let equal = [
            (
                r#"{"a":1,"b":[true,null]}"#.to_owned(),
                " {\t\"b\" : [ true , null ],\n\"a\":1}\r".to_owned(),
            ),
            (r#"{"é":"\/😀\""}"#.to_owned(), r#"{"\u00e9":"/\uD83D\ude00\u0022"}"#.to_owned()),
            (r#""\ud800\n""#.to_owned(), r#""\uD800\u000a""#.to_owned()),
            (r#"[{ }, []]"#.to_owned(), "[{},[]]".to_owned()),
            (
                format!(r#"{{"a":{{"x":"{long}","y":2}},"b":1}}"#),
                format!(r#"{{"b":1,"a":{{"y":2,"x":"{long}"}}}}"#),
            ),
        ];
        for (one, other) in equal {
            assert_eq!(form(&one), form(&other), "{one} {other}");
        }
    }

    #[test]
    fn h5_different_values_have_different_forms() {
        let deep =
            |depth: usize, end: &str| format!("{}{end}{}", "[".repeat(depth), "]".repeat(depth));
        let long = "x".repeat(100);
        let mut different = vec![
            "{}".to_owned(),
            "[]".to_owned(),
            "[[]]".to_owned(),
            "null".to_owned(),
            r#""""#.to_owned(),
            r#""null""#.to_owned(),
            r#"{"a":1}"#.to_owned(),
            r#"{"a":2}"#.to_owned(),
            r#"{"a":1,"a":2}"#.to_owned(),
            r#"{"a":2,"a":1}"#.to_owned(),
            r#"{"a":{"b":1}}"#.to_owned(),
            r#"{"a":{},"b":1}"#.to_owned(),
            r#"{"a":"1"}"#.to_owned(),
            r#"{"a\":1,\"b":2}"#.to_owned(),
            r#"["a,b"]"#.to_owned(),
            r#"["a","b"]"#.to_owned(),
            r#"["a\",\"b"]"#.to_owned(),
            r#""\ud800""#.to_owned(),
            r#""\ud801""#.to_owned(),
            r#""\udc00\ud800""#.to_owned(),
            r#""\ud800\udc00""#.to_owned(),
            r#""\ud800\\udc00""#.to_owned(),
            r#""\ufffd""#.to_owned(),
            "1e999".to_owned(),
            "1e998".to_owned(),
            "18446744073709551616".to_owned(),
            "18446744073709551617".to_owned(),
            "0.1000000000000000055".to_owned(),
            "0.1000000000000000056".to_owned(),
            "-0".to_owned(),
            "0".to_owned(),
            deep(128, "1"),
            deep(128, "2"),
            deep(MAX_DEPTH, "1"),
            deep(MAX_DEPTH, "2"),
            format!(r#"{{"a":{{"x":"{long}"}}}}"#),
            format!(r#"{{"a":{{"y":"{long}"}}}}"#),
            format!(r#"{{"a":[{{"x":"{long}"}}]}}"#),
        ];
        different.sort();
        different.dedup();
        for (at, one) in different.iter().enumerate() {
            for other in &different[..at] {
                assert_ne!(form(one), form(other), "{one:.80} {other:.80}");
            }
        }
    }

    #[test]
    fn h5_what_is_not_json_or_too_deep_has_no_form() {
        let too_deep = format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
        let none = [
            "",
            "{",
            "[",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "nul",
            "1 2",
            "]",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\\u1\"",
            "[1}",
            "{\"a\":1]",
            &too_deep,
        ];
        for text in none {
            assert_eq!(digest(text), None, "{text:.80}");
        }
    }

    /// Objects in objects, each with its keys in the wrong order, must not be copied again at each level.
    #[test]
    fn a_deep_text_takes_a_time_that_grows_with_its_length_alone() {
        let depth = MAX_DEPTH - 1;
        let text =
            format!("{}1{}", "{\"b\":".repeat(depth), ",\"a\":\"0123456789\"}".repeat(depth));
        assert!(digest(&text).is_some());
    }
}
