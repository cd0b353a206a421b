//! The host process: a separate process that owns the wrapped server and the calls under way. One front at a time is
//! attached to it. When that front leaves, the calls continue, and an equal client finds them again (H7).

mod fronts;
mod ending;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_client::Endpoint;
use outlast_core::{JobId, StopOutcome};
use sha2::{Digest as _, Sha256};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::call::Call;
use crate::frame::{Frame as _, Hello, ToFront, ToHost};
use crate::journal::{self, Journal, LeftJournal, UndeliveredCall};
use crate::line::MAX_LINE_TEXT;
use crate::message::Message;
use crate::paths;
use crate::result_tool::ResultTool;
use crate::rows::{CallRows, CancelledJob, Row, Rows, WrappedJobState};
use crate::server::{Backlog, ServerProcess};
use crate::session::ClientSession;
use crate::settings::WrapSettings;
use crate::tool_changes::{self, ToolDigests};
use fronts::FrontLink;

/// The parts of a host process.
pub struct HostOptions {
    /// The server.
    pub command: ServerCommand,
    /// The identity by which fronts find it.
    pub identity: HostIdentity,
    /// The identity of the server, independent of the environment: command or address, and folder.
    pub server: HostIdentity,
    /// The folder of its socket.
    pub data_dir: PathBuf,
    /// The store of the calls.
    pub rows: Arc<dyn CallRows>,
    /// The time after the last end of a call that a host process without a client waits for the client to come back. A
    /// question of the server waits for a client this long before it is answered with `cancel`.
    pub idle: Duration,
    /// The time that a server may take to answer the remaining calls after its last client has left.
    pub give_up: Duration,
}

/// The wrapped server's program.
#[derive(Clone)]
pub struct ServerCommand {
    /// The server's address, if it is not a program.
    pub endpoint: Option<Endpoint>,
    /// The program, by name or path.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Makes a guard watch the process group of this leader, so that the group ends with the host process.
    pub watch: Arc<dyn Fn(u32) + Send + Sync>,
    /// Reports that the group has ended.
    pub release: Arc<dyn Fn(u32) + Send + Sync>,
}

/// The digest of command, folder and environment, which a host process and a front must share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostIdentity(pub(crate) String);

impl HostIdentity {
    /// Computes the identity of these parts.
    pub fn from_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// An event that a host process handles.
pub(crate) enum HostEvent {
    /// Counted in [`Host::to_server`] until it is handled.
    FromFront(u64, ToHost),
    FrontGone(u64),
    NewFront(UnixStream, Box<Hello>),
    /// The calls that other host processes left, before the first line of this front.
    TookOver(u64, Vec<LeftJournal>),
    /// Counted in [`Host::to_client`] until it is handled.
    ServerLine(u64, Vec<u8>),
    /// A line longer than [`crate::line::MAX_LINE`]; nothing more is read from that server.
    ServerLineTooLong(u64),
    /// The server is running but can no longer receive or send anything: it is being ended.
    ServerClosedPipe(u64, &'static str),
    ServerStderr(Vec<u8>),
    ServerExited(u64, i32),
    /// A server at an address has forgotten the session.
    SessionLost(u64),
    RowMade(u64, Result<Row, String>),
    /// The result of the `get_result` lookup in the store, for the caller that asked.
    Found(crate::result_tool::ResultCall, Result<WrappedJobState, String>),
}

impl HostEvent {
    /// Returns the bytes that count as waiting until the event is handled: from the server, and from the client.
    fn waiting_bytes(&self) -> (usize, usize) {
        match self {
            Self::ServerLine(_, line) => (line.len(), 0),
            Self::FromFront(_, message) => (0, message.size()),
            _ => (0, 0),
        }
    }
}

/// A request of the server that waits for a client's answer.
#[derive(Debug)]
pub(crate) struct Question {
    /// The line as the client gets it.
    pub(crate) line: Vec<u8>,
    /// The server's id.
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) since: Instant,
}

impl Question {
    /// Returns the time when the server gets an answer although no client is connected; `None` for a question that its
    /// user must answer.
    pub(crate) fn answer_by(&self, idle: Duration) -> Option<Instant> {
        (self.method != "elicitation/create").then(|| self.since + idle)
    }
}

/// A request of the client, other than a call, without an answer.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The client's id.
    pub(crate) id: String,
}

/// The stop of a call whose job was cancelled.
#[derive(Debug)]
pub(crate) struct CallStop {
    pub(crate) job: JobId,
    /// Set when the server has answered the call, or has never received it.
    pub(crate) outcome: Option<StopOutcome>,
    /// Receives the outcome.
    pub(crate) asker: Option<oneshot::Sender<StopOutcome>>,
}

/// The state of the greeting of the current server.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    /// The id of the repeated greeting.
    pub(crate) greeting_id: String,
    /// The lines that wait until it is answered.
    pub(crate) waiting: Vec<Vec<u8>>,
}

impl Handshake {
    /// Removes a request that was not sent yet. Returns false if it was sent.
    pub(crate) fn take_back(&mut self, id: &str) -> bool {
        let has_id = |line: &Vec<u8>| {
            Message::read(line).and_then(|message| message.id).is_some_and(|it| it.get() == id)
        };
        let before = self.waiting.len();
        self.waiting.retain(|line| !has_id(line));
        self.waiting.len() < before
    }
}

/// The state of a host process; it handles one event at a time.
pub(crate) struct Host {
    pub(crate) command: ServerCommand,
    pub(crate) settings: WrapSettings,
    pub(crate) idle: Duration,
    pub(crate) give_up: Duration,
    /// The time at which the last client left, if none is attached.
    pub(crate) left_at: Option<Instant>,
    pub(crate) events: mpsc::Sender<HostEvent>,
    pub(crate) rows: Rows,

    pub(crate) front: Option<FrontLink>,
    pub(crate) fronts: u64,
    /// The bytes that wait for the client; the same counter for every front.
    pub(crate) to_client: Arc<Backlog>,
    /// The bytes that wait for the server; the same counter for every server.
    pub(crate) to_server: Arc<Backlog>,

    pub(crate) server: Option<ServerProcess>,
    pub(crate) servers: u64,
    pub(crate) handshake: Option<Handshake>,
    /// The ids of outlast's requests, whose answers no client gets.
    pub(crate) own_requests: HashSet<String>,
    /// The time of the next, stricter step against a server whose input is closed.
    pub(crate) insist_at: Option<Instant>,
    pub(crate) insisted: u32,

    pub(crate) session: ClientSession,
    /// The server's answer to the greeting.
    pub(crate) greeted: Option<Vec<u8>>,
    /// True if the client's greeting is answered with [`Host::greeted`].
    pub(crate) is_adopted: bool,

    pub(crate) calls: BTreeMap<u64, Call>,
    /// The calls that the server was asked to stop.
    pub(crate) stops: BTreeMap<u64, CallStop>,
    /// The calls that no client has received, of this host process and of earlier ones.
    pub(crate) journal: Journal,
    pub(crate) data_dir: PathBuf,
    pub(crate) identity: HostIdentity,
    /// The last number of a call, or of another request with one of our ids.
    pub(crate) last_call: u64,
    /// Calls that earlier host processes left and that are being looked up in the store, each with the front and the
    /// request that asked.
    pub(crate) looked_up: HashMap<u64, (u64, String)>,
    pub(crate) last_end: Instant,
    /// True if the server's last output was half a line.
    pub(crate) is_half_a_line: bool,
    /// The client's other unanswered requests, by the id that the server has.
    pub(crate) outstanding: HashMap<String, Request>,
    /// The client's progress tokens of requests with one of our ids, by the number in that id.
    pub(crate) tokens: HashMap<u64, String>,
    /// The client's last input, if it is not a whole line.
    pub(crate) last_words: Option<Vec<u8>>,
    /// The open questions of the server, by the id that the client has.
    pub(crate) questions: BTreeMap<String, Question>,
    /// True if questions get our ids, because the client may still answer those of an earlier server.
    pub(crate) renames_questions: bool,
    /// The first part of those ids; a number follows.
    pub(crate) question_mark: String,
    pub(crate) last_question: u64,
    pub(crate) result_tool: ResultTool,
    pub(crate) tools: ToolDigests,
}

/// Runs a host process whose first front is at the other end of standard input.
pub async fn run(options: HostOptions) -> io::Result<()> {
    // A front that was killed before its first frame leaves nothing to do. No other front is accepted before the first
    // one.
    let Some((first, hello)) = fronts::hear(first_front()?).await else { return Ok(()) };
    let HostOptions { command, identity, server, data_dir, rows, idle, give_up } = options;
    paths::sweep(&data_dir);
    let (listener, socket) = paths::bind(&data_dir, &identity.0)?;
    let (events, happened) = mpsc::channel(256);
    let (cancels, cancelled) = mpsc::unbounded_channel();
    let accepting = outlast_engine::spawn(fronts::accept(listener, events.clone()));
    journal::sweep(&data_dir);
    tool_changes::sweep(&data_dir);
    let tools = ToolDigests::new(&data_dir, &server.0);
    let journal = Journal::open(&socket);
    let place = (data_dir, identity);
    let rows = Rows::new(rows, cancels);
    let mut host = Host::new(command, [idle, give_up], events, rows, journal, place, tools);
    host.new_front(first, hello);
    let done = host.work(happened, cancelled).await;
    accepting.abort();
    drop(std::fs::remove_file(&socket));
    host.end_server().await;
    host.rows.close().await;
    host.journal.close();
    done
}

/// Takes standard input as a socket and replaces it with `/dev/null`.
fn first_front() -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

impl Host {
    fn new(
        command: ServerCommand,
        [idle, give_up]: [Duration; 2],
        events: mpsc::Sender<HostEvent>,
        rows: Rows,
        journal: Journal,
        (data_dir, identity): (PathBuf, HostIdentity),
        tools: ToolDigests,
    ) -> Self {
        Self {
            command,
            settings: WrapSettings::default(),
            idle,
            give_up,
            left_at: None,
            events,
            rows,
            front: None,
            fronts: 0,
            to_client: Arc::default(),
            to_server: Arc::default(),
            server: None,
            servers: 0,
            handshake: None,
            own_requests: HashSet::new(),
            insist_at: None,
            insisted: 0,
            session: ClientSession::default(),
            greeted: None,
            is_adopted: false,
            calls: BTreeMap::new(),
            stops: BTreeMap::new(),
            last_call: 0,
            looked_up: HashMap::new(),
            journal,
            data_dir,
            identity,
            last_end: Instant::now(),
            is_half_a_line: false,
            outstanding: HashMap::new(),
            tokens: HashMap::new(),
            last_words: None,
            questions: BTreeMap::new(),
            renames_questions: false,
            question_mark: uuid::Uuid::new_v4().simple().to_string(),
            last_question: 0,
            result_tool: ResultTool::default(),
            tools,
        }
    }

    /// Handles events until nothing is left to do.
    async fn work(
        &mut self,
        mut happened: mpsc::Receiver<HostEvent>,
        mut cancelled: mpsc::UnboundedReceiver<CancelledJob>,
    ) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        loop {
            let timer = self.next_timer();
            tokio::select! {
                event = happened.recv() => match event {
                    Some(event) => self.handle(event),
                    None => return Ok(()),
                },
                Some(job) = cancelled.recv() => self.job_cancelled(job),
                () = until(timer) => self.time_passed(),
                _ = terminate.recv() => {
                    self.lose_calls("the process that kept the server was stopped");
                    return Ok(());
                }
            }
            if self.has_nothing_left() {
                return Ok(());
            }
        }
    }

    fn handle(&mut self, event: HostEvent) {
        let (from_server, from_client) = event.waiting_bytes();
        self.handle_counted(event);
        self.to_client.remove(from_server);
        self.to_server.remove(from_client);
    }

    fn handle_counted(&mut self, event: HostEvent) {
        match event {
            HostEvent::FromFront(front, message) if self.is_attached(front) => match message {
                ToHost::Hello(_) | ToHost::AreYouThere => {}
                ToHost::Line(line) => self.client_line(line),
                ToHost::End => self.client_ended(),
                ToHost::Delivered(number) => {
                    self.handle_delivered(number);
                    self.close_if_done();
                }
                ToHost::Signal(signal) => self.handle_signal(signal),
            },
            HostEvent::FrontGone(front) if self.is_attached(front) => self.front_gone(),
            HostEvent::NewFront(stream, hello) => self.new_front(stream, hello),
            HostEvent::TookOver(front, left) => self.took_over(front, left),
            HostEvent::ServerLine(generation, line) if self.is_server(generation) => {
                self.server_line(line);
                self.close_if_done();
            }
            HostEvent::ServerLineTooLong(generation) if self.is_server(generation) => {
                self.stop_server(&format!("wrote a line of more than {MAX_LINE_TEXT}"));
            }
            HostEvent::ServerClosedPipe(generation, what) if self.is_server(generation) => {
                self.server_closed_pipe(what);
            }
            HostEvent::ServerStderr(bytes) => self.tell_front(ToFront::Stderr(bytes)),
            HostEvent::ServerExited(generation, code) if self.is_server(generation) => {
                self.server_exited(code);
            }
            HostEvent::SessionLost(generation) if self.is_server(generation) => self.session_lost(),
            // From a front or a server that this host process no longer has.
            HostEvent::FromFront(..) | HostEvent::FrontGone(_) => {}
            HostEvent::ServerLine(..) | HostEvent::ServerLineTooLong(_) => {}
            HostEvent::ServerClosedPipe(..)
            | HostEvent::ServerExited(..)
            | HostEvent::SessionLost(_) => {}
            HostEvent::RowMade(number, made) => {
                self.row_made(number, made);
                self.close_if_done();
            }
            HostEvent::Found(asked, found) => self.answer_found(asked, found),
        }
    }

    /// Adds a call. The journal records it before the server receives it.
    pub(crate) fn add_call(&mut self, number: u64, call: Call) {
        let front = self.front.as_ref().map(|front| front.token.clone()).unwrap_or_default();
        // A call without a digest is never looked up.
        if let Some(digest) = &call.digest {
            let input = digest.input.as_ref().map(|input| crate::session::hex(input));
            let digest = crate::session::hex(&digest.call);
            let greeting = self.session.mark().unwrap_or_default();
            let noted =
                UndeliveredCall { digest, input, greeting, front, goes_on: false, job: None };
            self.journal.record_begin(number, noted);
        }
        self.calls.insert(number, call);
    }

    /// Removes a call that a client has received, or that needs no answer.
    pub(crate) fn forget_call(&mut self, number: u64) -> Option<Call> {
        self.journal.record_received(number);
        self.calls.remove(&number)
    }

    /// Returns the calls that match the predicate.
    pub(crate) fn calls_where(&self, is_so: impl Fn(&Call) -> bool) -> Vec<u64> {
        let calls = self.calls.iter().filter(|(_, call)| is_so(call));
        calls.map(|(number, _)| *number).collect()
    }

    /// Returns the first call that matches the predicate.
    pub(crate) fn call_where(&self, is_so: impl Fn(&Call) -> bool) -> Option<u64> {
        self.calls.iter().find(|(_, call)| is_so(call)).map(|(number, _)| *number)
    }

    fn is_attached(&self, front: u64) -> bool {
        self.front.as_ref().is_some_and(|link| link.number == front)
    }

    fn is_server(&self, generation: u64) -> bool {
        self.server.as_ref().is_some_and(|server| server.generation == generation)
    }
}

pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
