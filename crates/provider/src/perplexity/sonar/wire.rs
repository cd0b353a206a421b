//! The Sonar dialect's JSON, and nobody else's business. What has another type than we know is taken to be absent.

use outlast_core::{AskKind, ContextSize, Effort, Message, ResearchAsk, SearchFilters};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::super::narrowing::Narrowing;
use super::super::wire::{known, known_items};

/// A chat completion, asked for.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    model: &'static str,
    messages: &'a [Message],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<Effort>,
    #[serde(flatten)]
    narrowing: Narrowing<'a>,
    #[serde(skip_serializing_if = "Options::is_empty")]
    web_search_options: Options<'a>,
    #[serde(skip_serializing_if = "is_false")]
    return_related_questions: bool,
    #[serde(skip_serializing_if = "is_false")]
    stream: bool,
}

impl<'a> Request<'a> {
    /// Answered as a stream of chunks.
    pub(super) fn streamed(ask: &'a ResearchAsk) -> Self {
        Self { stream: true, ..Self::new(ask) }
    }

    fn new(ask: &'a ResearchAsk) -> Self {
        Self {
            model: match ask.kind {
                AskKind::Research => "sonar-deep-research",
                AskKind::Ask => "sonar-pro",
                AskKind::Reason => "sonar-reasoning-pro",
                // Ranked results have an endpoint of their own; the quick model is the nearest to it.
                AskKind::Search | AskKind::Results => "sonar",
            },
            messages: &ask.messages,
            reasoning_effort: ask.effort,
            narrowing: Narrowing::from(&ask.filters),
            web_search_options: Options::from(&ask.filters),
            return_related_questions: ask.filters.related_questions,
            stream: false,
        }
    }
}

#[derive(Debug, Serialize)]
struct Options<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    search_context_size: Option<ContextSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_location: Option<Location<'a>>,
}

#[derive(Debug, Serialize)]
struct Location<'a> {
    country: &'a str,
}

impl Options<'_> {
    fn is_empty(&self) -> bool {
        self.search_context_size.is_none() && self.user_location.is_none()
    }
}

impl<'a> From<&'a SearchFilters> for Options<'a> {
    fn from(filters: &'a SearchFilters) -> Self {
        let user_location = filters.country.as_deref().map(|country| Location { country });
        Self { search_context_size: filters.context_size, user_location }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Deep research, asked for under a key.
#[derive(Debug, Serialize)]
pub(super) struct Research<'a> {
    request: Request<'a>,
    idempotency_key: &'a str,
}

impl<'a> Research<'a> {
    pub(super) fn new(ask: &'a ResearchAsk, key: &'a str) -> Self {
        Self { request: Request::new(ask), idempotency_key: key }
    }
}

/// Deep research as the provider shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Job {
    #[serde(deserialize_with = "known")]
    id: Option<String>,
    #[serde(deserialize_with = "known")]
    status: Option<String>,
    #[serde(deserialize_with = "known")]
    pub(super) error_message: Option<String>,
    #[serde(deserialize_with = "known")]
    pub(super) response: Option<Completion>,
}

/// Where research stands. What we do not know is taken to be under way, and looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Waiting,
    InProgress,
    Completed,
    Failed,
}

impl Job {
    /// The object in a body; `None` when it is none.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    pub(super) fn into_id(self) -> Option<String> {
        self.id.filter(|id| !id.is_empty())
    }

    pub(super) fn status(&self) -> Status {
        match self.status.as_deref().unwrap_or_default() {
            "IN_PROGRESS" => Status::InProgress,
            "COMPLETED" => Status::Completed,
            "FAILED" => Status::Failed,
            _ => Status::Waiting,
        }
    }
}

/// A chat completion, or a chunk of one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Completion {
    #[serde(deserialize_with = "known")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "known")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "known_items")]
    pub(super) choices: Option<Vec<Choice>>,
    /// As they came: the place of each is its number.
    #[serde(deserialize_with = "known")]
    pub(super) citations: Option<Vec<Value>>,
    #[serde(deserialize_with = "known_places")]
    pub(super) search_results: Option<Vec<SearchResult>>,
    #[serde(deserialize_with = "known")]
    pub(super) usage: Option<Usage>,
    #[serde(deserialize_with = "known_items")]
    pub(super) related_questions: Option<Vec<String>>,
    pub(super) error: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    #[serde(deserialize_with = "known")]
    finish_reason: Option<String>,
    #[serde(deserialize_with = "known")]
    message: Option<Said>,
    #[serde(deserialize_with = "known")]
    delta: Option<Said>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    #[serde(deserialize_with = "known")]
    content: Option<String>,
}

impl Completion {
    /// The object in a body or a chunk; `None` when it is none.
    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        serde_json::from_slice(data).ok()
    }

    /// Whether it is a completion at all, and not merely some object.
    pub(super) fn is_one(&self) -> bool {
        self.choices.is_some()
    }

    /// All that was said so far.
    pub(super) fn message(&self) -> Option<&str> {
        self.first()?.message.as_ref()?.content.as_deref()
    }

    /// What is said beyond the last chunk.
    pub(super) fn delta(&self) -> Option<&str> {
        self.first()?.delta.as_ref()?.content.as_deref()
    }

    /// Why nothing more will be said.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.first()?.finish_reason.as_deref().filter(|reason| !reason.is_empty())
    }

    fn first(&self) -> Option<&Choice> {
        self.choices.as_ref()?.first()
    }
}

/// Something that was found.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SearchResult {
    #[serde(deserialize_with = "known")]
    pub(super) url: Option<String>,
    #[serde(deserialize_with = "known")]
    pub(super) title: Option<String>,
    #[serde(deserialize_with = "known")]
    pub(super) date: Option<String>,
}

/// What was consumed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    #[serde(deserialize_with = "known")]
    pub(super) prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(super) completion_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(super) total_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(super) citation_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(super) reasoning_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(super) num_search_queries: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(super) cost: Option<UsageCost>,
}

/// What it cost.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageCost {
    #[serde(deserialize_with = "known")]
    pub(super) total_cost: Option<f64>,
}

/// A list in which the place of an item counts: one whose type we do not know is kept, empty.
fn known_places<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let items: Option<Vec<Value>> = known(deserializer)?;
    let item = |item| T::deserialize(item).unwrap_or_default();
    Ok(items.map(|items: Vec<Value>| items.into_iter().map(item).collect()))
}

#[cfg(test)]
mod tests {
    use outlast_core::{Recency, Role};
    use serde_json::json;

    use super::*;

    fn ask(kind: AskKind) -> ResearchAsk {
        let said = [(Role::System, "be brief"), (Role::User, " why? \n")];
        let messages = said.map(|(role, content)| Message { role, content: content.to_owned() });
        ResearchAsk { kind, messages: messages.to_vec(), ..ResearchAsk::default() }
    }

    fn sent(ask: &ResearchAsk) -> Value {
        serde_json::to_value(Request::streamed(ask)).unwrap()
    }

    /// A1: effort unset is not sent, minimal is passed on; messages are verbatim.
    #[test]
    fn a1_what_is_not_asked_for_is_not_sent() {
        let bare = serde_json::to_value(Research::new(&ask(AskKind::Research), "k")).unwrap();
        let messages = json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": " why? \n"},
        ]);
        let expected = json!({
            "request": {"model": "sonar-deep-research", "messages": messages},
            "idempotency_key": "k",
        });
        assert_eq!(bare, expected);
        let efforts = [Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
        let sent = efforts.map(|effort| {
            let ask = ResearchAsk { effort: Some(effort), ..ask(AskKind::Research) };
            serde_json::to_value(Research::new(&ask, "k")).unwrap()["request"]["reasoning_effort"]
                .clone()
        });
        assert_eq!(sent, ["minimal", "low", "medium", "high"]);
    }

    #[test]
    fn each_kind_has_its_model() {
        let kinds = [AskKind::Search, AskKind::Ask, AskKind::Reason];
        let models = kinds.map(|kind| sent(&ask(kind))["model"].clone());
        assert_eq!(models, ["sonar", "sonar-pro", "sonar-reasoning-pro"]);
    }

    #[test]
    fn filters_stand_at_the_top_and_options_of_the_search_in_their_own_object() {
        let filters = SearchFilters {
            recency: Some(Recency::Week),
            domains: vec!["a.example".to_owned(), "-b.example".to_owned()],
            after: Some("10/01/2026".to_owned()),
            before: Some("11/01/2026".to_owned()),
            academic: true,
            context_size: Some(ContextSize::High),
            related_questions: true,
            country: Some("CH".to_owned()),
            ..SearchFilters::default()
        };
        let mut body = sent(&ResearchAsk { filters, ..ask(AskKind::Ask) });
        body.as_object_mut().unwrap().remove("messages");
        let expected = json!({
            "model": "sonar-pro",
            "stream": true,
            "search_recency_filter": "week",
            "search_domain_filter": ["a.example", "-b.example"],
            "search_after_date_filter": "10/01/2026",
            "search_before_date_filter": "11/01/2026",
            "search_mode": "academic",
            "return_related_questions": true,
            "web_search_options": {"search_context_size": "high", "user_location": {"country": "CH"}},
        });
        assert_eq!(body, expected);
        let bare = sent(&ask(AskKind::Ask));
        assert_eq!(bare.as_object().unwrap().len(), 3, "{bare}");
    }

    /// A10: an id that was there must not be lost to a stranger beside it; statuses are an open set.
    #[test]
    fn a_field_of_another_type_hides_nothing_beside_it() {
        let job = Job::parse(br#"{"id":"u","status":7,"response":"soon","error_message":{}}"#);
        let job = job.unwrap();
        assert_eq!(job.status(), Status::Waiting);
        assert_eq!(job.into_id().as_deref(), Some("u"));
        for (name, status) in [
            ("CREATED", Status::Waiting),
            ("MEDITATING", Status::Waiting),
            ("IN_PROGRESS", Status::InProgress),
            ("COMPLETED", Status::Completed),
            ("FAILED", Status::Failed),
        ] {
            let job = Job::parse(json!({"status": name}).to_string().as_bytes()).unwrap();
            assert_eq!(job.status(), status, "{name}");
            assert_eq!(job.into_id(), None);
        }
    }
}
