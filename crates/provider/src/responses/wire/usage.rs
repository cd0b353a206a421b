//! The usage of a run, as far as the provider reports it.

use std::collections::HashMap;

use serde::Deserialize;

use crate::vendor::lenient::Known;

/// The usage of a run; any of it may be missing.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Usage {
    pub(crate) input_tokens: Known<u64>,
    pub(crate) output_tokens: Known<u64>,
    pub(crate) total_tokens: Known<u64>,
    output_tokens_details: Known<OutputTokens>,
    input_tokens_details: Known<InputTokens>,
    /// By tool; the set of tools is open.
    pub(crate) tool_calls_details: Known<HashMap<String, Known<Calls>>>,
    pub(crate) cost: Known<UsageCost>,
}

impl Usage {
    /// The same in our words, with this many searches.
    pub(crate) fn consumed(&self, searches: u64) -> outlast_core::Usage {
        let input_tokens = self.input_tokens.unwrap_or(0);
        let output_tokens = self.output_tokens.unwrap_or(0);
        let details = self.output_tokens_details.as_ref();
        outlast_core::Usage {
            input_tokens,
            output_tokens,
            total_tokens: self.total_tokens.unwrap_or(input_tokens.saturating_add(output_tokens)),
            reasoning_tokens: details.and_then(|details| *details.reasoning_tokens).unwrap_or(0),
            citation_tokens: 0,
            searches,
        }
    }

    /// Those of the input tokens that were read from a cache.
    pub(crate) fn cached_tokens(&self) -> u64 {
        self.input_tokens_details.as_ref().map_or(0, InputTokens::cached)
    }

    /// Each tool that was called, and how often.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&str, u64)> {
        let tools = self.tool_calls_details.iter().flatten();
        tools.filter_map(|(name, calls)| Some((name.as_str(), (*calls.as_ref()?.invocation)?)))
    }
}

/// The number of calls of a tool.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Calls {
    invocation: Known<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct InputTokens {
    cached_tokens: Known<u64>,
    cache_read_input_tokens: Known<u64>,
}

impl InputTokens {
    /// Read from a cache; the provider has two names for it, and may leave out either.
    fn cached(&self) -> u64 {
        self.cached_tokens.or(*self.cache_read_input_tokens).unwrap_or(0)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
struct OutputTokens {
    reasoning_tokens: Known<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct UsageCost {
    pub(crate) total_cost: Known<f64>,
}

/// The usage of tools; OpenAI's count of what it bills.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ToolUsage {
    web_search: Known<ToolRequests>,
}

impl ToolUsage {
    /// The number of web searches.
    pub(crate) fn searches(&self) -> Option<u64> {
        *self.web_search.as_ref()?.num_requests
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
struct ToolRequests {
    num_requests: Known<u64>,
}
