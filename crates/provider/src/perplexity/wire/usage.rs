//! What a run consumed, as far as the provider tells.

use std::collections::HashMap;

use serde::Deserialize;

use crate::vendor::lenient::Known;

/// What a run consumed; any of it may be missing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct Usage {
    pub(in crate::perplexity) input_tokens: Known<u64>,
    pub(in crate::perplexity) output_tokens: Known<u64>,
    pub(in crate::perplexity) total_tokens: Known<u64>,
    pub(in crate::perplexity) output_tokens_details: Known<OutputTokens>,
    pub(in crate::perplexity) input_tokens_details: Known<InputTokens>,
    /// By tool; the set of tools is open.
    pub(in crate::perplexity) tool_calls_details: Known<HashMap<String, Known<Calls>>>,
    pub(in crate::perplexity) cost: Known<UsageCost>,
}

impl Usage {
    /// Each tool that was called, and how often.
    pub(in crate::perplexity) fn calls(&self) -> impl Iterator<Item = (&str, u64)> {
        let tools = self.tool_calls_details.iter().flatten();
        tools.filter_map(|(name, calls)| Some((name.as_str(), (*calls.as_ref()?.invocation)?)))
    }
}

/// How often a tool was called.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct Calls {
    invocation: Known<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct InputTokens {
    cached_tokens: Known<u64>,
    cache_read_input_tokens: Known<u64>,
}

impl InputTokens {
    /// Read from a cache; the provider has two names for it, and may leave out either.
    pub(in crate::perplexity) fn cached(&self) -> u64 {
        self.cached_tokens.or(*self.cache_read_input_tokens).unwrap_or(0)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct OutputTokens {
    pub(in crate::perplexity) reasoning_tokens: Known<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct UsageCost {
    pub(in crate::perplexity) total_cost: Known<f64>,
}
