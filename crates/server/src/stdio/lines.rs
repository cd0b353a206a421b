//! Messages as lines of one output. A long one is written in pieces while it is made, so that a report of megabytes
//! does not stand in memory once more as a line.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::Either;
use rmcp::RoleServer;
use rmcp::model::{ClientNotification, JsonRpcMessage, JsonRpcNotification, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, Empty};
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};
use tokio::task::JoinHandle;

use super::input::Input;
use crate::json_size::JsonSize;
use crate::malformed;
use crate::reply::id_in_use;

/// A message that is longer leaves in pieces.
const LONG: usize = 256 * 1024;
/// No piece is longer.
const PIECE: usize = 64 * 1024;

/// A connection. Messages are read here, so that one that rmcp cannot read is answered; rmcp writes the short ones.
pub(super) struct Lines<R: AsyncRead, W: AsyncWrite + Send + Unpin + 'static> {
    input: Input<R>,
    rmcp: AsyncRwTransport<RoleServer, Empty, Turns<W>>,
    output: Arc<Mutex<W>>,
    /// The ids of requests that are not answered yet.
    asked: HashSet<RequestId>,
    /// The answer to a message that goes no further, on its way.
    answering: Option<JoinHandle<io::Result<()>>>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W) -> Self {
        let output = Arc::new(Mutex::new(output));
        let turns = Turns { output: Arc::clone(&output), waiting: None, held: None };
        let rmcp = AsyncRwTransport::new(tokio::io::empty(), turns);
        let input = Input::new(input);
        Self { input, rmcp, output, asked: HashSet::new(), answering: None }
    }

    /// Answers a message that goes no further. In a task of its own, because `receive` is dropped whenever another
    /// message leaves.
    fn answer(&mut self, answer: Option<TxJsonRpcMessage<RoleServer>>) {
        self.answering = answer.map(|answer| tokio::spawn(self.rmcp.send(answer)));
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let Some(id) = answers(&message) {
            self.asked.remove(id);
        }
        if serde_json::to_writer(JsonSize::up_to(LONG), &message).is_ok() {
            Either::Left(self.rmcp.send(message))
        } else {
            Either::Right(send_in_pieces(Arc::clone(&self.output), message))
        }
    }

    /// A request whose id belongs to one that is not answered yet is refused here, because answers find their request by
    /// its id. Cancel-safe.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // A client that sends nothing but what is refused, and reads nothing, is read no further.
            if let Some(answering) = &mut self.answering {
                drop(answering.await);
                self.answering = None;
            }
            let line = self.input.line().await?;
            let message: RxJsonRpcMessage<RoleServer> = match serde_json::from_slice(line) {
                Ok(message) => message,
                Err(_) if line.is_empty() => continue,
                Err(error) => {
                    tracing::debug!(%error, "a message cannot be read");
                    let answer = malformed::answered(line);
                    self.answer(answer);
                    continue;
                }
            };
            match &message {
                JsonRpcMessage::Request(request) if !self.asked.insert(request.id.clone()) => {
                    let refused = id_in_use(&request.id);
                    self.answer(Some(refused));
                    continue;
                }
                JsonRpcMessage::Notification(JsonRpcNotification {
                    notification: ClientNotification::CancelledNotification(cancelled),
                    ..
                }) => {
                    // It will not be answered.
                    if let Some(id) = &cancelled.params.request_id {
                        self.asked.remove(id);
                    }
                }
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.rmcp.close().await
    }
}

/// The request that a message answers, if it answers one.
fn answers(message: &TxJsonRpcMessage<RoleServer>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Made on a thread of its own, which waits for whoever reads; when the reader goes away, so does it.
async fn send_in_pieces<W: AsyncWrite + Unpin>(
    output: Arc<Mutex<W>>,
    message: TxJsonRpcMessage<RoleServer>,
) -> io::Result<()> {
    let mut output = output.lock_owned().await;
    let (pieces, mut made) = mpsc::channel(1);
    let making = tokio::task::spawn_blocking(move || {
        let mut line = BufWriter::with_capacity(PIECE, Pieces(pieces));
        serde_json::to_writer(&mut line, &message)?;
        line.write_all(b"\n")?;
        line.flush()
    });
    while let Some(piece) = made.recv().await {
        output.write_all(&piece).await?;
    }
    making.await.map_err(io::Error::other)??;
    output.flush().await
}

struct Pieces(mpsc::Sender<Vec<u8>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        let sent = self.0.blocking_send(piece.to_vec());
        sent.map(|()| piece.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The output for rmcp, which has it from the first byte of a line until that is flushed.
struct Turns<W> {
    output: Arc<Mutex<W>>,
    waiting: Option<Pin<Box<dyn Future<Output = OwnedMutexGuard<W>> + Send>>>,
    held: Option<OwnedMutexGuard<W>>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Turns<W> {
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Pin<&mut W>> {
        let held = match self.held.take() {
            Some(held) => held,
            None => {
                let lock = || Box::pin(Arc::clone(&self.output).lock_owned()) as _;
                let held = ready!(self.waiting.get_or_insert_with(lock).as_mut().poll(context));
                self.waiting = None;
                held
            }
        };
        Poll::Ready(Pin::new(&mut **self.held.insert(held)))
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> AsyncWrite for Turns<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(context)).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(output) = &mut self.held else { return Poll::Ready(Ok(())) };
        let flushed = ready!(Pin::new(&mut **output).poll_flush(context));
        self.held = None;
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_turn(context)).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
