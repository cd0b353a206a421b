//! The end of the client's input, of the server and of the host process.

use rustix::process::Signal;
use serde_json::json;
use tokio::time::Instant;

use super::{Handshake, Host, Request, until};
use crate::call::{Call, CallEnd, CallRow, with_id};
use crate::frame::ToFront;
use crate::message::response;
use crate::server::{EXIT_GRACE, ServerProcess};

/// The id of a repeated greeting.
const AGAIN: &str = "outlast-again";

/// The exit code of a process that SIGKILL ended.
const KILLED: i32 = 137;

/// The two kinds of exit of a server. After an expected one its front exits with the server's exit code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsExpected {
    Yes,
    No,
}

impl Host {
    /// Starts the server if none is running. A restarted server gets the same greeting as the first.
    pub(crate) fn ensure_server(&mut self) {
        if self.server.is_some() {
            return;
        }
        self.servers += 1;
        let started = ServerProcess::start(
            &self.command,
            self.servers,
            &self.events,
            self.to_client.clone(),
            self.to_server.clone(),
        );
        match started {
            Ok(server) => self.server = Some(server),
            Err(error) => {
                let program = self.command.program.to_string_lossy();
                let text = format!("outlast wrap: {program} cannot be started: {error}\n");
                self.tell_front(ToFront::Stderr(text.into_bytes()));
                let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
                return self.dismiss_front(code);
            }
        }
        self.insist_at = None;
        self.insisted = 0;
        if let Some(greeting) = self.session.initialize.clone() {
            let greeting_id = format!("\"{AGAIN}:{}\"", self.servers);
            let line = with_id(&greeting, &greeting_id);
            self.handshake = Some(Handshake { greeting_id, waiting: Vec::new() });
            self.send_now(line);
        }
    }

    /// Sends a line without waiting for the handshake.
    pub(crate) fn send_now(&self, line: Vec<u8>) {
        if let Some(server) = &self.server {
            server.send(line);
        }
    }

    /// Handles the answer of a restarted server to the greeting.
    pub(crate) fn handle_second_greeting(&mut self, line: Vec<u8>) {
        let Some(handshake) = self.handshake.take() else { return };
        for (at, line) in self.session.after_greeting().into_iter().enumerate() {
            let id = format!("\"{AGAIN}:{}:{at}\"", self.servers);
            let line = match crate::message::Message::read(&line).and_then(|message| message.id) {
                Some(_) => {
                    self.own_requests.insert(id.clone());
                    with_id(&line, &id)
                }
                None => line,
            };
            self.send_now(line);
        }
        for line in handshake.waiting {
            self.send_now(line);
        }
        // The client's copies of the lists may be out of date.
        for list in changeable_lists(&line) {
            let note = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{list}/list_changed\"}}\n"
            );
            self.tell_front(ToFront::Line(note.into_bytes()));
        }
        self.greeted = Some(line);
    }

    /// Handles the end of the client's input. The client still gets the answers that it waits for.
    pub(super) fn client_ended(&mut self) {
        let ends_at = Instant::now() + self.settings.after;
        if let Some(front) = &mut self.front {
            front.ends_at = Some(ends_at);
        }
        self.close_if_done();
    }

    /// Dismisses a client that sends nothing more and waits for nothing. If no calls continue, its server ends first.
    pub(crate) fn close_if_done(&mut self) {
        let Some(front) = &self.front else { return };
        let Some(ends_at) = front.ends_at else { return };
        let waits = !self.outstanding.is_empty() && ends_at > Instant::now();
        if front.is_leaving || waits || self.calls.values().any(|call| call.caller.is_some()) {
            return;
        }
        if !self.calls.is_empty() {
            return self.dismiss_front(0);
        }
        match &mut self.server {
            Some(server) if !server.is_closed() => {
                if let Some(line) = self.last_words.take() {
                    server.send(line);
                }
                server.close_input();
                self.insist_at = Some(Instant::now() + EXIT_GRACE);
            }
            Some(_) => {}
            None if self.last_words.is_some() => {
                self.ensure_server();
                self.close_if_done();
            }
            None => self.dismiss_front(0),
        }
    }

    /// Stops a server that broke a limit, and ends everything that waits for it. Does not wait for its exit.
    pub(super) fn stop_server(&mut self, why: &str) {
        tracing::error!(server = self.settings.name, "stopped the server: it {why}");
        if let Some(server) = &self.server {
            server.signal(Signal::KILL);
        }
        self.server_gone(KILLED, &format!("the server {why} and was stopped"), IsExpected::No);
    }

    /// Handles a server that has closed one of its pipes and is being ended.
    pub(super) fn server_closed_pipe(&mut self, what: &str) {
        tracing::error!(server = self.settings.name, "ending the server: it {what}");
        let is_expected = self.is_end_expected();
        self.server_gone(KILLED, &format!("the server {what} and was stopped"), is_expected);
    }

    /// Handles the exit of the server.
    pub(super) fn server_exited(&mut self, code: i32) {
        let is_expected = self.is_end_expected();
        self.server_gone(code, &format!("the server ended (exit code {code})"), is_expected);
    }

    /// Handles a server that has forgotten the session, which the next message opens again.
    pub(super) fn session_lost(&mut self) {
        self.server_gone(0, "the server has forgotten the session", IsExpected::No);
    }

    fn is_end_expected(&self) -> IsExpected {
        match self.calls.values().any(Call::is_under_way) {
            true if self.handshake.is_none() => IsExpected::No,
            _ => IsExpected::Yes,
        }
    }

    fn server_gone(&mut self, code: i32, what: &str, is_expected: IsExpected) {
        self.server = None;
        self.insist_at = None;
        self.tokens.clear();
        for id in std::mem::take(&mut self.questions).into_keys() {
            // An answer to it must not be taken for an answer to the next server.
            let note = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id},\"reason\":\"the server ended\"}}}}\n"
            );
            self.tell_front(ToFront::Line(note.into_bytes()));
        }
        self.renames_questions = true;
        self.handshake = None;
        let had_calls = self.calls.values().any(|call| call.is_under_way());
        if std::mem::take(&mut self.is_half_a_line) && had_calls {
            // The client gets more output after the server's last half line.
            self.tell_front(ToFront::Line(b"\n".to_vec()));
        }
        self.lose_calls(&format!("{what} before it answered"));
        let Some(front) = &self.front else { return };
        if front.ends_at.is_some() {
            self.dismiss_front(0);
        } else if is_expected == IsExpected::Yes {
            self.dismiss_front(code);
        } else {
            // The next message starts the server again. Other requests no longer get an answer.
            let asked: Vec<Request> = self.outstanding.drain().map(|(_, asked)| asked).collect();
            for Request { id, .. } in asked {
                let message = format!("{what} before it answered");
                let error = json!({ "code": -32603, "message": message }).to_string();
                self.answer(&id, response(&id, "error", &error));
            }
            let text = format!("outlast wrap: {what}; it is started again when it is needed\n");
            self.tell_front(ToFront::Stderr(text.into_bytes()));
        }
    }

    /// Ends the calls under way: they may or may not have happened.
    pub(super) fn lose_calls(&mut self, why: &str) {
        for number in self.calls_where(Call::is_under_way) {
            self.call_ended(number, CallEnd::Lost(why.to_owned()));
        }
    }

    /// Passes the outcome of a call to its caller and its row.
    pub(crate) fn call_ended(&mut self, number: u64, outcome: CallEnd) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        if call.outcome.is_some() {
            // The first answer counts.
            return;
        }
        call.outcome = Some(outcome);
        call.deadline = None;
        call.settle_row();
        self.last_end = Instant::now();
        self.deliver(number);
    }

    /// Returns the time of the next action that no event triggers.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        let is_stored = |call: &&Call| !matches!(call.row, CallRow::Making);
        let waited_for = self.calls.values().filter(|call| call.caller.is_some());
        let deadlines = waited_for.filter(is_stored).filter_map(|call| call.deadline);
        let questions =
            self.questions.values().filter_map(|question| question.answer_by(self.idle));
        let idle = (!self.calls.is_empty()).then(|| self.last_end + self.idle);
        let idle = idle.filter(|at| *at > Instant::now());
        let given_up = self.calls_given_up_at();
        let without_front = questions.chain(idle).chain(given_up).filter(|_| self.front.is_none());
        let ends = self.front.as_ref().and_then(|front| front.ends_at);
        let ends = ends.filter(|_| !self.outstanding.is_empty());
        deadlines.chain(without_front).chain(ends).chain(self.insist_at).min()
    }

    pub(super) fn time_passed(&mut self) {
        let now = Instant::now();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        for number in self.calls_where(|call| is_due(call.deadline)) {
            self.hand_off(number);
        }
        if is_due(self.insist_at)
            && let Some(server) = &self.server
        {
            self.insisted += 1;
            server.signal(if self.insisted == 1 { Signal::TERM } else { Signal::KILL });
            self.insist_at = (self.insisted < 2).then(|| now + EXIT_GRACE);
        }
        if self.front.is_none() {
            self.answer_old_questions(now);
        }
        if is_due(self.calls_given_up_at()) {
            self.lose_calls(
                "the server did not answer within the time that calls without a client have",
            );
        }
        if self.front.as_ref().is_some_and(|front| is_due(front.ends_at)) {
            self.outstanding.clear();
        }
        self.close_if_done();
    }

    /// Returns the time at which calls that no client waits for are given up: a server that never answers must not run
    /// for ever.
    fn calls_given_up_at(&self) -> Option<Instant> {
        let is_waited_for = self.calls.values().any(Call::is_under_way);
        self.left_at.filter(|_| is_waited_for)?.checked_add(self.give_up)
    }

    /// Returns true if the host process can exit: no client, no call under way, and no call that a client may come back
    /// for.
    pub(super) fn has_nothing_left(&self) -> bool {
        let under_way = self
            .calls
            .values()
            .any(|call| call.is_under_way() || matches!(call.row, CallRow::Making));
        let waits = !self.calls.is_empty() && self.last_end + self.idle > Instant::now();
        self.front.is_none() && !under_way && !waits
    }

    /// Ends the server: closes its input, then asks it to exit, then kills it.
    pub(super) async fn end_server(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        server.close_input();
        for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
            if let Some(signal) = signal {
                server.signal(signal);
            }
            let limit = Instant::now() + EXIT_GRACE;
            while !server.is_gone() && Instant::now() < limit {
                until(Some(Instant::now() + std::time::Duration::from_millis(5))).await;
            }
            if server.is_gone() {
                break;
            }
        }
    }
}

/// Returns the lists that the server declares as changeable.
fn changeable_lists(greeting: &[u8]) -> Vec<&'static str> {
    let greeting: serde_json::Value = serde_json::from_slice(greeting).unwrap_or_default();
    let capabilities = &greeting["result"]["capabilities"];
    let lists = ["tools", "prompts", "resources"];
    lists.into_iter().filter(|list| capabilities[list].is_object()).collect()
}
