//! The life of a call that takes longer than its client waits: hand-off, attachment, cancellation, delivery.

use tokio::time::Instant;

use crate::call::{Call, CallClient, CallDigest, CallRow, hand_off_answer, own_id, tool_error};
use crate::frame::ToFront;
use crate::host::{Host, HostEvent};
use crate::message::{CallParams, CancelParams, Message, id_key, replace_parts};
use crate::rows::{CancelledJob, Row, RowEvent};

impl Host {
    /// Begins a call of the client: a new one, or one that continues (H5).
    pub(crate) fn begin_call(&mut self, line: &[u8], message: &Message<'_>, id: &str) {
        let params: CallParams<'_> = message.params();
        let caller = CallClient::new(&params, id);
        let digest = CallDigest::new(&params);
        if let Some(digest) = &digest {
            let repeats = |call: &Call| call.digest.as_ref().is_some_and(|it| digest.repeats(it));
            if let Some(number) = self.call_where(|call| call.can_be_attached_to() && repeats(call))
            {
                return self.attach(number, caller);
            }
            if let Some(number) = self.unreceived_call(digest) {
                return self.answer_left_behind(number, caller, line);
            }
        }
        self.last_call += 1;
        let number = self.last_call;
        let own = own_id(number);
        let mut parts = vec![(id, own.clone())];
        if let Some(token) = params.meta().progress_token {
            parts.push((token.get(), own));
        }
        let line = replace_parts(line, &mut parts);
        let mut call = Call::new(&params, digest, caller);
        let patience = self.settings.patience(&call.tool);
        call.deadline = patience.map(|patience| Instant::now() + patience);
        self.add_call(number, call);
        self.pass_to_server(line);
    }

    /// Attaches a caller to a call that continues, or delivers its outcome.
    pub(crate) fn attach(&mut self, number: u64, caller: CallClient) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        call.caller = Some(caller);
        let patience = self.settings.patience(&call.tool);
        call.deadline = patience.map(|patience| Instant::now() + patience);
        if !call.is_under_way() {
            self.deliver(number);
        }
    }

    /// Sends the answer to the caller. The call is forgotten when the front reports that the answer was written.
    pub(crate) fn deliver(&mut self, number: u64) {
        let max = self.settings.max_result;
        let Some(call) = self.calls.get_mut(&number) else { return };
        let Some(caller) = call.caller.clone() else { return };
        let Some(answer) = call.answer(&caller) else { return };
        let answer = match &call.row {
            CallRow::Made(row) if answer.len() as u64 > max => {
                let (job, name) = (row.id.to_string(), self.result_tool.display_name());
                let text = format!(
                    "The call has ended. Its result has {} bytes, which is more than one answer takes: call {name} with \
                     {{\"job_id\": \"{job}\"}} for the first part of it.",
                    answer.len()
                );
                tool_error(&caller, &text, Some(&job))
            }
            _ => answer,
        };
        call.is_delivering = true;
        call.deadline = None;
        self.tell_front(ToFront::Answer(number, answer));
        self.tell_done(&caller.id);
    }

    /// Handles the front's report that it has written the answer.
    pub(crate) fn handle_delivered(&mut self, number: u64) {
        let Some(call) = self.calls.get_mut(&number).filter(|call| call.is_delivering) else {
            return;
        };
        if matches!(call.row, CallRow::Making) {
            // The call is forgotten when the row has the result as well.
            call.is_received = true;
        } else {
            self.forget_call(number);
        }
    }

    /// Creates the row of a call, if it has none.
    pub(crate) fn make_row(&mut self, number: u64) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        if !matches!(call.row, CallRow::None) {
            return;
        }
        call.row = CallRow::Making;
        self.journal.goes_on(number, None);
        let (server, tool) = (self.settings.name.clone(), call.tool.clone());
        let arguments = call.arguments.clone();
        let (rows, events) = (self.rows.clone(), self.events.clone());
        outlast_engine::spawn(async move {
            let made = rows.make(&server, &tool, &arguments).await;
            drop(events.send(HostEvent::RowMade(number, made)).await);
        });
    }

    /// Handles a durable row: from now on the caller can receive the job's id.
    pub(crate) fn row_made(&mut self, number: u64, made: Result<Row, String>) {
        // Without a call it was cancelled meanwhile; its run ends when the row is dropped.
        let Some(call) = self.calls.get_mut(&number) else { return };
        match made {
            Ok(row) => {
                let (id, is_cancelled) = (row.id, row.tell.is_closed());
                self.journal.goes_on(number, Some(id.to_string()));
                call.row = CallRow::Made(row);
                call.settle_row();
                if call.is_received {
                    self.forget_call(number);
                } else if is_cancelled {
                    self.job_cancelled(CancelledJob { id, stopped: None });
                } else if call.is_under_way()
                    && call.deadline.is_some_and(|at| at <= Instant::now())
                {
                    self.hand_off(number);
                }
            }
            Err(error) => {
                tracing::error!(
                    tool = call.tool,
                    error,
                    "a call cannot be stored, so it is not handed off yet"
                );
                call.row = CallRow::None;
                call.deadline = call.deadline.map(|_| Instant::now() + self.settings.after);
            }
        }
    }

    /// Hands off a call whose time is over: stores it first, then notifies its caller.
    pub(crate) fn hand_off(&mut self, number: u64) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        let job = match &call.row {
            CallRow::None => return self.make_row(number),
            CallRow::Making => return,
            CallRow::Made(row) => row.id,
        };
        call.deadline = None;
        let Some(caller) = call.caller.take() else { return };
        let (tool, name) = (&call.tool, self.result_tool.display_name());
        let text = match &call.digest {
            Some(_) => format!(
                "This call is still running and goes on; it has not failed. To get its result, call {tool} again with the \
                 very same arguments (it will not run twice), or call {name} with {{\"job_id\": \"{job}\"}}. Both wait for the \
                 result."
            ),
            None => format!(
                "This call is still running and goes on; it has not failed. To get its result, call {name} with \
                 {{\"job_id\": \"{job}\"}}, which waits for it. Do not make the call again: it would run twice."
            ),
        };
        let client = caller.client.clone().or_else(|| self.session.client_name());
        let wait = self.settings.wait.as_ref();
        let answer = hand_off_answer(&caller, text, &job, wait, client.as_deref());
        self.answer(&caller.id, answer);
    }

    /// Handles the client's `notifications/cancelled` (H6).
    pub(crate) fn cancel(&mut self, line: &[u8], message: &Message<'_>) {
        let params: CancelParams<'_> = message.params();
        let Some(request) = params.request else { return self.pass_to_server(line.to_vec()) };
        let id = id_key(request.get());
        let waits = |call: &Call| call.caller.as_ref().is_some_and(|it| id_key(&it.id) == id);
        self.tell_done(request.get());
        let Some(number) = self.call_where(waits) else {
            return self.cancel_request(line, request.get());
        };
        let reason = params.reason.as_deref().unwrap_or_default();
        let forwards = self.settings.on_cancel.forwards(reason);
        let line = replace_parts(line, &mut [(request.get(), own_id(number))]);
        if forwards {
            // The server need not answer a cancelled call; an answer that comes anyway is dropped.
            if let Some(call) = self.forget_call(number) {
                call.tell_row(RowEvent::Lost("the call was cancelled".to_owned()));
            }
            return self.pass_to_server(line);
        }
        self.caller_left(number);
    }

    /// Lets a call continue without its caller, and stores it.
    pub(crate) fn caller_left(&mut self, number: u64) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        call.caller = None;
        call.deadline = None;
        call.is_delivering = false;
        self.make_row(number);
    }
}
