//! The pipes of a front: the client's input, split into lines, and the connection to a host process, whose lines go to
//! the client as they arrive.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use crate::frame::{ToFront, ToKeeper, is_hung_up};
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
pub(super) enum Happened {
    Done(String),
    ResultTool(String),
    Exit(i32),
    KeeperGone,
    ClientGone,
}

pub(super) fn read_stdin() -> Input {
    // A line may be long, so few of them wait here.
    let (lines, input) = mpsc::channel(1);
    outlast_engine::spawn(async move {
        let mut stdin = BufReader::with_capacity(64 * 1024, tokio::io::stdin());
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

/// Standard output. It takes one whole line at a time, of any length.
#[derive(Clone, Debug)]
pub(super) struct Stdout(Arc<tokio::sync::Mutex<tokio::io::Stdout>>);

impl Default for Stdout {
    fn default() -> Self {
        Self(Arc::new(tokio::sync::Mutex::new(tokio::io::stdout())))
    }
}

impl Stdout {
    pub(super) async fn write(&self, line: &[u8]) -> std::io::Result<()> {
        let mut stdout = self.0.lock().await;
        stdout.write_all(line).await?;
        stdout.flush().await
    }
}

/// The connection to a host process.
#[derive(Debug)]
pub(super) struct Link {
    out: mpsc::UnboundedSender<ToKeeper>,
    /// The bytes that wait for the host process.
    pub(super) backlog: Arc<Backlog>,
}

impl Link {
    pub(super) fn new(
        stream: UnixStream,
        stdout: Stdout,
        happened: mpsc::UnboundedSender<Happened>,
    ) -> Self {
        let (reader, writer) = stream.into_split();
        let (out, messages) = mpsc::unbounded_channel();
        let backlog = Arc::new(Backlog::default());
        outlast_engine::spawn(write(writer, messages, backlog.clone()));
        outlast_engine::spawn(read(reader, stdout, out.clone(), happened));
        Self { out, backlog }
    }

    pub(super) fn send(&self, message: ToKeeper) {
        self.backlog.add(message.size());
        // Fails only when the host process is gone, which its reader reports.
        let _ = self.out.send(message);
    }
}

async fn write(
    mut stream: OwnedWriteHalf,
    mut messages: mpsc::UnboundedReceiver<ToKeeper>,
    backlog: Arc<Backlog>,
) {
    while let Some(message) = messages.recv().await {
        let written = message.write(&mut stream).await;
        backlog.remove(message.size());
        if written.is_err() {
            return;
        }
    }
}

/// Relays the messages of the host process to the client.
async fn read(
    stream: OwnedReadHalf,
    stdout: Stdout,
    out: mpsc::UnboundedSender<ToKeeper>,
    happened: mpsc::UnboundedSender<Happened>,
) {
    let mut stream = BufReader::with_capacity(64 * 1024, stream);
    let mut stderr = tokio::io::stderr();
    let end = loop {
        let Ok(Some(message)) = ToFront::read(&mut stream).await else {
            break Happened::KeeperGone;
        };
        let written = match message {
            ToFront::Line(line) => stdout.write(&line).await,
            ToFront::Answer(call, line) => {
                let written = stdout.write(&line).await;
                if written.is_ok() {
                    let _ = out.send(ToKeeper::Delivered(call));
                }
                written
            }
            // A client that no longer reads standard error still gets its answers.
            ToFront::Stderr(bytes) => {
                drop(stderr.write_all(&bytes).await);
                drop(stderr.flush().await);
                Ok(())
            }
            ToFront::Done(id) => {
                let _ = happened.send(Happened::Done(String::from_utf8_lossy(&id).into_owned()));
                Ok(())
            }
            ToFront::ResultTool(name) => {
                let _ = happened.send(Happened::ResultTool(name));
                Ok(())
            }
            ToFront::Welcome => Ok(()),
            ToFront::Refused => break Happened::KeeperGone,
            ToFront::Exit(code) => break Happened::Exit(code),
        };
        if written.is_err() {
            break Happened::ClientGone;
        }
    };
    let _ = happened.send(end);
}
