//! The usage of a run: tokens, and calls of grounding tools.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::vendor::lenient::{Items, Known};

/// No run consumes more of anything; a larger number is a mistake.
const MAX_COUNT: u64 = 1_000_000_000_000;

/// The usage of a run; any of it may be missing.
#[derive(Clone, Debug, Default, Deserialize)]
pub(in crate::gemini) struct Usage {
    /// Those that were read from a cache are among them.
    pub(in crate::gemini) total_input_tokens: Count,
    pub(in crate::gemini) total_cached_tokens: Count,
    pub(in crate::gemini) total_tool_use_tokens: Count,
    /// Without the thoughts.
    pub(in crate::gemini) total_output_tokens: Count,
    pub(in crate::gemini) total_thought_tokens: Count,
    pub(in crate::gemini) total_tokens: Count,
    grounding_tool_count: Items<ToolCount>,
}

impl Usage {
    /// Each grounding tool that was called, and how often.
    pub(in crate::gemini) fn calls(&self) -> impl Iterator<Item = (&str, u64)> {
        let tools = self.grounding_tool_count.iter().flatten();
        tools.filter_map(|tool| Some((tool.r#type.as_deref()?, tool.count.counted()?)))
    }

    /// Returns true if a number in it is impossible, so that no bill can be computed from it.
    pub(in crate::gemini) fn is_absurd(&self) -> bool {
        let tokens = [
            &self.total_input_tokens,
            &self.total_cached_tokens,
            &self.total_tool_use_tokens,
            &self.total_output_tokens,
            &self.total_thought_tokens,
            &self.total_tokens,
        ];
        let calls = self.grounding_tool_count.iter().flatten().map(|tool| &tool.count);
        tokens.into_iter().chain(calls).any(|count| matches!(count, Count::Absurd))
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
struct ToolCount {
    r#type: Known<String>,
    count: Count,
}

/// A count, which may be missing, or no count at all.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::gemini) enum Count {
    #[default]
    Missing,
    Counted(u64),
    /// Negative, a fraction, not a number, or beyond all measure.
    Absurd,
}

impl Count {
    pub(in crate::gemini) fn counted(self) -> Option<u64> {
        match self {
            Self::Counted(count) => Some(count),
            Self::Missing | Self::Absurd => None,
        }
    }

    pub(in crate::gemini) fn or_zero(self) -> u64 {
        self.counted().unwrap_or(0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(field) = Option::<&RawValue>::deserialize(deserializer)? else {
            return Ok(Self::Missing);
        };
        Ok(match field.get().parse() {
            Ok(count) if count <= MAX_COUNT => Self::Counted(count),
            _ => Self::Absurd,
        })
    }
}
