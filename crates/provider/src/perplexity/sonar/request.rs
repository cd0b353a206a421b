//! The requests of the Sonar dialect; options that are not set are left out.

use outlast_core::{ResearchKind, ResearchRequest};
use serde_json::{Value, json};

use super::super::wire::{location, set_fields, with_filters};

/// A chat completion, asked for as a stream of chunks.
pub(super) fn write_streaming_body(ask: &ResearchRequest) -> Value {
    let mut body = completion(ask);
    body["stream"] = true.into();
    body
}

/// Deep research, asked for under a key.
pub(super) fn research(ask: &ResearchRequest, key: &str) -> Value {
    json!({"request": completion(ask), "idempotency_key": key})
}

fn completion(ask: &ResearchRequest) -> Value {
    let options = set_fields(json!({
        "search_context_size": ask.filters.context_size,
        "user_location": location(&ask.filters),
    }));
    let body = json!({
        "model": model(ask.kind),
        "messages": ask.messages,
        "reasoning_effort": ask.effort,
        "web_search_options": options,
        "return_related_questions": ask.filters.related_questions.then_some(true),
    });
    with_filters(body, &ask.filters)
}

/// The model for an ask of this kind.
pub(super) fn model(kind: ResearchKind) -> &'static str {
    match kind {
        ResearchKind::Research => "sonar-deep-research",
        ResearchKind::Ask => "sonar-pro",
        ResearchKind::Reason => "sonar-reasoning-pro",
        // Ranked results have their own endpoint; the quick model is the nearest to it.
        ResearchKind::Search | ResearchKind::Results => "sonar",
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::{ContextSize, Effort, Message, Recency, Role, SearchFilters};

    use super::*;

    fn ask(kind: ResearchKind) -> ResearchRequest {
        let said = [(Role::System, "be brief"), (Role::User, " why? \n")];
        let messages = said.map(|(role, content)| Message { role, content: content.to_owned() });
        ResearchRequest { kind, messages: messages.to_vec(), ..ResearchRequest::default() }
    }

    fn sent(ask: &ResearchRequest) -> Value {
        write_streaming_body(ask)
    }

    /// A1: effort unset is not sent, minimal is passed on; messages are verbatim.
    #[test]
    fn a1_what_is_not_asked_for_is_not_sent() {
        let bare = research(&ask(ResearchKind::Research), "k");
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
            let ask = ResearchRequest { effort: Some(effort), ..ask(ResearchKind::Research) };
            research(&ask, "k")["request"]["reasoning_effort"].clone()
        });
        assert_eq!(sent, ["minimal", "low", "medium", "high"]);
    }

    #[test]
    fn each_kind_has_its_model() {
        let kinds = [ResearchKind::Search, ResearchKind::Ask, ResearchKind::Reason];
        let models = kinds.map(|kind| sent(&ask(kind))["model"].clone());
        assert_eq!(models, ["sonar", "sonar-pro", "sonar-reasoning-pro"]);
    }

    #[test]
    fn filters_are_at_the_top_and_search_options_in_their_own_object() {
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
        let mut body = sent(&ResearchRequest { filters, ..ask(ResearchKind::Ask) });
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
        let bare = sent(&ask(ResearchKind::Ask));
        assert_eq!(bare.as_object().unwrap().len(), 3, "{bare}");
    }
}
