//! Reads lines of the input, one message each, within a limit. Reading can be cancelled at any time and continues from the
//! same position.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The maximum length of a line; a longer one is skipped.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// The capacity of the line buffer that is kept; anything beyond it is freed.
const KEPT_BYTES: usize = 1024 * 1024;

pub(super) struct Input<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// True if the line is too long and its rest is skipped.
    too_long: bool,
    /// True if the line was returned, so that the next call starts a new one.
    done: bool,
}

impl<R: AsyncRead + Unpin> Input<R> {
    pub(super) fn new(input: R) -> Self {
        Self { read: BufReader::new(input), line: Vec::new(), too_long: false, done: false }
    }

    /// Returns the next line without its end; `None` at the end of input, which drops an unfinished line. Cancel-safe.
    pub(super) async fn line(&mut self) -> Option<&[u8]> {
        if self.done {
            self.line.clear();
            self.line.shrink_to(KEPT_BYTES);
            self.done = false;
        }
        loop {
            let available = match self.read.fill_buf().await {
                Ok([]) => return None,
                Ok(available) => available,
                Err(error) => {
                    tracing::error!(%error, "standard input cannot be read");
                    return None;
                }
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if !self.too_long {
                self.too_long = self.line.len() + taken > MAX_LINE_BYTES;
                match self.too_long {
                    true => self.line = Vec::new(),
                    false => self.line.extend_from_slice(&available[..end.unwrap_or(taken)]),
                }
            }
            self.read.consume(taken);
            if end.is_none() {
                continue;
            }
            if std::mem::take(&mut self.too_long) {
                tracing::error!(
                    limit = MAX_LINE_BYTES,
                    "a message was too long and is passed over"
                );
                continue;
            }
            self.done = true;
            let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
            // RFC 8259 allows a parser to ignore a byte order mark.
            return Some(line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line));
        }
    }
}
