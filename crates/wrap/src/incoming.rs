//! The path of a client's line to the server. Almost all lines pass unchanged.

use serde_json::value::RawValue;

use crate::call::{CallClient, looks_own, own_id, with_id};
use crate::host::{Host, Request};
use crate::message::{CallParams, Message, MessageKind, MetaParams, id_key, replace_parts};
use crate::result_tool::NAME as RESULT_TOOL;

impl Host {
    pub(crate) fn client_line(&mut self, line: Vec<u8>) {
        if !line.ends_with(b"\n") {
            // The client's last line. Its server gets the line at the end of its input. If the server continues for the
            // next client, nothing may precede the first line of that client.
            self.last_words = Some(line);
            return;
        }
        let Some(message) = Message::read(&line) else { return self.pass_to_server(line) };
        match message.kind() {
            MessageKind::Request { id, method } => {
                if method == "initialize" && self.is_adopted {
                    if self.greeted.is_some() {
                        return self.greet_adopted(id);
                    }
                    // The client before this one left without an answer, so the server gets this client's greeting.
                    self.is_adopted = false;
                }
                self.session.observe(&line, &message);
                if method == "tools/call" {
                    let params: CallParams<'_> = message.params();
                    if self.result_tool.is_called_by(&params) {
                        return self.find_result(&params, CallClient::new(&params, id));
                    }
                    // A client that asks for a task gets the server's own task.
                    if params.task.is_none() {
                        return self.begin_call(&line, &message, id);
                    }
                }
                if method == "tools/list" && self.result_tool.list_asked(&message) {
                    self.tools.begin();
                }
                return self.pass_request(&line, &message, id, method);
            }
            MessageKind::Notification { method } => {
                if method == "notifications/cancelled" {
                    return self.cancel(&line, &message);
                }
                if method == "notifications/initialized" && self.is_adopted {
                    return self.show_questions();
                }
                self.session.observe(&line, &message);
            }
            MessageKind::Response { id } => match self.questions.remove(&id_key(id)) {
                Some(question) if id_key(&question.id) != id_key(id) => {
                    return self.pass_to_server(with_id(&line, &question.id));
                }
                Some(_) => {}
                // An answer to a question of a server that is gone, or to one that was already answered.
                None if self.renames_questions => return,
                None => {}
            },
            MessageKind::Other => {}
        }
        self.pass_to_server(line);
    }

    /// Relays a request that is not a call. A request of the first client keeps its id. The server may still send an
    /// answer to an id, or progress for a token, of an earlier client, so the ids and tokens of later clients are
    /// replaced.
    fn pass_request(&mut self, line: &[u8], message: &Message<'_>, id: &str, method: &str) {
        let token = message.params::<MetaParams<'_>>().meta().progress_token.map(RawValue::get);
        let request = Request { method: method.to_owned(), id: id.to_owned() };
        if self.fronts == 1 && !looks_own(id) && !token.is_some_and(looks_own) {
            self.outstanding.insert(id_key(id), request);
            return self.pass_to_server(line.to_vec());
        }
        self.last_call += 1;
        let own = own_id(self.last_call);
        self.outstanding.insert(own.clone(), request);
        let mut parts = vec![(id, own.clone())];
        if let Some(token) = token {
            self.tokens.insert(self.last_call, token.to_owned());
            parts.push((token, own));
        }
        self.pass_to_server(replace_parts(line, &mut parts));
    }

    /// Cancels a request that is not a call: the client no longer needs its answer.
    pub(crate) fn cancel_request(&mut self, line: &[u8], id: &str) {
        let key = id_key(id);
        let mut asked = self.outstanding.iter();
        let asked = asked.find(|(_, request)| id_key(&request.id) == key);
        let asked = asked.map(|(own, request)| (own.clone(), request.method == RESULT_TOOL));
        match asked {
            Some((own, is_ours)) => {
                self.outstanding.remove(&own);
                if !is_ours {
                    let line = if own == key {
                        line.to_vec()
                    } else {
                        replace_parts(line, &mut [(id, own)])
                    };
                    self.pass_to_server(line);
                }
            }
            None if self.fronts == 1 => self.pass_to_server(line.to_vec()),
            // Answered already; an earlier client may have used the same id.
            None => {}
        }
    }

    /// Greets a client that comes back with the answer to the first greeting.
    fn greet_adopted(&mut self, id: &str) {
        let Some(greeted) = &self.greeted else { return };
        let answer = with_id(greeted, id);
        self.answer(id, answer);
    }

    /// Sends a line to the server, and starts the server first if it has ended.
    pub(crate) fn pass_to_server(&mut self, line: Vec<u8>) {
        self.ensure_server();
        match &mut self.handshake {
            Some(handshake) => handshake.waiting.push(line),
            None => self.send_now(line),
        }
    }
}
