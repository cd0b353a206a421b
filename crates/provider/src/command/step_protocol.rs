//! The messages between `outlast step` and the worker that runs its command: lines of JSON over a Unix socket, each
//! followed by the bytes that it announces.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// The variable that holds the path of the socket.
pub const STEP_SOCKET: &str = "OUTLAST_STEP_SOCKET";
/// The maximum size of a step's output in bytes.
pub const MAX_STEP_BYTES: usize = 1 << 20;
/// The maximum length of a step's name.
const MAX_NAME: usize = 64;
/// The maximum size of a question with its choices in bytes.
pub const MAX_ASK_BYTES: usize = 4 << 10;
const MAX_LINE: u64 = 64 << 10;

/// The first message of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRequest {
    pub name: String,
    /// The SHA-256 of its input, in hexadecimal digits.
    pub digest: String,
    /// Runs it again if it is not known how far it came.
    pub rerun: bool,
}

/// The first message of `outlast ask`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskRequest {
    /// The question.
    pub ask: String,
    /// The possible answers; empty if any text is one.
    pub choices: Vec<String>,
    /// The answer after the deadline.
    pub default: Option<String>,
    /// The time until the deadline, unless it is the usual one.
    pub timeout_ms: Option<u64>,
}

/// The first message on a connection.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum FirstMessage {
    Step(StepRequest),
    Ask(AskRequest),
}

/// The answers of the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepReply {
    /// The step is recorded as started: it may run.
    Run,
    /// The step was done before; its output follows.
    Done { bytes: usize },
    /// The end of the step is recorded.
    Recorded,
    /// Nobody has answered the question before its deadline.
    NotAnswered,
    /// The step may not run.
    Refused { why: String, hint: String },
    /// The worker does not own the job any more.
    Gone,
}

/// The end of a step; its output follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepOutcome {
    /// The exit code.
    pub code: i32,
    pub bytes: usize,
}

/// Returns true if a step may have this name.
pub fn is_step_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fits)
}

/// Reads a message; an error of kind `UnexpectedEof` means that the other end is gone.
pub async fn read_message<T: DeserializeOwned>(
    from: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<T> {
    let mut line = Vec::new();
    from.take(MAX_LINE).read_until(b'\n', &mut line).await?;
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&line).map_err(io::Error::from)
}

/// Reads the bytes that a message has announced.
pub async fn read_bytes(from: &mut (impl AsyncRead + Unpin), count: usize) -> io::Result<Vec<u8>> {
    if count > MAX_STEP_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; count];
    from.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Writes a message and the bytes that it announces.
pub async fn write_message(
    to: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
    bytes: &[u8],
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    line.extend_from_slice(bytes);
    to.write_all(&line).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn a_message_and_its_bytes_are_read_as_written() {
        let mut sent = Vec::new();
        let done = StepReply::Done { bytes: 3 };
        write_message(&mut sent, &done, b"a\n\0").await.unwrap();
        let mut read = BufReader::new(&sent[..]);
        assert_eq!(read_message::<StepReply>(&mut read).await.unwrap(), done);
        assert_eq!(read_bytes(&mut read, 3).await.unwrap(), b"a\n\0");
        let cut = read_message::<StepReply>(&mut read).await.unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_name_is_short_and_plain() {
        assert!(is_step_name("fetch/2026-01.a:b_c"));
        for name in ["", "a b", "a#2", "ü", &"x".repeat(65)] {
            assert!(!is_step_name(name), "{name}");
        }
    }
}
