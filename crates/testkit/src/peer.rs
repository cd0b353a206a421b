//! The other side of a client under test: a server that says exactly what it is told, when it is told, over pipes in
//! memory. Beside it: real processes and real sockets that misbehave.

pub mod shell;
pub mod web;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

/// No message takes longer in a test; a limit, never a pause. Longer than any limit a test sets.
const LIMIT: Duration = Duration::from_secs(100_000);

/// A server that a test speaks for.
pub struct Peer {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct Call {
    /// The request's id.
    pub id: Value,
    /// Its progress token.
    pub token: Value,
    /// Its parameters, whole.
    pub params: Value,
}

impl Peer {
    /// A server, and what its client reads from and writes to.
    pub fn new() -> (Self, ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(ours);
        let (read, write) = tokio::io::split(theirs);
        (Self { input: BufReader::new(input).lines(), output }, read, write)
    }

    /// Answers the greeting of the initialize era.
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
                _ => panic!("not a greeting: {message}"),
            }
        }
    }

    /// Answers the greeting of the stateless era.
    pub async fn greet_stateless(&mut self) {
        let message = self.hear().await;
        assert_eq!(message["method"], "server/discover", "{message}");
        self.say(&answer(&message["id"], discovery())).await;
    }

    /// The next message.
    pub async fn hear(&mut self) -> Value {
        self.try_hear().await.expect("the client has left")
    }

    /// The next message; `None` when the client has left.
    pub async fn try_hear(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(LIMIT, self.input.next_line()).await;
        let line = line.expect("the client says nothing").ok()??;
        Some(serde_json::from_str(&line).expect("the client speaks JSON"))
    }

    /// The next message, which calls a tool.
    pub async fn call(&mut self) -> Call {
        let message = self.hear().await;
        assert_eq!(message["method"], "tools/call", "{message}");
        Call {
            id: message["id"].clone(),
            token: message["params"]["_meta"]["progressToken"].clone(),
            params: message["params"].clone(),
        }
    }

    /// Says this.
    pub async fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        // A client that has left hears nothing; what it did before is what counts.
        drop(self.output.write_all(line.as_bytes()).await);
    }

    /// Says how far a call has come.
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

/// An answer.
pub fn answer(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// A tool's result.
pub fn result(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

/// The answer to `initialize`.
pub fn greeting() -> Value {
    json!({
        "protocolVersion": "2025-06-18",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "peer", "version": "0" }
    })
}

/// The answer to `server/discover`.
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
