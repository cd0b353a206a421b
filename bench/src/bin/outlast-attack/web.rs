//! HTTP as an attacker uses it: bytes on a socket.

use std::net::SocketAddr;
use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::target::Target;

pub(crate) const ANN: &str = "ann-0123456789abcdef0123";
pub(crate) const BOB: &str = "bob-0123456789abcdef0123";

/// The time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A listening server, with tokens for Ann and Bob.
pub(crate) struct Web {
    pub(crate) process: McpProcess,
    pub(crate) address: SocketAddr,
}

impl Web {
    /// Starts it; `descriptors` is the number of files that it may open.
    pub(crate) async fn serve(
        target: &mut Target,
        flags: &[&str],
        descriptors: Option<u32>,
    ) -> Self {
        target.set("OUTLAST_TOKENS", &format!("ann={ANN},bob={BOB}"));
        let binary = target.binary.to_str().unwrap().to_owned();
        let limit = descriptors.map_or("true".to_owned(), |limit| format!("ulimit -n {limit}"));
        let script = format!("{limit}; exec \"$0\" \"$@\"");
        let mut arguments = vec!["-c", &script, &binary, "serve", "--http", "127.0.0.1:0"];
        arguments.extend(flags);
        let process = target.spawn("/bin/sh", &arguments);
        process.logged("/mcp").await;
        let log = process.log();
        let (_, rest) = log.split_once("listening on http://").unwrap();
        let address = rest.split('/').next().unwrap().parse().unwrap();
        Self { process, address }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Returns a tool call of the stateless era, as bytes.
    pub(crate) fn tool_call(
        &self,
        token: &str,
        tool: &str,
        arguments: &Value,
        meta: Value,
    ) -> Vec<u8> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.request(token, "tools/call", tool, params, meta)
    }

    /// Returns any request of the stateless era, as bytes.
    pub(crate) fn request(
        &self,
        token: &str,
        method: &str,
        name: &str,
        mut params: Value,
        mut meta: Value,
    ) -> Vec<u8> {
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        if meta.get("io.modelcontextprotocol/clientCapabilities").is_none() {
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        params["_meta"] = meta;
        let body =
            json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
        let connection = if method == "tools/list" { "keep-alive" } else { "close" };
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: {connection}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .into_bytes()
    }

    /// Sends bytes and reads the whole answer; `None` if none arrives in time.
    pub(crate) async fn say(&self, bytes: &[u8]) -> Option<String> {
        let saying = async {
            let mut stream = TcpStream::connect(self.address).await.ok()?;
            stream.write_all(bytes).await.ok()?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.ok()?;
            Some(String::from_utf8_lossy(&answer).into_owned())
        };
        tokio::time::timeout(PATIENCE, saying).await.ok().flatten().filter(|it| !it.is_empty())
    }

    /// Calls a tool and returns the whole result; `Err` has the answer without a result.
    pub(crate) async fn call(
        &self,
        token: &str,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, String> {
        let answer = self.say(&self.tool_call(token, tool, arguments, json!({}))).await;
        let answer = answer.ok_or("no answer")?;
        result(&answer).ok_or(answer)
    }
}

/// Returns the JSON-RPC result in an answer, which may be a stream of events in chunks.
pub(crate) fn result(answer: &str) -> Option<Value> {
    let texts = answer.split('\n').map(|line| line.trim_start_matches("data: ").trim());
    texts
        .filter_map(|text| serde_json::from_str::<Value>(text).ok())
        .find_map(|message| message.get("result").cloned())
}
