//! The frames between front and host process: a letter, a length, and that number of bytes.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::line::MAX_LINE;
use crate::settings::WrapSettings;

/// The maximum length of a frame. A line grows a little on its way: by our ids, and by `get_result` in a list of tools.
const MAX_FRAME: usize = MAX_LINE + 1024 * 1024;

/// Returns true if the other end is closed. Data that was sent before may still wait to be read.
pub(crate) fn is_hung_up(pipe: impl AsFd) -> bool {
    let mut looked = [PollFd::new(&pipe, PollFlags::empty())];
    let at_once = Some(&Timespec { tv_sec: 0, tv_nsec: 0 });
    poll(&mut looked, at_once).is_ok()
        && looked.iter().any(|it| it.revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// A frame from the front to the host process.
#[derive(Debug)]
pub(crate) enum ToKeeper {
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
    /// A line for the client; [`ToKeeper::Delivered`] with this number follows when it is written.
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
    pub(crate) greeting: Option<Greeting>,
    /// The name of the front.
    #[serde(default)]
    pub(crate) front: String,
    /// The client's lines to a server that is gone, to be sent again.
    #[serde(default)]
    pub(crate) replay: Vec<String>,
    /// True if this front had another host process, which was killed: its client may still answer a question of that
    /// process's server.
    #[serde(default)]
    pub(crate) had_keeper: bool,
    /// The name of `get_result` that this client knows.
    #[serde(default)]
    pub(crate) result_tool: Option<String>,
}

/// The identity of a client: the method and the params of its first message, if that is a greeting of the older era;
/// otherwise no method, and the client's description of itself in each request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) method: String,
    pub(crate) params: String,
}

/// Writes a frame, in a single write if it is small.
async fn write(to: &mut (impl AsyncWrite + Unpin), letter: u8, parts: &[&[u8]]) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if length > MAX_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a message that is too long"));
    }
    let length_bytes = u32::try_from(length).map_err(io::Error::other)?.to_be_bytes();
    let mut head = Vec::with_capacity(5 + length.min(64 * 1024));
    head.push(letter);
    head.extend_from_slice(&length_bytes);
    if length <= 64 * 1024 {
        parts.iter().for_each(|part| head.extend_from_slice(part));
        return to.write_all(&head).await;
    }
    to.write_all(&head).await?;
    for part in parts {
        to.write_all(part).await?;
    }
    Ok(())
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

impl ToKeeper {
    pub(crate) async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        match self {
            Self::Hello(hello) => write(to, b'h', &[&serde_json::to_vec(hello)?]).await,
            Self::Line(line) => write(to, b'i', &[line]).await,
            Self::AreYouThere => write(to, b'q', &[]).await,
            Self::End => write(to, b'c', &[]).await,
            Self::Delivered(call) => write(to, b'k', &[&call.to_be_bytes()]).await,
            Self::Signal(signal) => write(to, b's', &[&signal.to_be_bytes()]).await,
        }
    }

    /// Returns the number of bytes that wait with it.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Line(line) => line.len(),
            Self::Hello(_)
            | Self::AreYouThere
            | Self::End
            | Self::Delivered(_)
            | Self::Signal(_) => 0,
        }
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

impl ToFront {
    pub(crate) async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        match self {
            Self::Welcome => write(to, b'y', &[]).await,
            Self::Refused => write(to, b'n', &[]).await,
            Self::Line(line) => write(to, b'o', &[line]).await,
            Self::Answer(call, line) => write(to, b'a', &[&call.to_be_bytes(), line]).await,
            Self::Stderr(bytes) => write(to, b'e', &[bytes]).await,
            Self::Done(id) => write(to, b'd', &[id]).await,
            Self::ResultTool(name) => write(to, b't', &[name.as_bytes()]).await,
            Self::Exit(code) => write(to, b'x', &[&code.to_be_bytes()]).await,
        }
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

    /// Returns the number of bytes that wait with it.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Line(bytes) | Self::Answer(_, bytes) | Self::Stderr(bytes) => bytes.len(),
            _ => 0,
        }
    }
}
