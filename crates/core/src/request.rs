//! The request of a job: what its caller asked for.
//!
//! The JSON stays exactly as it was written, so that the fields of other versions survive a save, a copy and a retry.
//! Its meaning is parsed once, when it is first needed.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::{
    BeginError, CheckRequest, NanoUsd, ProviderError, ProviderErrorKind, ResearchKind,
    ResearchRequest, WorkflowRequest,
};

/// The request of a job.
#[derive(Clone, Debug)]
pub struct Request {
    json: Value,
    content: OnceLock<Box<RequestContent>>,
}

/// The meaning of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestContent {
    /// A question for a research provider.
    Research(ResearchRequest),
    /// The input of a configured workflow or of a wrapped tool.
    Workflow(WorkflowRequest),
    /// A report whose citations are checked.
    CitationCheck(CheckRequest),
    /// A request that this version cannot read. Its job is listed, shown, copied and deleted, and never sent.
    Unreadable {
        /// The parser's reason.
        reason: String,
    },
}

/// A text that is recorded in a request, next to the fields that its provider reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestNote {
    /// The tool or command that created it.
    Tool,
    /// The provider whose conversation it moved (P1).
    MovedFrom,
    /// The job that it repeats.
    RetryOf,
    /// The key of the job that it repeats, if that job's outcome was unknown (P6). A request sent under the same key
    /// is paid for once if the provider honours keys.
    RetryKey,
    /// The caller's own name for the session that the job belongs to.
    SessionId,
    /// The trace that the request belongs to ([`crate::Traceparent`]).
    Traceparent,
}

impl RequestNote {
    pub(crate) const fn field(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::MovedFrom => "moved_from",
            Self::RetryOf => "retry_of",
            Self::RetryKey => "retry_key",
            Self::SessionId => "session_id",
            Self::Traceparent => "traceparent",
        }
    }
}

impl Request {
    /// Returns the JSON as it was written.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Returns the meaning of the request.
    pub fn content(&self) -> &RequestContent {
        self.content.get_or_init(|| Box::new(RequestContent::parse(&self.json)))
    }

    /// Returns the question, if the request is readable and asks for research.
    pub fn research(&self) -> Option<&ResearchRequest> {
        match self.content() {
            RequestContent::Research(ask) => Some(ask),
            RequestContent::Workflow(_)
            | RequestContent::CitationCheck(_)
            | RequestContent::Unreadable { .. } => None,
        }
    }

    /// Returns the question, for the provider that sends it.
    pub fn to_research(&self) -> Result<&ResearchRequest, BeginError> {
        self.research().ok_or_else(|| BeginError::NotSent(self.unreadable()))
    }

    /// Returns the input of a workflow, for the command or tool that runs it.
    pub fn to_workflow(&self) -> Result<&WorkflowRequest, ProviderError> {
        match self.content() {
            RequestContent::Workflow(ask) => Ok(ask),
            RequestContent::Research(_)
            | RequestContent::CitationCheck(_)
            | RequestContent::Unreadable { .. } => Err(self.unreadable()),
        }
    }

    /// Returns the report whose citations are checked.
    pub fn to_citation_check(&self) -> Result<&CheckRequest, ProviderError> {
        match self.content() {
            RequestContent::CitationCheck(check) => Ok(check),
            RequestContent::Research(_)
            | RequestContent::Workflow(_)
            | RequestContent::Unreadable { .. } => Err(self.unreadable()),
        }
    }

    /// Returns the kind of answer that is wanted; a request that cannot be read counts as research.
    pub fn kind(&self) -> ResearchKind {
        self.research().map(|ask| ask.kind).unwrap_or_default()
    }

    /// Returns the maximum cost, if the caller set one.
    pub fn budget(&self) -> Option<NanoUsd> {
        self.research()?.budget
    }

    /// Returns the same request with this maximum cost.
    pub fn with_budget(&self, budget: NanoUsd) -> Self {
        let mut json = self.json.clone();
        if let Value::Object(fields) = &mut json {
            fields.insert("budget".to_owned(), budget.0.into());
        }
        json.into()
    }

    /// Returns whether the request is the input of a workflow, readable or not.
    pub fn is_workflow(&self) -> bool {
        matches!(&self.json, Value::Object(fields) if !fields.contains_key(MESSAGES) && !fields.contains_key(REPORT))
    }

    /// Returns whether the request is a check of citations, readable or not.
    pub fn is_citation_check(&self) -> bool {
        matches!(&self.json, Value::Object(fields) if !fields.contains_key(MESSAGES) && fields.contains_key(REPORT))
    }

    /// Returns a recorded text.
    pub fn note(&self, note: RequestNote) -> Option<&str> {
        self.json.get(note.field())?.as_str()
    }

    /// Records a text in the request, or removes it.
    pub fn set_note(&mut self, note: RequestNote, text: Option<String>) {
        let Value::Object(fields) = &mut self.json else { return };
        match text {
            Some(text) => fields.insert(note.field().to_owned(), Value::String(text)),
            None => fields.remove(note.field()),
        };
        self.content = OnceLock::new();
    }

    fn unreadable(&self) -> ProviderError {
        let detail = match self.content() {
            RequestContent::Unreadable { reason } => Some(reason.clone()),
            RequestContent::Research(_)
            | RequestContent::Workflow(_)
            | RequestContent::CitationCheck(_) => None,
        };
        let sentence = "the stored request cannot be read by this version";
        ProviderError { detail, ..ProviderError::new(ProviderErrorKind::Rejected, sentence) }
    }
}

/// The field that only a question for a research provider has.
const MESSAGES: &str = "messages";
/// The field that, of the others, only a check of citations has.
const REPORT: &str = "report";

impl RequestContent {
    fn parse(json: &Value) -> Self {
        let parsed = match json {
            Value::Object(fields) if fields.contains_key(MESSAGES) => {
                ResearchRequest::deserialize(json).map(Self::Research)
            }
            Value::Object(fields) if fields.contains_key(REPORT) => {
                CheckRequest::deserialize(json).map(Self::CitationCheck)
            }
            _ => WorkflowRequest::deserialize(json).map(Self::Workflow),
        };
        parsed.unwrap_or_else(|error| Self::Unreadable { reason: error.to_string() })
    }
}

impl From<Value> for Request {
    fn from(json: Value) -> Self {
        Self { json, content: OnceLock::new() }
    }
}

/// Two requests are equal if their JSON is.
impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The request of every kind of job, as it is stored, with a field of another version.
    fn stored() -> [&'static str; 3] {
        [
            r#"{"budget":5,"effort":"high","filters":{},"later":[1],"messages":[{"content":"why","role":"user"}],"tool":"t"}"#,
            r#"{"arguments":{"n":1.5e+300},"later":{"a":null},"message":"m","session_id":"s","timeout_ms":9}"#,
            r#"{"kind":"of another version","messages":"?"}"#,
        ]
    }

    #[test]
    fn the_json_stays_as_it_was_written() {
        for text in stored() {
            let mut request = Request::from(serde_json::from_str::<Value>(text).unwrap());
            let _ = request.content();
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
            request.set_note(RequestNote::RetryOf, Some("x".to_owned()));
            assert_eq!(request.note(RequestNote::RetryOf), Some("x"));
            request.set_note(RequestNote::RetryOf, None);
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
        }
    }

    #[test]
    fn a_request_is_parsed_by_its_fields() {
        let [research, workflow, unreadable] =
            stored().map(|text| Request::from(serde_json::from_str::<Value>(text).unwrap()));
        assert_eq!(research.research().unwrap().question(), "why");
        assert_eq!(
            (research.budget(), research.note(RequestNote::Tool)),
            (Some(NanoUsd(5)), Some("t"))
        );
        assert_eq!(research.with_budget(NanoUsd(7)).budget(), Some(NanoUsd(7)));
        assert!(!research.is_workflow() && research.to_workflow().is_err());
        assert_eq!(workflow.to_workflow().unwrap().message.as_deref(), Some("m"));
        assert!(workflow.is_workflow() && workflow.research().is_none());
        assert!(matches!(unreadable.content(), RequestContent::Unreadable { .. }));
        assert!(!unreadable.is_workflow(), "it may be charged for");
        assert_eq!(unreadable.kind(), ResearchKind::Research);
    }

    /// A request that cannot be read is never sent.
    #[test]
    fn an_unreadable_request_is_refused_before_it_is_sent() {
        for json in
            [json!(null), json!("text"), json!({ "messages": 1 }), json!({ "arguments": 1 })]
        {
            let request = Request::from(json);
            let Err(BeginError::NotSent(error)) = request.to_research() else {
                panic!("{request:?}")
            };
            assert_eq!(error.kind, ProviderErrorKind::Rejected);
            assert!(error.detail.is_some() && request.to_workflow().is_err(), "{request:?}");
        }
    }
}
