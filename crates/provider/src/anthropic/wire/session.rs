//! A session, and what it used.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::request::KEY_FIELD;
use crate::vendor::lenient::Lenient;

/// No session has a longer name.
const MAX_ID: usize = 200;

/// A session.
#[derive(Debug, Default, Deserialize)]
pub(in crate::anthropic) struct AgentSession {
    id: Lenient<String>,
    status: Lenient<String>,
    archived_at: Lenient<String>,
    metadata: Lenient<HashMap<String, Value>>,
    agent: Lenient<Agent>,
    pub(in crate::anthropic) usage: Lenient<SessionUsage>,
}

#[derive(Debug, Default, Deserialize)]
struct Agent {
    model: Lenient<SessionModel>,
}

#[derive(Debug, Default, Deserialize)]
struct SessionModel {
    id: Lenient<String>,
}

impl AgentSession {
    /// Its id, if that can be one.
    pub(in crate::anthropic) fn into_id(self) -> Option<String> {
        self.id.0.filter(|id| (1..=MAX_ID).contains(&id.trim().len()))
    }

    pub(in crate::anthropic) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns true if it was made under this key and can be used.
    pub(in crate::anthropic) fn has_key(&self, key: &str) -> bool {
        let made_under = self.metadata.as_ref().and_then(|metadata| metadata.get(KEY_FIELD));
        made_under.and_then(Value::as_str) == Some(key) && !self.takes_no_events()
    }

    /// Returns true if it has ended for good.
    pub(in crate::anthropic) fn takes_no_events(&self) -> bool {
        self.archived_at.is_some() || self.status.as_deref() == Some("terminated")
    }

    /// The model that worked in it.
    pub(in crate::anthropic) fn model(&self) -> Option<&str> {
        let model = self.agent.as_ref()?.model.as_ref()?.id.as_deref();
        model.filter(|model| !model.is_empty())
    }
}

/// The total usage of a session.
#[derive(Debug, Default, Deserialize)]
pub(in crate::anthropic) struct SessionUsage {
    input_tokens: Lenient<u64>,
    pub(in crate::anthropic) cache_read_input_tokens: Lenient<u64>,
    cache_creation: Lenient<CacheCreation>,
    pub(in crate::anthropic) output_tokens: Lenient<u64>,
    server_tool_use: Lenient<ServerTools>,
    pub(in crate::anthropic) list_cost: Lenient<Amount>,
}

#[derive(Debug, Default, Deserialize)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Lenient<u64>,
    ephemeral_5m_input_tokens: Lenient<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct ServerTools {
    web_search_requests: Lenient<u64>,
}

/// An amount of money.
#[derive(Debug, Default, Deserialize)]
pub(in crate::anthropic) struct Amount {
    amount: Lenient<String>,
    currency: Lenient<String>,
}

impl Amount {
    /// The cents of an amount in US dollars; `None` for anything else.
    pub(in crate::anthropic) fn cents(&self) -> Option<u64> {
        let amount = self.amount.as_deref().filter(|_| self.currency.as_deref() == Some("USD"))?;
        amount.bytes().all(|byte| byte.is_ascii_digit()).then(|| amount.parse().ok())?
    }
}

impl SessionUsage {
    /// Tokens read, from a cache or not. The vendor counts the three apart.
    pub(in crate::anthropic) fn input(&self) -> u64 {
        let made = self.cache_creation.as_ref().map_or(0, |made| {
            let of = |tokens: &Lenient<u64>| tokens.unwrap_or(0);
            of(&made.ephemeral_1h_input_tokens).saturating_add(of(&made.ephemeral_5m_input_tokens))
        });
        let read = self.cache_read_input_tokens.unwrap_or(0);
        self.input_tokens.unwrap_or(0).saturating_add(read).saturating_add(made)
    }

    pub(in crate::anthropic) fn searches(&self) -> u64 {
        self.server_tool_use.as_ref().and_then(|tools| *tools.web_search_requests).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G3: an amount that is not whole cents of a dollar is not read.
    #[test]
    fn g3_only_cents_of_a_dollar_are_an_amount() {
        let cents = |json: &str| serde_json::from_str::<Amount>(json).unwrap().cents();
        assert_eq!(cents(r#"{"amount":"250","currency":"USD"}"#), Some(250));
        assert_eq!(cents(r#"{"amount":"0","currency":"USD"}"#), Some(0));
        for odd in [
            r#"{"amount":"250","currency":"EUR"}"#,
            r#"{"amount":"250"}"#,
            r#"{"amount":"-1","currency":"USD"}"#,
            r#"{"amount":"+1","currency":"USD"}"#,
            r#"{"amount":"2.5","currency":"USD"}"#,
            r#"{"amount":250,"currency":"USD"}"#,
            r#"{"amount":"","currency":"USD"}"#,
            r#"{"amount":"99999999999999999999999","currency":"USD"}"#,
        ] {
            assert_eq!(cents(odd), None, "{odd}");
        }
    }
}
