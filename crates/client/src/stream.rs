//! Byte streams with limits: lines up to a length, and writes that can be aborted.

use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead as _, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::pending::PendingCalls;

/// The number of bytes read at a time.
const PIECE: usize = 64 * 1024;

/// The `data` of the error that replaces an answer that is not UTF-8.
pub(crate) const NOT_UTF8: &str = "outlast: not UTF-8";

/// Reads until a line exceeds the limit; then the connection ends.
///
/// rmcp alone would drop the line, and one that is not UTF-8 too, and keep its caller waiting.
pub(crate) struct BoundedLines<R> {
    inner: BufReader<R>,
    longest: usize,
    line: Vec<u8>,
    /// How much of the line was passed on, once it is whole.
    passed: Option<usize>,
    pending: Arc<PendingCalls>,
}

impl<R: AsyncRead> BoundedLines<R> {
    pub(crate) fn new(inner: R, longest: usize, pending: Arc<PendingCalls>) -> Self {
        let inner = BufReader::with_capacity(PIECE, inner);
        Self { inner, longest, line: Vec::new(), passed: None, pending }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if let Some(passed) = this.passed {
                let rest = this.line.get(passed..).unwrap_or_default();
                let piece = rest.get(..buffer.remaining()).unwrap_or(rest);
                buffer.put_slice(piece);
                this.passed = (piece.len() < rest.len()).then_some(passed + piece.len());
                if this.passed.is_none() {
                    this.line.clear();
                    this.line.shrink_to(PIECE);
                }
                return Poll::Ready(Ok(()));
            }
            let piece = ready!(Pin::new(&mut this.inner).poll_fill_buf(cx))?;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(piece.len(), |end| end + 1);
            this.line.extend_from_slice(piece.get(..length).unwrap_or_default());
            let is_last = piece.is_empty();
            Pin::new(&mut this.inner).consume(length);
            if this.line.len() > this.longest {
                this.pending.broken.cancel();
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a line is too long",
                )));
            }
            if is_last && this.line.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if end.is_some() || is_last {
                if let Some(readable) = readable(&this.line) {
                    this.line = readable;
                }
                this.passed = Some(0);
            }
        }
    }
}

/// Replaces a message that is not UTF-8: an answer by an error for its caller, any other by the same text with U+FFFD.
/// Returns `None` for valid UTF-8.
pub(crate) fn readable(message: &[u8]) -> Option<Vec<u8>> {
    let Cow::Owned(text) = String::from_utf8_lossy(message) else { return None };
    let parsed: Value = serde_json::from_str(&text).unwrap_or_default();
    let is_answer = parsed["method"].is_null() && !parsed["id"].is_null();
    if !is_answer {
        return Some(text.into_bytes());
    }
    let error = json!({ "code": -32700, "message": "not UTF-8", "data": NOT_UTF8 });
    let answer = json!({ "jsonrpc": "2.0", "id": parsed["id"], "error": error });
    Some(format!("{answer}\n").into_bytes())
}

/// A writer that can be aborted: a pipe that the server does not read would otherwise block forever.
pub(crate) struct Cuttable<W> {
    inner: W,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<W> Cuttable<W> {
    pub(crate) fn new(inner: W, cut: CancellationToken) -> Self {
        Self { inner, cut: Box::pin(cut.cancelled_owned()) }
    }

    fn is_cut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::BrokenPipe.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Cuttable<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_cut(cx)?;
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_cut(cx)?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_cut(cx)?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// What is read of these bytes, and whether all of it was.
    async fn read(first: &[u8], second: &[u8], longest: usize) -> (Vec<u8>, bool) {
        let pending = Arc::new(PendingCalls::default());
        let mut lines = BoundedLines::new(first.chain(second), longest, pending.clone());
        let mut all = Vec::new();
        let is_whole = lines.read_to_end(&mut all).await.is_ok();
        assert_eq!(is_whole, !pending.broken.is_cancelled());
        (all, is_whole)
    }

    #[tokio::test]
    async fn e10_lines_pass_unchanged_up_to_the_limit() {
        let text = "{\"é\":1}\n\n[1]\r\nno newline";
        for cut in 0..text.len() {
            let (first, second) = text.as_bytes().split_at(cut);
            assert_eq!(read(first, second, 64).await, (text.as_bytes().to_vec(), true), "{cut}");
        }
        let long = vec![b'x'; 3 * PIECE];
        assert_eq!(read(&long, b"\nabc", 3 * PIECE + 1).await.0.len(), 3 * PIECE + 4);
        assert_eq!(read(b"ab\n", b"abcd\n", 4).await, (b"ab\n".to_vec(), false));
    }

    #[tokio::test]
    async fn e10_an_answer_that_is_not_utf8_is_an_error_for_its_caller() {
        let (read, _) = read(b"{\"id\":7,\"result\":\"a\xff", b"b\"}\nlog \xff\n", 64).await;
        let read = String::from_utf8(read).unwrap();
        let (answer, rest) = read.split_once('\n').unwrap();
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["data"]), (&json!(7), &json!(NOT_UTF8)));
        assert_eq!(rest, "log \u{fffd}\n");
    }
}
