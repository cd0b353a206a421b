//! Reads values out of bytes, of a file or of what a page draws. It never fails, it only ends.

use super::object::{Dict, Object};

/// Values within values; deeper is read as nothing.
const DEEPEST: u32 = 32;
/// Values that one object may have, so that a few bytes of file cannot become many of memory.
const MOST: u32 = 400_000;
/// The bytes of a name that are kept; PDF itself allows half as many.
const NAME: usize = 256;

/// Reads values one after the other.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    read: u32,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, read: 0 }
    }

    /// The next value, with references; none at the end.
    pub(super) fn object(&mut self) -> Option<Object> {
        self.read = 0;
        self.value(0)
    }

    /// How many values the last object was, with those within it.
    pub(super) fn values(&self) -> u32 {
        self.read
    }

    /// The byte at the reader's place.
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Goes over blanks and comments.
    pub(super) fn blanks(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                while self.peek().is_some_and(|byte| byte != b'\n' && byte != b'\r') {
                    self.at += 1;
                }
            } else if is_blank(byte) {
                self.at += 1;
            } else {
                break;
            }
        }
    }

    /// Goes over a word if it is the next.
    pub(super) fn eat(&mut self, word: &[u8]) -> bool {
        let is_next = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word));
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    fn value(&mut self, depth: u32) -> Option<Object> {
        self.blanks();
        self.read += 1;
        if self.read > MOST || depth > DEEPEST {
            self.at = self.bytes.len();
            return None;
        }
        match self.peek()? {
            b'/' => {
                self.at += 1;
                Some(Object::Name(self.name()))
            }
            b'(' => Some(Object::Text(self.literal())),
            b'<' if self.bytes.get(self.at + 1) == Some(&b'<') => {
                self.at += 2;
                Some(Object::Dict(self.dict(depth)))
            }
            b'<' => Some(Object::Text(self.hex())),
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                while let Some(item) = self.value(depth + 1) {
                    match item {
                        Object::Word(word) if word == "]" => break,
                        item => items.push(item),
                    }
                }
                Some(Object::Array(items))
            }
            b']' | b'{' | b'}' | b')' => {
                let sign = char::from(self.bytes[self.at]);
                self.at += 1;
                Some(Object::Word(sign.to_string()))
            }
            b'>' => {
                let length = if self.bytes.get(self.at + 1) == Some(&b'>') { 2 } else { 1 };
                self.at += length;
                Some(Object::Word(">".repeat(length)))
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => Some(self.number_or_ref()),
            _ => Some(match self.word() {
                "null" => Object::Null,
                word => Object::Word(word.to_owned()),
            }),
        }
    }

    fn dict(&mut self, depth: u32) -> Dict {
        let mut dict = Dict::default();
        loop {
            match self.value(depth + 1) {
                Some(Object::Name(key)) => match self.value(depth + 1) {
                    Some(Object::Word(end)) if end == ">>" => return dict,
                    Some(value) => dict.0.push((key, value)),
                    None => return dict,
                },
                Some(Object::Word(word)) if matches!(word.as_str(), ">>" | "endobj" | "stream") => {
                    return dict;
                }
                // Out of step: go on to the next key.
                Some(_) => {}
                None => return dict,
            }
        }
    }

    /// The bytes up to the next blank or sign, as a word.
    fn word(&mut self) -> &'a str {
        let from = self.at;
        while self.peek().is_some_and(|byte| !is_blank(byte) && !is_sign(byte)) {
            self.at += 1;
        }
        // Something that is no text at all still moves the reader on.
        self.at = self.at.max(from + 1).min(self.bytes.len());
        std::str::from_utf8(&self.bytes[from..self.at]).unwrap_or("?")
    }

    fn name(&mut self) -> String {
        let mut name = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| !is_blank(*byte) && !is_sign(*byte)) {
            self.at += 1;
            let pair =
                self.bytes.get(self.at..self.at + 2).map(|pair| (digit(pair[0]), digit(pair[1])));
            match (byte, pair) {
                (b'#', Some((Some(high), Some(low)))) => {
                    self.at += 2;
                    name.push(high * 16 + low);
                }
                _ => name.push(byte),
            }
        }
        name.truncate(NAME);
        String::from_utf8_lossy(&name).into_owned()
    }

    fn number_or_ref(&mut self) -> Object {
        let from = self.at;
        let number = self.number();
        let is_whole = self.bytes[from..self.at].iter().all(u8::is_ascii_digit);
        let rest = self.at;
        if is_whole && number <= 1e8 && self.peek() == Some(b' ') {
            self.at += 1;
            let generation = self.at;
            while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                self.at += 1;
            }
            let ends =
                |byte: Option<&u8>| byte.is_none_or(|byte| is_blank(*byte) || is_sign(*byte));
            if self.at > generation && self.eat(b" R") && ends(self.bytes.get(self.at)) {
                return Object::Ref(number as u32);
            }
        }
        self.at = rest;
        Object::Number(number)
    }

    fn number(&mut self) -> f64 {
        let mut number = 0.0_f64;
        let mut scale = 0.0_f64;
        let is_negative = self.peek() == Some(b'-');
        let from = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b'0'..=b'9' if scale > 0.0 => {
                    number += f64::from(byte - b'0') * scale;
                    scale /= 10.0;
                }
                b'0'..=b'9' => number = number * 10.0 + f64::from(byte - b'0'),
                b'.' if scale == 0.0 => scale = 0.1,
                b'+' | b'-' => {}
                _ => break,
            }
            self.at += 1;
        }
        self.at = self.at.max(from + 1);
        if is_negative { -number } else { number }
    }

    fn literal(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut text = Vec::new();
        let mut open = 1_u32;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                b'\\' => {
                    self.escape(&mut text);
                    continue;
                }
                _ => {}
            }
            text.push(byte);
        }
        text
    }

    fn escape(&mut self, text: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        match byte {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' | b'f' => text.push(b' '),
            b'\r' => drop(self.eat(b"\n")),
            b'\n' => {}
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(next) = self.peek().filter(|next| (b'0'..=b'7').contains(next)) else {
                        break;
                    };
                    self.at += 1;
                    code = code * 8 + u32::from(next - b'0');
                }
                text.push((code & 0xff) as u8);
            }
            _ => text.push(byte),
        }
    }

    fn hex(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut digits = Vec::new();
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'>' {
                break;
            }
            digits.extend(digit(byte));
        }
        digits.chunks(2).map(|pair| pair[0] * 16 + pair.get(1).copied().unwrap_or(0)).collect()
    }
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0 | 12)
}

fn is_sign(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

/// The worth of a hexadecimal digit.
pub(super) fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|worth| u8::try_from(worth).ok())
}

#[cfg(test)]
mod tests;
