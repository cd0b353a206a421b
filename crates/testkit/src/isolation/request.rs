//! Requests to a server: calls of the newer era, messages in sessions of the older one, and plain HTTP
//! requests.

use serde_json::{Value, json};

/// A request to be sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    line: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

const VERSION: &str = "2026-07-28";

impl Request {
    /// A tool call of the newer era.
    pub(super) fn tool(id: u64, tool: &str, arguments: Value) -> Self {
        Self::modern(id, "tools/call", tool, json!({ "name": tool, "arguments": arguments }))
    }

    /// A tool call by a client that supports tasks.
    pub(super) fn tool_as_task(id: u64, tool: &str, arguments: Value) -> Self {
        let mut params = json!({ "name": tool, "arguments": arguments });
        params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": tasks() });
        Self::modern(id, "tools/call", tool, params)
    }

    /// `tasks/get` and similar methods.
    pub(super) fn task(id: u64, method: &str, task: &str) -> Self {
        let mut params = json!({ "taskId": task });
        if method == "tasks/update" {
            params["inputResponses"] = json!({});
        }
        params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": tasks() });
        Self::modern(id, method, task, params)
    }

    /// Reads a resource.
    pub(super) fn resource(id: u64, uri: &str) -> Self {
        Self::modern(id, "resources/read", uri, json!({ "uri": uri }))
    }

    /// Lists resources, from a cursor.
    pub(super) fn resources(id: u64, cursor: Option<&str>) -> Self {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        Self::modern(id, "resources/list", "", params)
    }

    /// Adds a progress token.
    pub(super) fn with_progress(mut self, token: u64) -> Self {
        let mut message: Value = serde_json::from_str(&self.body).unwrap();
        message["params"]["_meta"]["progressToken"] = json!(token);
        self.body = message.to_string();
        self
    }

    fn modern(id: u64, method: &str, name: &str, mut params: Value) -> Self {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!(VERSION);
        if meta.get("io.modelcontextprotocol/clientCapabilities").is_none() {
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut request = Self::post(&message);
        request.headers.extend([
            ("MCP-Protocol-Version", VERSION.to_owned()),
            ("Mcp-Method", method.to_owned()),
        ]);
        if !name.is_empty() {
            request.headers.push(("Mcp-Name", name.to_owned()));
        }
        request
    }

    /// A message in a session of the older era.
    pub(super) fn in_session(session: &str, message: &Value) -> Self {
        let mut request = Self::post(message);
        request.headers.push(("Mcp-Session-Id", session.to_owned()));
        request
    }

    /// A message outside any session.
    pub(super) fn post(message: &Value) -> Self {
        let headers = [
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
        ];
        Self { line: "POST /mcp".to_owned(), headers: headers.to_vec(), body: message.to_string() }
    }

    /// Ends a session.
    pub(super) fn delete(session: &str) -> Self {
        let headers = vec![("Mcp-Session-Id", session.to_owned())];
        Self { line: "DELETE /mcp".to_owned(), headers, body: String::new() }
    }

    /// Requests a page.
    pub(super) fn get(path: &str) -> Self {
        Self { line: format!("GET {path}"), headers: Vec::new(), body: String::new() }
    }

    /// Returns true if the request contains these words.
    pub(super) fn says(&self, words: &str) -> bool {
        self.body.contains(words) || self.headers.iter().any(|(_, value)| value.contains(words))
    }

    pub(super) fn bytes(&self, host: &str, token: &str) -> Vec<u8> {
        let mut text =
            format!("{} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n", self.line);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        text.push_str("\r\n");
        text.push_str(&self.body);
        text.into_bytes()
    }
}

fn tasks() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}
