//! Questions of waiting jobs (M4), put to the client of a call that waits for such a job.
//!
//! A client that declared elicitation is asked: over its connection while its call waits, or, in 2026-07-28, by an answer to
//! its call, which it repeats with the user's answer. Any other client gets a text that says how a person answers.

mod request_state;

use std::collections::BTreeSet;

use outlast_core::{
    AnswerOutcome, AnswerRefusal, Code, Job, JobId, NewQuestion, Profile, Question, Scope,
};
use outlast_engine::Engine;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest,
    InputRequests, InputRequiredResult, InputResponses, MetaObject, ProtocolVersion,
    RequestMetaObject, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RequestHandle, RoleServer};
use serde_json::{Value, json};

pub(crate) use request_state::{CallBinding, StatedQuestion};

use crate::app;
use crate::caller::{self, Caller};
use crate::reply::Refusal;
use crate::tasks::report_refusal;
use crate::text::printable;

/// The field of a form that has the answer.
const ANSWER: &str = "answer";
/// The maximum number of forms that one call shows again, because their answers could not be recorded.
const MAX_REPEATS: u32 = 3;
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The way to ask the user of a client.
#[derive(Clone)]
pub(crate) enum QuestionChannel {
    /// A request over the connection of the call.
    Request { peer: Peer<RoleServer> },
    /// The answer to the call, which the client then repeats.
    Answer,
}

impl QuestionChannel {
    /// Returns the channel of a client that declared forms; `None` for any other client.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let declared = context.client_capabilities()?.elicitation?;
        // In revisions without modes, every client that declares elicitation has forms.
        if declared.form.is_none() && declared.url.is_some() {
            return None;
        }
        if caller::is_modern(context) {
            return Some(Self::Answer);
        }
        let version = context.protocol_version()?;
        let knows = version >= ProtocolVersion::V_2025_06_18;
        knows.then(|| Self::Request { peer: context.peer.clone() })
    }
}

/// Returns whether a job may ask something.
pub(crate) fn may_ask(job: &Job) -> bool {
    job.new.request.is_workflow() || job.new.profile.provider() == Profile::RESEARCHER
}

/// A question that the answer to a call contains.
pub(crate) struct AskedQuestion {
    pub(crate) job: JobId,
    pub(crate) question: Question,
}

/// The dialog of one wait with its client.
pub(crate) struct Dialog<'a> {
    engine: &'a Engine,
    scope: Scope,
    job: JobId,
    peer: Option<Peer<RoleServer>>,
    task: Option<JobId>,
    /// The questions that were put to the user during this call. None is put twice: a user who closed the form does not want
    /// to see it again.
    asked: BTreeSet<String>,
    /// The number of forms that were shown again.
    repeats: u32,
    open: Option<OpenForm>,
}

/// A form that the client shows.
struct OpenForm {
    question: String,
    /// Taken when the client has answered.
    request: Option<RequestHandle<RoleServer>>,
}

impl Drop for OpenForm {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            // The client must not show a question that nobody waits for.
            drop(outlast_engine::spawn(async move {
                let reason = "the question was answered, or the call ended".to_owned();
                drop(request.cancel(Some(reason)).await);
            }));
        }
    }
}

impl<'a> Dialog<'a> {
    pub(crate) fn new(engine: &'a Engine, caller: &Caller, job: JobId) -> Self {
        let peer = match &caller.channel {
            Some(QuestionChannel::Request { peer }) => Some(peer.clone()),
            Some(QuestionChannel::Answer) | None => None,
        };
        let task = caller.is_of_task.then_some(job);
        let (asked, open) = (BTreeSet::new(), None);
        Self { engine, scope: caller.scope(), job, peer, task, asked, repeats: 0, open }
    }

    /// Shows the open question of the job, and withdraws a form whose question is not open any more.
    pub(crate) async fn follow(&mut self, job: &Job) {
        let Some(peer) = &self.peer else { return };
        let question = job.open_question();
        if let Some(open) = &self.open
            && question.is_none_or(|question| question.id != open.question)
        {
            self.open = None;
        }
        let Some(question) = question.filter(|question| !self.asked.contains(&question.id)) else {
            return;
        };
        self.asked.insert(question.id.clone());
        let Some(form) = form(question, self.task) else { return };
        let request = ServerRequest::ElicitRequest(form);
        match peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
            Ok(request) => {
                self.open =
                    Some(OpenForm { question: question.id.clone(), request: Some(request) });
            }
            Err(error) => tracing::debug!(%error, "question not sent"),
        }
    }

    /// Waits until the client has answered the form. Cancel-safe.
    pub(crate) async fn response(&mut self) -> Reaction {
        let request = self.open.as_mut().and_then(|open| open.request.as_mut());
        let Some(request) = request else { return std::future::pending().await };
        let response = (&mut request.rx).await;
        if let Some(open) = &mut self.open {
            open.request = None;
        }
        match response {
            Ok(Ok(result)) => serde_json::to_value(result)
                .map_or(Reaction::LeaveOpen, |result| Reaction::read(&result)),
            Ok(Err(error)) => {
                tracing::info!(job.id = %self.job, %error, "question not shown by the client");
                Reaction::NotShown
            }
            Err(_) => Reaction::NotShown,
        }
    }

    /// Records the reaction to the form. A form whose answer cannot be recorded is shown again a few times: not more often,
    /// because no user may be behind the answers.
    pub(crate) async fn record(&mut self, reaction: Reaction) {
        let Some(open) = self.open.take() else { return };
        let asks_again =
            record(self.engine, &self.scope, &self.job, &open.question, reaction).await;
        if asks_again && self.repeats < MAX_REPEATS {
            self.repeats += 1;
            self.asked.remove(&open.question);
        }
    }
}

/// The reaction of a user to a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    Answer(String),
    /// The question stays open for others.
    LeaveOpen,
    /// The client did not show the form.
    NotShown,
}

impl Reaction {
    /// Reads the result of an elicitation. A user who declines says no.
    pub(crate) fn read(result: &Value) -> Self {
        match (result["action"].as_str(), result["content"][ANSWER].as_str()) {
            (Some("accept"), Some(text)) => Self::Answer(text.to_owned()),
            (Some("decline"), _) => Self::Answer(NewQuestion::NO.to_owned()),
            _ => Self::LeaveOpen,
        }
    }
}

/// Records an answer. One that does not count leaves everything as it is: the first answer counts. Returns true if the answer
/// is none that the question takes, so that the user has to be asked again.
pub(crate) async fn record(
    engine: &Engine,
    scope: &Scope,
    job: &JobId,
    question: &str,
    reaction: Reaction,
) -> bool {
    let Reaction::Answer(text) = reaction else { return false };
    match engine.answer(scope, job, Some(question), &text).await {
        Ok(Some(AnswerOutcome::Accepted(_)) | None) => false,
        Ok(Some(AnswerOutcome::Refused(why))) => {
            tracing::info!(job.id = %job, %why, "answer not counted");
            matches!(why, AnswerRefusal::NotAChoice(_) | AnswerRefusal::TooLong(_))
        }
        Err(error) => {
            tracing::warn!(job.id = %job, %error, "failed to record an answer");
            true
        }
    }
}

/// Returns the requests for the input of a job that waits for an answer.
pub(crate) fn input_requests(question: &Question) -> Option<InputRequests> {
    let form = InputRequest::Elicitation(form(question, None)?);
    Some(InputRequests::from([(question.id.clone(), form)]))
}

/// Returns the answer to a call whose job waits for an answer.
pub(crate) async fn ask_by_answer(
    engine: &Engine,
    asked: &AskedQuestion,
    binding: Option<&CallBinding>,
) -> Result<CallToolResponse, Refusal> {
    let requests = input_requests(&asked.question).ok_or_else(Refusal::internal)?;
    let binding = binding.ok_or_else(Refusal::internal)?;
    let state = StatedQuestion::seal(engine, asked, binding).await?;
    let mut meta = MetaObject::default();
    meta.0.insert("outlast/jobId".to_owned(), asked.job.to_string().into());
    Ok(InputRequiredResult::new(Some(requests), Some(state)).with_meta(meta).into())
}

/// Records the user's reaction to the question that the state names. Returns that question: the call that brings the state
/// waits for its job, and does not ask it again unless it brings no answer that the question takes.
pub(crate) async fn resume(
    engine: &Engine,
    scope: &Scope,
    state: &str,
    binding: &CallBinding,
    responses: &InputResponses,
) -> Result<StatedQuestion, ErrorData> {
    let opened = StatedQuestion::open(engine, state, binding).await;
    let mut stated = opened.map_err(|error| report_refusal(error.into()))??;
    stated.asks_again = match responses.get(&stated.question) {
        Some(response) => {
            let reaction = Reaction::read(response);
            record(engine, scope, &stated.job, &stated.question, reaction).await
        }
        None => true,
    };
    Ok(stated)
}

/// Returns the form of a question.
fn form(question: &Question, task: Option<JobId>) -> Option<ElicitRequest> {
    let mut field = json!({ "type": "string", "title": "Answer" });
    if !question.choices.is_empty() {
        field["enum"] = json!(question.choices);
    }
    if let Some(default) = &question.default {
        field["default"] = json!(default);
    }
    let schema = json!({ "type": "object", "properties": { ANSWER: field }, "required": [ANSWER] });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    let meta = task.map(|task| {
        let mut meta = RequestMetaObject::default();
        meta.insert(RELATED_TASK.to_owned(), json!({ "taskId": task.to_string() }));
        meta
    });
    let message = printable(&question.text);
    let params = ElicitRequestParams::FormElicitationParams { meta, message, requested_schema };
    Some(ElicitRequest::new(params))
}

/// Returns the refusal of a call whose job waits for an answer that its client cannot be asked for.
pub(crate) fn report_waiting(job: &Job, question: &Question, page: Option<&str>) -> Refusal {
    let sentence = format!("{}; then make the same call again", how_to_answer(job, question, page));
    Refusal::because(Code::NotAnswered, sentence)
}

/// Says how a person answers the question of a job.
pub(crate) fn how_to_answer(job: &Job, question: &Question, page: Option<&str>) -> String {
    let text = printable(&question.text);
    let id = job.id;
    let choices = match question.choices.is_empty() {
        true => String::new(),
        false => format!(" ({})", printable(&question.choices.join(", "))),
    };
    let page = page.map(|base| format!(", or on {}", app::page_of_job(base, &id.to_string())));
    let page = page.unwrap_or_default();
    let after = match &question.default {
        Some(default) => format!("`{}` counts", printable(default)),
        None => "the job fails".to_owned(),
    };
    let deadline = question.deadline;
    format!(
        "job {id} waits for an answer of its user: {text}{choices} Answer with `outlast jobs answer {id} TEXT` where the \
         server runs{page}; without an answer by {deadline}, {after}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M4: decline is no; cancel, and a form without an answer, leave the question open.
    #[test]
    fn m4_a_declined_form_is_a_no_and_a_closed_one_leaves_the_question_open() {
        let cases = [
            (json!({ "action": "accept", "content": { "answer": "yes" } }), Some("yes")),
            (json!({ "action": "decline" }), Some("no")),
            (json!({ "action": "cancel" }), None),
            (json!({ "action": "accept" }), None),
            (json!({ "action": "accept", "content": { "other": "yes" } }), None),
            (json!({}), None),
        ];
        for (result, expected) in cases {
            let expected = match expected {
                Some(text) => Reaction::Answer(text.to_owned()),
                None => Reaction::LeaveOpen,
            };
            assert_eq!(Reaction::read(&result), expected, "{result}");
        }
    }
}
