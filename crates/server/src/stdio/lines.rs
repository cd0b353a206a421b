//! Writes messages as lines of one output. A long message is serialized and written in pieces, so that a report of several
//! megabytes is not held in memory a second time as a line.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, JsonRpcMessage, JsonRpcNotification, RequestId, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::input::Input;
use crate::json_size::JsonSize;
use crate::malformed;
use crate::reply::{id_in_use, too_many_calls};
use crate::resources;
use crate::tasks_2025::{self, TaskListing};

/// The maximum length of a message that is written whole; a longer one is written in pieces.
const MAX_WHOLE_BYTES: usize = 256 * 1024;
/// The maximum length of a piece.
const PIECE_BYTES: usize = 64 * 1024;

/// A connection. It parses messages itself, so that messages that rmcp cannot read are answered.
pub(super) struct LineTransport<R, W> {
    input: Input<R>,
    output: Arc<Mutex<W>>,
    /// The ids of requests that are not answered yet.
    asked: HashSet<RequestId>,
    /// The maximum number of such requests.
    max_unanswered: usize,
    /// True if the client negotiated the revision whose tasks rmcp does not have.
    is_of_2025: bool,
    /// The task that writes the answer to a message that rmcp does not receive.
    answering: Option<JoinHandle<io::Result<()>>>,
    pub(super) input_ended: CancellationToken,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W, max_unanswered: usize) -> Self {
        let (input, output) = (Input::new(input), Arc::new(Mutex::new(output)));
        let (asked, input_ended) = (HashSet::new(), CancellationToken::new());
        let (is_of_2025, answering) = (false, None);
        Self { input, output, asked, max_unanswered, is_of_2025, answering, input_ended }
    }

    /// Answers a message that rmcp does not receive. Runs in a separate task, because `receive` is dropped whenever another
    /// message is sent.
    fn answer(&mut self, answer: Option<TxJsonRpcMessage<RoleServer>>) {
        let output = &self.output;
        self.answering = answer.map(|answer| {
            let answer = OutgoingLine::Message(Box::new(answer));
            outlast_engine::spawn(send_line(Arc::clone(output), answer))
        });
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
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
        let message = match greeting_with_tasks(&message) {
            Some(greeting) => {
                self.is_of_2025 = true;
                OutgoingLine::Greeting(greeting)
            }
            None => OutgoingLine::Message(Box::new(message)),
        };
        send_line(Arc::clone(&self.output), message)
    }

    /// Receives a message. Refuses a request with the id of an unanswered one, because answers find their request by its id.
    /// Cancel-safe.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Waits for the refusal to be written, so that a client that sends only refused messages and reads nothing is
            // not read any further.
            if let Some(answering) = &mut self.answering {
                drop(answering.await);
                self.answering = None;
            }
            let Some(line) = self.input.line().await else {
                self.input_ended.cancel();
                return None;
            };
            let renamed = if self.is_of_2025 { tasks_2025::rename(line) } else { None };
            let rewritten = renamed.or_else(|| resources::rewrite(line));
            let readable = rewritten.as_deref().unwrap_or(line);
            let message: RxJsonRpcMessage<RoleServer> = match serde_json::from_slice(readable) {
                Ok(message) => message,
                Err(_) if line.is_empty() => continue,
                Err(error) => {
                    tracing::debug!(%error, "a message cannot be read");
                    let answer = malformed::answer(line);
                    self.answer(answer);
                    continue;
                }
            };
            match &message {
                JsonRpcMessage::Request(request) if self.asked.contains(&request.id) => {
                    let refused = id_in_use(&request.id);
                    self.answer(Some(refused));
                    continue;
                }
                JsonRpcMessage::Request(request) if self.asked.len() >= self.max_unanswered => {
                    let refused = too_many_calls(&request.id);
                    self.answer(Some(refused));
                    continue;
                }
                JsonRpcMessage::Request(request) => drop(self.asked.insert(request.id.clone())),
                JsonRpcMessage::Notification(JsonRpcNotification {
                    notification: ClientNotification::CancelledNotification(cancelled),
                    ..
                }) => {
                    // A cancelled request gets no answer.
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
        Ok(())
    }
}

/// A message as it is written.
#[derive(Serialize)]
#[serde(untagged)]
enum OutgoingLine {
    Message(Box<TxJsonRpcMessage<RoleServer>>),
    /// The answer to `initialize`, with what rmcp has no type for.
    Greeting(Value),
}

/// Returns the answer to `initialize` with the capability of tasks, if it negotiates the revision that has them.
fn greeting_with_tasks(message: &TxJsonRpcMessage<RoleServer>) -> Option<Value> {
    let JsonRpcMessage::Response(response) = message else { return None };
    if !matches!(response.result, ServerResult::InitializeResult(_)) {
        return None;
    }
    let mut greeting = serde_json::to_value(message).ok()?;
    tasks_2025::add_capability(&mut greeting, TaskListing::Offered).then_some(greeting)
}

/// Returns the id of the request that a message answers, if it is an answer.
fn answers(message: &TxJsonRpcMessage<RoleServer>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Writes a message as a line. The lock orders lines.
async fn send_line<W: AsyncWrite + Unpin>(
    output: Arc<Mutex<W>>,
    message: OutgoingLine,
) -> io::Result<()> {
    let measure = JsonSize { length: 0, longest: MAX_WHOLE_BYTES };
    let is_short = serde_json::to_writer(measure, &message).is_ok();
    let mut output = output.lock().await;
    if is_short {
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        output.write_all(&line).await?;
    } else {
        write_in_pieces(&mut *output, message).await?;
    }
    output.flush().await
}

/// Serializes the line on a separate thread that waits for the client; if the client disconnects, the thread ends.
async fn write_in_pieces(
    output: &mut (impl AsyncWrite + Unpin),
    message: OutgoingLine,
) -> io::Result<()> {
    let (pieces, mut made) = mpsc::channel(1);
    let making = tokio::task::spawn_blocking(move || {
        let mut line = BufWriter::with_capacity(PIECE_BYTES, Pieces(pieces));
        serde_json::to_writer(&mut line, &message)?;
        line.write_all(b"\n")?;
        line.flush()
    });
    while let Some(piece) = made.recv().await {
        output.write_all(&piece).await?;
    }
    making.await.map_err(io::Error::other)?
}

struct Pieces(mpsc::Sender<Vec<u8>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        let sent = self.0.blocking_send(piece.to_vec());
        sent.map(|()| piece.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
