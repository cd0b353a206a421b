//! What a run consumed, as far as the provider tells.

use std::collections::HashMap;

use serde::Deserialize;

use crate::vendor::lenient::Known;

/// What a run consumed; any of it may be missing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Usage {
    pub(crate) input_tokens: Known<u64>,
    pub(crate) output_tokens: Known<u64>,
    pub(crate) total_tokens: Known<u64>,
    pub(crate) output_tokens_details: Known<OutputTokens>,
    pub(crate) input_tokens_details: Known<InputTokens>,
    /// By tool; the set of tools is open.
    pub(crate) tool_calls_details: Known<HashMap<String, Known<Calls>>>,
    pub(crate) cost: Known<UsageCost>,
}

impl Usage {
    /// Each tool that was called, and how often.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&str, u64)> {
        let tools = self.tool_calls_details.iter().flatten();
        tools.filter_map(|(name, calls)| Some((name.as_str(), (*calls.as_ref()?.invocation)?)))
    }
}

/// How often a tool was called.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Calls {
    invocation: Known<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct InputTokens {
    cached_tokens: Known<u64>,
    cache_read_input_tokens: Known<u64>,
}

impl InputTokens {
    /// Read from a cache; the provider has two names for it, and may leave out either.
    pub(crate) fn cached(&self) -> u64 {
        self.cached_tokens.or(*self.cache_read_input_tokens).unwrap_or(0)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OutputTokens {
    pub(crate) reasoning_tokens: Known<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct UsageCost {
    pub(crate) total_cost: Known<f64>,
}

/// What tools were used for; OpenAI's count of what it bills.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolUsage {
    web_search: Known<ToolRequests>,
}

impl ToolUsage {
    /// How often the web was searched.
    pub(crate) fn searches(&self) -> Option<u64> {
        *self.web_search.as_ref()?.num_requests
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ToolRequests {
    num_requests: Known<u64>,
}
