//! The requests: definitions of an agent, an environment and a session, and the question.

use outlast_core::{Effort, Message, NanoUsd, ResearchRequest, Role};
use serde_json::{Value, json};

use crate::anthropic::CENT;
use crate::anthropic::account::Ids;

/// The field of a session's metadata that holds the key it was made under.
pub(super) const KEY_FIELD: &str = "outlast_key";

/// The number of characters of the question in the title of its session.
const TITLE_CHARS: usize = 200;

/// The instructions of the agent.
const SYSTEM: &str = "You do deep research. Search the web and read what you find until you can answer the question well, \
    then write one report in Markdown. Your last message must be the whole report and nothing else. Cite every claim that \
    rests on a source with a Markdown link to the page, as in [title](https://...); do not number citations and do not add a \
    list of sources at the end. Ask no questions back: nobody can answer them.";

/// The agent that does research with this model. Tools other than the web's are switched off.
pub(in crate::anthropic) fn agent_definition(model: &str) -> Value {
    let web = |name: &str| json!({"name": name, "enabled": true, "permission_policy": {"type": "always_allow"}});
    json!({
        "model": model,
        "system": SYSTEM,
        "tools": [{
            "type": "agent_toolset_20260401",
            "default_config": {"enabled": false},
            "configs": [web("web_search"), web("web_fetch")],
        }],
    })
}

/// The container that an agent has even if it uses none.
pub(in crate::anthropic) fn environment_definition() -> Value {
    json!({"config": {"type": "cloud", "networking": {"type": "unrestricted"}}})
}

/// A session for one job, with the key it is found by and what it may cost.
pub(in crate::anthropic) fn session_definition(
    ids: &Ids,
    request: &ResearchRequest,
    key: &str,
) -> Value {
    let title: String = request.question().chars().take(TITLE_CHARS).collect();
    json!({
        "agent": ids.agent,
        "environment_id": ids.environment,
        "title": title,
        "metadata": {KEY_FIELD: key},
        "budget": {
            "type": "limit",
            "max_list_cost": {"amount": budget_cents(request).to_string(), "currency": "USD"},
        },
    })
}

/// The cap of the session in whole cents: the budget of the request, else the default of its effort.
fn budget_cents(request: &ResearchRequest) -> u64 {
    request.budget.unwrap_or_else(|| default_cap(request.effort)).0 / CENT
}

/// The cap of a session whose request has no budget.
pub(in crate::anthropic) fn default_cap(effort: Option<Effort>) -> NanoUsd {
    let cents = match effort {
        Some(Effort::Minimal | Effort::Low) => 50,
        Some(Effort::Medium) | None => 200,
        Some(Effort::High) => 800,
    };
    NanoUsd(cents * CENT)
}

/// The event that sends the question into a session, which costs money.
pub(in crate::anthropic) fn question_event(texts: &[String]) -> Value {
    let content: Vec<Value> =
        texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    json!({"events": [{"type": "user.message", "content": content}]})
}

/// The texts of the question: earlier turns, then the question itself. A session belongs to one job, so earlier turns
/// are repeated in words.
pub(in crate::anthropic) fn question(request: &ResearchRequest) -> Vec<String> {
    let Some((last, earlier)) = request.messages.split_last() else { return Vec::new() };
    let told = |message: &Message| {
        let who = match message.role {
            Role::System => "Instructions",
            Role::User => "Earlier question",
            Role::Assistant => "Earlier answer",
        };
        format!("{who}:\n\n{}", message.content)
    };
    let mut texts: Vec<String> = earlier.iter().map(told).collect();
    texts.push(last.content.clone());
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G6: a budget goes to the vendor's own cap, and never more than it.
    #[test]
    fn g6_the_budget_is_that_of_the_ask_else_by_effort() {
        let cents = |budget, effort| {
            budget_cents(&ResearchRequest { budget, effort, ..ResearchRequest::default() })
        };
        assert_eq!(cents(None, Some(Effort::Low)), 50);
        assert_eq!(cents(None, Some(Effort::Minimal)), 50);
        assert_eq!(cents(None, None), 200);
        assert_eq!(cents(None, Some(Effort::Medium)), 200);
        assert_eq!(cents(None, Some(Effort::High)), 800);
        assert_eq!(cents(Some(NanoUsd(1_259_999_999)), Some(Effort::High)), 125);
    }
}
