//! The frames between front and host process: a letter, a length, and that number of bytes. Frames that wait at the same
//! time are written at once, because each write wakes the process at the other end.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::line::MAX_LINE;
use crate::server::Backlog;
use crate::settings::WrapSettings;

/// The maximum length of a frame. A line grows a little on its way: by our ids, and by `get_result` in a list of tools.
const MAX_FRAME: usize = MAX_LINE + 1024 * 1024;

/// A message of up to this size is written together with others.
pub(crate) const MAX_BATCH: usize = 64 * 1024;
/// The time for which a frame that is not urgent waits for another one.
const LAZY: Duration = Duration::from_millis(1);

/// Returns true if the other end is closed. Data that was sent before may still wait to be read.
pub(crate) fn is_hung_up(pipe: impl AsFd) -> bool {
    let mut looked = [PollFd::new(&pipe, PollFlags::empty())];
    let at_once = Some(&Timespec { tv_sec: 0, tv_nsec: 0 });
    poll(&mut looked, at_once).is_ok()
        && looked.iter().any(|it| it.revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// A frame from the front to the host process.
#[derive(Debug)]
pub(crate) enum ToHost {
    /// The first frame: identifies the front.
    Hello(Box<Hello>),
    /// The only frame of a host process that checks whether this one is running; answered with [`ToFront::Refused`].
    AreYouThere,
    /// A line of the client, with its newline if it had one.
    Line(Vec<u8>),
    /// The client sends nothing more.
    End,
    /// The answer to this call was written to the client.
    Delivered(u64),
    /// A signal that the front received.
    Signal(i32),
}

/// A frame from the host process to the front.
#[derive(Debug)]
pub(crate) enum ToFront {
    /// The host process accepts this front.
    Welcome,
    /// The host process has another front, or serves another client.
    Refused,
    /// A line for the client.
    Line(Vec<u8>),
    /// A line for the client; [`ToHost::Delivered`] with this number follows when it is written.
    Answer(u64, Vec<u8>),
    /// Output for standard error.
    Stderr(Vec<u8>),
    /// The request with this id has its answer, or needs none.
    Done(Vec<u8>),
    /// The name of `get_result` in the list of tools.
    ResultTool(String),
    /// The host process has nothing more for this front, which exits with this code.
    Exit(i32),
}

/// The first frame of a front or host process that attaches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) settings: WrapSettings,
    /// The first message of the client, if it is already known: a host process that served another client accepts only
    /// an equal one.
    pub(crate) greeting: Option<GreetingFrame>,
    /// The name of the front.
    #[serde(default)]
    pub(crate) front: String,
    /// The client's lines to a server that is gone, to be sent again.
    #[serde(default)]
    pub(crate) replay: Vec<String>,
    /// True if this front had another host process, which was killed: its client may still answer a question of that
    /// process's server.
    #[serde(default, rename = "had_keeper")]
    pub(crate) had_host: bool,
    /// The name of `get_result` that this client knows.
    #[serde(default)]
    pub(crate) result_tool: Option<String>,
}

/// The identity of a client: the method and the params of its first message, if that is a greeting of the older era;
/// otherwise no method, and the client's description of itself in each request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GreetingFrame {
    pub(crate) method: String,
    pub(crate) params: String,
}

/// A message that is sent as a frame.
pub(crate) trait Frame {
    /// Adds everything before the payload to a batch.
    fn encode_start(&self, batch: &mut Vec<u8>) -> io::Result<()>;

    /// Returns the bytes that may be many.
    fn payload(&self) -> &[u8];

    /// Returns the number of bytes that wait with it.
    fn size(&self) -> usize {
        self.payload().len()
    }

    /// Returns false if it may wait a moment for another one, because nothing depends on it.
    fn is_urgent(&self) -> bool;
}

/// Adds the letter, the length and the first bytes of a frame to a batch.
fn start(batch: &mut Vec<u8>, letter: u8, first: &[u8], payload: &[u8]) -> io::Result<()> {
    let length = first.len() + payload.len();
    if length > MAX_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a message that is too long"));
    }
    batch.push(letter);
    batch.extend_from_slice(&u32::try_from(length).map_err(io::Error::other)?.to_be_bytes());
    batch.extend_from_slice(first);
    Ok(())
}

/// Writes one message.
async fn write(message: &impl Frame, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let mut start = Vec::new();
    message.encode_start(&mut start)?;
    start.extend_from_slice(message.payload());
    to.write_all(&start).await
}

/// Writes messages until their channel is closed. After an error of the connection, they are only removed from the
/// backlog.
pub(crate) async fn write_frames<F: Frame>(
    to: &mut (impl AsyncWrite + Unpin),
    mut messages: mpsc::UnboundedReceiver<F>,
    backlog: &Backlog,
) {
    let (mut batch, mut is_broken) = (Vec::new(), false);
    while let Some(first) = messages.recv().await {
        let (mut next, mut size, mut is_urgent) = (Some(first), 0, false);
        while let Some(message) = next.take() {
            size += message.size();
            is_urgent |= message.is_urgent();
            if let Err(error) = message.encode_start(&mut batch) {
                tracing::error!(%error, bytes = message.size(), "dropped a message");
            } else if message.size() <= MAX_BATCH {
                batch.extend_from_slice(message.payload());
            } else {
                // Not copied: it may be very long.
                is_broken = is_broken || to.write_all(&batch).await.is_err();
                is_broken = is_broken || to.write_all(message.payload()).await.is_err();
                batch.clear();
                break;
            }
            if batch.len() > MAX_BATCH {
                break;
            }
            next = match messages.try_recv() {
                Ok(message) => Some(message),
                Err(_) if is_urgent => None,
                Err(_) => timeout(LAZY, messages.recv()).await.ok().flatten(),
            };
        }
        is_broken = is_broken || to.write_all(&batch).await.is_err();
        batch.clear();
        backlog.remove(size);
    }
}

/// Returns true if the whole next frame has arrived.
pub(crate) fn has_frame(buffer: &[u8]) -> bool {
    let length = buffer.get(1..5).and_then(|bytes| bytes.try_into().ok());
    length.is_some_and(|length| buffer.len() - 5 >= u32::from_be_bytes(length) as usize)
}

/// Reads a frame; `None` at the end.
async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; 5];
    match from.read_exact(&mut head).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let [letter, length @ ..] = head;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(bad());
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload).await?;
    Ok(Some((letter, payload)))
}

fn bad() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame that is not understood")
}

fn number(payload: &[u8]) -> io::Result<u64> {
    let bytes = payload.get(..8).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u64::from_be_bytes).ok_or_else(bad)
}

impl Frame for ToHost {
    fn encode_start(&self, batch: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Hello(hello) => {
                let hello = serde_json::to_vec(hello)?;
                start(batch, b'h', &hello, &[])
            }
            Self::Line(line) => start(batch, b'i', &[], line),
            Self::AreYouThere => start(batch, b'q', &[], &[]),
            Self::End => start(batch, b'c', &[], &[]),
            Self::Delivered(call) => start(batch, b'k', &call.to_be_bytes(), &[]),
            Self::Signal(signal) => start(batch, b's', &signal.to_be_bytes(), &[]),
        }
    }

    fn payload(&self) -> &[u8] {
        match self {
            Self::Line(line) => line,
            Self::Hello(_)
            | Self::AreYouThere
            | Self::End
            | Self::Delivered(_)
            | Self::Signal(_) => &[],
        }
    }

    fn is_urgent(&self) -> bool {
        // A client that goes on calls again within that time.
        !matches!(self, Self::Delivered(_))
    }
}

impl ToHost {
    pub(crate) async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        write(self, to).await
    }

    pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let Some((letter, payload)) = read(from).await? else { return Ok(None) };
        Ok(Some(match letter {
            b'h' => Self::Hello(serde_json::from_slice(&payload)?),
            b'i' => Self::Line(payload),
            b'q' => Self::AreYouThere,
            b'c' => Self::End,
            b'k' => Self::Delivered(number(&payload)?),
            b's' => Self::Signal(i32::from_be_bytes(payload.try_into().map_err(|_| bad())?)),
            _ => return Err(bad()),
        }))
    }
}

impl Frame for ToFront {
    fn encode_start(&self, batch: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Welcome => start(batch, b'y', &[], &[]),
            Self::Refused => start(batch, b'n', &[], &[]),
            Self::Line(line) => start(batch, b'o', &[], line),
            Self::Answer(call, line) => start(batch, b'a', &call.to_be_bytes(), line),
            Self::Stderr(bytes) => start(batch, b'e', &[], bytes),
            Self::Done(id) => start(batch, b'd', id, &[]),
            Self::ResultTool(name) => start(batch, b't', name.as_bytes(), &[]),
            Self::Exit(code) => start(batch, b'x', &code.to_be_bytes(), &[]),
        }
    }

    fn payload(&self) -> &[u8] {
        match self {
            Self::Line(bytes) | Self::Answer(_, bytes) | Self::Stderr(bytes) => bytes,
            Self::Welcome | Self::Refused | Self::Done(_) | Self::ResultTool(_) | Self::Exit(_) => {
                &[]
            }
        }
    }

    fn is_urgent(&self) -> bool {
        true
    }
}

impl ToFront {
    pub(crate) async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        write(self, to).await
    }

    pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let Some((letter, mut payload)) = read(from).await? else { return Ok(None) };
        Ok(Some(match letter {
            b'y' => Self::Welcome,
            b'n' => Self::Refused,
            b'o' => Self::Line(payload),
            b'a' => {
                let call = number(&payload)?;
                payload.drain(..8);
                Self::Answer(call, payload)
            }
            b'e' => Self::Stderr(payload),
            b'd' => Self::Done(payload),
            b't' => Self::ResultTool(String::from_utf8_lossy(&payload).into_owned()),
            b'x' => Self::Exit(i32::from_be_bytes(payload.try_into().map_err(|_| bad())?)),
            _ => return Err(bad()),
        }))
    }
}
