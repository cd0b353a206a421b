//! Sockets that a handler can close before hyper writes a byte of the response.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Accepts sockets until it is dropped; `shutdown` closes all of them.
pub(crate) struct SocketListener {
    pub(crate) listener: TcpListener,
    pub(crate) shutdown: CancellationToken,
    /// Counts the open sockets, so that a stop can wait for the last one.
    pub(crate) open: TaskTracker,
}

impl Listener for SocketListener {
    type Io = Socket;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Socket, SocketAddr) {
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        // Without it, small SSE frames wait for the client's delayed acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "failed to disable Nagle's algorithm");
        }
        let hangup = Hangup { now: self.shutdown.child_token(), reset: Arc::default() };
        let hung_up = Box::pin(hangup.now.clone().cancelled_owned());
        (Socket { stream, hangup, hung_up, _open: self.open.token() }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Closes one connection immediately; unwritten data is discarded.
#[derive(Clone)]
pub(crate) struct Hangup {
    now: CancellationToken,
    /// True if the client should see a reset instead of an orderly close.
    reset: Arc<AtomicBool>,
}

impl Hangup {
    pub(crate) fn now(&self) {
        self.now.cancel();
    }

    pub(crate) fn reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
        self.now.cancel();
    }
}

impl Connected<IncomingStream<'_, SocketListener>> for Hangup {
    fn connect_info(stream: IncomingStream<'_, SocketListener>) -> Self {
        stream.io().hangup.clone()
    }
}

pub(crate) struct Socket {
    stream: TcpStream,
    hangup: Hangup,
    hung_up: Pin<Box<WaitForCancellationFutureOwned>>,
    _open: TaskTrackerToken,
}

impl Socket {
    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        if self.hangup.now.is_cancelled() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(Pin::new(&mut self.stream))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Without lingering, the kernel resets the connection when the socket is closed.
        if self.hangup.reset.load(Ordering::Relaxed)
            && let Err(error) = self.stream.set_zero_linger()
        {
            tracing::debug!(%error, "failed to prepare a reset");
        }
    }
}

impl AsyncRead for Socket {
    /// hyper also reads while it responds, so an idle connection notices a hangup here.
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.hung_up.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_hangup_wakes_a_socket_that_waits_to_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut doors = SocketListener {
            listener,
            shutdown: CancellationToken::new(),
            open: TaskTracker::new(),
        };
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut socket, _) = doors.accept().await;
        let hangup = socket.hangup.clone();
        let reading = async move {
            let mut bytes = [0; 1];
            let mut buf = ReadBuf::new(&mut bytes);
            poll_fn(|cx| Pin::new(&mut socket).poll_read(cx, &mut buf)).await
        };
        let reading = tokio::time::timeout(Duration::from_secs(5), reading);
        let (read, ()) = tokio::join!(reading, async { hangup.now() });
        assert_eq!(read.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }
}
