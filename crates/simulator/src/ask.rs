//! An accepted research request, independent of its API.

use serde_json::Value;

use crate::effort::Effort;
use crate::scenario::without_markers;
use crate::sonar::prices::{Context, Model};

/// The input of a run.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) api: Api,
    /// The session of the message; it names the run.
    pub(crate) session: Option<String>,
    /// The fields that only Sonar has.
    pub(crate) sonar: Option<Sonar>,
    /// The key that makes the submit of a job idempotent.
    pub(crate) key: Option<IdempotencyKey>,
    /// The question as JSON: two submits with the same input ask the same question twice.
    pub(crate) input: String,
    /// All texts of the question, which may contain markers.
    pub(crate) prompt: String,
    /// The last message without markers: the subject of the report.
    pub(crate) question: String,
    pub(crate) effort: Effort,
    /// The value of `model` until the run has completed.
    pub(crate) label: String,
    pub(crate) model: &'static str,
    pub(crate) background: bool,
    pub(crate) stream: bool,
    pub(crate) store: bool,
    /// Metadata from the client; only OpenAI has it.
    pub(crate) metadata: Value,
}

/// The API through which a run was submitted. The same endpoints find a run of any API by its id, except for
/// chat answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Api {
    Agent,
    OpenAi,
    SonarAsync,
    SonarChat,
    Gemini,
    Anthropic,
}

impl Api {
    /// Returns true if its runs are response objects.
    pub(crate) fn has_responses(self) -> bool {
        matches!(self, Self::Agent | Self::OpenAi)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Sonar {
    pub(crate) model: &'static Model,
    pub(crate) context: Context,
    pub(crate) related_questions: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey {
    pub(crate) key: String,
    /// The whole request: using the key with another request is an error.
    pub(crate) request: String,
}

impl Ask {
    /// Creates plain background research about the last of these texts; the API sets the other fields.
    pub(crate) fn new(api: Api, input: &Value, texts: &[String]) -> Self {
        Self {
            api,
            session: None,
            sonar: None,
            key: None,
            input: input.to_string(),
            prompt: texts.join("\n"),
            question: texts.last().map(|text| without_markers(text)).unwrap_or_default(),
            effort: Effort::Medium,
            label: String::new(),
            model: "",
            background: true,
            stream: false,
            store: true,
            metadata: Value::Null,
        }
    }

    #[cfg(test)]
    pub(crate) fn to_agent(question: &str, effort: Effort) -> Self {
        let model = "openai/gpt-6-luna";
        Self { effort, model, ..Self::new(Api::Agent, &question.into(), &[question.to_owned()]) }
    }
}
