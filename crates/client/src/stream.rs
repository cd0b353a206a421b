//! Byte streams with bounds: lines up to a length, and writes that can be ended.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::pending::PendingCalls;

/// Reads until a line is longer than allowed; then the connection ends.
///
/// rmcp alone would drop the line and leave its caller waiting.
pub(crate) struct BoundedLines<R> {
    inner: R,
    longest: usize,
    line: usize,
    pending: Arc<PendingCalls>,
}

impl<R> BoundedLines<R> {
    pub(crate) fn new(inner: R, longest: usize, pending: Arc<PendingCalls>) -> Self {
        Self { inner, longest, line: 0, pending }
    }

    fn count(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line += piece.len();
            if self.line > self.longest {
                self.pending.broken.cancel();
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
            }
            if piece.ends_with(b"\n") {
                self.line = 0;
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        Poll::Ready(self.count(read))
    }
}

/// Writes until it is cut: a pipe that the server does not read would block its writer for ever.
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
