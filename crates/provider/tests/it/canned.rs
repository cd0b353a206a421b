//! A server that says what it was told to say: for answers no honest server gives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_provider::perplexity::Agent;
use outlast_testkit::clock::ManualClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::bench::{self, KEY};

/// Bytes, and what becomes of the connection after them.
pub(crate) struct Reply {
    bytes: Vec<u8>,
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

/// Events over a connection that then breaks, or falls silent.
pub(crate) fn stream(events: &[&str], then: Then) -> Reply {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    raw(200, "content-type: Text/Event-Stream; charset=utf-8", body.as_bytes(), then)
}

pub(crate) fn raw(status: u16, head: &str, body: &[u8], then: Then) -> Reply {
    let head = format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n{head}\r\n\r\n");
    let bytes = [head.as_bytes(), body].concat();
    Reply { bytes, then }
}

pub(crate) struct Canned {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<String>>>,
    pub(crate) clock: Arc<ManualClock>,
}

impl Canned {
    /// Answers each request by its first line (`GET /v1/agent/x HTTP/1.1`) and its number, counted from 0.
    pub(crate) async fn serve(
        answer: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, heads) = (Arc::new(answer), seen.clone());
        // Ends with the test's runtime.
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(converse(socket, answer.clone(), heads.clone()));
            }
        });
        Self { url, seen, clock: Arc::default() }
    }

    pub(crate) fn agent(&self, timeout: Duration) -> Agent {
        let options = bench::options(&self.url, KEY, timeout, &self.clock);
        Agent::new(options).unwrap().with_waits(bench::quick())
    }

    /// The heads of the requests so far.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// The first lines of the requests so far, without the protocol.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |head: &String| head.split(" HTTP/").next().unwrap_or_default().to_owned();
        self.seen().iter().map(line).collect()
    }
}

async fn converse(
    mut socket: TcpStream,
    answer: Arc<impl Fn(&str, usize) -> Reply>,
    seen: Arc<Mutex<Vec<String>>>,
) {
    let Some(head) = read_request(&mut socket).await else { return };
    let nth = {
        let mut seen = seen.lock().unwrap();
        seen.push(head.clone());
        seen.len() - 1
    };
    let reply = answer(head.lines().next().unwrap_or_default(), nth);
    // The client may have hung up on a body that is too large for it.
    drop(socket.write_all(&reply.bytes).await);
    if reply.then == Then::Hold {
        std::future::pending::<()>().await;
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some(head.to_owned());
        }
    }
}
