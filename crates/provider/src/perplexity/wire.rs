//! The vendor's JSON, and nobody else's business. Everything is optional and every set is open: unknown events,
//! items, statuses and null fields are facts of this API. What has another type than we know is taken to be absent:
//! one odd field must not hide the id, or the report, beside it.

use outlast_core::{Effort, Message, ResearchAsk, Role};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The body of a submit.
#[derive(Debug, Serialize)]
pub(super) struct Submit<'a> {
    input: Input<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<&'static str>,
    background: bool,
    stream: bool,
    store: bool,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Text(&'a str),
    Items(Vec<Item<'a>>),
}

#[derive(Debug, Serialize)]
struct Item<'a> {
    r#type: &'static str,
    role: Role,
    content: &'a str,
}

impl<'a> From<&'a ResearchAsk> for Submit<'a> {
    fn from(ask: &'a ResearchAsk) -> Self {
        let (system, said): (Vec<&Message>, Vec<&Message>) =
            ask.messages.iter().partition(|message| message.role == Role::System);
        let input = match said.as_slice() {
            [Message { role: Role::User, content }] => Input::Text(content),
            messages => Input::Items(
                messages
                    .iter()
                    .map(|message| Item {
                        r#type: "message",
                        role: message.role,
                        content: &message.content,
                    })
                    .collect(),
            ),
        };
        let system: Vec<&str> = system.iter().map(|message| message.content.as_str()).collect();
        let effort = ask.effort.map(|effort| match effort {
            Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        });
        Self {
            input,
            instructions: (!system.is_empty()).then(|| system.join("\n\n")),
            effort,
            // The API wants one of effort and preset; this preset is what it calls deep research.
            preset: effort.is_none().then_some("high"),
            background: true,
            stream: true,
            store: true,
        }
    }
}

/// A run's state as a body or inside an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    #[serde(deserialize_with = "known")]
    id: Option<String>,
    #[serde(deserialize_with = "known")]
    status: Option<String>,
    #[serde(deserialize_with = "known")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "known_items")]
    output: Option<Vec<OutputItem>>,
    #[serde(deserialize_with = "known")]
    pub(super) usage: Option<Usage>,
    #[serde(deserialize_with = "known")]
    pub(super) error: Option<RunError>,
    #[serde(deserialize_with = "known")]
    pub(super) incomplete_details: Option<IncompleteDetails>,
}

impl Response {
    /// The object in a body; `None` when it is none.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// The run's name, if it has one.
    pub(super) fn into_id(self) -> Option<String> {
        self.id.filter(|id| !id.is_empty())
    }

    pub(super) fn status(&self) -> Status {
        Status::named(self.status.as_deref().unwrap_or_default())
    }

    /// The report: all text of all messages.
    pub(super) fn text(&self) -> String {
        let items =
            self.output.iter().flatten().filter(|item| item.r#type.as_deref() == Some("message"));
        let parts = items.flat_map(|item| item.content.iter().flatten());
        parts.filter_map(|part| part.text.as_deref()).collect()
    }

    /// Search results in the order they were found.
    pub(super) fn results(&self) -> impl Iterator<Item = &SearchResult> {
        self.output.iter().flatten().flat_map(|item| item.results.iter().flatten())
    }

    /// How many pages were read.
    pub(super) fn pages(&self) -> usize {
        self.output.iter().flatten().map(|item| item.contents.as_ref().map_or(0, Vec::len)).sum()
    }

    /// Queries in the order they were asked.
    pub(super) fn queries(&self) -> impl Iterator<Item = &String> {
        self.output.iter().flatten().flat_map(|item| item.queries.iter().flatten())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OutputItem {
    #[serde(deserialize_with = "known")]
    r#type: Option<String>,
    #[serde(deserialize_with = "known_items")]
    content: Option<Vec<ContentPart>>,
    #[serde(deserialize_with = "known_items")]
    results: Option<Vec<SearchResult>>,
    #[serde(deserialize_with = "known_items")]
    contents: Option<Vec<Value>>,
    #[serde(deserialize_with = "known_items")]
    queries: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContentPart {
    #[serde(deserialize_with = "known")]
    text: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SearchResult {
    #[serde(deserialize_with = "known")]
    pub(super) id: Option<u32>,
    #[serde(deserialize_with = "known")]
    pub(super) url: Option<String>,
    #[serde(deserialize_with = "known")]
    pub(super) title: Option<String>,
    #[serde(deserialize_with = "known")]
    pub(super) date: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    #[serde(deserialize_with = "known")]
    pub(super) input_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(super) output_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(super) total_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(super) output_tokens_details: Option<OutputTokens>,
    #[serde(deserialize_with = "known")]
    pub(super) tool_calls_details: Option<ToolCalls>,
    #[serde(deserialize_with = "known")]
    pub(super) cost: Option<UsageCost>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputTokens {
    #[serde(deserialize_with = "known")]
    pub(super) reasoning_tokens: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCalls {
    #[serde(deserialize_with = "known")]
    pub(super) search_web: Option<ToolCall>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    #[serde(deserialize_with = "known")]
    pub(super) invocation: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageCost {
    #[serde(deserialize_with = "known")]
    pub(super) total_cost: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunError {
    #[serde(deserialize_with = "known")]
    pub(super) message: Option<String>,
    #[serde(deserialize_with = "known")]
    pub(super) code: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IncompleteDetails {
    #[serde(deserialize_with = "known")]
    pub(super) reason: Option<String>,
}

/// Where a run stands. What we do not know is taken to be under way, and looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Running,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
    RequiresAction,
}

impl Status {
    fn named(name: &str) -> Self {
        match name {
            "completed" => Self::Completed,
            "incomplete" => Self::Incomplete,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            "requires_action" => Self::RequiresAction,
            _ => Self::Running,
        }
    }

    pub(super) fn is_terminal(self) -> bool {
        self != Self::Running
    }
}

/// One event of a stream.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(deserialize_with = "known")]
    pub(super) sequence_number: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(super) response: Option<Response>,
    #[serde(deserialize_with = "known")]
    pub(super) error: Option<RunError>,
    #[serde(deserialize_with = "known_items")]
    pub(super) queries: Option<Vec<String>>,
    #[serde(deserialize_with = "known_items")]
    pub(super) results: Option<Vec<SearchResult>>,
    #[serde(deserialize_with = "known_items")]
    pub(super) contents: Option<Vec<Value>>,
    #[serde(deserialize_with = "known")]
    pub(super) delta: Option<String>,
    /// The event as it came, for events that end a run.
    #[serde(skip)]
    pub(super) raw: Vec<u8>,
}

impl Event {
    /// The event in a frame's data; `None` for keep-alives, `[DONE]` and whatever else is no event.
    pub(super) fn parse(data: String) -> Option<Self> {
        let mut event: Self = serde_json::from_str(&data).ok()?;
        if event.status().is_some_and(Status::is_terminal) {
            event.raw = data.into_bytes();
        }
        Some(event)
    }

    /// Where the run stands after this event, when the event says so.
    pub(super) fn status(&self) -> Option<Status> {
        match self.kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => {
                Some(Status::Running)
            }
            "response.completed" => Some(Status::Completed),
            "response.incomplete" => Some(Status::Incomplete),
            "response.failed" => Some(Status::Failed),
            "response.cancelled" => Some(Status::Cancelled),
            "response.requires_action" => Some(Status::RequiresAction),
            _ => None,
        }
    }

    /// Whether it says that the stream has trouble, not what became of the run.
    pub(super) fn is_stream_error(&self) -> bool {
        self.kind == "error"
    }

    /// Whether nothing of use follows it.
    pub(super) fn ends_the_stream(&self) -> bool {
        self.is_stream_error() || self.status().is_some_and(Status::is_terminal)
    }
}

/// A field, if it has the type we know.
pub(super) fn known<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(T::deserialize(Value::deserialize(deserializer)?).ok())
}

/// A list, without the items whose type we do not know.
pub(super) fn known_items<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let Value::Array(items) = Value::deserialize(deserializer)? else { return Ok(None) };
    Ok(Some(items.into_iter().filter_map(|item| T::deserialize(item).ok()).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(messages: &[(Role, &str)], effort: Option<Effort>) -> ResearchAsk {
        let messages = messages
            .iter()
            .map(|(role, content)| Message { role: *role, content: (*content).to_owned() });
        ResearchAsk { messages: messages.collect(), effort, ..ResearchAsk::default() }
    }

    fn sent(ask: &ResearchAsk) -> Value {
        serde_json::to_value(Submit::from(ask)).unwrap()
    }

    /// A1: effort unset is not sent, minimal means low here.
    #[test]
    fn effort_is_sent_only_when_asked_for() {
        let cases = [
            (None, json!(null), json!("high")),
            (Some(Effort::Minimal), json!("low"), json!(null)),
            (Some(Effort::Low), json!("low"), json!(null)),
            (Some(Effort::Medium), json!("medium"), json!(null)),
            (Some(Effort::High), json!("high"), json!(null)),
        ];
        for (effort, expected, preset) in cases {
            let body = sent(&ask(&[(Role::User, "q")], effort));
            assert_eq!(body["effort"], expected, "{effort:?}");
            assert_eq!(body["preset"], preset, "{effort:?}");
        }
    }

    #[test]
    fn messages_are_passed_on_verbatim() {
        let body = sent(&ask(&[(Role::User, " why? \n")], None));
        assert_eq!(body["input"], " why? \n");
        let talk = [
            (Role::System, "be brief"),
            (Role::User, "a"),
            (Role::Assistant, "b"),
            (Role::User, "c"),
        ];
        let body = sent(&ask(&talk, None));
        assert_eq!(body["instructions"], "be brief");
        assert_eq!(
            body["input"],
            json!([
                {"type": "message", "role": "user", "content": "a"},
                {"type": "message", "role": "assistant", "content": "b"},
                {"type": "message", "role": "user", "content": "c"},
            ])
        );
    }

    #[test]
    fn unknown_things_and_nulls_are_tolerated() {
        let response = Response::parse(
            br#"{"id":"resp_1","status":"meditating","output":[{"type":"sandbox_x","foo":1},
                {"type":"message","content":[{"type":"output_text","text":"hi","annotations":null}]}],
                "usage":null,"new_field":{}}"#,
        );
        let response = response.unwrap();
        assert_eq!(response.status(), Status::Running);
        assert_eq!(response.text(), "hi");
        assert!(Event::parse("[DONE]".to_owned()).is_none());
        assert!(
            Event::parse(r#"{"type":"response.skill.loaded","delta":null}"#.to_owned()).is_some()
        );
    }

    /// A10, B9a: an id that was there must not be lost to a stranger beside it.
    #[test]
    fn a_field_of_another_type_hides_nothing_beside_it() {
        let body = br#"{"id":"resp_1","status":"completed","model":7,"usage":{"input_tokens":"9","output_tokens":4},
            "error":"none","output":[5,{"type":"mcp_call","content":"text","results":{}},
            {"type":"search_results","results":[{"id":"x","url":"u"},{"id":2,"url":"v","date":20260610}]},
            {"type":"message","content":[{"type":"refusal","text":null},{"type":"output_text","text":"hi"}]}]}"#;
        let response = Response::parse(body).unwrap();
        assert_eq!(response.status(), Status::Completed);
        assert_eq!(response.text(), "hi");
        assert_eq!(response.usage.as_ref().unwrap().output_tokens, Some(4));
        assert_eq!(response.results().filter_map(|result| result.id).collect::<Vec<_>>(), [2]);
        assert_eq!(response.into_id().as_deref(), Some("resp_1"));
        let event =
            Event::parse(r#"{"type":"response.failed","response":[],"error":3}"#.to_owned());
        assert_eq!(event.unwrap().status(), Some(Status::Failed));
        assert_eq!(Response::parse(br#"{"id":""}"#).unwrap().into_id(), None);
    }
}
