//! Standard input and output of a front, without a thread for each access. Their file descriptions may be shared with
//! other processes, so they are not made non-blocking: each access first checks that it will not block.

use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PIPE_BUF;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, Interest, ReadBuf};

/// Standard input; a file, which cannot be waited for, is read by a thread.
pub(super) fn input() -> Box<dyn AsyncRead + Send + Unpin> {
    match Pipe::new(rustix::stdio::stdin(), Interest::READABLE) {
        Some(pipe) => Box::new(pipe),
        None => Box::new(tokio::io::stdin()),
    }
}

/// Standard output.
pub(super) struct Output(Box<dyn AsyncWrite + Send + Unpin>);

impl Default for Output {
    fn default() -> Self {
        Self(match Pipe::new(rustix::stdio::stdout(), Interest::WRITABLE) {
            Some(pipe) => Box::new(pipe),
            None => Box::new(tokio::io::stdout()),
        })
    }
}

impl Output {
    /// Writes all bytes, up to the client.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.flush().await
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Output").finish()
    }
}

/// A pipe, socket or terminal.
struct Pipe(AsyncFd<BorrowedFd<'static>>);

impl Pipe {
    /// Returns `None` for a file.
    #[expect(deprecated, reason = "its successor is unsafe, and a standard descriptor stays open")]
    fn new(pipe: BorrowedFd<'static>, interest: Interest) -> Option<Self> {
        AsyncFd::with_interest(pipe, interest).ok().map(Self)
    }
}

/// Fails with `WouldBlock` unless the next access returns at once.
fn check(pipe: &AsyncFd<BorrowedFd<'static>>, access: PollFlags) -> io::Result<()> {
    let mut asked = [PollFd::new(pipe.get_ref(), access)];
    poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    match asked.iter().any(|asked| !asked.revents().is_empty()) {
        true => Ok(()),
        false => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            let room = into.initialize_unfilled();
            let read = ready.try_io(|pipe| {
                check(pipe, PollFlags::IN)?;
                Ok(rustix::io::read(pipe.get_ref(), &mut *room)?)
            });
            match read {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(read) => return Poll::Ready(read.map(|length| into.advance(length))),
                Err(_) => {}
            }
        }
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // A pipe that can be written to takes this number of bytes without blocking.
        let piece = bytes.get(..PIPE_BUF).unwrap_or(bytes);
        loop {
            let mut ready = ready!(self.0.poll_write_ready(context))?;
            let written = ready.try_io(|pipe| {
                check(pipe, PollFlags::OUT)?;
                Ok(rustix::io::write(pipe.get_ref(), piece)?)
            });
            match written {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(written) => return Poll::Ready(written),
                Err(_) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
