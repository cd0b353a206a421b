//! OpenAI's own JSON, in addition to what it shares with others that speak the protocol: the body of a submit,
//! refusals, the list of models.

use outlast_core::rules::job_of_key;
use outlast_core::{ResearchRequest, SearchFilters};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::prices::Prices;
use crate::responses::wire::conversation;
use crate::vendor::effort_word;
use crate::vendor::lenient::{Items, Lenient, object};

/// The body of a submit: in the background and stored, so that the run can be resumed by its id, and not as a stream. A
/// stream that breaks at its first event can leave a run queued for ever.
pub(super) fn submit(ask: &ResearchRequest, model: &str, key: &str) -> Value {
    let (input, instructions) = conversation(ask);
    let mut body = json!({
        "model": model,
        "input": input,
        "background": true,
        "store": true,
        "tools": [web_search(&ask.filters)],
        "include": ["web_search_call.action.sources"],
        "max_tool_calls": max_tool_calls(ask),
    });
    if let Some(instructions) = instructions {
        body["instructions"] = instructions.into();
    }
    if let Some(effort) = effort_word(ask.effort) {
        body["reasoning"] = json!({"effort": effort});
    }
    if let Some(job) = job_of_key(key) {
        body["metadata"] = json!({"outlast_job": job.to_string()});
    }
    body
}

/// The number of searches and pages allowed. The API has no cap in dollars; the cost of the searches stays within the
/// budget.
fn max_tool_calls(ask: &ResearchRequest) -> u64 {
    let by_effort = match effort_word(ask.effort) {
        Some("low") => 10,
        Some("high") => 80,
        _ => 30,
    };
    let search = Prices::current().openai_search().0.max(1);
    let affordable = ask.budget.map_or(u64::MAX, |budget| budget.0 / search);
    by_effort.min(affordable.max(1))
}

/// The tool, narrowed as far as the API can: it has no list of domains to leave out, and no dates.
fn web_search(filters: &SearchFilters) -> Value {
    let mut tool = json!({"type": "web_search"});
    let allowed: Vec<&String> =
        filters.domains.iter().filter(|domain| !domain.starts_with('-')).collect();
    if !allowed.is_empty() {
        tool["filters"] = json!({"allowed_domains": allowed});
    }
    if let Some(size) = filters.context_size {
        tool["search_context_size"] = json!(size);
    }
    if let Some(country) = &filters.country {
        tool["user_location"] = json!({"type": "approximate", "country": country});
    }
    tool
}

/// A refusal, in any of the forms that servers have for it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ApiRefusal {
    error: Lenient<Words>,
    message: Lenient<String>,
    detail: Items<Detail>,
}

#[derive(Debug, Default, Deserialize)]
struct Words {
    message: Lenient<String>,
    code: Lenient<String>,
    param: Lenient<String>,
}

/// One fault of a request, as FastAPI words it.
#[derive(Debug, Default, Deserialize)]
struct Detail {
    loc: Items<String>,
}

impl ApiRefusal {
    pub(super) fn parse(body: &[u8]) -> Self {
        object(body).unwrap_or_default()
    }

    pub(super) fn is_about_the_model(&self) -> bool {
        let code = self.error.as_ref().and_then(|error| error.code.as_deref());
        code == Some("model_not_found") || self.names("model")
    }

    pub(super) fn is_about_the_background(&self) -> bool {
        let message = self.error.as_ref().map_or(&self.message, |error| &error.message);
        let said =
            message.as_deref().is_some_and(|text| text.to_lowercase().contains("background"));
        said || self.names("background")
    }

    /// Returns true if it names this field of the request.
    fn names(&self, field: &str) -> bool {
        let param = self.error.as_ref().and_then(|error| error.param.as_deref());
        let mut details = self.detail.iter().flatten().filter_map(|detail| detail.loc.as_ref());
        param == Some(field) || details.any(|names| names.iter().any(|name| name == field))
    }
}

/// The list of models.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Models {
    data: Items<ListedModel>,
}

#[derive(Debug, Default, Deserialize)]
struct ListedModel {
    id: Lenient<String>,
    shutdown_date: Lenient<String>,
}

impl Models {
    /// The list in a body; `None` if it is not one.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        object(body).filter(|models: &Self| models.data.is_some())
    }

    /// Their names.
    pub(super) fn names(&self) -> Vec<String> {
        self.data.iter().flatten().filter_map(|model| model.id.0.clone()).collect()
    }

    /// A warning about this model, before a run fails.
    pub(super) fn warning(&self, name: &str) -> Option<String> {
        let mut models = self.data.iter().flatten();
        let Some(model) = models.find(|model| model.id.as_deref() == Some(name)) else {
            return Some(format!("the provider does not list the model {name}"));
        };
        // Upstream text: no more of it than a date is long.
        let date: String = model.shutdown_date.as_deref()?.chars().take(32).collect();
        Some(format!("the provider shuts the model {name} down on {date}"))
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::{ContextSize, Effort, Message, NanoUsd, Role};

    use super::*;
    use crate::responses::wire::SCHOLARLY;

    fn ask(messages: &[(Role, &str)]) -> ResearchRequest {
        let messages = messages
            .iter()
            .map(|(role, content)| Message { role: *role, content: (*content).to_owned() });
        ResearchRequest { messages: messages.collect(), ..ResearchRequest::default() }
    }

    fn sent(ask: &ResearchRequest) -> Value {
        submit(ask, "gpt-6-sol", "00000000000000000000000000000007-0")
    }

    /// G3: what a submit is, field by field.
    #[test]
    fn g3_a_submit_is_stored_in_the_background_with_its_job() {
        let expected = json!({
            "model": "gpt-6-sol", "input": " why? \n", "background": true, "store": true,
            "tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"],
            "max_tool_calls": 30, "metadata": {"outlast_job": "00000000000000000000000000000007"},
        });
        assert_eq!(sent(&ask(&[(Role::User, " why? \n")])), expected);
    }

    /// G3: effort low, medium, high; unset is not sent.
    #[test]
    fn g3_each_effort_has_its_reasoning_and_its_searches() {
        let cases = [
            (None, json!(null), 30),
            (Some(Effort::Minimal), json!({"effort": "low"}), 10),
            (Some(Effort::Low), json!({"effort": "low"}), 10),
            (Some(Effort::Medium), json!({"effort": "medium"}), 30),
            (Some(Effort::High), json!({"effort": "high"}), 80),
        ];
        for (effort, reasoning, calls) in cases {
            let body = sent(&ResearchRequest { effort, ..ask(&[(Role::User, "q")]) });
            assert_eq!((&body["reasoning"], &body["max_tool_calls"]), (&reasoning, &json!(calls)));
        }
    }

    /// G6: a budget bounds the searches, never to none.
    #[test]
    fn g6_a_budget_bounds_the_searches() {
        for (nanos, calls) in [(0, 1), (35_000_000, 3), (300_000_000, 30), (900_000_000_000, 30)] {
            let budget = Some(NanoUsd(nanos));
            let body = sent(&ResearchRequest { budget, ..ask(&[(Role::User, "q")]) });
            assert_eq!(body["max_tool_calls"], calls, "{nanos}");
        }
    }

    /// G3: earlier turns of a conversation are sent verbatim.
    #[test]
    fn g3_a_conversation_is_passed_on_verbatim() {
        let talk = [
            (Role::System, "be brief"),
            (Role::User, "a"),
            (Role::Assistant, "b"),
            (Role::User, "c"),
        ];
        let filters = SearchFilters {
            academic: true,
            domains: vec!["example.org".to_owned(), "-example.com".to_owned()],
            context_size: Some(ContextSize::High),
            country: Some("DE".to_owned()),
            ..SearchFilters::default()
        };
        let body = sent(&ResearchRequest { filters, ..ask(&talk) });
        assert_eq!(body["instructions"], format!("be brief\n\n{SCHOLARLY}"));
        let input = json!([
            {"type": "message", "role": "user", "content": "a"},
            {"type": "message", "role": "assistant", "content": "b"},
            {"type": "message", "role": "user", "content": "c"},
        ]);
        assert_eq!(body["input"], input);
        let tool = json!({
            "type": "web_search", "filters": {"allowed_domains": ["example.org"]},
            "search_context_size": "high", "user_location": {"type": "approximate", "country": "DE"},
        });
        assert_eq!(body["tools"], json!([tool]));
    }

    #[test]
    fn a_model_that_will_go_or_is_not_there_is_a_warning() {
        let list = br#"{"object":"list","data":[{"id":"a"},{"id":"b","shutdown_date":"2026-12-01"},{"id":7},
            {"id":"c","shutdown_date":null},{"id":"d","shutdown_date":5}]}"#;
        let models = Models::parse(list).unwrap();
        assert_eq!(models.names(), ["a", "b", "c", "d"]);
        assert_eq!(models.warning("a"), None);
        assert_eq!(models.warning("c"), None);
        assert_eq!(models.warning("d"), None);
        let warning = models.warning("b").unwrap();
        assert_eq!(warning, "the provider shuts the model b down on 2026-12-01");
        assert_eq!(models.warning("x").unwrap(), "the provider does not list the model x");
        assert!(Models::parse(b"{}").is_none() && Models::parse(b"[]").is_none());
    }
}
