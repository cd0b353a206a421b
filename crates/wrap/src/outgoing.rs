//! The path of a server's line to the client. Almost all lines pass unchanged.

use std::sync::Arc;

use outlast_core::{Cost, Progress, StopOutcome};
use tokio::time::Instant;

use crate::call::{CallEnd, call_number, looks_own, own_id, parse_answer, with_id};
use crate::frame::ToFront;
use crate::host::{CallStop, Host, Question};
use crate::message::{
    CancelParams, Message, MessageKind, MetaParams, ProgressParams, ToolsPage, id_key,
    read_or_default, repair_utf8, replace_parts, response,
};
use crate::rows::{CancelledJob, RowEvent};

impl Host {
    pub(crate) fn server_line(&mut self, line: Vec<u8>) {
        self.is_half_a_line = !line.ends_with(b"\n");
        let Some(message) = Message::read(&line) else {
            return match repair_utf8(&line) {
                Some(line) => self.server_line(line),
                None => self.tell_front(ToFront::Line(line)),
            };
        };
        match message.kind() {
            MessageKind::Response { id } => {
                let id = id.to_owned();
                self.handle_answer(&id, line);
            }
            MessageKind::Request { id, method: "ping" } if self.front.is_none() => {
                self.send_now(response(id, "result", "{}"));
            }
            MessageKind::Request { id, method } => {
                let (shown, line) = match self.renames_questions {
                    true => {
                        self.last_question += 1;
                        let own =
                            format!("\"outlast:{}:{}\"", self.question_mark, self.last_question);
                        let line = replace_parts(&line, &mut [(id, own.clone())]);
                        (own, line)
                    }
                    false => (id_key(id), line.clone()),
                };
                let question = Question {
                    line: line.clone(),
                    id: id.to_owned(),
                    method: method.to_owned(),
                    since: Instant::now(),
                };
                self.questions.insert(shown, question);
                self.tell_front(ToFront::Line(line));
            }
            MessageKind::Notification { method: "notifications/progress" } => {
                if let Some(line) = self.progress(&line, &message) {
                    self.tell_front(ToFront::Line(line));
                }
            }
            MessageKind::Notification { method: "notifications/cancelled" } => {
                if let Some(line) = self.server_cancels(&line, &message) {
                    self.tell_front(ToFront::Line(line));
                }
            }
            MessageKind::Notification { .. } => {
                if let Some(line) = self.notification(&line, &message) {
                    self.tell_front(ToFront::Line(line));
                }
            }
            MessageKind::Other => self.tell_front(ToFront::Line(line)),
        }
    }

    fn handle_answer(&mut self, id: &str, line: Vec<u8>) {
        if self.handshake.as_ref().is_some_and(|handshake| handshake.greeting_id == id) {
            return self.handle_second_greeting(line);
        }
        let key = id_key(id);
        if let Some(number) = call_number(&key)
            && !self.outstanding.contains_key(&key)
        {
            self.report_stop(number, Some(stop_outcome(&line)));
            // If there is no such call, it was cancelled or belongs to a client that has left.
            return self.call_ended(number, CallEnd::Answered(Arc::new(line)));
        }
        if self.own_requests.remove(id) {
            return;
        }
        let request = self.outstanding.remove(&key);
        if request.is_none() && self.fronts > 1 {
            // From a client that has left.
            return;
        }
        let method = request.as_ref().map(|request| request.method.as_str());
        // A task may report progress after this answer.
        if let Some(number) = call_number(&key).filter(|_| method != Some("tools/call")) {
            self.tokens.remove(&number);
        }
        let theirs = request.as_ref().map_or(id, |request| request.id.as_str());
        let line = if call_number(&key).is_some() { with_id(&line, theirs) } else { line };
        let line = match method {
            Some("initialize") => {
                self.greeted = Some(line.clone());
                line
            }
            Some("tools/list") => {
                self.compare_tools(&line);
                let line = self.result_tool.append_to(line);
                if let Some(name) = self.result_tool.news() {
                    self.tell_front(ToFront::ResultTool(name));
                }
                line
            }
            _ => line,
        };
        self.answer(theirs, line);
    }

    /// Relays a notification of the server that may belong to a request of this client or of one that has left.
    fn notification(&self, line: &[u8], message: &Message<'_>) -> Option<Vec<u8>> {
        let is_plain = self.fronts == 1 && self.outstanding.keys().all(|id| !looks_own(id));
        let asked = || message.params::<MetaParams<'_>>().meta().subscription;
        match if is_plain { None } else { asked() } {
            Some(id) => self.with_client_id(line, id.get()),
            None => Some(line.to_vec()),
        }
    }

    /// Handles the withdrawal of a question by the server, or the end of a client's request.
    fn server_cancels(&mut self, line: &[u8], message: &Message<'_>) -> Option<Vec<u8>> {
        let Some(id) = message.params::<CancelParams<'_>>().request else {
            return Some(line.to_vec());
        };
        let key = id_key(id.get());
        let mut questions = self.questions.iter();
        let shown = questions.find(|(_, question)| id_key(&question.id) == key);
        let Some(shown) = shown.map(|(shown, _)| shown.clone()) else {
            return self.with_client_id(line, id.get());
        };
        self.questions.remove(&shown);
        Some(if shown == key {
            line.to_vec()
        } else {
            replace_parts(line, &mut [(id.get(), shown)])
        })
    }

    /// Returns a line that names a request of the client, with the client's id of it; `None` if a client that has left
    /// sent the request.
    fn with_client_id(&self, line: &[u8], id: &str) -> Option<Vec<u8>> {
        match self.outstanding.get(&id_key(id)) {
            Some(request) if id_key(&request.id) != id_key(id) => {
                Some(replace_parts(line, &mut [(id, request.id.clone())]))
            }
            Some(_) => Some(line.to_vec()),
            None => (self.fronts == 1).then(|| line.to_vec()),
        }
    }

    /// Warns of tools whose description changed since the last time.
    fn compare_tools(&mut self, line: &[u8]) {
        let result = Message::read(line).and_then(|message| message.result);
        let page: ToolsPage<'_> = read_or_default(result);
        let Some(tools) = page.tools else { return };
        self.tools.add(tools.get());
        if !page.is_last() {
            return;
        }
        match self.tools.end(&self.settings.name) {
            Ok(None) => {}
            Ok(Some(change)) => {
                tracing::warn!("{change}");
                let text = format!("outlast wrap: warning: {change}\n");
                self.tell_front(ToFront::Stderr(text.into_bytes()));
            }
            Err(error) => tracing::warn!(%error, "failed to keep the descriptions of tools"),
        }
    }

    /// Relays the progress of a call to its caller, under the caller's token, and records it in its row. The progress
    /// of a call that was handed off reaches no client.
    fn progress(&mut self, line: &[u8], message: &Message<'_>) -> Option<Vec<u8>> {
        let params: ProgressParams<'_> = message.params();
        let Some(token) = params.token else { return Some(line.to_vec()) };
        let Some(number) = call_number(token.get()) else {
            // Every token of a later client is one of outlast's.
            return (self.fronts == 1).then(|| line.to_vec());
        };
        if let Some(theirs) = self.tokens.get(&number) {
            return Some(replace_parts(line, &mut [(token.get(), theirs.clone())]));
        }
        let call = self.calls.get(&number)?;
        call.tell_row(RowEvent::Progress(progress(&params)));
        let theirs = call.caller.as_ref()?.token.clone()?;
        Some(replace_parts(line, &mut [(token.get(), theirs)]))
    }

    /// Cancels a call at the server after its owner cancelled the job.
    pub(crate) fn job_cancelled(&mut self, cancelled: CancelledJob) {
        let CancelledJob { id: job, stopped: asker } = cancelled;
        let known = self.stops.iter().find(|(_, stop)| stop.job == job);
        let call = known.map(|(number, _)| *number);
        // Without a call, the outcome is unknown.
        let Some(number) = call.or_else(|| self.call_where(|call| call.has_row(job))) else {
            return;
        };
        if call.is_none() {
            let outcome = self.stop_call(number);
            self.stops.insert(number, CallStop { job, outcome, asker: None });
        }
        if let Some(stop) = self.stops.get_mut(&number)
            && asker.is_some()
        {
            stop.asker = asker;
            self.report_stop(number, None);
        }
    }

    /// Asks the server to stop a call. Returns the outcome if it is already known.
    fn stop_call(&mut self, number: u64) -> Option<StopOutcome> {
        match self.calls.get(&number).and_then(|call| call.outcome.as_ref()) {
            Some(CallEnd::Answered(line)) => return Some(stop_outcome(line)),
            Some(CallEnd::Lost(_)) => return Some(StopOutcome::Unknown),
            None => {}
        }
        let own = own_id(number);
        let was_sent = !self.handshake.as_mut().is_some_and(|handshake| handshake.take_back(&own));
        if was_sent {
            let note = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{own},\"reason\":\"cancelled by its owner\"}}}}\n"
            );
            self.send_now(note.into_bytes());
        }
        self.call_ended(number, CallEnd::Lost("the call was cancelled by its owner".to_owned()));
        (!was_sent).then_some(StopOutcome::Ended { cost: Cost::Unknown })
    }

    /// Reports the outcome of a stop to the worker that asked, when both are known.
    fn report_stop(&mut self, number: u64, outcome: Option<StopOutcome>) {
        let Some(stop) = self.stops.get_mut(&number) else { return };
        stop.outcome = stop.outcome.or(outcome);
        if let Some(outcome) = stop.outcome
            && let Some(asker) = stop.asker.take()
        {
            // Fails only if the worker no longer waits.
            let _ = asker.send(outcome);
            self.stops.remove(&number);
        }
    }

    /// Answers the requests of the server that no client was there to answer. A question for the user waits for the
    /// next client, as long as this process runs.
    pub(crate) fn answer_old_questions(&mut self, now: Instant) {
        let idle = self.idle;
        let is_old = |question: &Question| {
            question.answer_by(idle).is_some_and(|answer_by| answer_by <= now)
        };
        let old = self.questions.extract_if(.., |_, question| is_old(question));
        for (_, question) in old.collect::<Vec<_>>() {
            let error = "{\"code\":-32603,\"message\":\"no client is connected\"}";
            self.send_now(response(&question.id, "error", error));
        }
    }
}

/// Returns the meaning of a server's answer to a call that it was asked to stop.
fn stop_outcome(line: &[u8]) -> StopOutcome {
    let (cost, answer) = (Cost::Unknown, parse_answer(line));
    let is_result = answer.is_some_and(|answer| !answer.is_error());
    if is_result { StopOutcome::Completed { cost } } else { StopOutcome::Ended { cost } }
}

fn progress(params: &ProgressParams<'_>) -> Progress {
    let share = params.progress.zip(params.total.filter(|total| *total > 0.0));
    let percent = share.map(|(progress, total)| (progress / total * 100.0).clamp(0.0, 100.0) as u8);
    let message = params.message.as_deref().unwrap_or("working").to_owned();
    Progress { percent, message }
}
