//! The body of a submit: what an ask means in the vendor's words. Only fields it knows are sent, for it refuses
//! others.

use outlast_core::{Effort, ResearchKind, ResearchRequest, SearchFilters};
use serde_json::{Value, json};

use crate::responses::wire::conversation;
use crate::vendor::effort_word;

/// The preset for deep research if no effort is requested.
pub(crate) const DEEP_RESEARCH: &str = "high";

/// The body of a submit.
pub(crate) fn submit(ask: &ResearchRequest) -> Value {
    let (input, instructions) = conversation(ask);
    let effort = effort(ask.kind, ask.effort);
    let mut body = set_fields(json!({
        "instructions": instructions,
        "effort": effort,
        // The API wants one of effort and preset.
        "preset": effort.is_none().then_some(DEEP_RESEARCH),
        "tools": tools(&ask.filters, effort),
        "background": true,
        "stream": true,
        "store": true,
    }));
    body["input"] = input;
    body
}

/// The vendor's word for an effort; `None` if that is left to the provider. An effort that was asked for counts.
pub(crate) fn effort(kind: ResearchKind, asked: Option<Effort>) -> Option<&'static str> {
    effort_word(asked).or(match kind {
        ResearchKind::Research => None,
        ResearchKind::Ask => Some("fast"),
        ResearchKind::Search | ResearchKind::Results => Some("low"),
        ResearchKind::Reason => Some("medium"),
    })
}

/// The tools to use, when a search is to be narrowed. A list sent replaces the preset's, so it must be complete: all
/// presets used here but the fast one also read pages.
fn tools(filters: &SearchFilters, effort: Option<&str>) -> Vec<Value> {
    let mut search = set_fields(json!({
        "filters": common_filters(filters),
        "search_context_size": filters.context_size,
        "max_tokens_per_page": filters.max_tokens_per_page,
        "user_location": location(filters),
    }));
    if search == json!({}) {
        return Vec::new();
    }
    search["type"] = "web_search".into();
    match effort {
        Some("fast") => vec![search],
        _ => vec![search, json!({"type": "fetch_url"})],
    }
}

/// The object without the fields that are not set: null, or an empty list or object.
pub(super) fn set_fields(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| ![json!(null), json!([]), json!({})].contains(value));
    }
    object
}

/// The filters that every endpoint has.
fn common_filters(filters: &SearchFilters) -> Value {
    set_fields(json!({
        "search_recency_filter": filters.recency,
        "search_domain_filter": filters.domains,
        "search_after_date_filter": filters.after,
        "search_before_date_filter": filters.before,
    }))
}

/// A body of the Sonar and the Search endpoints, which have one filter more, and all of them next to their own fields.
pub(super) fn with_filters(mut body: Value, narrowed_to: &SearchFilters) -> Value {
    body["search_mode"] = narrowed_to.academic.then_some("academic").into();
    if let (Some(fields), Value::Object(more)) = (body.as_object_mut(), common_filters(narrowed_to))
    {
        fields.extend(more);
    }
    set_fields(body)
}

/// The user's location.
pub(super) fn location(filters: &SearchFilters) -> Option<Value> {
    filters.country.as_ref().map(|country| json!({"country": country}))
}

#[cfg(test)]
mod tests {
    use outlast_core::{ContextSize, Message, Recency, Role};

    use super::*;
    use crate::responses::wire::SCHOLARLY;

    fn ask(messages: &[(Role, &str)], effort: Option<Effort>) -> ResearchRequest {
        let messages = messages
            .iter()
            .map(|(role, content)| Message { role: *role, content: (*content).to_owned() });
        ResearchRequest { messages: messages.collect(), effort, ..ResearchRequest::default() }
    }

    fn of_kind(kind: ResearchKind, filters: SearchFilters) -> ResearchRequest {
        ResearchRequest { kind, filters, ..ask(&[(Role::User, "q")], None) }
    }

    fn sent(ask: &ResearchRequest) -> Value {
        submit(ask)
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
    fn each_kind_of_ask_has_its_own_effort() {
        let cases = [
            (ResearchKind::Search, None, "low"),
            (ResearchKind::Ask, None, "fast"),
            (ResearchKind::Reason, None, "medium"),
            (ResearchKind::Reason, Some(Effort::High), "high"),
        ];
        for (kind, effort, expected) in cases {
            let body = sent(&ResearchRequest { kind, effort, ..ask(&[(Role::User, "q")], None) });
            assert_eq!((&body["effort"], &body["preset"]), (&json!(expected), &json!(null)));
            assert_eq!(body["tools"], json!(null), "the preset's own tools are left to it");
        }
    }

    #[test]
    fn a_narrowed_search_names_all_the_tools_of_its_preset() {
        let filters = SearchFilters {
            recency: Some(Recency::Week),
            domains: vec!["example.org".to_owned(), "-example.com".to_owned()],
            after: Some("01/31/2026".to_owned()),
            before: Some("10/01/2026".to_owned()),
            context_size: Some(ContextSize::High),
            country: Some("DE".to_owned()),
            ..SearchFilters::default()
        };
        let search = json!({
            "type": "web_search",
            "search_context_size": "high",
            "user_location": {"country": "DE"},
            "filters": {
                "search_recency_filter": "week",
                "search_domain_filter": ["example.org", "-example.com"],
                "search_after_date_filter": "01/31/2026",
                "search_before_date_filter": "10/01/2026",
            },
        });
        let fetch = json!({"type": "fetch_url"});
        for kind in [ResearchKind::Research, ResearchKind::Search, ResearchKind::Reason] {
            assert_eq!(sent(&of_kind(kind, filters.clone()))["tools"], json!([search, fetch]));
        }
        assert_eq!(sent(&of_kind(ResearchKind::Ask, filters))["tools"], json!([search]));
        let small = SearchFilters { context_size: Some(ContextSize::Low), ..Default::default() };
        let expected = json!([{"type": "web_search", "search_context_size": "low"}, fetch]);
        assert_eq!(sent(&of_kind(ResearchKind::Search, small))["tools"], expected);
    }

    #[test]
    fn options_without_a_field_are_sent_in_words_or_left_out() {
        let filters =
            SearchFilters { academic: true, related_questions: true, ..Default::default() };
        let body = sent(&of_kind(ResearchKind::Search, filters.clone()));
        assert_eq!(body["instructions"], SCHOLARLY);
        let fields: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["background", "effort", "input", "instructions", "store", "stream"]);
        let told = ask(&[(Role::System, "be brief"), (Role::User, "q")], None);
        let body = sent(&ResearchRequest { filters, ..told });
        assert_eq!(body["instructions"], format!("be brief\n\n{SCHOLARLY}"));
    }

    #[test]
    fn messages_are_passed_on_verbatim() {
        let body = sent(&ask(&[(Role::User, " why? \n")], None));
        assert_eq!(body["input"], " why? \n");
        let body = sent(&ask(&[(Role::System, "be brief")], None));
        let alone = json!([{"type": "message", "role": "system", "content": "be brief"}]);
        assert_eq!((&body["input"], &body["instructions"]), (&alone, &Value::Null));
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
}
