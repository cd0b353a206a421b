//! What a run consumed, as far as the provider tells.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::lenient::{known, object};

/// What a run consumed; any of it may be missing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct Usage {
    #[serde(deserialize_with = "known")]
    pub(in crate::perplexity) input_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(in crate::perplexity) output_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(in crate::perplexity) total_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    pub(in crate::perplexity) output_tokens_details: Option<OutputTokens>,
    #[serde(deserialize_with = "known")]
    pub(in crate::perplexity) input_tokens_details: Option<InputTokens>,
    /// By tool; the set of tools is open.
    #[serde(deserialize_with = "known")]
    pub(in crate::perplexity) tool_calls_details: Option<HashMap<String, Calls>>,
    #[serde(deserialize_with = "known")]
    pub(in crate::perplexity) cost: Option<UsageCost>,
}

impl Usage {
    /// Each tool that was called, and how often.
    pub(in crate::perplexity) fn calls(&self) -> impl Iterator<Item = (&str, u64)> {
        let tools = self.tool_calls_details.iter().flatten();
        tools.filter_map(|(name, calls)| Some((name.as_str(), calls.invocation?)))
    }
}

/// How often a tool was called.
#[derive(Clone, Debug, Default)]
pub(in crate::perplexity) struct Calls {
    invocation: Option<u64>,
}

/// Nothing of one tool's calls may hide those of the others.
impl<'de> Deserialize<'de> for Calls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Fields {
            #[serde(deserialize_with = "known")]
            invocation: Option<u64>,
        }

        let text = <&RawValue>::deserialize(deserializer)?.get();
        let fields: Fields = object(text.as_bytes()).unwrap_or_default();
        Ok(Self { invocation: fields.invocation })
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct InputTokens {
    #[serde(deserialize_with = "known")]
    cached_tokens: Option<u64>,
    #[serde(deserialize_with = "known")]
    cache_read_input_tokens: Option<u64>,
}

impl InputTokens {
    /// Read from a cache; the provider has two names for it, and may leave out either.
    pub(in crate::perplexity) fn cached(&self) -> u64 {
        self.cached_tokens.or(self.cache_read_input_tokens).unwrap_or(0)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct OutputTokens {
    #[serde(deserialize_with = "known")]
    pub(in crate::perplexity) reasoning_tokens: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct UsageCost {
    #[serde(deserialize_with = "known")]
    pub(in crate::perplexity) total_cost: Option<f64>,
}
