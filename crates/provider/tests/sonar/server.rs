//! A server that says what it was told to say, piece by piece, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Bytes in the pieces they are sent in, and what becomes of the connection after them.
#[derive(Clone)]
pub(crate) struct Reply {
    pieces: Vec<Vec<u8>>,
    then: Then,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    Close,
    Hold,
}

/// A whole answer.
pub(crate) fn reply(status: u16, body: &str) -> Reply {
    let head = format!("content-type: application/json\r\ncontent-length: {}", body.len());
    raw(status, &head, body.as_bytes(), Then::Close)
}

/// Events over a connection that then closes, or falls silent.
pub(crate) fn stream(events: &[impl AsRef<str>], then: Then) -> Reply {
    let body: String = events.iter().map(|event| format!("data: {}\n\n", event.as_ref())).collect();
    raw(200, "content-type: Text/Event-Stream; charset=utf-8", body.as_bytes(), then)
}

pub(crate) fn raw(status: u16, head: &str, body: &[u8], then: Then) -> Reply {
    let head = format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n{head}\r\n\r\n");
    Reply { pieces: vec![head.into_bytes(), body.to_vec()], then }
}

/// Nothing at all.
pub(crate) fn silence() -> Reply {
    Reply { pieces: Vec::new(), then: Then::Hold }
}

impl Reply {
    /// The same bytes, the body cut before each of these places.
    pub(crate) fn cut(mut self, places: &[usize]) -> Self {
        let body = self.pieces.pop().unwrap();
        let ends = places.iter().copied().chain([body.len()]);
        let mut start = 0;
        for end in ends {
            self.pieces.push(body[start..end].to_vec());
            start = end;
        }
        self
    }
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The first line, without the protocol.
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers each request by its first line (`GET /search`) and its number, counted from 0.
    pub(crate) async fn serve(
        answer: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, requests) = (Arc::new(answer), seen.clone());
        // Ends with the test's runtime.
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(converse(socket, answer.clone(), requests.clone()));
            }
        });
        Self { url, seen }
    }

    /// The same answer to everything.
    pub(crate) async fn always(reply: Reply) -> Self {
        Self::serve(move |_, _| reply.clone()).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }

    /// How many requests there were that cost money.
    pub(crate) fn submits(&self) -> usize {
        self.lines().iter().filter(|line| line.starts_with("POST")).count()
    }
}

async fn converse(
    mut socket: TcpStream,
    answer: Arc<impl Fn(&str, usize) -> Reply>,
    requests: Arc<Mutex<Vec<Seen>>>,
) {
    socket.set_nodelay(true).unwrap();
    let Some(seen) = read_request(&mut socket).await else { return };
    let line = seen.line.clone();
    let nth = {
        let mut requests = requests.lock().unwrap();
        requests.push(seen);
        requests.len() - 1
    };
    let reply = answer(&line, nth);
    for piece in &reply.pieces {
        // The client may have hung up on a body that is too large for it.
        drop(socket.write_all(piece).await);
        tokio::task::yield_now().await;
    }
    if reply.then == Then::Hold {
        std::future::pending::<()>().await;
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            let line = head.split(" HTTP/").next().unwrap_or_default().to_owned();
            let body = serde_json::from_str(body).unwrap_or_default();
            return Some(Seen { line, head: head.to_owned(), body });
        }
    }
}
