//! A real server as a child process. Tests write and read single lines, so that they see exactly the bytes on
//! the pipe.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

/// The maximum time of an answer in a test; a limit, never a pause.
const LIMIT: Duration = Duration::from_secs(60);

/// A server under test.
pub struct McpProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    errors: tokio::task::JoinHandle<()>,
    log: watch::Receiver<Vec<u8>>,
    next_id: u64,
    /// Every line read from standard output.
    pub seen: Vec<Value>,
}

impl McpProcess {
    /// Starts `program` with only PATH of this process's environment, and completes the handshake.
    pub async fn start<A: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut process = Self::spawn(program, arguments, environment);
        process.greet().await;
        process
    }

    /// Starts it without a handshake.
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
        let (sender, log) = watch::channel(Vec::new());
        let errors = tokio::spawn(async move {
            let mut piece = vec![0; 65_536];
            // The pipe breaks with the process; only the output before that counts.
            while let Ok(read @ 1..) = stderr.read(&mut piece).await {
                sender.send_modify(|text| text.extend_from_slice(&piece[..read]));
            }
        });
        Self { child, input, output, errors, log, next_id: 0, seen: Vec::new() }
    }

    /// Completes the handshake of the initialize era; returns its result.
    pub async fn greet(&mut self) -> Value {
        self.try_greet().await.expect("the server exited before the handshake")
    }

    /// Like [`McpProcess::greet`]; returns `None` if the server exited first.
    pub async fn try_greet(&mut self) -> Option<Value> {
        self.try_greet_as("testkit").await
    }

    /// Completes the handshake as this client.
    pub async fn greet_as(&mut self, client: &str) -> Value {
        self.try_greet_as(client).await.expect("the server exited before the handshake")
    }

    async fn try_greet_as(&mut self, client: &str) -> Option<Value> {
        let info = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": client, "version": "0" }
        });
        let call = self.send("initialize", info).await;
        let greeting = self.answer(call).await?;
        self.notify("notifications/initialized", json!({})).await;
        Some(greeting["result"].clone())
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the server has exited")
    }

    /// Sends a request and waits for its whole answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id)
            .await
            .unwrap_or_else(|| panic!("the server exited before it answered {method}"))
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

    /// Writes text verbatim.
    pub async fn write_raw(&mut self, text: &str) {
        self.write_bytes(text.as_bytes()).await;
    }

    /// Writes bytes verbatim; a server that has exited is not an error.
    pub async fn write_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is closed");
        drop(input.write_all(bytes).await);
        drop(input.flush().await);
    }

    /// Waits for the answer to a request; returns `None` if the server exited first.
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

    /// Returns the next line of standard output, or `None` at its end. Every line must be JSON-RPC.
    pub async fn message(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(LIMIT, self.output.next_line()).await;
        let line = line
            .expect("the server said nothing for a minute")
            .expect("read the server's output")?;
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!("standard output contains a line that is not JSON: {line:?}")
        });
        assert_eq!(
            message["jsonrpc"], "2.0",
            "standard output contains a line that is not JSON-RPC: {line}"
        );
        self.seen.push(message.clone());
        Some(message)
    }

    /// Calls a tool and returns its whole result.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer =
            self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert!(answer.get("error").is_none(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool with structured output; checks that the text has the same content.
    pub async fn structured(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().expect("a text block");
        let said: Value = serde_json::from_str(text).expect("the text is JSON");
        assert_eq!(said, result["structuredContent"], "text and structured content differ");
        assert!(text.starts_with("{\n  \""), "the text is indented by two: {text}");
        said
    }

    /// Sends SIGKILL.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("kill the server");
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        self::signal(self.pid(), signal);
    }

    /// Closes the server's input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// The standard error so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.log.borrow()).into_owned()
    }

    /// Waits until standard error contains this text.
    pub async fn logged(&self, text: &str) {
        let mut log = self.log.clone();
        let has = |log: &Vec<u8>| String::from_utf8_lossy(log).contains(text);
        let waited = tokio::time::timeout(LIMIT, log.wait_for(has)).await;
        let seen = waited.is_ok_and(|waited| waited.is_ok());
        assert!(seen, "the log never contained {text:?}: {}", self.log());
    }

    /// Waits for the exit; returns the exit status and standard error.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let status = tokio::time::timeout(LIMIT, self.child.wait()).await;
        let status =
            status.expect("the server did not exit within a minute").expect("wait for the server");
        self.errors.await.expect("read standard error");
        (status, String::from_utf8_lossy(&self.log.borrow()).into_owned())
    }
}

/// Sends a signal to a process; one that has exited is not an error.
pub fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => panic!("signal {pid}: {error}"),
    }
}
