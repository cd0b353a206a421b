//! OpenAI's models and their prices. It reports no cost, so this is only for the bill. Prices of autumn 2026.

use serde_json::{Value, json};

use crate::prices::{Model, Used, model};

const SEARCH_NANOS: u64 = 10_000_000;

/// The models, one of them with the day on which it will be shut down.
pub(crate) const MODELS: [(Model, Option<&str>); 4] = [
    (model("gpt-6-sol", 2_000_000, 10_000_000, 200_000), None),
    (model("gpt-6-luna", 100_000, 500_000, 10_000), None),
    (model("gpt-6-astra", 10_000_000, 50_000_000, 1_000_000), None),
    (model("gpt-5.4-pro", 30_000_000, 180_000_000, 30_000_000), Some("2027-01-31")),
];

/// The whole bill: tokens and searches; opened pages are free.
pub(crate) fn nanos(used: &Used) -> u64 {
    let model = MODELS.iter().map(|(model, _)| model).find(|model| model.id == used.model);
    used.costs_at(model.unwrap_or(&MODELS[0].0), SEARCH_NANOS, 0).iter().sum()
}

/// The `usage` object of a finished run.
pub(crate) fn usage(used: &Used) -> Value {
    let (input, cached, output) = used.tokens();
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + output,
    })
}

/// The uses of its tools.
pub(crate) fn tool_usage(used: &Used) -> Value {
    let none = json!({"image_tokens": 0, "text_tokens": 0});
    json!({
        "web_search": {"num_requests": used.searches},
        "image_gen": {
            "input_tokens": 0, "input_tokens_details": none, "output_tokens": 0, "total_tokens": 0,
        },
    })
}
