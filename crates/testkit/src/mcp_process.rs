//! A real server as a child process, spoken to line by line, so that tests see exactly what is on the pipe.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// No answer takes longer in a test; a limit, never a pause.
const LIMIT: Duration = Duration::from_secs(60);

/// A server under test.
pub struct McpProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    errors: tokio::task::JoinHandle<String>,
    next_id: u64,
    /// Every line seen on standard output.
    pub seen: Vec<Value>,
}

impl McpProcess {
    /// Starts `program` with nothing of this process's environment but PATH, and greets it.
    pub async fn start<A: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut process = Self::spawn(program, arguments, environment);
        process.greet().await;
        process
    }

    /// Starts it without a greeting.
    pub fn spawn<A: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("start the server");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut stderr = child.stderr.take().expect("piped");
        let errors = tokio::spawn(async move {
            let mut text = Vec::new();
            // The pipe breaks with the process; what came before is what counts.
            drop(stderr.read_to_end(&mut text).await);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self { child, input, output, errors, next_id: 0, seen: Vec::new() }
    }

    /// The greeting of the initialize era; returns its result.
    pub async fn greet(&mut self) -> Value {
        self.try_greet().await.expect("the server ended before it was greeted")
    }

    /// The same; `None` when the server ended first.
    pub async fn try_greet(&mut self) -> Option<Value> {
        let info = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "testkit", "version": "0" }
        });
        let call = self.send("initialize", info).await;
        let greeting = self.answer(call).await?;
        self.notify("notifications/initialized", json!({})).await;
        Some(greeting["result"].clone())
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the server has ended")
    }

    /// Sends a request and waits for its answer, whole.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id)
            .await
            .unwrap_or_else(|| panic!("the server ended before it answered {method}"))
    }

    /// Sends a request and returns its id without waiting.
    pub async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    async fn write(&mut self, message: &Value) {
        self.write_raw(&format!("{message}\n")).await;
    }

    /// Writes bytes as they are; a server that has died already is not an error here.
    pub async fn write_raw(&mut self, text: &str) {
        let input = self.input.as_mut().expect("the input is closed");
        drop(input.write_all(text.as_bytes()).await);
        drop(input.flush().await);
    }

    /// Waits for the answer to a request; `None` when the server ended first.
    pub async fn answer(&mut self, id: u64) -> Option<Value> {
        if let Some(seen) = self.seen.iter().find(|message| message["id"] == id) {
            return Some(seen.clone());
        }
        while let Some(message) = self.message().await {
            if message["id"] == id {
                return Some(message);
            }
        }
        None
    }

    /// The next line on standard output; `None` at its end. Every line must be JSON-RPC.
    pub async fn message(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(LIMIT, self.output.next_line()).await;
        let line = line
            .expect("the server said nothing for a minute")
            .expect("read the server's output")?;
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!("standard output carries something that is not JSON: {line:?}")
        });
        assert_eq!(
            message["jsonrpc"], "2.0",
            "standard output carries something that is not JSON-RPC: {line}"
        );
        self.seen.push(message.clone());
        Some(message)
    }

    /// Calls a tool and returns its result, whole.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer =
            self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert!(answer.get("error").is_none(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that answers in its own shape; checks that the text says the same.
    pub async fn structured(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().expect("a text block");
        let said: Value = serde_json::from_str(text).expect("the text is JSON");
        assert_eq!(said, result["structuredContent"], "text and structured content differ");
        assert!(text.starts_with("{\n  \""), "the text is indented by two: {text}");
        said
    }

    /// SIGKILL.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("kill the server");
    }

    /// A signal.
    pub fn signal(&self, signal: Signal) {
        self::signal(self.pid(), signal);
    }

    /// Closes the server's input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the end; returns how it ended and what it wrote to standard error.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let status = tokio::time::timeout(LIMIT, self.child.wait()).await;
        let status =
            status.expect("the server did not end within a minute").expect("wait for the server");
        (status, self.errors.await.expect("read standard error"))
    }
}

/// Sends a signal to a process; one that has ended already is not an error.
pub fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => panic!("signal {pid}: {error}"),
    }
}
