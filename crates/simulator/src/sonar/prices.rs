//! The Sonar models and their bills in integer nano-dollars, so that the parts add up exactly. The vendor's
//! list prices until September 2026.

use serde_json::{Value, json};

use crate::effort::Effort;
use crate::prices::{Used, dollars, nanos};

/// One Sonar model. Prices are in pico-dollars per token unless the name says otherwise.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) id: &'static str,
    pub(crate) effort: Effort,
    input: u64,
    output: u64,
    fee: Fee,
}

/// The price of everything except the text.
#[derive(Debug)]
enum Fee {
    /// Nano-dollars per request, by the size of the search context.
    Request([u64; 3]),
    /// Deep research charges for tokens read and reasoned, and nano-dollars per search.
    Parts { citation: u64, reasoning: u64, search: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Context {
    Low,
    Medium,
    High,
}

impl Context {
    pub(crate) const NAMES: [&'static str; 3] = ["low", "medium", "high"];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High].into_iter().find(|size| size.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

const FEE: Fee = Fee::Request([5_000_000, 8_000_000, 12_000_000]);
const PRO_FEE: Fee = Fee::Request([6_000_000, 10_000_000, 14_000_000]);
const RESEARCH_FEE: Fee =
    Fee::Parts { citation: 2_000_000, reasoning: 3_000_000, search: 5_000_000 };

pub(crate) const MODELS: [Model; 4] = [
    model("sonar", Effort::Fast, (1_000_000, 1_000_000), FEE),
    model("sonar-pro", Effort::Medium, (3_000_000, 15_000_000), PRO_FEE),
    model("sonar-reasoning-pro", Effort::Medium, (2_000_000, 8_000_000), PRO_FEE),
    model("sonar-deep-research", Effort::High, (2_000_000, 8_000_000), RESEARCH_FEE),
];

const fn model(id: &'static str, effort: Effort, (input, output): (u64, u64), fee: Fee) -> Model {
    Model { id, effort, input, output, fee }
}

impl Model {
    /// Returns true if thoughts precede its report.
    pub(crate) fn thinks(&self) -> bool {
        matches!(self.id, "sonar-reasoning-pro" | "sonar-deep-research")
    }
}

/// The whole bill.
pub(crate) fn total(model: &Model, context: Context, used: &Used) -> u64 {
    let (input, output, extra) = parts(model, context, used);
    input + output + extra.iter().map(|(_, nanos)| nanos).sum::<u64>()
}

/// The `usage` object of a finished answer.
pub(crate) fn usage(model: &Model, context: Context, used: &Used) -> Value {
    let (prompt, completion) = tokens(used);
    let mut usage = json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "search_context_size": context.name(),
    });
    let (input, output, extra) = parts(model, context, used);
    let mut cost = json!({
        "input_tokens_cost": dollars(input),
        "output_tokens_cost": dollars(output),
        "citation_tokens_cost": null,
        "reasoning_tokens_cost": null,
        "search_queries_cost": null,
        "request_cost": null,
        "total_cost": dollars(total(model, context, used)),
    });
    for (name, nanos) in extra {
        cost[name] = dollars(nanos).into();
    }
    if let Fee::Parts { .. } = model.fee {
        usage["citation_tokens"] = citation_tokens(used).into();
        usage["reasoning_tokens"] = reasoning_tokens(used).into();
        usage["num_search_queries"] = used.searches.into();
    }
    usage["cost"] = cost;
    usage
}

/// The `usage` of an unfinished answer: counts are unknown, and the cost is zero.
pub(crate) fn unfinished_usage(context: Context) -> Value {
    json!({
        "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0,
        "search_context_size": context.name(),
        "cost": {"input_tokens_cost": 0.0, "output_tokens_cost": 0.0, "total_cost": 0.0},
    })
}

/// Input, output, and the other charges by name.
fn parts(model: &Model, context: Context, used: &Used) -> (u64, u64, Vec<(&'static str, u64)>) {
    let (prompt, completion) = tokens(used);
    let extra = match model.fee {
        Fee::Request(by_context) => vec![("request_cost", by_context[context as usize])],
        Fee::Parts { citation, reasoning, search } => vec![
            ("citation_tokens_cost", nanos(citation_tokens(used), citation)),
            ("reasoning_tokens_cost", nanos(reasoning_tokens(used), reasoning)),
            ("search_queries_cost", used.searches as u64 * search),
        ],
    };
    (nanos(prompt, model.input), nanos(completion, model.output), extra)
}

fn tokens(used: &Used) -> (u64, u64) {
    (crate::prices::tokens(used.words_in), crate::prices::tokens(used.words_out))
}

fn citation_tokens(used: &Used) -> u64 {
    1_200 * used.sources as u64
}

fn reasoning_tokens(used: &Used) -> u64 {
    9_000 * used.searches as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const USED: Used =
        Used { model: "", words_in: 9, words_out: 1_500, sources: 16, searches: 4, fetches: 0 };

    #[test]
    fn the_parts_of_every_bill_add_up_to_its_total() {
        for model in &MODELS {
            for context in [Context::Low, Context::Medium, Context::High] {
                let usage = usage(model, context, &USED);
                let nanos = |value: &Value| (value.as_f64().unwrap_or(0.0) * 1e9).round() as u64;
                let cost = usage["cost"].as_object().unwrap();
                let parts: u64 =
                    cost.iter().filter(|(k, _)| *k != "total_cost").map(|(_, v)| nanos(v)).sum();
                assert_eq!(parts, nanos(&cost["total_cost"]), "{} {usage}", model.id);
                assert_eq!(parts, total(model, context, &USED));
            }
        }
    }

    #[test]
    fn a_wider_context_costs_more_but_deep_research_has_no_fee_per_request() {
        let at = |model: usize, context| total(&MODELS[model], context, &USED);
        assert_eq!(at(0, Context::High) - at(0, Context::Low), 7_000_000);
        assert_eq!(at(3, Context::High), at(3, Context::Low));
        assert!(usage(&MODELS[3], Context::Low, &USED)["cost"]["request_cost"].is_null());
    }
}
