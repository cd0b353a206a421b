//! `get_result`: the one tool that wrap adds, for results of calls that were handed off.

use std::collections::BTreeSet;
use std::time::Duration;

use outlast_core::JobId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::{CallClient, CallDigest, failure_answer, text_result, tool_error};
use crate::host::{Host, HostEvent, Request};
use crate::journal::UndeliveredCall;
use crate::message::{
    CallParams, Message, ToolsPage, id_key, read_or_default, replace_parts, response,
};
use crate::rows::{KnownHost, StoredAnswer, WrappedJobState};
use crate::session::hex;

pub(crate) const NAME: &str = "get_result";
/// The time after its end for which a result that no client received answers an equal call, as for held calls.
const REPLAYED: Duration = Duration::from_secs(30 * 60);

/// The tool as this client knows it.
#[derive(Debug, Default)]
pub(crate) struct ResultTool {
    /// Its name, once a list contains it.
    name: Option<String>,
    /// Names of the server's own tools, from the pages of the list seen so far.
    names: BTreeSet<String>,
    is_news: bool,
}

/// A call of `get_result`.
#[derive(Debug)]
pub(crate) struct ResultCall {
    caller: CallClient,
    job: JobId,
    offset: usize,
    /// Set if an equal call was repeated, and asks for the earlier one.
    left_behind: Option<LeftBehind>,
    /// The front that asked.
    front: u64,
}

#[derive(Debug)]
struct LeftBehind {
    number: u64,
    /// The call, to be made if nothing is left of the earlier one.
    line: Vec<u8>,
}

#[derive(Debug, Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    job_id: String,
    #[serde(default)]
    offset: usize,
}

#[derive(Debug, Default, Deserialize)]
struct ListParams {
    #[serde(default)]
    cursor: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct NamedTool {
    #[serde(default)]
    name: String,
}

impl ResultTool {
    /// Sets the name that an earlier host process reported to the client.
    pub(crate) fn set_name(&mut self, name: Option<String>) {
        if name.is_some() {
            self.name = name;
        }
    }

    /// Returns the name as it appears in answers.
    pub(crate) fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or(NAME)
    }

    /// Returns the name, if the client's front does not know it yet.
    pub(crate) fn news(&mut self) -> Option<String> {
        std::mem::take(&mut self.is_news).then(|| self.name.clone()).flatten()
    }

    /// Returns true if a call is for this tool: by the name in the list, or by a job's id if no list was requested.
    pub(crate) fn is_called_by(&self, params: &CallParams<'_>) -> bool {
        match &self.name {
            Some(name) => *name == params.name,
            None => {
                params.name == NAME
                    && read_or_default::<Arguments>(params.arguments)
                        .job_id
                        .parse::<JobId>()
                        .is_ok()
            }
        }
    }

    /// Handles the client's request for a list; returns true if it starts at the beginning.
    pub(crate) fn list_asked(&mut self, message: &Message<'_>) -> bool {
        let is_first = message.params::<ListParams>().cursor.is_none();
        if is_first {
            self.names.clear();
        }
        is_first
    }

    /// Returns the page, with the tool at its end if it is the last page.
    pub(crate) fn append_to(&mut self, line: Vec<u8>) -> Vec<u8> {
        let result = Message::read(&line).and_then(|message| message.result);
        let page: ToolsPage<'_> = read_or_default(result);
        let Some(tools) = page.tools else { return line };
        let listed: Vec<NamedTool> = serde_json::from_str(tools.get()).unwrap_or_default();
        self.names.extend(listed.iter().map(|tool| tool.name.clone()));
        if !page.is_last() {
            return line;
        }
        let names = (2..).map(|number| format!("{NAME}_{number}"));
        let mut names = std::iter::once(NAME.to_owned()).chain(names);
        let Some(name) = names.find(|name| !self.names.contains(name)) else { return line };
        let Some(end) = tools.get().rfind(']').and_then(|at| tools.get().get(at..)) else {
            return line;
        };
        let comma = if listed.is_empty() { "" } else { "," };
        let added = format!("{comma}{}]", definition(&name));
        let line = replace_parts(&line, &mut [(end, added)]);
        self.is_news = self.name.as_ref() != Some(&name);
        self.name = Some(name);
        line
    }
}

fn definition(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Gets the result of a call that was still running when it was answered. Waits for the result. A \
                        result that is longer than one answer comes in parts: give the offset that the last part named.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "job_id": { "type": "string", "description": "The id that the call was answered with" },
                "offset": { "type": "integer", "minimum": 0, "description": "Where the part begins, in bytes" }
            },
            "required": ["job_id"]
        },
        "annotations": { "readOnlyHint": true }
    })
}

impl Host {
    /// Answers `get_result`: from a call of this host process, or from the store.
    pub(crate) fn find_result(&mut self, params: &CallParams<'_>, caller: CallClient) {
        let Arguments { job_id, offset } = read_or_default(params.arguments);
        let Ok(job) = job_id.parse::<JobId>() else {
            let text = "INVALID_ARGUMENT: job_id must be the id that a call was answered with: 32 hexadecimal digits";
            return self.answer(&caller.id, tool_error(&caller, text, None));
        };
        let found = self.calls.iter().find(|(_, call)| call.has_row(job));
        let own =
            found.map(|(number, call)| (*number, call.is_under_way(), call.can_be_attached_to()));
        if let Some((number, true, true)) = own {
            return self.attach(number, caller);
        }
        if let Some((number, false, true)) = own {
            // The store has it, or will soon; with this answer it is received.
            self.forget_call(number);
        }
        self.look_up(ResultCall { caller, job, offset, left_behind: None, front: self.fronts });
    }

    fn look_up(&mut self, asked: ResultCall) {
        let request = Request { method: NAME.to_owned(), id: asked.caller.id.clone() };
        self.outstanding.insert(id_key(&asked.caller.id), request);
        let wait = self.settings.after;
        let (rows, events) = (self.rows.clone(), self.events.clone());
        outlast_engine::spawn(async move {
            let host = match &asked.left_behind {
                Some(_) => KnownHost::IsGone,
                None => KnownHost::MayRun,
            };
            let found = rows.find(asked.job, wait, host).await;
            drop(events.send(HostEvent::Found(asked, found)).await);
        });
    }

    /// Returns an equal call that an earlier host process left and that no client has received.
    pub(crate) fn unreceived_call(&self, digest: &CallDigest) -> Option<u64> {
        // Most host processes have none, and no call needs to wait for it.
        if self.journal.left.is_empty() {
            return None;
        }
        let input = digest.input.as_ref().map(|input| hex(input));
        let digest = hex(&digest.call);
        let is_it = |call: &UndeliveredCall| {
            call.digest == digest
                && self.session.has_mark(&call.greeting)
                && (input.is_none() || input == call.input)
        };
        let left = self.journal.left.iter().filter(|number| !self.is_looked_up(**number));
        left.filter_map(|number| self.journal.unreceived.get_key_value(number))
            .find(|(_, call)| is_it(call))
            .map(|(number, _)| *number)
    }

    /// Returns true if a caller waits for the store's record of a call that was left.
    fn is_looked_up(&self, number: u64) -> bool {
        self.looked_up.get(&number).is_some_and(|(front, request)| {
            *front == self.fronts && self.outstanding.contains_key(request)
        })
    }

    /// Answers a call with the outcome of the call that was left.
    pub(crate) fn answer_left_behind(&mut self, number: u64, caller: CallClient, line: &[u8]) {
        let job = self.journal.unreceived.get(&number).and_then(|call| call.job.clone());
        let Some(job) = job.and_then(|job| job.parse().ok()) else {
            self.journal.record_received(number);
            let why = "the process that kept the server was killed before it answered";
            return self.answer(&caller.id, failure_answer(&caller, why));
        };
        self.looked_up.insert(number, (self.fronts, id_key(&caller.id)));
        let left_behind = Some(LeftBehind { number, line: line.to_vec() });
        self.look_up(ResultCall { caller, job, offset: 0, left_behind, front: self.fronts });
    }

    /// Handles the answer of the store.
    pub(crate) fn answer_found(
        &mut self,
        asked: ResultCall,
        found: Result<WrappedJobState, String>,
    ) {
        let ResultCall { caller, job, offset, left_behind, front } = asked;
        if let Some(left) = &left_behind {
            let asker = (front, id_key(&caller.id));
            self.looked_up.retain(|number, by| *number != left.number || *by != asker);
        }
        // The request was cancelled, or the caller has left.
        if front != self.fronts || self.outstanding.remove(&id_key(&caller.id)).is_none() {
            return self.close_if_done();
        }
        if let (Some(left), Ok(found)) = (left_behind, &found) {
            let is_over = !matches!(found, WrappedJobState::Running(_));
            let is_old = matches!(found, WrappedJobState::Answered(_, age) if *age > REPLAYED);
            if is_over {
                self.journal.record_received(left.number);
            }
            if (is_old || matches!(found, WrappedJobState::Unknown))
                && let Some(message) = Message::read(&left.line)
            {
                return self.begin_call(&left.line, &message, &caller.id);
            }
        }
        let id = job.to_string();
        let name = self.result_tool.display_name();
        let (text, job) = match found {
            Ok(WrappedJobState::Answered(answer, _)) => {
                self.answer(&caller.id, self.page(&caller, &id, &answer, offset));
                return self.close_if_done();
            }
            Ok(WrappedJobState::Running(progress)) => {
                let so_far = progress.map(|it| format!(" ({})", it.message)).unwrap_or_default();
                let again = format!("Call {name} again with {{\"job_id\": \"{id}\"}}.");
                (format!("The call is still running{so_far}. {again}"), Some(&*id))
            }
            Ok(WrappedJobState::Failed(why)) => {
                let text =
                    format!("The call has no result: {why}. It may or may not have happened.");
                (text, Some(&*id))
            }
            Ok(WrappedJobState::Unknown) => {
                (format!("JOB_NOT_FOUND: there is no job {id}, or it is no longer kept"), None)
            }
            Err(error) => {
                tracing::error!(error, "a result cannot be read");
                let text = "STORE_UNAVAILABLE: the result cannot be read now; ask again";
                (text.to_owned(), None)
            }
        };
        self.answer(&caller.id, tool_error(&caller, &text, job));
        self.close_if_done();
    }

    /// Returns the stored answer unchanged, or a part of one that is too long.
    fn page(&self, caller: &CallClient, id: &str, answer: &StoredAnswer, offset: usize) -> Vec<u8> {
        let max = usize::try_from(self.settings.max_result).unwrap_or(usize::MAX);
        if offset == 0 && answer.value.len() <= max {
            return response(&caller.id, answer.key, &answer.value);
        }
        let text = result_text(&answer.value);
        let from = text.ceil_char_boundary(offset.min(text.len()));
        let to = text.floor_char_boundary(from.saturating_add(max).min(text.len()));
        let to = if to <= from { text.len().min(from.saturating_add(4)) } else { to };
        let part = text.get(from..text.ceil_char_boundary(to)).unwrap_or_default();
        let end = match to < text.len() {
            true => format!(
                "\n\n[bytes {from} to {to} of {}; for more, call {} with {{\"job_id\": \"{id}\", \"offset\": {to}}}]",
                text.len(),
                self.result_tool.display_name()
            ),
            false => format!("\n\n[bytes {from} to {} of {}; the end]", text.len(), text.len()),
        };
        text_result(caller, &format!("{part}{end}"), Some(id), false)
    }
}

/// Returns the text to page through for a long result: the text of its blocks if it has nothing else, otherwise its
/// JSON.
fn result_text(value: &str) -> String {
    #[derive(Deserialize)]
    struct ToolResult<'a> {
        content: Vec<Block>,
        #[serde(borrow, default, rename = "structuredContent")]
        structured: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Block {
        text: String,
    }
    match serde_json::from_str::<ToolResult<'_>>(value) {
        Ok(ToolResult { content, structured: None }) => {
            content.into_iter().map(|block| block.text).collect::<Vec<_>>().join("\n")
        }
        _ => value.to_owned(),
    }
}
