//! The maximum length of a line, in both directions, and the handling of longer lines of a client.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// The longest line that is relayed, with its newline. An endless line must not fill the memory.
pub(crate) const MAX_LINE: usize = 64 * 1024 * 1024;
/// The limit as shown to people.
pub(crate) const MAX_LINE_TEXT: &str = "64 MiB";
/// The number of bytes beyond the limit that are read of a client's line, only for the id of its request.
const MAX_DISCARDED: usize = 1024 * 1024 * 1024;

/// Reads up to the end of a line, but no more than one byte over the limit. Returns the number of bytes read.
pub(crate) async fn read_line(
    pipe: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<usize> {
    let room = (MAX_LINE + 1).saturating_sub(line.len());
    pipe.take(room as u64).read_until(b'\n', line).await
}

/// Reads the rest of a line that is too long and returns the id of its request, if it has one.
///
/// Fails for a line that does not end.
pub(crate) async fn discard_line(
    pipe: &mut (impl AsyncBufRead + Unpin),
    start: Vec<u8>,
) -> io::Result<Option<String>> {
    let mut scan = IdScan::default();
    scan.push(&start);
    drop(start);
    let mut discarded = 0;
    loop {
        let piece = pipe.fill_buf().await?;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(piece.len(), |end| end + 1);
        scan.push(piece.get(..length).unwrap_or_default());
        let is_end = end.is_some() || piece.is_empty();
        pipe.consume(length);
        discarded += length;
        if is_end {
            return Ok(scan.id());
        }
        if discarded > MAX_DISCARDED {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line that does not end"));
        }
    }
}

/// Finds the `id` of a JSON object that comes in pieces and is not stored.
#[derive(Debug, Default)]
struct IdScan {
    depth: u32,
    is_in_string: bool,
    is_escaped: bool,
    /// The string or number at the top level of the object that is being read, up to [`MAX_ID`] bytes.
    token: Vec<u8>,
    /// The last whole token before a colon.
    key: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
}

/// The maximum length of an id.
const MAX_ID: usize = 1024;

impl IdScan {
    fn push(&mut self, piece: &[u8]) {
        for byte in piece {
            self.push_byte(*byte);
        }
    }

    fn push_byte(&mut self, byte: u8) {
        if self.is_in_string {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.is_in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.token.clear();
            }
            b':' if self.depth == 1 => self.key = Some(std::mem::take(&mut self.token)),
            b',' | b'}' | b']' => {
                if self.depth == 1 && self.key.take().is_some_and(|key| key == b"\"id\"") {
                    self.id = Some(std::mem::take(&mut self.token));
                }
                if byte != b',' {
                    self.depth = self.depth.saturating_sub(1);
                }
                self.token.clear();
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= MAX_ID {
            self.token.push(byte);
        }
    }

    /// Returns the id as the client wrote it, if it is a string or a number.
    fn id(self) -> Option<String> {
        let id = String::from_utf8(self.id?).ok().filter(|id| id.len() <= MAX_ID)?;
        let value: serde_json::Value = serde_json::from_str(&id).ok()?;
        (value.is_string() || value.is_number()).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(line: &str) -> Option<String> {
        let mut scan = IdScan::default();
        // In pieces that cut tokens.
        line.as_bytes().chunks(3).for_each(|piece| scan.push(piece));
        scan.id()
    }

    #[test]
    fn the_id_of_a_long_line_is_found_wherever_it_is() {
        let found = [
            (r#"{"id":7,"method":"x","params":{"id":8}}"#, "7"),
            (r#"{"params":{"a":[{"id":8},"\"id\":9"]},"id" : "a\"b" }"#, r#""a\"b""#),
            (r#"{"params":[1,2,{"x":"}"}],"id":-3.5}"#, "-3.5"),
            (r#"{"params":"id","method":"id","id":1}"#, "1"),
        ];
        for (line, id) in found {
            assert_eq!(id_of(line).as_deref(), Some(id), "{line}");
        }
        let none = [
            r#"{"method":"x"}"#,
            r#"{"params":{"id":8}}"#,
            r#"{"id":null}"#,
            r#"{"id":{"a":1}}"#,
            r#"[{"id":1}]"#,
            r#"{"id":7"#,
            "xxxx",
            "",
        ];
        for line in none {
            assert_eq!(id_of(line), None, "{line}");
        }
    }

    #[tokio::test]
    async fn a_line_is_read_up_to_the_limit_and_one_byte() {
        let mut pipe = tokio::io::BufReader::new(tokio::io::repeat(b'x'));
        let mut line = Vec::new();
        read_line(&mut pipe, &mut line).await.unwrap();
        assert_eq!(line.len(), MAX_LINE + 1);
    }
}
