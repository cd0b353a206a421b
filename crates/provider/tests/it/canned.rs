//! A server with scripted answers that no honest server gives.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_provider::perplexity::Agent;
use outlast_testkit::clock::ManualClock;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::bench::{self, KEY};

/// Bytes, and the end of the connection after them.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    /// The places at which the bytes are cut into packets.
    pub(crate) cuts: Vec<usize>,
    pub(crate) then: Then,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    Close,
    Hold,
    /// The connection waits for another request.
    Next,
    /// The number of further bytes of the last one, or as many as the client takes.
    Repeat(usize),
}

/// A whole answer.
pub(crate) fn reply(status: u16, body: &str) -> Reply {
    let head = format!("content-type: application/json\r\ncontent-length: {}", body.len());
    raw(status, &head, body.as_bytes(), Then::Close)
}

/// Events over a connection that then breaks, or falls silent.
pub(crate) fn stream(events: &[impl AsRef<str>], then: Then) -> Reply {
    let body: String = events.iter().map(|event| format!("data: {}\n\n", event.as_ref())).collect();
    raw(200, "content-type: Text/Event-Stream; charset=utf-8", body.as_bytes(), then)
}

pub(crate) fn raw(status: u16, head: &str, body: &[u8], then: Then) -> Reply {
    let connection = if then == Then::Next { "keep-alive" } else { "close" };
    let head = format!("HTTP/1.1 {status} Scripted\r\nconnection: {connection}\r\n{head}\r\n\r\n");
    let bytes = [head.as_bytes(), body].concat();
    Reply { bytes, cuts: Vec::new(), then }
}

/// Nothing that is an answer.
pub(crate) fn nothing(then: Then) -> Reply {
    Reply { bytes: Vec::new(), cuts: Vec::new(), then }
}

impl Reply {
    /// The same answer in packets, its body cut before each of these places.
    pub(crate) fn cut(mut self, places: &[usize]) -> Self {
        let head = self.bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        self.cuts = places.iter().map(|place| head + place).collect();
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

pub(crate) struct Canned {
    pub(crate) url: String,
    journal: Arc<Journal>,
    pub(crate) clock: Arc<ManualClock>,
}

/// The requests so far.
#[derive(Default)]
struct Journal {
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    sent: AtomicUsize,
}

impl Canned {
    /// Answers each request by its first line (`GET /v1/agent/x`) and its number, counted from 0.
    pub(crate) async fn serve(
        answer: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let journal = Arc::new(Journal::default());
        let (answer, kept) = (Arc::new(answer), journal.clone());
        // Ends with the test's runtime.
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                socket.set_nodelay(true).unwrap();
                journal.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(converse(socket, answer.clone(), journal.clone()));
            }
        });
        Self { url, journal: kept, clock: Arc::default() }
    }

    /// The same answer to everything.
    pub(crate) async fn always(reply: Reply) -> Self {
        Self::serve(move |_, _| reply.clone()).await
    }

    pub(crate) fn agent(&self, timeout: Duration) -> Agent {
        let options = bench::options(&self.url, KEY, timeout, &self.clock);
        Agent::new(options).unwrap()
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.journal.seen.lock().unwrap().clone()
    }

    /// The first lines of the requests so far, without the protocol.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }

    /// The number of requests that cost money.
    pub(crate) fn submits(&self) -> usize {
        self.lines().iter().filter(|line| line.starts_with("POST")).count()
    }

    /// The number of connections that were opened.
    pub(crate) fn connections(&self) -> usize {
        self.journal.connections.load(Ordering::Relaxed)
    }

    /// The number of bytes that were sent.
    pub(crate) fn sent(&self) -> usize {
        self.journal.sent.load(Ordering::Relaxed)
    }
}

async fn converse(
    mut socket: TcpStream,
    answer: Arc<impl Fn(&str, usize) -> Reply>,
    journal: Arc<Journal>,
) {
    while let Some(seen) = read_request(&mut socket).await {
        let line = seen.line.clone();
        let nth = {
            let mut requests = journal.seen.lock().unwrap();
            requests.push(seen);
            requests.len() - 1
        };
        let reply = answer(&line, nth);
        let mut start = 0;
        for end in reply.cuts.iter().copied().chain([reply.bytes.len()]) {
            // The client may have hung up on a body that is too large for it.
            drop(socket.write_all(&reply.bytes[start..end]).await);
            start = end;
            // Gives the client a turn, so that it sees the packet alone.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        }
        match reply.then {
            Then::Next => {}
            Then::Close => return,
            Then::Hold => std::future::pending::<()>().await,
            Then::Repeat(bytes) => {
                return repeat(socket, reply.bytes.last(), bytes, &journal).await;
            }
        }
    }
}

/// Writes the same byte again and again until the client stops reading.
async fn repeat(mut socket: TcpStream, byte: Option<&u8>, bytes: usize, journal: &Journal) {
    let chunk = vec![*byte.unwrap(); 64 * 1024];
    while journal.sent.load(Ordering::Relaxed) < bytes {
        let Ok(written) = socket.write(&chunk).await else { return };
        journal.sent.fetch_add(written, Ordering::Relaxed);
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
