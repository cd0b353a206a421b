//! The answers of tools: an answer about a job in the tool's format, or a refusal with a code and a next step.

use outlast_core::{Code, Job, JobId, StateKind, StoreError};
use outlast_engine::PollError;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ContentBlock, ErrorCode, MetaObject, RequestId, ServerJsonRpcMessage,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::json_size::JsonSize;
use crate::text::printable;

/// Returns an answer in the tool's format: the same JSON as structured content and, indented, as text.
pub(crate) fn answer_json<T: Serialize>(shape: &T) -> ToolResult {
    let value = serde_json::to_value(shape).map_err(|_| Refusal::internal())?;
    Ok(answer_with_text(indent(shape)?, value))
}

/// Returns an answer in the tool's format for a shape that may have several megabytes: moves its long parts instead of
/// copying them.
pub(crate) fn answer_long_json<T>(shape: T) -> ToolResult
where
    T: Serialize + TryInto<Value>,
{
    let text = indent(&shape)?;
    Ok(answer_with_text(text, shape.try_into().map_err(|_| Refusal::internal())?))
}

/// Returns an answer in the tool's format with a separate text.
pub(crate) fn answer_with_text(text: String, shape: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(shape);
    result
}

/// Returns an answer in the tool's format with a text of several blocks.
pub(crate) fn answer_with_blocks(blocks: Vec<ContentBlock>, shape: Value) -> CallToolResult {
    let mut result = CallToolResult::success(blocks);
    result.structured_content = Some(shape);
    result
}

/// Removes the members of an object that are null.
pub(crate) fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, member| !member.is_null());
    }
    object
}

/// Serializes to indented JSON and measures the length first: a long text that grows by doubling needs up to three times its
/// size.
pub(crate) fn indent(shape: &impl Serialize) -> Result<String, Refusal> {
    let mut measure = JsonSize { length: 0, longest: usize::MAX };
    serde_json::to_writer_pretty(&mut measure, shape).map_err(|_| Refusal::internal())?;
    let mut text = Vec::with_capacity(measure.length);
    serde_json::to_writer_pretty(&mut text, shape).map_err(|_| Refusal::internal())?;
    String::from_utf8(text).map_err(|_| Refusal::internal())
}

/// Refuses a request with the id of another request that is not answered yet (JSON-RPC -32600).
pub(crate) fn id_in_use(id: &RequestId) -> ServerJsonRpcMessage {
    let why = "this id belongs to a request that is not answered yet; give every request an id of its own";
    ServerJsonRpcMessage::error(ErrorData::invalid_request(why, None), Some(id.clone()))
}

/// Refuses a request while too many others are not answered yet (JSON-RPC -32000).
pub(crate) fn too_many_calls(id: &RequestId) -> ServerJsonRpcMessage {
    let why = "too many requests are unanswered on this connection; send this one again once some of them are answered";
    let data = json!({ "code": "TOO_MANY_CALLS", "retryable": true });
    ServerJsonRpcMessage::error(
        ErrorData::new(ErrorCode(-32000), why, Some(data)),
        Some(id.clone()),
    )
}

/// The result of a tool call.
#[derive(Debug)]
pub(crate) enum CallResult {
    Now(CallToolResult),
    /// An answer that leaves this job running.
    LeftRunning(CallToolResult, JobId),
    /// A task that continues under this job's id.
    Task(Box<Job>),
}

impl CallResult {
    /// Returns the answer of a call that started this job, or found it.
    pub(crate) fn from_start(result: CallToolResult, job: JobId, state: StateKind) -> Self {
        match state.is_terminal() {
            true => Self::Now(result),
            false => Self::LeftRunning(result, job),
        }
    }
}

impl From<CallToolResult> for CallResult {
    fn from(result: CallToolResult) -> Self {
        Self::Now(result)
    }
}

/// The answer of a tool, or the reason that it did not do what was requested.
pub(crate) type ToolResult<T = CallToolResult> = Result<T, Refusal>;

/// The reason that a tool did not do what was requested.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: &'static str,
    sentence: String,
    /// The number of seconds after which trying again may help; `None` if it cannot help.
    retry_after: Option<u64>,
    /// The job that may have been started.
    job: Option<JobId>,
}

/// The code of a refusal. Failures of jobs use the codes of core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefusalCode {
    text: &'static str,
    retry_after: Option<u64>,
}

impl RefusalCode {
    const VALIDATION: Self = Self { text: "VALIDATION_ERROR", retry_after: None };
    pub(crate) const CONVERSATION_NOT_FOUND: Self =
        Self { text: "CONVERSATION_NOT_FOUND", retry_after: None };
    pub(crate) const CONVERSATION_CORRUPTED: Self =
        Self { text: "CONVERSATION_CORRUPTED", retry_after: None };
    pub(crate) const JOB_IN_PROGRESS: Self =
        Self { text: "JOB_IN_PROGRESS", retry_after: Some(30) };
    pub(crate) const CONFIGURATION: Self = Self { text: "CONFIGURATION_ERROR", retry_after: None };
    const IDEMPOTENCY_CONFLICT: Self = Self { text: "IDEMPOTENCY_CONFLICT", retry_after: None };
    const TOO_MANY_JOBS: Self = Self { text: "TOO_MANY_JOBS", retry_after: Some(30) };
    const TOO_MANY_POLLS: Self = Self { text: "TOO_MANY_POLLS", retry_after: Some(5) };
    const BUDGET_EXCEEDED: Self = Self { text: "BUDGET_EXCEEDED", retry_after: None };
    const STORE_FULL: Self = Self { text: "STORE_FULL", retry_after: Some(60) };
    const STORE_CORRUPT: Self = Self { text: "STORE_CORRUPT", retry_after: None };
    const STORE_UNAVAILABLE: Self = Self { text: "SERVICE_UNAVAILABLE", retry_after: Some(5) };
    const STORE_UNCONFIRMED: Self = Self { retry_after: None, ..Self::STORE_UNAVAILABLE };
}

impl From<Code> for RefusalCode {
    fn from(code: Code) -> Self {
        Self { text: code.as_str(), retry_after: code.is_retryable().then_some(30) }
    }
}

impl Refusal {
    /// Returns a refusal that the caller can correct.
    pub(crate) fn validation(sentence: impl Into<String>) -> Self {
        Self::because(RefusalCode::VALIDATION, sentence)
    }

    /// Returns the refusal for a defect in this server; the log has the details.
    pub(crate) fn internal() -> Self {
        let sentence = "something is wrong with this server; its log has the details";
        Self::because(Code::InternalError, sentence)
    }

    /// Returns a refusal of this kind; a temporary one says when to try again.
    pub(crate) fn because(code: impl Into<RefusalCode>, sentence: impl Into<String>) -> Self {
        let RefusalCode { text, retry_after } = code.into();
        Self { code: text, sentence: sentence.into(), retry_after, job: None }
    }

    /// Returns the reason that a held call failed, as stored for clients. A new call could pay again for a run that may
    /// still be in progress.
    pub(crate) fn from_failure(job: &Job) -> Self {
        let Some(failure) = job.failures.last() else { return Self::internal() };
        let because = Self::because(failure.code, printable(&failure.message));
        match job.run_left_text() {
            None => Self { retry_after: job.may_succeed_again().then_some(30), ..because },
            Some(told) => because.without_retry(&told),
        }
    }

    /// Marks a refusal that an identical call would get again, and adds what to do instead.
    pub(crate) fn without_retry(self, instead: &str) -> Self {
        let sentence = format!("{}; {instead}", self.sentence);
        Self { sentence, retry_after: None, ..self }
    }

    /// Marks a refusal after which an identical call resumes the run that was left: trying again helps, and costs nothing.
    pub(crate) fn or_call_again(self) -> Self {
        let sentence = format!("{}, and so does the same call made again", self.sentence);
        Self { sentence, retry_after: Some(30), ..self }
    }

    #[cfg(test)]
    pub(crate) fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Returns the refusal as text only, for an answer without a result.
    pub(crate) fn into_sentence(self) -> String {
        format!("{}: {}", self.code, self.sentence)
    }

    /// Returns its code.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the refusal in MCP's format: an error result that a model can read and act on.
    pub(crate) fn into_result(self) -> CallToolResult {
        let Self { code, sentence, retry_after, job } = self;
        let mut result =
            CallToolResult::error(vec![ContentBlock::text(format!("{code}: {sentence}"))]);
        let error = without_nulls(json!({
            "code": code,
            "message": sentence,
            "retryable": retry_after.is_some(),
            "retry_after_seconds": retry_after,
            "job_id": job.map(|id| id.to_string())
        }));
        let mut meta = MetaObject::default();
        meta.0.insert("outlast/error".to_owned(), error);
        result.meta = Some(meta);
        result
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let refusal = match &error {
            StoreError::KeyConflict(_) => Self::because(
                RefusalCode::IDEMPOTENCY_CONFLICT,
                "this idempotency_key was used for another request; use a new key for a new request",
            ),
            StoreError::ConversationBusy(_) => Self::because(
                RefusalCode::JOB_IN_PROGRESS,
                "the conversation has an unfinished job; wait for it to end",
            ),
            StoreError::TooManyJobs => Self::because(
                RefusalCode::TOO_MANY_JOBS,
                "too many unfinished jobs; wait for some to end, or cancel those you no longer need",
            ),
            StoreError::TooManyBytes => Self::because(
                RefusalCode::STORE_FULL,
                "your stored questions and results take all the room one owner may have here; remove conversations (`outlast conversations delete ID`) or finished jobs (`outlast jobs prune`) where the server runs, or raise OUTLAST_MAX_BYTES_PER_OWNER",
            ),
            StoreError::BudgetExceeded(refused) => {
                let retry_after = refused.next_day.map(|rest| rest.as_secs() + 1);
                let code = RefusalCode { retry_after, ..RefusalCode::BUDGET_EXCEEDED };
                Self::because(code, format!("{refused}; {}", refused.next_step()))
            }
            StoreError::Full => Self::because(
                RefusalCode::STORE_FULL,
                "the disk of the job store is full; make room, then try again (finished jobs can still be read)",
            ),
            StoreError::Corrupt { .. } => Self::because(
                RefusalCode::STORE_CORRUPT,
                "the job store is damaged, or its file was deleted or replaced; restore a backup or point OUTLAST_STORE at a new file, then restart outlast",
            ),
            StoreError::Newer { .. } => Self::because(
                RefusalCode::CONFIGURATION,
                "the job store was written by a newer outlast; update outlast",
            ),
            StoreError::Outdated { .. } => Self::because(
                RefusalCode::CONFIGURATION,
                "the job store is an older copy of itself; stop the servers and run `outlast store restore --in-place`",
            ),
            StoreError::Unavailable(_) => Self::because(
                RefusalCode::STORE_UNAVAILABLE,
                "the job store cannot be used just now; try again",
            ),
            StoreError::NotInserted(_) => Self::because(
                RefusalCode::STORE_UNAVAILABLE,
                "the job store cannot be used just now, and no job was started; try again",
            ),
            StoreError::InsertUnconfirmed { job, .. } => {
                let sentence = format!(
                    "the job store went away before it confirmed job {job}, which may have been started; look for that job when \
                     the store answers again, and start another only if it is not found"
                );
                Self { job: Some(*job), ..Self::because(RefusalCode::STORE_UNCONFIRMED, sentence) }
            }
            StoreError::Unconfirmed(_) => Self::because(
                RefusalCode::STORE_UNCONFIRMED,
                "the job store went away before it confirmed this call, which may have been carried out or not; list your jobs before you make it again",
            ),
            StoreError::LeaseLost | StoreError::NotFound => Self::internal(),
        };
        let source = std::error::Error::source(&error).map(ToString::to_string);
        tracing::warn!(%error, source, code = refusal.code, "call refused");
        refusal
    }
}

impl From<PollError> for Refusal {
    fn from(error: PollError) -> Self {
        match error {
            PollError::Store(error) => error.into(),
            PollError::TooManyPolls => {
                tracing::warn!(%error, code = RefusalCode::TOO_MANY_POLLS.text, "call refused");
                let sentence =
                    "too many calls are waiting for jobs already; poll again in a few seconds";
                Self::because(RefusalCode::TOO_MANY_POLLS, sentence)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F2: a start that the store did not confirm may have created a job. A client that repeats the call automatically would
    /// pay for it twice.
    #[test]
    fn f2_a_call_that_was_not_confirmed_is_not_called_retryable() {
        let told = |error: StoreError| {
            Refusal::from(error).into_result().meta.unwrap().0["outlast/error"].clone()
        };
        let error = told(StoreError::Unconfirmed("connection closed".into()));
        assert_eq!(error["code"], "SERVICE_UNAVAILABLE");
        assert_eq!(error["retryable"], false, "{error}");
        assert_eq!(told(StoreError::Unavailable("no connection".into()))["retryable"], true);
    }
}
