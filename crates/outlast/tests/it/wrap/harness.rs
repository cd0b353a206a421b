//! A client of a wrapped server, line by line.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::{binary, eventually};

/// The time limit of every wait.
const LIMIT: Duration = Duration::from_secs(60);

/// A data directory that outlives any number of fronts. Ends all processes that were started in it.
pub(super) struct Wrapping {
    pub(super) folder: TempDir,
    environment: Vec<(String, String)>,
    flags: Vec<String>,
}

impl Wrapping {
    pub(super) fn new() -> Self {
        Self::below(".tmp")
    }

    /// Creates it below a folder with this prefix.
    pub(super) fn below(name: &str) -> Self {
        let folder = tempfile::Builder::new().prefix(name).tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let environment = vec![
            ("HOME".to_owned(), path("home")),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("OUTLAST_DATA_DIR".to_owned(), path("data")),
            ("WRAPPED_LOG".to_owned(), path("log")),
        ];
        Self { folder, environment, flags: Vec::new() }
    }

    pub(super) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn flags(mut self, flags: &[&str]) -> Self {
        self.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        self
    }

    /// Adds a configuration file with this text.
    pub(super) fn configured(self, text: &str) -> Self {
        let file = self.path("outlast.toml");
        std::fs::write(&file, text).unwrap();
        let mut this = self;
        this.flags.extend(["--config".to_owned(), file.to_str().unwrap().to_owned()]);
        this
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the lines that the server wrote into one of its logs.
    pub(super) fn log(&self, suffix: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(&format!("log{suffix}"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Releases a call that waits for this file.
    pub(super) fn release(&self, name: &str) {
        std::fs::write(self.path(name), "").unwrap();
    }

    fn command(&self, program: &Path, arguments: &[String]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    fn wrap(&self, server: &[&str]) -> Command {
        let mut arguments = vec!["wrap".to_owned()];
        arguments.extend(self.flags.iter().cloned());
        arguments.push("--".to_owned());
        arguments.extend(server.iter().map(|part| (*part).to_owned()));
        self.command(binary(), &arguments)
    }

    /// Starts the server behind wrap.
    pub(super) fn spawn(&self) -> Wrapped {
        Wrapped::new(self.wrap(&["python3", &script()]))
    }

    /// Starts any other program behind wrap.
    pub(super) fn spawn_program(&self, program: &[&str]) -> Wrapped {
        Wrapped::new(self.wrap(program))
    }

    /// Starts a server at an address behind wrap, and returns that server's own process too.
    pub(super) async fn spawn_web(&self, flags: &[&str]) -> (Wrapped, Wrapped) {
        let script = format!("{}/tests/it/wrap/web_server.py", env!("CARGO_MANIFEST_DIR"));
        let mut server = Wrapped::new(self.command(Path::new("python3"), &[script]));
        let url = format!("http://127.0.0.1:{}/mcp", server.next().await.trim());
        (self.spawn_at(&url, flags), server)
    }

    /// Starts wrap before any server at this address.
    pub(super) fn spawn_at(&self, url: &str, flags: &[&str]) -> Wrapped {
        let mut arguments = vec!["wrap".to_owned(), "--url-env".to_owned(), "URL".to_owned()];
        arguments.extend(self.flags.iter().cloned());
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let mut command = self.command(binary(), &arguments);
        command.env("URL", url);
        Wrapped::new(command)
    }

    /// Starts a host process whose front was killed before its first frame.
    pub(super) fn spawn_host_of_killed_front(&self) -> Child {
        let (host, front) = std::os::unix::net::UnixStream::pair().unwrap();
        let arguments = ["wrap", "--keeper", "--", "cat"].map(str::to_owned);
        let mut command = self.command(binary(), &arguments);
        let spawned = command.stdin(Stdio::from(std::os::fd::OwnedFd::from(host))).spawn();
        drop(front);
        spawned.unwrap()
    }

    /// Starts the server itself.
    pub(super) fn bare(&self) -> Wrapped {
        Wrapped::new(self.command(Path::new("python3"), &[script()]))
    }

    /// Starts the server behind wrap, and greets it.
    pub(super) async fn start(&self) -> Wrapped {
        let mut wrapped = self.spawn();
        wrapped.greet().await;
        wrapped
    }

    /// Runs `outlast ...` to its end, and returns its output.
    pub(super) async fn run(&self, arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let output =
            self.command(binary(), &arguments).stdin(Stdio::null()).output().await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `outlast ...` to its end, and returns what it printed on both outputs.
    pub(super) async fn run_with_stderr(&self, arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let output =
            self.command(binary(), &arguments).stdin(Stdio::null()).output().await.unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// Returns the processes that were started in this environment, with their commands.
    pub(super) fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("OUTLAST_DATA_DIR={}", self.path("data").display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let is_ours = environment.split(|byte| *byte == 0).any(|it| it == mark.as_bytes());
            if is_ours {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        found
    }

    pub(super) fn host_processes(&self) -> Vec<i32> {
        let all = self.processes().into_iter();
        all.filter(|(_, line)| line.contains("--keeper")).map(|(pid, _)| pid).collect()
    }

    pub(super) fn servers(&self) -> Vec<i32> {
        let is_server = |line: &str| line.starts_with("python3") && line.contains("server.py");
        let all = self.processes().into_iter();
        all.filter(|(_, line)| is_server(line)).map(|(pid, _)| pid).collect()
    }

    /// Waits until nothing is left: no process and no socket.
    pub(super) async fn is_over(&self) {
        eventually("no process is left", || self.processes().is_empty()).await;
        assert_eq!(self.left("sock"), 0, "sockets are left");
    }

    /// Returns the number of files with this ending that host processes have.
    pub(super) fn left(&self, ending: &str) -> usize {
        let files = std::fs::read_dir(self.path("data/wrap")).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|it| it == ending)).count()
    }
}

impl Drop for Wrapping {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            kill(pid);
        }
    }
}

/// Kills a process with SIGKILL.
pub(super) fn kill(pid: i32) {
    signal(pid, rustix::process::Signal::KILL);
}

pub(super) fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, signal);
}

fn script() -> String {
    format!("{}/tests/it/wrap/server.py", env!("CARGO_MANIFEST_DIR"))
}

/// A client's end of a process.
pub(super) struct Wrapped {
    pub(super) process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl Wrapped {
    fn new(mut command: Command) -> Self {
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        Self { process, input, output: BufReader::new(output), next_id: 100 }
    }

    pub(super) async fn greet(&mut self) -> Value {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let greeted = self.ask("initialize", params).await;
        self.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        greeted
    }

    pub(super) async fn bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).await.unwrap();
        input.flush().await.unwrap();
    }

    pub(super) async fn line(&mut self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes()).await;
    }

    /// Sends a line to a process that may be gone, or may no longer read. Returns true if the line was read.
    pub(super) async fn try_line(&mut self, line: &str) -> bool {
        let Some(input) = &mut self.input else { return false };
        let line = format!("{line}\n");
        let written =
            tokio::time::timeout(Duration::from_secs(5), input.write_all(line.as_bytes()));
        matches!(written.await, Ok(Ok(())))
    }

    /// Reads the next line of a process that may be gone.
    pub(super) async fn try_next(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        drop(self.output.read_until(b'\n', &mut line).await);
        line
    }

    /// Reads the next line unchanged.
    pub(super) async fn next(&mut self) -> String {
        let mut line = Vec::new();
        let read = self.output.read_until(b'\n', &mut line);
        tokio::time::timeout(LIMIT, read).await.expect("a line comes").unwrap();
        assert!(!line.is_empty(), "the output has ended");
        String::from_utf8_lossy(&line).into_owned()
    }

    pub(super) async fn message(&mut self) -> Value {
        let line = self.next().await;
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    /// Sends a request and returns its id.
    pub(super) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.line(&request.to_string()).await;
        id
    }

    /// Returns the answer to it; skips the lines before it.
    pub(super) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    pub(super) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", call(name, arguments)).await
    }

    /// Calls a tool, expects a hand-off and returns the job's id.
    pub(super) async fn handed_off(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.call(name, arguments).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(text(&answer).contains("still running"), "{answer}");
        answer["result"]["_meta"]["outlast/jobId"].as_str().unwrap().to_owned()
    }

    /// Closes the input, reads all output, and returns it with the exit code.
    pub(super) async fn finish(mut self) -> (Vec<u8>, Option<i32>) {
        drop(self.input.take());
        self.rest().await
    }

    pub(super) async fn rest(&mut self) -> (Vec<u8>, Option<i32>) {
        let mut rest = Vec::new();
        let ended = async {
            self.output.read_to_end(&mut rest).await.unwrap();
            self.process.wait().await.unwrap()
        };
        let status = tokio::time::timeout(LIMIT, ended).await.expect("it ends");
        (rest, status.code())
    }

    pub(super) fn pid(&self) -> i32 {
        self.process.id().unwrap().try_into().unwrap()
    }

    pub(super) async fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
        text
    }

    /// Reads standard error to its end, and discards it.
    pub(super) fn drain_stderr(&mut self) {
        let mut stderr = self.process.stderr.take().unwrap();
        tokio::spawn(async move { tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await });
    }

    /// Kills the client: both ends of its pipe close, and the front gets no other notice.
    pub(super) fn lose_client(self) -> Child {
        self.process
    }

    /// Kills the client and its front with it.
    pub(super) async fn kill(mut self) {
        self.process.start_kill().unwrap();
        self.process.wait().await.unwrap();
    }
}

pub(super) fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

/// Returns the text of an answer.
pub(super) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}
