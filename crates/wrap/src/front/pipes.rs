//! The pipes of a front: the client's input, split into lines, and the connection to a host process, whose lines go to
//! the client as they arrive.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use super::standard::{self, Output};
use crate::frame::{Frame as _, MAX_BATCH, ToFront, ToHost, has_frame, is_hung_up, write_frames};
use crate::line::{MAX_LINE, discard_line, read_line};
use crate::server::Backlog;

/// The interval of the checks that a client that sends nothing more still reads.
const CLIENT_LOOK: Duration = Duration::from_millis(20);

/// Lines of the client, each with its newline if it has one; `None` when the client sends nothing more.
pub(super) type Input = mpsc::Receiver<ClientLine>;

/// A line of the client.
#[derive(Debug)]
pub(super) enum ClientLine {
    Whole(Vec<u8>),
    /// A line longer than [`MAX_LINE`], which is not stored; with the id of its request, if it is one.
    TooLong(Option<String>),
    /// A line longer than the front reads at all. Nothing follows it.
    Endless,
}

/// An event from the host process.
#[derive(Debug)]
pub(super) enum FrontEvent {
    Done(String),
    ResultTool(String),
    Exit(i32),
    HostGone,
    ClientGone,
}

pub(super) fn read_stdin() -> Input {
    // A line may be long, so few of them wait here.
    let (lines, input) = mpsc::channel(1);
    outlast_engine::spawn(async move {
        let mut stdin = BufReader::with_capacity(64 * 1024, standard::input());
        let mut line = Vec::new();
        while let Ok(1..) = read_line(&mut stdin, &mut line).await {
            let line = std::mem::take(&mut line);
            let line = match line.len() {
                0..=MAX_LINE => ClientLine::Whole(line),
                _ => match discard_line(&mut stdin, line).await {
                    Ok(id) => ClientLine::TooLong(id),
                    Err(_) => ClientLine::Endless,
                },
            };
            let is_last = matches!(line, ClientLine::Endless);
            if lines.send(line).await.is_err() || is_last {
                return;
            }
        }
    });
    input
}

/// Waits until the client no longer reads answers. A client that has only stopped sending still reads.
pub(super) async fn client_gone() {
    loop {
        tokio::time::sleep(CLIENT_LOOK).await;
        if is_hung_up(rustix::stdio::stdout()) {
            return;
        }
    }
}

/// Standard output. It takes whole lines, of any length.
#[derive(Clone, Debug, Default)]
pub(super) struct Stdout(Arc<tokio::sync::Mutex<Output>>);

impl Stdout {
    pub(super) async fn write(&self, lines: &[u8]) -> std::io::Result<()> {
        self.0.lock().await.write(lines).await
    }
}

/// The connection to a host process.
#[derive(Debug)]
pub(super) struct Link {
    out: mpsc::UnboundedSender<ToHost>,
    /// The bytes that wait for the host process.
    pub(super) backlog: Arc<Backlog>,
}

impl Link {
    pub(super) fn new(
        stream: UnixStream,
        stdout: Stdout,
        happened: mpsc::UnboundedSender<FrontEvent>,
    ) -> Self {
        let (reader, writer) = stream.into_split();
        let (out, messages) = mpsc::unbounded_channel();
        let backlog = Arc::new(Backlog::default());
        outlast_engine::spawn(write(writer, messages, backlog.clone()));
        outlast_engine::spawn(read(reader, stdout, out.clone(), happened));
        Self { out, backlog }
    }

    pub(super) fn send(&self, message: ToHost) {
        self.backlog.add(message.size());
        // Fails only when the host process is gone, which its reader reports.
        let _ = self.out.send(message);
    }
}

async fn write(
    mut stream: OwnedWriteHalf,
    messages: mpsc::UnboundedReceiver<ToHost>,
    backlog: Arc<Backlog>,
) {
    write_frames(&mut stream, messages, &backlog).await;
}

/// Lines for the client that arrived together and are written at once, with the reports that follow.
struct Batch {
    stdout: Stdout,
    lines: Vec<u8>,
    delivered: Vec<ToHost>,
    done: Vec<FrontEvent>,
}

impl Batch {
    fn new(stdout: Stdout) -> Self {
        Self { stdout, lines: Vec::new(), delivered: Vec::new(), done: Vec::new() }
    }

    async fn add(&mut self, line: &[u8]) -> std::io::Result<()> {
        if line.len() > MAX_BATCH {
            // Not copied: it may be very long.
            let lines = std::mem::take(&mut self.lines);
            self.stdout.write(&lines).await?;
            return self.stdout.write(line).await;
        }
        self.lines.extend_from_slice(line);
        Ok(())
    }

    async fn write(
        &mut self,
        out: &mpsc::UnboundedSender<ToHost>,
        happened: &mpsc::UnboundedSender<FrontEvent>,
    ) -> std::io::Result<()> {
        if !self.lines.is_empty() {
            self.stdout.write(&self.lines).await?;
            self.lines.clear();
        }
        // Both fail only when their reader is gone, which is noticed elsewhere.
        for message in self.delivered.drain(..) {
            let _ = out.send(message);
        }
        for event in self.done.drain(..) {
            let _ = happened.send(event);
        }
        Ok(())
    }
}

/// Relays the messages of the host process to the client.
async fn read(
    stream: OwnedReadHalf,
    stdout: Stdout,
    out: mpsc::UnboundedSender<ToHost>,
    happened: mpsc::UnboundedSender<FrontEvent>,
) {
    let mut stream = BufReader::with_capacity(64 * 1024, stream);
    let mut stderr = tokio::io::stderr();
    let mut batch = Batch::new(stdout);
    let end = loop {
        let is_more_here = has_frame(stream.buffer()) && batch.lines.len() < MAX_BATCH;
        if !is_more_here && batch.write(&out, &happened).await.is_err() {
            break FrontEvent::ClientGone;
        }
        let Ok(Some(message)) = ToFront::read(&mut stream).await else {
            break FrontEvent::HostGone;
        };
        let written = match message {
            ToFront::Line(line) => batch.add(&line).await,
            ToFront::Answer(call, line) => {
                batch.delivered.push(ToHost::Delivered(call));
                batch.add(&line).await
            }
            // A client that no longer reads standard error still gets its answers.
            ToFront::Stderr(bytes) => {
                drop(stderr.write_all(&bytes).await);
                drop(stderr.flush().await);
                Ok(())
            }
            ToFront::Done(id) => {
                batch.done.push(FrontEvent::Done(String::from_utf8_lossy(&id).into_owned()));
                Ok(())
            }
            ToFront::ResultTool(name) => {
                batch.done.push(FrontEvent::ResultTool(name));
                Ok(())
            }
            ToFront::Welcome => Ok(()),
            ToFront::Refused => break FrontEvent::HostGone,
            ToFront::Exit(code) => break FrontEvent::Exit(code),
        };
        if written.is_err() {
            break FrontEvent::ClientGone;
        }
    };
    let end = match batch.write(&out, &happened).await {
        Ok(()) => end,
        Err(_) => FrontEvent::ClientGone,
    };
    let _ = happened.send(end);
}
