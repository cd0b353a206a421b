//! One connection of an owner, kept open between requests.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::request::Request;

/// The maximum time of an answer; a limit, never a pause.
const LIMIT: Duration = Duration::from_secs(120);

pub(super) struct Client {
    address: SocketAddr,
    token: String,
    stream: Option<BufReader<TcpStream>>,
}

/// A complete answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The headers except the date.
    pub(super) head: String,
    pub(super) body: String,
    pub(super) took: Duration,
}

impl Client {
    pub(super) fn new(address: SocketAddr, token: String) -> Self {
        Self { address, token, stream: None }
    }

    /// Sends the request and reads the whole answer.
    pub(super) async fn make(&mut self, request: &Request) -> Answer {
        let bytes = request.bytes(&self.address.to_string(), &self.token);
        let talk = async {
            // A server may close an idle connection; only then the request is sent a second time.
            if let Some(stream) = self.stream.take()
                && let Some(heard) = self.talk(stream, &bytes).await
            {
                return heard;
            }
            let stream = TcpStream::connect(self.address).await.expect("connect to the server");
            stream.set_nodelay(true).expect("a socket");
            self.talk(BufReader::new(stream), &bytes).await.expect("the server answers")
        };
        tokio::time::timeout(LIMIT, talk)
            .await
            .unwrap_or_else(|_| panic!("no answer within {LIMIT:?}: {request:?}"))
    }

    async fn talk(&mut self, mut stream: BufReader<TcpStream>, bytes: &[u8]) -> Option<Answer> {
        let began = Instant::now();
        stream.write_all(bytes).await.ok()?;
        let (mut head, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            match stream.read_line(&mut line).await {
                Ok(0) | Err(_) => return None,
                Ok(2) => break,
                Ok(_) if line.to_ascii_lowercase().starts_with("date:") => {}
                Ok(_) => head.push_str(&line),
            }
        }
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let body = body(&mut stream, &head).await;
        let took = began.elapsed();
        if header(&head, "connection") != Some("close") {
            self.stream = Some(stream);
        }
        Some(Answer { status, head, body, took })
    }
}

async fn body(stream: &mut BufReader<TcpStream>, head: &str) -> String {
    let mut body = Vec::new();
    if let Some(length) = header(head, "content-length") {
        body.resize(length.parse().expect("a length"), 0);
        stream.read_exact(&mut body).await.expect("the whole body");
    } else if header(head, "transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            stream.read_line(&mut size).await.expect("a piece");
            let size = usize::from_str_radix(size.trim(), 16).expect("the size of a piece");
            let mut piece = vec![0; size + 2];
            stream.read_exact(&mut piece).await.expect("the whole piece");
            if size == 0 {
                break;
            }
            body.extend_from_slice(&piece[..size]);
        }
    }
    String::from_utf8(body).expect("text")
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim())
}

impl Answer {
    /// Returns the final answer without the notifications before it; null if there is none.
    pub(super) fn answer(&self) -> Value {
        if let Ok(answer) = serde_json::from_str(&self.body) {
            return answer;
        }
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut messages = events.filter_map(|data| serde_json::from_str(data.trim()).ok());
        messages.rfind(|message: &Value| message.get("id").is_some()).unwrap_or_default()
    }

    /// The id of the new session.
    pub(super) fn session(&self) -> Option<&str> {
        header(&self.head, "mcp-session-id")
    }

    /// The whole answer with these words masked.
    pub(super) fn masked(&self, words: &str) -> String {
        let said = format!("{}\n{}", self.head, self.body);
        // The length of the words is masked too; all of them have the same length.
        if words.is_empty() { said } else { said.replace(words, "<id>") }
    }
}
