//! A scripted web server: each request goes to the test with its socket.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The maximum wait for a request in a test; a limit, never a pause.
const LIMIT: Duration = Duration::from_secs(60);

/// A web server that a test controls.
pub struct Web {
    /// The address on which it listens.
    pub address: SocketAddr,
    requests: mpsc::UnboundedReceiver<Request>,
    listening: tokio::task::JoinHandle<()>,
}

/// A request, and the socket for its answer.
pub struct Request {
    /// The first line and the headers, verbatim.
    pub head: String,
    /// The JSON body; null if there is none.
    pub body: Value,
    input: BufReader<OwnedReadHalf>,
    output: OwnedWriteHalf,
}

impl Web {
    /// Starts to listen on the loopback interface.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listen");
        let address = listener.local_addr().expect("an address");
        let (sender, requests) = mpsc::unbounded_channel();
        let listening = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(async move {
                    if let Some(request) = read(socket).await {
                        // The test may have ended already.
                        drop(sender.send(request));
                    }
                });
            }
        });
        Self { address, requests, listening }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the next request with this JSON-RPC method; others are answered with 405.
    pub async fn hear(&mut self, method: &str) -> Request {
        loop {
            let request = tokio::time::timeout(LIMIT, self.requests.recv()).await;
            let request = request.unwrap_or_else(|_| panic!("no {method} came")).expect("listens");
            if request.body["method"] == method {
                return request;
            }
            request.reply("405 Method Not Allowed", "text/plain", "").await;
        }
    }

    /// Answers the handshake of the initialize era.
    pub async fn greet(&mut self) {
        let request = self.hear("initialize").await;
        let id = request.body["id"].clone();
        request.reply_json(&super::answer(&id, super::greeting())).await;
        self.hear("notifications/initialized").await.reply("202 Accepted", "text/plain", "").await;
    }

    /// Answers the handshake of the stateless era.
    pub async fn greet_stateless(&mut self) {
        let request = self.hear("server/discover").await;
        let id = request.body["id"].clone();
        request.reply_json(&super::answer(&id, super::discovery())).await;
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Request {
    /// Sends this response and closes the connection.
    pub async fn reply(mut self, status: &str, kind: &str, body: &str) {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        self.write(head.as_bytes()).await;
        self.write(body.as_bytes()).await;
    }

    /// Sends JSON and closes the connection.
    pub async fn reply_json(self, body: &Value) {
        self.reply("200 OK", "application/json", &body.to_string()).await;
    }

    /// Starts a response with events.
    pub async fn begin_events(&mut self) {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        self.write(head.as_bytes()).await;
    }

    /// Sends an event.
    pub async fn event(&mut self, message: &Value) {
        self.write(format!("data: {message}\n\n").as_bytes()).await;
    }

    /// Writes these bytes; returns false if the client has closed the connection.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        self.output.write_all(bytes).await.is_ok()
    }

    /// Waits until the client closes the connection.
    pub async fn hung_up(mut self) {
        let mut rest = [0; 64];
        while matches!(self.input.read(&mut rest).await, Ok(1..)) {}
    }
}

async fn read(socket: TcpStream) -> Option<Request> {
    let (input, output) = socket.into_split();
    let mut input = BufReader::new(input);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if input.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    input.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Request { head, body, input, output })
}
