//! What the Sonar dialect is sent; what is not asked for is not in it.

use outlast_core::{AskKind, ContextSize, Effort, Message, ResearchAsk, SearchFilters};
use serde::Serialize;

use super::super::narrowing::Narrowing;

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
            model: model(ask.kind),
            messages: &ask.messages,
            reasoning_effort: ask.effort,
            narrowing: Narrowing::from(&ask.filters),
            web_search_options: Options::from(&ask.filters),
            return_related_questions: ask.filters.related_questions,
            stream: false,
        }
    }
}

/// The model for an ask of this kind.
pub(super) fn model(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Research => "sonar-deep-research",
        AskKind::Ask => "sonar-pro",
        AskKind::Reason => "sonar-reasoning-pro",
        // Ranked results have an endpoint of their own; the quick model is the nearest to it.
        AskKind::Search | AskKind::Results => "sonar",
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

#[cfg(test)]
mod tests {
    use outlast_core::{Recency, Role};
    use serde_json::{Value, json};

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
}
