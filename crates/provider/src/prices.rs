//! What work costs when the provider does not say: a dated table, and exact sums over it (C9, C10).
//!
//! Money is whole billionths of a dollar from the table to the total; nothing here is a floating-point number.

mod money;

use std::collections::HashMap;
use std::sync::LazyLock;

use outlast_core::{AskKind, BoxError, ContextSize, Cost, Effort, NanoUsd, Usage};
use serde::Deserialize;

use money::Usd;

static CURRENT: LazyLock<Prices> = LazyLock::new(|| {
    // A table that cannot be read is caught by a test; without one every model is unknown.
    Prices::parse(include_str!("prices.toml")).unwrap_or_default()
});

/// A table of prices.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    as_of: String,
    unknown_model: Usd,
    agent: VendorPrices,
    sonar: VendorPrices,
    gemini: VendorPrices,
    anthropic: VendorPrices,
    /// What a run usually costs follows from what it usually uses.
    openai: VendorPrices<TypicalUse>,
    search: Search,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct VendorPrices<T = Usd> {
    #[serde(default)]
    tools: HashMap<String, Usd>,
    models: HashMap<String, Model>,
    typical: HashMap<String, T>,
}

/// What a run of one effort usually uses.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypicalUse {
    input: u64,
    cached: u64,
    output: u64,
    searches: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    request: Usd,
    #[expect(dead_code, reason = "part of the table; no request of ours asks for it yet")]
    fast: Usd,
}

/// Tokens by the million, the rest by the piece.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    input: Usd,
    output: Usd,
    cache_read: Option<Usd>,
    citation: Option<Usd>,
    reasoning: Option<Usd>,
    search: Option<Usd>,
    request: Option<Requests>,
    /// A request that reads more tokens is dearer; which of a run's requests did cannot be seen.
    long_input: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Requests {
    low: Usd,
    medium: Usd,
    high: Usd,
}

/// What a bill may name beside [`Usage`].
#[derive(Debug, Default)]
pub struct Extras<'a> {
    /// Those of the input tokens that were read from a cache.
    pub cached_tokens: u64,
    /// Tools other than the web search, and how often each was called.
    pub calls: Vec<(&'a str, u64)>,
    /// How much of what was found the model read; unset is the provider's default.
    pub context: Option<ContextSize>,
}

/// Whose typical costs are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The Agent API.
    Agent,
    /// The Sonar endpoints.
    Sonar,
}

impl Prices {
    /// The table this program was built with, read once.
    pub fn current() -> &'static Self {
        &CURRENT
    }

    /// Reads a table.
    pub fn parse(text: &str) -> Result<Self, BoxError> {
        Ok(toml::from_str(text)?)
    }

    /// The day its prices were taken, as `YYYY-MM-DD`.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// What a model charges for this: computed when it is in the table, else an estimate; unknown without any usage.
    pub fn cost(&self, model: &str, usage: &Usage) -> Cost {
        self.bill(model, usage, &Extras::default())
    }

    /// The same, with what else a bill may name.
    ///
    /// A model with a price of its own for reasoning counts it apart from its output ([`Usage::output_tokens`]).
    pub fn bill(&self, model: &str, usage: &Usage, extras: &Extras<'_>) -> Cost {
        if *usage == Usage::default() && extras.calls.is_empty() {
            return Cost::Unknown;
        }
        // A model's name may have the date of a snapshot behind it.
        let undated = model.rsplit_once("-20").map_or(model, |(name, _)| name);
        match self.listed(model).or_else(|| self.listed(undated)) {
            Some((tools, prices)) => prices.bill(tools, usage, extras),
            None => self.unlisted(usage),
        }
    }

    /// A model and the tools of its vendor; vendors name their models apart.
    fn listed(&self, model: &str) -> Option<(&HashMap<String, Usd>, &Model)> {
        let Self { agent, sonar, gemini, anthropic, openai, .. } = self;
        let tables = [agent, sonar, gemini, anthropic].map(|table| (&table.tools, &table.models));
        let mut tables = tables.into_iter().chain([(&openai.tools, &openai.models)]);
        tables.find_map(|(tools, models)| Some((tools, models.get(model)?)))
    }

    /// What OpenAI usually charges for a run of this model and effort.
    pub fn typical_openai(&self, model: &str, effort: &str) -> Cost {
        let Some(typical) = self.openai.typical.get(effort) else { return Cost::Unknown };
        let usage = Usage {
            input_tokens: typical.input,
            output_tokens: typical.output,
            total_tokens: typical.input + typical.output,
            searches: typical.searches,
            ..Usage::default()
        };
        let extras = Extras { cached_tokens: typical.cached, ..Extras::default() };
        self.bill(model, &usage, &extras).estimated()
    }

    /// What OpenAI charges for a web search.
    pub fn openai_search(&self) -> NanoUsd {
        NanoUsd(self.openai.tools.get("web_search").copied().unwrap_or_default().nanos())
    }

    /// The price of a model that is not in the table.
    fn unlisted(&self, usage: &Usage) -> Cost {
        let counted = usage.input_tokens.saturating_add(usage.output_tokens);
        let tokens = usage.total_tokens.max(counted);
        Cost::Estimate(money::sum(&[(tokens, self.unknown_model)], &[]))
    }

    /// What a run of this agent of Gemini's usually costs.
    pub(crate) fn typical_of_agent(&self, agent: &str) -> Cost {
        estimate(self.gemini.typical.get(agent))
    }

    /// What a run at Anthropic usually costs.
    pub(crate) fn typical_at_anthropic(&self, effort: Option<Effort>) -> Cost {
        estimate(self.anthropic.typical.get(match effort {
            Some(Effort::Minimal | Effort::Low) => "low",
            Some(Effort::Medium) | None => "medium",
            Some(Effort::High) => "high",
        }))
    }

    /// What one call of the Search API costs, whatever it finds.
    pub fn search(&self) -> NanoUsd {
        NanoUsd(self.search.request.nanos())
    }

    /// What an ask of this kind and effort usually costs.
    pub fn typical(&self, dialect: Dialect, kind: AskKind, effort: Option<Effort>) -> Cost {
        if kind == AskKind::Results {
            return Cost::Estimate(self.search());
        }
        let typical = match dialect {
            Dialect::Agent => {
                let word = crate::perplexity::agent_effort(kind, effort).unwrap_or("high");
                self.agent.typical.get(word)
            }
            Dialect::Sonar => self.sonar.typical.get(match (kind, effort) {
                (AskKind::Ask, _) => "ask",
                (AskKind::Search, _) => "search",
                (AskKind::Reason, _) => "reason",
                (AskKind::Research | AskKind::Results, effort) => match effort {
                    Some(Effort::Minimal) => "minimal",
                    Some(Effort::Low) => "low",
                    Some(Effort::Medium) | None => "medium",
                    Some(Effort::High) => "high",
                },
            }),
        };
        estimate(typical)
    }
}

fn estimate(price: Option<&Usd>) -> Cost {
    price.map_or(Cost::Unknown, |price| Cost::Estimate(NanoUsd(price.nanos())))
}

impl Model {
    fn bill(&self, tools: &HashMap<String, Usd>, usage: &Usage, extras: &Extras<'_>) -> Cost {
        let cached = extras.cached_tokens.min(usage.input_tokens);
        let reasoning = self.reasoning.map(|price| (usage.reasoning_tokens, price));
        let tokens = [
            (usage.input_tokens - cached, self.input),
            (cached, self.cache_read.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
            (usage.citation_tokens, self.citation.unwrap_or_default()),
            reasoning.unwrap_or_default(),
        ];
        let tool = |name: &str| tools.get(name).copied().unwrap_or_default();
        let search = self.search.unwrap_or_else(|| tool("web_search"));
        let request = self.request.as_ref().map(|request| request.at(extras.context));
        let mut pieces = vec![(usage.searches, search), (1, request.unwrap_or_default())];
        pieces.extend(extras.calls.iter().map(|(name, calls)| (*calls, tool(name))));
        let nanos = money::sum(&tokens, &pieces);
        match self.long_input {
            Some(long) if usage.input_tokens > long => Cost::Estimate(nanos),
            _ => Cost::Computed(nanos),
        }
    }
}

impl Requests {
    fn at(&self, context: Option<ContextSize>) -> Usd {
        match context {
            None | Some(ContextSize::Low) => self.low,
            Some(ContextSize::Medium) => self.medium,
            Some(ContextSize::High) => self.high,
        }
    }
}

#[cfg(test)]
mod tests;
