//! The vendor's JSON, and nobody else's business. Everything is optional and every set is open: unknown events,
//! items, statuses and null fields are facts of this API.

use outlast_core::{Effort, Message, ResearchAsk, Role};
use serde::{Deserialize, Serialize};

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
    pub(super) id: Option<String>,
    status: Option<String>,
    pub(super) model: Option<String>,
    output: Option<Vec<OutputItem>>,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<RunError>,
    pub(super) incomplete_details: Option<IncompleteDetails>,
}

impl Response {
    /// The object in a body; `None` when it is none.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
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

    /// Queries in the order they were asked.
    pub(super) fn queries(&self) -> impl Iterator<Item = &String> {
        self.output.iter().flatten().flat_map(|item| item.queries.iter().flatten())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OutputItem {
    r#type: Option<String>,
    content: Option<Vec<ContentPart>>,
    results: Option<Vec<SearchResult>>,
    queries: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContentPart {
    text: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SearchResult {
    pub(super) id: Option<u32>,
    pub(super) url: Option<String>,
    pub(super) title: Option<String>,
    pub(super) date: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) total_tokens: Option<u64>,
    pub(super) output_tokens_details: Option<OutputTokens>,
    pub(super) tool_calls_details: Option<ToolCalls>,
    pub(super) cost: Option<UsageCost>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputTokens {
    pub(super) reasoning_tokens: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCalls {
    pub(super) search_web: Option<ToolCall>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    pub(super) invocation: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageCost {
    pub(super) total_cost: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunError {
    pub(super) message: Option<String>,
    pub(super) code: Option<serde_json::Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IncompleteDetails {
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
    pub(super) sequence_number: Option<u64>,
    pub(super) response: Option<Response>,
    pub(super) error: Option<RunError>,
    pub(super) queries: Option<Vec<String>>,
    pub(super) results: Option<Vec<SearchResult>>,
    pub(super) contents: Option<Vec<serde_json::Value>>,
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
            "response.failed" | "error" => Some(Status::Failed),
            "response.cancelled" => Some(Status::Cancelled),
            "response.requires_action" => Some(Status::RequiresAction),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(messages: &[(Role, &str)], effort: Option<Effort>) -> ResearchAsk {
        let messages = messages
            .iter()
            .map(|(role, content)| Message { role: *role, content: (*content).to_owned() });
        ResearchAsk { messages: messages.collect(), effort, strip_thinking: false }
    }

    fn sent(ask: &ResearchAsk) -> serde_json::Value {
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
}
