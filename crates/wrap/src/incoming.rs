//! A line of the client on its way to the server. All but a few pass as they are.

use crate::call::{Caller, with_id};
use crate::keeper::Keeper;
use crate::message::{CallParams, Kind, Message, id_key};

impl Keeper {
    pub(crate) fn client_line(&mut self, line: Vec<u8>) {
        // The last line of a client may have no newline. Its server sees the end of it with the end of its input, so no
        // answer to it is waited for before that.
        let message = line.ends_with(b"\n").then(|| Message::read(&line)).flatten();
        let Some(message) = message else { return self.pass_to_server(line) };
        match message.kind() {
            Kind::Request { id, method } => {
                if method == "initialize" && self.is_adopted {
                    if self.greeted.is_some() {
                        return self.greet_adopted(id);
                    }
                    // The client before it left without an answer: the server is greeted by this one.
                    self.is_adopted = false;
                }
                self.session.observe(&line, &message);
                if method == "tools/call" {
                    let params: CallParams<'_> = message.params();
                    if self.result_tool.is_asked_by(&params) {
                        return self.find_result(&params, Caller::of(&params, id));
                    }
                    // A client that asks for a task gets the server's own.
                    if params.task.is_none() {
                        return self.begin_call(&line, &message, id);
                    }
                }
                if method == "tools/list" && self.result_tool.list_asked(&message) {
                    self.tools.begin();
                }
                self.outstanding.insert(id_key(id), method.to_owned());
            }
            Kind::Notification { method } => {
                if method == "notifications/cancelled" {
                    return self.cancel(&line, &message);
                }
                if method == "notifications/initialized" && self.is_adopted {
                    return self.show_questions();
                }
                self.session.observe(&line, &message);
            }
            Kind::Response { id } => drop(self.questions.remove(&id_key(id))),
            Kind::Other => {}
        }
        self.pass_to_server(line);
    }

    /// A client that comes back is greeted as it was the first time.
    fn greet_adopted(&mut self, id: &str) {
        let Some(greeted) = &self.greeted else { return };
        let answer = with_id(greeted, id);
        self.answer(id, answer);
    }

    /// Sends to the server, which is started for it where it has ended.
    pub(crate) fn pass_to_server(&mut self, line: Vec<u8>) {
        self.ensure_server();
        match &mut self.handshake {
            Some(handshake) => handshake.waiting.push(line),
            None => self.send_now(line),
        }
    }
}
