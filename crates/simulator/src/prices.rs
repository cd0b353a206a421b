//! Models and their prices in integer nano-dollars, so that the parts of a bill add up exactly. The vendor's
//! list prices of 2026-10-09.

use serde_json::{Value, json};

const SEARCH_NANOS: u64 = 2_500_000;
const FETCH_NANOS: u64 = 500_000;

/// Prices in pico-dollars per token: one dollar per million tokens is 1,000,000 of them.
pub(crate) struct Model {
    pub(crate) id: &'static str,
    input: u64,
    output: u64,
    cache_read: u64,
}

pub(crate) const MODELS: [Model; 9] = [
    model("perplexity/sonar", 250_000, 2_500_000, 62_500),
    model("openai/gpt-6-luna", 100_000, 500_000, 10_000),
    model("openai/gpt-6-astra", 10_000_000, 50_000_000, 1_000_000),
    model("google/gemini-3.1-pro-preview", 2_000_000, 12_000_000, 200_000),
    model("xai/grok-4.7", 2_000_000, 6_000_000, 500_000),
    model("xai/grok-4.20-multi-agent", 1_250_000, 2_500_000, 200_000),
    model("openai/gpt-6-sol", 2_000_000, 10_000_000, 200_000),
    model("anthropic/claude-opus-5-5", 4_000_000, 20_000_000, 200_000),
    model("anthropic/claude-sonnet-5-5", 2_000_000, 10_000_000, 200_000),
];

pub(crate) const fn model(id: &'static str, input: u64, output: u64, cache_read: u64) -> Model {
    Model { id, input, output, cache_read }
}

/// The usage of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) model: &'static str,
    pub(crate) words_in: usize,
    pub(crate) words_out: usize,
    pub(crate) sources: usize,
    pub(crate) searches: usize,
    pub(crate) fetches: usize,
}

impl Used {
    /// The whole bill.
    pub(crate) fn nanos(&self) -> u64 {
        self.costs().iter().sum()
    }

    /// The `usage` object of a finished run.
    pub(crate) fn json(&self) -> Value {
        let (input, cached, output) = self.tokens();
        let [input_cost, output_cost, cache_cost, search_cost, fetch_cost] = self.costs();
        let mut calls = json!({});
        let mut call_costs = json!({});
        for (name, count, cost) in
            [("search_web", self.searches, search_cost), ("fetch_url", self.fetches, fetch_cost)]
        {
            if count > 0 {
                calls[name] = json!({"invocation": count, "cost_usd": dollars(cost)});
                call_costs[name] = json!(dollars(cost));
            }
        }
        json!({
            "input_tokens": input,
            "output_tokens": output,
            "total_tokens": input + output,
            "input_tokens_details": {
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": cached,
                "cached_tokens": cached,
            },
            "output_tokens_details": {"reasoning_tokens": 0},
            "tool_calls_details": calls,
            "cost": {
                "currency": "USD",
                "input_cost": dollars(input_cost),
                "output_cost": dollars(output_cost),
                "cache_read_cost": dollars(cache_cost),
                "tool_calls_cost": dollars(search_cost + fetch_cost),
                "tool_calls_cost_details": call_costs,
                "total_cost": dollars(self.nanos()),
            },
        })
    }

    /// Input, the cached part of it, and output.
    pub(crate) fn tokens(&self) -> (u64, u64, u64) {
        let input = 400 + tokens(self.words_in) + 250 * self.sources as u64;
        (input, input / 2, tokens(self.words_out))
    }

    /// The costs of input, output, cached input, searches and fetches.
    fn costs(&self) -> [u64; 5] {
        let model = MODELS.iter().find(|model| model.id == self.model).unwrap_or(&MODELS[0]);
        self.costs_at(model, SEARCH_NANOS, FETCH_NANOS)
    }

    /// The same costs at these prices.
    pub(crate) fn costs_at(&self, model: &Model, search: u64, fetch: u64) -> [u64; 5] {
        let (input, cached, output) = self.tokens();
        [
            nanos(input - cached, model.input),
            nanos(output, model.output),
            nanos(cached, model.cache_read),
            self.searches as u64 * search,
            self.fetches as u64 * fetch,
        ]
    }
}

/// 1.33 tokens per word, rounded up.
pub(crate) fn tokens(words: usize) -> u64 {
    (words as u64 * 133).div_ceil(100)
}

pub(crate) fn nanos(tokens: u64, picos: u64) -> u64 {
    (tokens * picos).div_ceil(1_000)
}

pub(crate) fn dollars(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_bill_add_up_to_its_total() {
        let used = Used {
            model: "openai/gpt-6-luna",
            words_in: 7,
            words_out: 601,
            sources: 8,
            searches: 4,
            fetches: 2,
        };
        let cost = &used.json()["cost"];
        let parts = ["input_cost", "output_cost", "cache_read_cost", "tool_calls_cost"];
        let nanos = |part: &Value| (part.as_f64().unwrap() * 1e9).round() as u64;
        let sum: u64 = parts.iter().map(|part| nanos(&cost[part])).sum();
        assert_eq!(sum, used.nanos());
        assert_eq!(nanos(&cost["total_cost"]), used.nanos());
        assert_eq!(cost["tool_calls_cost"], 0.011);
    }
}
