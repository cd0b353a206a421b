//! A tool call on its way through the host process: its caller, its state and its outcome.

use std::sync::Arc;

use outlast_core::{JobId, WaitCommand};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::canonical;
use crate::message::{CallParams, Message, client_name, id_key, replace_parts, response};
use crate::rows::{Row, RowEvent, StoredAnswer};

/// The prefix of all our own ids and tokens.
const OWN: &str = "outlast:";

/// A call that was sent to the server.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) digest: Option<CallDigest>,
    /// The caller that waits for the answer; `None` when the call was handed off or its caller has left.
    pub(crate) caller: Option<CallClient>,
    /// The time at which it is handed off.
    pub(crate) deadline: Option<Instant>,
    pub(crate) outcome: Option<CallEnd>,
    pub(crate) row: CallRow,
    /// True while the front is writing the answer.
    pub(crate) is_delivering: bool,
    /// True if a client has the answer.
    pub(crate) is_received: bool,
}

/// The digest of a call, independent of the notation of its JSON. A call without a digest is never taken for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallDigest {
    /// The digest of the tool and its arguments.
    pub(crate) call: [u8; 32],
    /// The digest of its answers to questions of the server.
    pub(crate) input: Option<[u8; 32]>,
}

impl CallDigest {
    /// Computes the digest; `None` for params that cannot be read.
    pub(crate) fn new(params: &CallParams<'_>) -> Option<Self> {
        let arguments = params.arguments.map_or("{}", |arguments| arguments.get());
        let digest_of = |first: &str, second: &str| -> Option<[u8; 32]> {
            let hash = Sha256::new().chain_update(first).chain_update([0]);
            Some(hash.chain_update(canonical::digest(second)?).finalize().into())
        };
        let input = match (params.input_responses, params.request_state) {
            (None, None) => None,
            (responses, state) => {
                let responses = responses.map_or("null", |responses| responses.get());
                let state = state.map_or("null", |state| state.get());
                Some(canonical::digest(&format!("[{responses},{state}]"))?)
            }
        };
        (!params.name.is_empty()).then_some(())?;
        Some(Self { call: digest_of(&params.name, arguments)?, input })
    }

    /// Returns true if the outcome of `earlier` may answer a call with this digest. A call that brings its own answers
    /// may be answered only by one that brought the same.
    pub(crate) fn repeats(&self, earlier: &Self) -> bool {
        self.call == earlier.call && (self.input.is_none() || self.input == earlier.input)
    }
}

/// The client's side of a call.
#[derive(Clone, Debug)]
pub(crate) struct CallClient {
    /// The client's id of the call, as the client wrote it.
    pub(crate) id: String,
    pub(crate) token: Option<String>,
    /// True if the client speaks the newest era, whose results name their type.
    pub(crate) is_modern: bool,
    /// The client's name, if the call has it.
    pub(crate) client: Option<String>,
}

impl CallClient {
    pub(crate) fn new(params: &CallParams<'_>, id: &str) -> Self {
        let meta = params.meta();
        Self {
            id: id.to_owned(),
            token: meta.progress_token.map(|token| token.get().to_owned()),
            is_modern: meta.protocol_version.is_some(),
            client: client_name(meta.client),
        }
    }
}

/// The call's row in the store.
#[derive(Debug)]
pub(crate) enum CallRow {
    None,
    Making,
    Made(Row),
}

/// The end of a call.
#[derive(Clone, Debug)]
pub(crate) enum CallEnd {
    /// The server's own line.
    Answered(Arc<Vec<u8>>),
    /// The call may or may not have happened.
    Lost(String),
}

impl Call {
    pub(crate) fn new(
        params: &CallParams<'_>,
        digest: Option<CallDigest>,
        caller: CallClient,
    ) -> Self {
        let arguments = params.arguments.map_or("{}", |arguments| arguments.get());
        Self {
            tool: params.name.clone().into_owned(),
            arguments: arguments.to_owned(),
            digest,
            caller: Some(caller),
            deadline: None,
            outcome: None,
            row: CallRow::None,
            is_delivering: false,
            is_received: false,
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.outcome.is_none()
    }

    /// Returns true if this call may answer an equal call (H5): its caller is gone, and no client has its result.
    pub(crate) fn can_be_attached_to(&self) -> bool {
        self.caller.is_none() && !self.is_received
    }

    /// Returns true if this job is its row.
    pub(crate) fn has_row(&self, job: JobId) -> bool {
        matches!(&self.row, CallRow::Made(row) if row.id == job)
    }

    /// Sends an event to its row, if it has one.
    pub(crate) fn tell_row(&self, event: RowEvent) {
        if let CallRow::Made(row) = &self.row {
            // Fails only when the job was cancelled.
            let _ = row.tell.send(event);
        }
    }

    /// Reports its outcome to its row.
    pub(crate) fn settle_row(&self) {
        let event = match &self.outcome {
            Some(CallEnd::Answered(line)) => parse_answer(line).map(RowEvent::Answered),
            Some(CallEnd::Lost(why)) => Some(RowEvent::Lost(why.clone())),
            None => None,
        };
        if let Some(event) = event {
            self.tell_row(event);
        }
    }

    /// Returns the answer for this caller.
    pub(crate) fn answer(&self, caller: &CallClient) -> Option<Vec<u8>> {
        Some(match self.outcome.as_ref()? {
            CallEnd::Answered(line) => with_id(line, &caller.id),
            CallEnd::Lost(why) => failure_answer(caller, why),
        })
    }
}

/// Returns the id and token under which the server has a call.
pub(crate) fn own_id(number: u64) -> String {
    format!("\"{OWN}{number}\"")
}

/// Returns true if an id or a token may be taken for one of outlast's.
pub(crate) fn looks_own(id: &str) -> bool {
    id_key(id).starts_with("\"outlast")
}

/// Returns the number of the call with this id or token, if it is one of outlast's.
pub(crate) fn call_number(id: &str) -> Option<u64> {
    id.strip_prefix('"')?.strip_suffix('"')?.strip_prefix(OWN)?.parse().ok()
}

/// Returns a line with another id.
pub(crate) fn with_id(line: &[u8], id: &str) -> Vec<u8> {
    match Message::read(line).and_then(|message| message.id) {
        Some(old) => replace_parts(line, &mut [(old.get(), id.to_owned())]),
        None => line.to_vec(),
    }
}

/// Returns the part of the server's answer that is stored.
pub(crate) fn parse_answer(line: &[u8]) -> Option<StoredAnswer> {
    let message = Message::read(line)?;
    let (key, value) = match (message.result, message.error) {
        (Some(result), _) => ("result", result),
        (None, Some(error)) => ("error", error),
        (None, None) => return None,
    };
    Some(StoredAnswer { key, value: value.get().into() })
}

/// Returns our own answer as a tool error, which every client accepts, also for a tool with an output schema.
pub(crate) fn tool_error(caller: &CallClient, text: &str, job: Option<&str>) -> Vec<u8> {
    answer_line(caller, tool_error_result(text, job))
}

/// Returns the answer to a call that was handed off: how to get its result, and how to be notified of its end (L1).
pub(crate) fn hand_off_answer(
    caller: &CallClient,
    mut text: String,
    job: &JobId,
    wait: Option<&WaitCommand>,
    client: Option<&str>,
) -> Vec<u8> {
    if let Some(sentence) = wait.and_then(|wait| wait.sentence(job, client)) {
        text = format!("{text} {sentence}");
    }
    let mut result = tool_error_result(&text, Some(&job.to_string()));
    if let Some(wait) = wait {
        result["_meta"]["outlast/wait"] = wait.argv(job).into();
    }
    answer_line(caller, result)
}

fn tool_error_result(text: &str, job: Option<&str>) -> Value {
    let mut result = result_value(text, job);
    result["isError"] = true.into();
    result
}

/// Returns our own answer with a text.
pub(crate) fn text_result(
    caller: &CallClient,
    text: &str,
    job: Option<&str>,
    is_error: bool,
) -> Vec<u8> {
    let result = if is_error { tool_error_result(text, job) } else { result_value(text, job) };
    answer_line(caller, result)
}

fn result_value(text: &str, job: Option<&str>) -> Value {
    let mut result = json!({ "content": [{ "type": "text", "text": text }] });
    if let Some(job) = job {
        result["_meta"] = json!({ "outlast/jobId": job });
    }
    result
}

fn answer_line(caller: &CallClient, mut result: Value) -> Vec<u8> {
    if caller.is_modern {
        result["resultType"] = "complete".into();
    }
    response(&caller.id, "result", &result.to_string())
}

/// Returns the answer to a call that may or may not have happened.
pub(crate) fn failure_answer(caller: &CallClient, why: &str) -> Vec<u8> {
    let text = format!(
        "SUBMIT_UNKNOWN: {why}. The call may or may not have happened, and it was not made again. Look at what it \
         should have changed before you call it again."
    );
    tool_error(caller, &text, None)
}
