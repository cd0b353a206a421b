//! A scripted server for a client under test, over in-memory pipes; also real processes and real sockets that
//! misbehave.

pub mod shell;
pub mod web;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

/// The maximum wait for a message; a limit, never a pause. Longer than any limit of a test.
const LIMIT: Duration = Duration::from_secs(100_000);

/// A server that a test controls.
pub struct Peer {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

/// A tool call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The id of the request.
    pub id: Value,
    /// The progress token.
    pub token: Value,
    /// All parameters.
    pub params: Value,
}

impl Peer {
    /// Creates a server and the two streams of its client.
    pub fn new() -> (Self, ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(ours);
        let (read, write) = tokio::io::split(theirs);
        (Self { input: BufReader::new(input).lines(), output }, read, write)
    }

    /// Answers the handshake of the initialize era.
    pub async fn greet(&mut self) {
        loop {
            let message = self.hear().await;
            match message["method"].as_str() {
                Some("initialize") => self.say(&answer(&message["id"], greeting())).await,
                Some("server/discover") => {
                    let error = json!({ "code": -32601, "message": "no such method" });
                    let refusal = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                    self.say(&refusal).await;
                }
                Some("notifications/initialized") => return,
                _ => panic!("not a handshake: {message}"),
            }
        }
    }

    /// Answers the handshake of the stateless era.
    pub async fn greet_stateless(&mut self) {
        let message = self.hear().await;
        assert_eq!(message["method"], "server/discover", "{message}");
        self.say(&answer(&message["id"], discovery())).await;
    }

    /// Receives the next message.
    pub async fn hear(&mut self) -> Value {
        self.try_hear().await.expect("the client has closed the connection")
    }

    /// Receives the next message; `None` if the client has closed the connection.
    pub async fn try_hear(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(LIMIT, self.input.next_line()).await;
        let line = line.expect("the client sends nothing").ok()??;
        Some(serde_json::from_str(&line).expect("the client sends JSON"))
    }

    /// Receives the next message, which must be a tool call.
    pub async fn call(&mut self) -> Call {
        let message = self.hear().await;
        assert_eq!(message["method"], "tools/call", "{message}");
        Call {
            id: message["id"].clone(),
            token: message["params"]["_meta"]["progressToken"].clone(),
            params: message["params"].clone(),
        }
    }

    /// Sends a message.
    pub async fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        // If the client has closed the connection, only its earlier behaviour matters.
        drop(self.output.write_all(line.as_bytes()).await);
    }

    /// Sends progress of a call.
    pub async fn progress(&mut self, token: &Value, value: f64) {
        let params =
            json!({ "progressToken": token, "progress": value, "total": 100, "message": "at it" });
        let method = "notifications/progress";
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Answers a request with this result.
    pub async fn answer(&mut self, id: &Value, result: Value) {
        self.say(&answer(id, result)).await;
    }
}

/// Builds an answer.
pub fn answer(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Builds the result of a tool.
pub fn result(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

/// Builds the answer to `initialize`.
pub fn greeting() -> Value {
    json!({
        "protocolVersion": "2025-06-18",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "peer", "version": "0" }
    })
}

/// Builds the answer to `server/discover`.
pub fn discovery() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } },
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "peer", "version": "0" } }
    })
}
