//! The usage of a run and its bill in whole nano-dollars per token, so that it is exact. List prices of
//! November 2026. The API reports counts, never the bill.

use serde_json::{Value, json};

use crate::prices::{self, Used};

const INPUT_NANOS: u64 = 2_000;
const CACHED_NANOS: u64 = 200;
const OUTPUT_NANOS: u64 = 12_000;
const SEARCH_NANOS: u64 = 14_000_000;

struct Counts {
    input: u64,
    cached: u64,
    tool_use: u64,
    output: u64,
    thought: u64,
    searches: u64,
}

impl Counts {
    fn of(used: &Used) -> Self {
        let input = 2_000 + prices::tokens(used.words_in);
        Self {
            input,
            cached: input / 4,
            tool_use: 1_000 * used.sources as u64,
            output: prices::tokens(used.words_out),
            thought: 500 * (1 + used.searches as u64),
            searches: used.searches as u64,
        }
    }
}

/// The whole bill.
pub(crate) fn nanos(used: &Used) -> u64 {
    let counts = Counts::of(used);
    (counts.input - counts.cached + counts.tool_use) * INPUT_NANOS
        + counts.cached * CACHED_NANOS
        + (counts.output + counts.thought) * OUTPUT_NANOS
        + counts.searches * SEARCH_NANOS
}

/// The `usage` object of a finished run.
pub(super) fn json(used: &Used) -> Value {
    let counts = Counts::of(used);
    let total = counts.input + counts.tool_use + counts.output + counts.thought;
    json!({
        "total_input_tokens": counts.input,
        "total_cached_tokens": counts.cached,
        "total_tool_use_tokens": counts.tool_use,
        "total_output_tokens": counts.output,
        "total_thought_tokens": counts.thought,
        "total_tokens": total,
        "input_tokens_by_modality": [{"modality": "text", "tokens": counts.input}],
        "output_tokens_by_modality": [{"modality": "text", "tokens": counts.output}],
        "grounding_tool_count": [{"type": "google_search", "count": counts.searches}],
    })
}
