//! A small HTTP client that sends exactly the given bytes, and a server for it.

use std::net::SocketAddr;
use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::support::World;

pub(crate) const ANN: &str = "ann-0123456789abcdef0123";
pub(crate) const BOB: &str = "bob-0123456789abcdef0123";

/// The time limit of an answer in a test; a limit, never a pause.
const LIMIT: Duration = Duration::from_secs(60);

/// A listening server.
pub(crate) struct Served {
    pub(crate) process: McpProcess,
    pub(crate) address: SocketAddr,
}

impl Served {
    /// Starts it with tokens for Ann and Bob.
    pub(crate) async fn start(world: &mut World, flags: &[&str]) -> Self {
        world.set("OUTLAST_TOKENS", &format!("ann={ANN},bob={BOB}"));
        Self::start_as_it_is(world, flags).await
    }

    pub(crate) async fn start_as_it_is(world: &World, flags: &[&str]) -> Self {
        let arguments: Vec<&str> =
            ["serve", "--http", "127.0.0.1:0"].into_iter().chain(flags.iter().copied()).collect();
        let process = world.spawn(&arguments);
        process.logged("/mcp").await;
        let log = process.log();
        let (_, rest) = log.split_once("listening on http://").expect("says where");
        let address = rest.split('/').next().unwrap().parse().unwrap();
        Self { process, address }
    }

    pub(crate) fn client(&self, token: &str) -> Client {
        Client { address: self.address, token: token.to_owned() }
    }

    /// Sends these bytes and reads the head of the answer; `None` if the server hangs up without one.
    pub(crate) async fn say(&self, bytes: &[u8]) -> Option<Reply> {
        say(self.address, bytes).await
    }
}

pub(crate) async fn say(address: SocketAddr, bytes: &[u8]) -> Option<Reply> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (input, mut output) = stream.into_split();
    let bytes = bytes.to_owned();
    // Concurrent with the reading: a server that refuses may answer before it has read everything.
    let writing = tokio::spawn(async move {
        drop(output.write_all(&bytes).await);
        output
    });
    Reply::read(input, writing).await
}

/// One owner's client.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Client {
    /// Returns a request with the token and these headers.
    pub(crate) fn bytes(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
        let mut text = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n",
            self.address, self.token
        );
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(body);
        text.into_bytes()
    }

    pub(crate) async fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        say(self.address, &self.bytes(line, headers, body)).await.expect("an answer")
    }

    /// Sends a message in a session of the older era, or outside of one.
    pub(crate) async fn post(&self, session: Option<&str>, message: &Value) -> Reply {
        self.post_text(session, &message.to_string()).await
    }

    /// Sends any text in place of a message.
    pub(crate) async fn post_text(&self, session: Option<&str>, message: &str) -> Reply {
        let mut headers = JSON.to_vec();
        headers.extend(session.map(|id| ("Mcp-Session-Id", id)));
        self.send("POST /mcp", &headers, message).await
    }

    /// Opens a session of the older era.
    pub(crate) async fn initialize(&self) -> String {
        let reply = self.post(None, &initialize()).await;
        assert_eq!(reply.status, 200, "{}", reply.head);
        let session = reply.header("mcp-session-id").expect("a session").to_owned();
        let greeting = reply.result().await;
        assert_eq!(greeting["result"]["serverInfo"]["name"], "outlast", "{greeting}");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(Some(&session), &initialized).await.status, 202);
        session
    }

    /// Makes a request in a session of the older era, or of the newer era.
    pub(crate) async fn request(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Value {
        if session.is_none() {
            let name = params["uri"].as_str().unwrap_or_default().to_owned();
            return self.modern(method, &name, params, &json!({})).await.result().await;
        }
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.post(session, &message).await.result().await
    }

    /// Sends a request of the newer era with these capabilities, and returns the unread reply.
    pub(crate) async fn modern(
        &self,
        method: &str,
        name: &str,
        mut params: Value,
        capabilities: &Value,
    ) -> Reply {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let mut headers = JSON.to_vec();
        headers.extend([("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)]);
        headers.extend((!name.is_empty()).then_some(("Mcp-Name", name)));
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.send("POST /mcp", &headers, &message.to_string()).await
    }

    /// Makes a tool call of the newer era, without progress.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask(tool, arguments, json!({})).await.result().await;
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    /// Makes the same call with additional `_meta`, and returns the unread reply.
    pub(crate) async fn ask(&self, tool: &str, arguments: Value, meta: Value) -> Reply {
        let headers = modern(tool);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.send("POST /mcp", &headers, &modern_call(tool, arguments, meta).to_string()).await
    }
}

pub(crate) const JSON: [(&str, &str); 2] =
    [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];

pub(crate) fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" }
    } })
}

/// Returns a tool call of the older era.
pub(crate) fn call(tool: &str, arguments: &Value, meta: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments, "_meta": meta } })
}

fn modern(tool: &str) -> Vec<(&'static str, String)> {
    let mut headers: Vec<_> = JSON.map(|(name, value)| (name, value.to_owned())).to_vec();
    headers.push(("MCP-Protocol-Version", "2026-07-28".to_owned()));
    headers.push(("Mcp-Method", "tools/call".to_owned()));
    headers.push(("Mcp-Name", tool.to_owned()));
    headers
}

fn modern_call(tool: &str, arguments: Value, mut meta: Value) -> Value {
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    call(tool, &arguments, &meta)
}

/// The head of an answer, and the part that is still unread.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The id of the last event that was read.
    pub(crate) last_event_id: Option<String>,
    input: BufReader<OwnedReadHalf>,
    /// Kept, so that the connection stays open as long as this does.
    _writing: tokio::task::JoinHandle<OwnedWriteHalf>,
}

impl Reply {
    async fn read(
        input: OwnedReadHalf,
        writing: tokio::task::JoinHandle<OwnedWriteHalf>,
    ) -> Option<Self> {
        let mut input = BufReader::new(input);
        let mut head = String::new();
        let reading = async {
            loop {
                match input.read_line(&mut head).await {
                    Ok(2) if head.ends_with("\r\n\r\n") => return true,
                    Ok(1..) => {}
                    _ => return false,
                }
            }
        };
        let whole = tokio::time::timeout(LIMIT, reading).await.expect("the server says something");
        if !whole {
            return None;
        }
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self { status, head, last_event_id: None, input, _writing: writing })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Returns the next piece of the body; `None` at its end.
    async fn piece(&mut self) -> Option<Vec<u8>> {
        let mut size = String::new();
        let read = tokio::time::timeout(LIMIT, self.input.read_line(&mut size)).await;
        read.expect("the server goes on").ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut piece = vec![0; size + 2];
        self.input.read_exact(&mut piece).await.ok()?;
        piece.truncate(size);
        (size > 0).then_some(piece)
    }

    /// Returns the next event of a stream unchanged.
    pub(crate) async fn text_event(&mut self) -> String {
        String::from_utf8(self.piece().await.expect("an event")).unwrap()
    }

    /// Returns the whole body.
    pub(crate) async fn body(mut self) -> String {
        let mut body = Vec::new();
        if let Some(length) = self.header("content-length") {
            body.resize(length.parse().unwrap(), 0);
            let read = tokio::time::timeout(LIMIT, self.input.read_exact(&mut body)).await;
            read.expect("the body ends").expect("a body");
        } else if self.header("transfer-encoding").is_some() {
            while let Some(piece) = self.piece().await {
                body.extend(piece);
            }
        }
        String::from_utf8(body).unwrap()
    }

    /// Returns the next message on a stream of events; `None` at its end.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        loop {
            let piece = String::from_utf8(self.piece().await?).unwrap();
            if let Some(id) = piece.lines().find_map(|line| line.strip_prefix("id: ")) {
                self.last_event_id = Some(id.to_owned());
            }
            let data = piece.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(message) = data.and_then(|data| serde_json::from_str(data).ok()) {
                return Some(message);
            }
        }
    }

    /// Returns the answer on a stream of events, and skips everything before it.
    pub(crate) async fn result(mut self) -> Value {
        assert_eq!(self.status, 200, "{}", self.head);
        loop {
            let message = self.event().await.expect("an answer");
            if message.get("id").is_some() {
                return message;
            }
        }
    }
}
