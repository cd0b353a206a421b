//! The front: the process on the client's pipe. It passes bytes between the client and a host process. It finds or starts
//! that host process and outlives it: when a host process is killed, the front reports to the client what is known and
//! starts a new one.

mod pipes;
mod standard;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::call::{CallClient, failure_answer};
use crate::frame::{Hello, ToFront, ToHost};
use crate::host::{HostIdentity, until};
use crate::line::MAX_LINE_TEXT;
use crate::message::{Message, MessageKind, id_key, response};
use crate::paths;
use crate::session::{ClientSession, greeting};
use crate::settings::WrapSettings;
use pipes::{ClientLine, FrontEvent, Link, Stdout};

/// The time that a client that sent a signal waits for the server to end.
const SIGNAL_GRACE: Duration = Duration::from_secs(2);
/// The time within which a host process must accept or refuse a front.
const WELCOME_WAIT: Duration = Duration::from_secs(5);
/// The number of host processes that may be killed before the front gives up.
const MAX_HOST_STARTS: u32 = 5;

/// The parts of a front.
pub struct FrontOptions {
    /// The settings.
    pub settings: WrapSettings,
    /// Identifies the host processes that this front may use.
    pub identity: HostIdentity,
    /// The folder that holds their sockets.
    pub data_dir: PathBuf,
    /// This program, to be started as a host process.
    pub program: PathBuf,
    /// The arguments of every host process.
    pub arguments: Vec<OsString>,
    /// Additional arguments of the first host process.
    pub first_arguments: Vec<OsString>,
    /// Opens the log of host processes.
    pub open_log: Box<dyn Fn() -> io::Result<std::fs::File> + Send + Sync>,
}

/// A request that the client waits for.
struct PendingRequest {
    line: Vec<u8>,
    /// Set for a tool call, which is never sent twice.
    call: Option<CallClient>,
}

struct Front {
    options: FrontOptions,
    /// The name of this front for host processes.
    token: String,
    session: ClientSession,
    waiting: BTreeMap<String, PendingRequest>,
    result_tool: Option<String>,
    has_ended: bool,
    /// True if this front has had a host process before.
    had_host: bool,
    leave_at: Option<Instant>,
    link: Option<Link>,
    stdout: Stdout,
    happened: mpsc::UnboundedSender<FrontEvent>,
}

/// Runs a front until the client or the server is gone; returns the exit code.
pub async fn run(options: FrontOptions) -> io::Result<i32> {
    let (sends, mut happened) = mpsc::unbounded_channel();
    let input = pipes::read_stdin();
    let front = Front {
        options,
        token: uuid::Uuid::new_v4().simple().to_string(),
        session: ClientSession::default(),
        waiting: BTreeMap::new(),
        result_tool: None,
        has_ended: false,
        had_host: false,
        leave_at: None,
        link: None,
        stdout: Stdout::default(),
        happened: sends,
    };
    front.run(input, &mut happened).await
}

impl Front {
    async fn run(
        mut self,
        mut input: pipes::Input,
        happened: &mut mpsc::UnboundedReceiver<FrontEvent>,
    ) -> io::Result<i32> {
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ];
        let (tells, mut signals) = mpsc::unbounded_channel();
        for kind in kinds {
            let (mut listener, tells) = (signal(kind)?, tells.clone());
            outlast_engine::spawn(async move {
                while listener.recv().await.is_some() {
                    let _ = tells.send(kind.as_raw_value());
                }
            });
        }
        let mut first = None;
        let waiting =
            paths::files(&self.options.data_dir, &format!("{}.", self.options.identity.0), ".sock");
        if !waiting.is_empty() {
            // A host process may be waiting for this very client; the client's greeting shows it.
            first = Some(input.recv().await);
            let line = match &first {
                Some(Some(ClientLine::Whole(line))) => Some(&**line),
                _ => None,
            };
            self.adopt(waiting, line).await;
        }
        if self.link.is_none() {
            self.start_host().await?;
        }
        if let Some(line) = first {
            self.client_input(line).await?;
        }
        let mut starts = 1;
        loop {
            let backlog = self.link.as_ref().map(|link| link.backlog.clone()).unwrap_or_default();
            // In this state the end of the input is not read.
            let is_unread = self.has_ended || backlog.is_full();
            let next_line = async {
                backlog.room().await;
                input.recv().await
            };
            tokio::select! {
                line = next_line, if !self.has_ended => self.client_input(line).await?,
                Some(signal) = signals.recv() => {
                    if self.leave_at.is_some() {
                        return Ok(0);
                    }
                    self.handle_signal(signal);
                }
                event = happened.recv() => match event {
                    Some(FrontEvent::Exit(code)) => return Ok(code),
                    Some(FrontEvent::ClientGone) | None => return Ok(0),
                    Some(FrontEvent::Done(id)) => drop(self.waiting.remove(&id)),
                    Some(FrontEvent::ResultTool(name)) => self.result_tool = Some(name),
                    Some(FrontEvent::HostGone) => {
                        starts += 1;
                        if self.leave_at.is_some() || !self.lose_calls().await {
                            return Ok(0);
                        }
                        if starts > MAX_HOST_STARTS {
                            return Err(io::Error::other("the process that keeps the server was killed again and again"));
                        }
                        self.start_host().await?;
                        self.send_again();
                    }
                },
                () = until(self.leave_at) => return Ok(0),
                // Only after this may the next front get this host process, and with it the calls under way.
                () = pipes::client_gone(), if is_unread => return Ok(0),
            }
        }
    }

    /// Asks the running host processes, one after the other, to accept this front.
    async fn adopt(&mut self, sockets: Vec<PathBuf>, line: Option<&[u8]>) {
        let message = line.and_then(Message::read);
        let greeting = message.as_ref().and_then(greeting);
        if greeting.is_none() {
            return;
        }
        for socket in sockets {
            let Some(mut stream) = paths::connect(&socket).await else { continue };
            let hello = Hello { greeting: greeting.clone(), ..self.hello() };
            if ToHost::Hello(Box::new(hello)).write(&mut stream).await.is_err() {
                continue;
            }
            let welcome = tokio::time::timeout(WELCOME_WAIT, ToFront::read(&mut stream)).await;
            if matches!(welcome, Ok(Ok(Some(ToFront::Welcome)))) {
                self.had_host = true;
                self.link = Some(Link::new(stream, self.stdout.clone(), self.happened.clone()));
                return;
            }
        }
    }

    fn hello(&self) -> Hello {
        Hello {
            settings: self.options.settings.clone(),
            greeting: None,
            front: self.token.clone(),
            replay: Vec::new(),
            had_host: false,
            result_tool: self.result_tool.clone(),
        }
    }

    /// Starts a host process at the other end of a socket pair.
    async fn start_host(&mut self) -> io::Result<()> {
        use std::os::unix::process::CommandExt as _;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let log = (self.options.open_log)()?;
        let mut arguments = self.options.arguments.clone();
        arguments.splice(1..1, self.options.first_arguments.drain(..));
        let mut host = Command::new(&self.options.program)
            .arg0("outlast")
            // Makes the child close the descriptors that the client left open, before its main, as a process in its own
            // session that is not a child of this one (`outlast_sys::leave_starter`).
            .env("OUTLAST_STARTED_DETACHED", "1")
            .args(arguments)
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        // Its first process exits at once; the host process is not a child of this process.
        std::thread::spawn(move || drop(host.wait()));
        ours.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(ours)?;
        let mut hello = Hello { had_host: self.had_host, ..self.hello() };
        self.had_host = true;
        let greets =
            |waiting: &PendingRequest| Some(&waiting.line) == self.session.initialize.as_ref();
        if !self.waiting.values().any(greets) {
            hello.replay = self.session.replay();
        }
        // Fails only when the host process is already gone, which the link's reader reports.
        drop(ToHost::Hello(Box::new(hello)).write(&mut stream).await);
        self.link = Some(Link::new(stream, self.stdout.clone(), self.happened.clone()));
        Ok(())
    }

    async fn client_input(&mut self, line: Option<ClientLine>) -> io::Result<()> {
        match line {
            Some(ClientLine::Whole(line)) => self.client_line(line),
            Some(ClientLine::TooLong(id)) => {
                // Not awaited: the client may not be reading at the moment.
                outlast_engine::spawn(refuse_line(self.stdout.clone(), id));
            }
            Some(ClientLine::Endless) => {
                refuse_line(self.stdout.clone(), None).await;
                return Err(io::Error::other("the client sends a line that does not end"));
            }
            None => {
                self.has_ended = true;
                self.send(ToHost::End);
            }
        }
        Ok(())
    }

    fn client_line(&mut self, line: Vec<u8>) {
        let message = line.ends_with(b"\n").then(|| Message::read(&line)).flatten();
        if let Some(message) = message {
            self.session.observe(&line, &message);
            if let MessageKind::Request { id, method } = message.kind() {
                let call = (method == "tools/call").then(|| CallClient::new(&message.params(), id));
                let kept = if call.is_some() { Vec::new() } else { line.clone() };
                self.waiting.insert(id_key(id), PendingRequest { line: kept, call });
            }
        }
        self.send(ToHost::Line(line));
    }

    fn send(&self, message: ToHost) {
        if let Some(link) = &self.link {
            link.send(message);
        }
    }

    fn handle_signal(&mut self, signal: i32) {
        let ends = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].map(Signal::as_raw);
        if ends.contains(&signal) {
            self.leave_at = Some(Instant::now() + SIGNAL_GRACE);
        }
        self.send(ToHost::Signal(signal));
    }

    /// Answers the lost calls after the host process was killed: the requests that it had sent may or may not have
    /// happened. Returns false if the client is gone.
    async fn lose_calls(&mut self) -> bool {
        self.link = None;
        let lost = self.waiting.extract_if(.., |_, waiting| waiting.call.is_some());
        let lost: Vec<CallClient> = lost.filter_map(|(_, waiting)| waiting.call).collect();
        for caller in lost {
            let why = "the process that kept the server was killed before it answered";
            let answer = failure_answer(&caller, why);
            if self.stdout.write(&answer).await.is_err() {
                return false;
            }
        }
        !(self.has_ended && self.waiting.is_empty())
    }

    /// Sends the requests again that are not calls.
    fn send_again(&mut self) {
        for waiting in self.waiting.values() {
            self.send(ToHost::Line(waiting.line.clone()));
        }
        if self.has_ended {
            self.send(ToHost::End);
        }
    }
}

/// Answers a line of the client that is too long to relay.
async fn refuse_line(stdout: Stdout, id: Option<String>) {
    let message =
        format!("the message is longer than {MAX_LINE_TEXT} and was not sent to the server");
    let error = serde_json::json!({ "code": -32600, "message": message }).to_string();
    let id = id.as_deref().unwrap_or("null");
    // Both fail only when the client is gone, which is noticed elsewhere.
    drop(stdout.write(&response(id, "error", &error)).await);
    let text = format!("outlast wrap: {message}\n");
    drop(tokio::io::stderr().write_all(text.as_bytes()).await);
}
