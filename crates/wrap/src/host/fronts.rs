//! Attaching and detaching of fronts: the first over standard input, later ones over the socket. A host process has one
//! at a time.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Host, HostEvent};
use crate::frame::{Frame as _, Hello, ToFront, ToHost, is_hung_up, write_frames};
use crate::journal::{self, LeftJournal};
use crate::message::{Message, id_key};
use crate::server::Backlog;

/// The time within which a front must send its first frame.
const HELLO_WAIT: Duration = Duration::from_secs(10);

/// The interval at which a new front checks that the end of the former one has been read.
const FORMER_LOOK: Duration = Duration::from_millis(10);

/// The interval of the checks for the end of a front while its messages are not read.
const END_LOOK: Duration = Duration::from_millis(100);

/// The front that is attached.
#[derive(Debug)]
pub(crate) struct FrontLink {
    pub(crate) number: u64,
    /// The name of the front, also for later host processes.
    pub(crate) token: String,
    out: mpsc::UnboundedSender<ToFront>,
    /// Its connection, used to check that the other end is still open.
    connection: Option<OwnedFd>,
    /// The time limit for the answers of a client that sends nothing more.
    pub(crate) ends_at: Option<Instant>,
    /// True if the front was asked to exit.
    pub(crate) is_leaving: bool,
}

impl FrontLink {
    /// Returns true if the end of this front is on its way. What it sent before is read first.
    fn is_about_to_end(&self) -> bool {
        self.is_leaving || self.connection.as_ref().is_some_and(is_hung_up)
    }
}

/// Accepts connections.
pub(super) async fn accept(listener: UnixListener, events: mpsc::Sender<HostEvent>) {
    while let Ok((stream, _)) = listener.accept().await {
        outlast_engine::spawn(greet(stream, events.clone()));
    }
}

async fn greet(stream: UnixStream, events: mpsc::Sender<HostEvent>) {
    if let Some((stream, hello)) = hear(stream).await {
        drop(events.send(HostEvent::NewFront(stream, hello)).await);
    }
}

/// Reads the first frame of a front.
pub(super) async fn hear(mut stream: UnixStream) -> Option<(UnixStream, Box<Hello>)> {
    match tokio::time::timeout(HELLO_WAIT, ToHost::read(&mut stream)).await {
        Ok(Ok(Some(ToHost::Hello(hello)))) => Some((stream, hello)),
        Ok(Ok(Some(ToHost::AreYouThere))) => {
            // Fails only when the process that asked is gone.
            drop(ToFront::Refused.write(&mut stream).await);
            None
        }
        _ => None,
    }
}

async fn read(
    stream: OwnedReadHalf,
    number: u64,
    events: mpsc::Sender<HostEvent>,
    to_server: Arc<Backlog>,
    idle: Duration,
) {
    let mut stream = BufReader::with_capacity(64 * 1024, stream);
    loop {
        tokio::select! {
            biased;
            () = to_server.room() => {}
            // While the server does not read, the end of the client's messages is not read either.
            () = wait_until_gone(idle, stream.get_ref().as_ref()) => break,
        }
        let Ok(Some(message)) = ToHost::read(&mut stream).await else { break };
        to_server.add(message.size());
        if events.send(HostEvent::FromFront(number, message)).await.is_err() {
            return;
        }
    }
    drop(events.send(HostEvent::FrontGone(number)).await);
}

/// Waits until a front has been gone for this time.
async fn wait_until_gone(limit: Duration, stream: &UnixStream) {
    while !is_hung_up(stream) {
        tokio::time::sleep(END_LOOK).await;
    }
    tokio::time::sleep(limit).await;
}

async fn write(
    mut stream: OwnedWriteHalf,
    messages: mpsc::UnboundedReceiver<ToFront>,
    backlog: Arc<Backlog>,
) {
    write_frames(&mut stream, messages, &backlog).await;
    drop(stream.shutdown().await);
}

impl Host {
    /// Attaches a front: the first one, or an equal one after the former has left. Refuses any other.
    pub(super) fn new_front(&mut self, stream: UnixStream, hello: Box<Hello>) {
        let is_equal = self.fronts == 0
            || hello.greeting.as_ref().is_some_and(|greeting| self.session.has(greeting));
        let former = self.front.as_ref().filter(|_| is_equal);
        if former.is_some_and(FrontLink::is_about_to_end) && !is_hung_up(&stream) {
            let events = self.events.clone();
            outlast_engine::spawn(async move {
                tokio::time::sleep(FORMER_LOOK).await;
                drop(events.send(HostEvent::NewFront(stream, hello)).await);
            });
            return;
        }
        let connection = stream.as_fd().try_clone_to_owned().ok();
        let (reader, mut writer) = stream.into_split();
        if self.front.is_some() || !is_equal {
            outlast_engine::spawn(async move { drop(ToFront::Refused.write(&mut writer).await) });
            return;
        }
        self.is_adopted = self.fronts > 0;
        self.fronts += 1;
        self.left_at = None;
        self.settings = hello.settings;
        self.result_tool.set_name(hello.result_tool);
        let (out, messages) = mpsc::unbounded_channel();
        let number = self.fronts;
        self.renames_questions |= hello.had_host;
        self.last_words = None;
        let token = hello.front;
        self.front =
            Some(FrontLink { number, token, out, connection, ends_at: None, is_leaving: false });
        outlast_engine::spawn(write(writer, messages, self.to_client.clone()));
        self.tell_front(ToFront::Welcome);
        for line in hello.replay {
            if let Some(message) = Message::read(line.as_bytes()) {
                self.session.observe(line.as_bytes(), &message);
            }
        }
        self.ensure_server();
        let others = self.journal.others(&self.data_dir, &self.identity.0);
        let (events, to_server) = (self.events.clone(), self.to_server.clone());
        let idle = self.idle;
        outlast_engine::spawn(async move {
            // No call is accepted before it is known which calls were left.
            let left = journal::take_over(others).await;
            if events.send(HostEvent::TookOver(number, left)).await.is_ok() {
                read(reader, number, events, to_server, idle).await;
            }
        });
        if self.session.initialize.is_none() {
            self.show_questions();
        }
    }

    /// Adds the calls that other host processes left to the calls that no client has received.
    pub(super) fn took_over(&mut self, front: u64, left: Vec<LeftJournal>) {
        for journal in left {
            self.last_call = self.journal.add_left(journal, self.last_call);
        }
        if front == 1
            && let Some(front) = &self.front
        {
            let token = front.token.clone();
            self.leave_out_told(&token);
        }
    }

    /// Removes the calls that this front has already answered: it was there when their host process was killed.
    fn leave_out_told(&mut self, front: &str) {
        let calls = self.journal.unreceived.iter();
        let left = calls.filter(|(number, _)| self.journal.left.contains(number));
        let told = left.filter(|(_, call)| call.front == front && !call.goes_on);
        let told: Vec<u64> = told.map(|(number, _)| *number).collect();
        for number in told {
            self.journal.record_received(number);
        }
    }

    /// Sends the server's open questions to a client that has come back, after that client has been greeted.
    pub(crate) fn show_questions(&mut self) {
        let questions: Vec<_> = self.questions.values().map(|it| it.line.clone()).collect();
        for line in questions {
            self.tell_front(ToFront::Line(line));
        }
    }

    /// Sends a message to the front, if there is one.
    pub(crate) fn tell_front(&mut self, message: ToFront) {
        let Some(front) = &self.front else { return };
        self.to_client.add(message.size());
        let size = message.size();
        if front.out.send(message).is_err() {
            self.to_client.remove(size);
        }
    }

    /// Answers a request of the client.
    pub(crate) fn answer(&mut self, id: &str, line: Vec<u8>) {
        self.tell_front(ToFront::Line(line));
        self.tell_done(id);
    }

    /// Reports that the request with this id has its answer, or needs none.
    pub(crate) fn tell_done(&mut self, id: &str) {
        self.tell_front(ToFront::Done(id_key(id).into_bytes()));
    }

    /// Asks the front to exit; it is gone when its connection ends.
    pub(crate) fn dismiss_front(&mut self, code: i32) {
        self.tell_front(ToFront::Exit(code));
        if let Some(front) = &mut self.front {
            front.is_leaving = true;
        }
    }

    /// Detaches a front that has left; its calls continue.
    pub(super) fn front_gone(&mut self) {
        self.front = None;
        self.left_at = Some(Instant::now());
        self.outstanding.clear();
        self.tokens.clear();
        self.last_words = None;
        for number in self.calls_where(|call| call.caller.is_some()) {
            self.caller_left(number);
        }
        for question in self.questions.values_mut() {
            question.since = Instant::now();
        }
        if self.calls.values().any(|call| !call.is_under_way()) {
            self.last_end = Instant::now();
        }
    }

    /// Handles a signal to the front as the server would have received it. A signal that ends a client does not end its
    /// calls.
    pub(super) fn handle_signal(&mut self, signal: i32) {
        let known =
            [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];
        let Some(signal) = known.into_iter().find(|known| known.as_raw() == signal) else { return };
        let is_end = ![Signal::USR1, Signal::USR2].contains(&signal);
        if is_end && !self.calls.is_empty() {
            return self.dismiss_front(0);
        }
        if let Some(server) = &self.server {
            server.signal(signal);
        }
    }
}
