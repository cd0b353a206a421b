//! Models and what they cost, in integer nano-dollars so that the parts of a bill add up exactly.
//! Prices as listed by the vendor on 2026-10-09.

use serde_json::{Value, json};

const SEARCH_NANOS: u64 = 2_500_000;
const FETCH_NANOS: u64 = 500_000;

pub(crate) struct Model {
    pub(crate) id: &'static str,
    input: u64,
    output: u64,
    cache_read: u64,
}

/// Pico-dollars per token; a dollar per million tokens is 1,000,000 of them.
pub(crate) const MODELS: [Model; 9] = [
    Model { id: "perplexity/sonar", input: 250_000, output: 2_500_000, cache_read: 62_500 },
    Model { id: "openai/gpt-6-luna", input: 100_000, output: 500_000, cache_read: 10_000 },
    Model {
        id: "openai/gpt-6-astra",
        input: 10_000_000,
        output: 50_000_000,
        cache_read: 1_000_000,
    },
    Model {
        id: "google/gemini-3.1-pro-preview",
        input: 2_000_000,
        output: 12_000_000,
        cache_read: 200_000,
    },
    Model { id: "xai/grok-4.7", input: 2_000_000, output: 6_000_000, cache_read: 500_000 },
    Model {
        id: "xai/grok-4.20-multi-agent",
        input: 1_250_000,
        output: 2_500_000,
        cache_read: 200_000,
    },
    Model { id: "openai/gpt-6-sol", input: 2_000_000, output: 10_000_000, cache_read: 200_000 },
    Model {
        id: "anthropic/claude-opus-5-5",
        input: 4_000_000,
        output: 20_000_000,
        cache_read: 200_000,
    },
    Model {
        id: "anthropic/claude-sonnet-5-5",
        input: 2_000_000,
        output: 10_000_000,
        cache_read: 200_000,
    },
];

/// What a run used.
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
        let bill = self.bill();
        bill.input + bill.output + bill.cache_read + bill.search + bill.fetch
    }

    /// The `usage` object of a finished run.
    pub(crate) fn json(&self) -> Value {
        let bill = self.bill();
        let (input, cached, output) = self.tokens();
        let mut calls = json!({});
        let mut call_costs = json!({});
        for (name, count, cost) in
            [("search_web", self.searches, bill.search), ("fetch_url", self.fetches, bill.fetch)]
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
                "input_cost": dollars(bill.input),
                "output_cost": dollars(bill.output),
                "cache_read_cost": dollars(bill.cache_read),
                "tool_calls_cost": dollars(bill.search + bill.fetch),
                "tool_calls_cost_details": call_costs,
                "total_cost": dollars(self.nanos()),
            },
        })
    }

    /// Input, the cached part of it, output.
    fn tokens(&self) -> (u64, u64, u64) {
        let input = 400 + tokens(self.words_in) + 250 * self.sources as u64;
        (input, input / 2, tokens(self.words_out))
    }

    fn bill(&self) -> Bill {
        let (input, cached, output) = self.tokens();
        let model = MODELS.iter().find(|model| model.id == self.model).unwrap_or(&MODELS[0]);
        Bill {
            input: nanos(input - cached, model.input),
            output: nanos(output, model.output),
            cache_read: nanos(cached, model.cache_read),
            search: self.searches as u64 * SEARCH_NANOS,
            fetch: self.fetches as u64 * FETCH_NANOS,
        }
    }
}

/// The list behind `GET /v1/models`.
pub(crate) fn models() -> Value {
    let per_million = |picos: u64| picos as f64 / 1e6;
    let models = MODELS.iter().map(|model| {
        json!({
            "id": model.id,
            "object": "model",
            "created": 0,
            "owned_by": model.id.split('/').next(),
            "pricing": {
                "input": per_million(model.input),
                "output": per_million(model.output),
                "cache_read": per_million(model.cache_read),
                "unit": "usd_per_1m_tokens",
            },
        })
    });
    json!({"object": "list", "data": models.collect::<Vec<_>>()})
}

struct Bill {
    input: u64,
    output: u64,
    cache_read: u64,
    search: u64,
    fetch: u64,
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
