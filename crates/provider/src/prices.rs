//! The price of work whose cost the provider does not report: a dated table, and exact sums over it (C9, C10).
//!
//! Money is whole billionths of a dollar from the table to the total; nothing here is a floating-point number.

mod money;

use std::collections::HashMap;
use std::sync::LazyLock;

use outlast_core::{BoxError, ContextSize, Cost, NanoUsd, Usage};
use serde::Deserialize;

use money::Usd;

static CURRENT: LazyLock<Prices> = LazyLock::new(|| {
    // A table that cannot be read is caught by a test; without one every model is unknown.
    Prices::parse(include_str!("prices.toml")).unwrap_or_default()
});

/// A table of prices.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prices {
    /// The day its prices were taken, as `YYYY-MM-DD`.
    #[cfg_attr(not(test), expect(dead_code, reason = "part of the table; a test reads it"))]
    as_of: String,
    unknown_model: Usd,
    pub(crate) agent: VendorPrices,
    pub(crate) sonar: VendorPrices,
    pub(crate) gemini: VendorPrices,
    pub(crate) anthropic: VendorPrices,
    /// The usual cost of a run is computed from its usual usage.
    openai: VendorPrices<TypicalUse>,
    search: Search,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VendorPrices<T = Usd> {
    #[serde(default)]
    tools: HashMap<String, Usd>,
    models: HashMap<String, ModelPrices>,
    typical: HashMap<String, T>,
}

/// The usual usage of a run with one effort.
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
    #[expect(dead_code, reason = "part of the table; none of our requests asks for it yet")]
    fast: Usd,
}

/// Tokens by the million, the rest by the piece.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelPrices {
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

/// The items of a bill besides [`Usage`].
#[derive(Debug, Default)]
pub(crate) struct Extras<'a> {
    /// Those of the input tokens that were read from a cache.
    pub(crate) cached_tokens: u64,
    /// Tools other than the web search, and how often each was called.
    pub(crate) calls: Vec<(&'a str, u64)>,
    /// The share of the search results that the model read; unset is the provider's default.
    pub(crate) context: Option<ContextSize>,
}

impl Prices {
    /// The table this program was built with, read once.
    pub(crate) fn current() -> &'static Self {
        &CURRENT
    }

    /// Reads a table.
    pub(crate) fn parse(text: &str) -> Result<Self, BoxError> {
        Ok(toml::from_str(text)?)
    }

    /// The cost of this usage: computed if the model is in the table, otherwise an estimate; unknown without any usage.
    ///
    /// A model with its own price for reasoning counts it apart from its output ([`Usage::output_tokens`]).
    pub(crate) fn bill(&self, model: &str, usage: &Usage, extras: &Extras<'_>) -> Cost {
        if *usage == Usage::default() && extras.calls.is_empty() {
            return Cost::Unknown;
        }
        match self.find_listed(model).or_else(|| self.find_listed(strip_date(model))) {
            Some((tools, prices)) => prices.bill(tools, usage, extras),
            None => self.estimate_unlisted(usage),
        }
        .plausible()
    }

    /// A model and the tools of its vendor; vendors name their models apart.
    fn find_listed(&self, model: &str) -> Option<(&HashMap<String, Usd>, &ModelPrices)> {
        let Self { agent, sonar, gemini, anthropic, openai, .. } = self;
        let tables = [agent, sonar, gemini, anthropic].map(|table| (&table.tools, &table.models));
        let mut tables = tables.into_iter().chain([(&openai.tools, &openai.models)]);
        tables.find_map(|(tools, models)| Some((tools, models.get(model)?)))
    }

    /// OpenAI's usual price of a run with this model and effort.
    pub(crate) fn typical_openai(&self, model: &str, effort: &str) -> Cost {
        let Some(typical) = self.openai.typical.get(effort) else { return Cost::Unknown };
        // The flat price of an unknown model is for bills (C9). Before a run nothing is known of such a model: a limit
        // must not rest on a guess.
        if !self.openai.lists(model) {
            return Cost::Unknown;
        }
        let usage = Usage {
            input_tokens: typical.input,
            output_tokens: typical.output,
            total_tokens: typical.input + typical.output,
            searches: typical.searches,
            ..Usage::default()
        };
        let extras = Extras { cached_tokens: typical.cached, ..Extras::default() };
        self.bill(model, &usage, &extras).as_estimate()
    }

    /// OpenAI's price of a web search.
    pub(crate) fn openai_search(&self) -> NanoUsd {
        NanoUsd(self.openai.tools.get("web_search").copied().unwrap_or_default().nanos())
    }

    /// The price of a model that is not in the table.
    fn estimate_unlisted(&self, usage: &Usage) -> Cost {
        let counted = usage.input_tokens.saturating_add(usage.output_tokens);
        let tokens = usage.total_tokens.max(counted);
        Cost::Estimate(money::sum(&[(tokens, self.unknown_model)], &[]))
    }

    /// The price of one call of the Search API, whatever it finds.
    pub(crate) fn search(&self) -> NanoUsd {
        NanoUsd(self.search.request.nanos())
    }
}

/// The model's name without the date of a snapshot.
fn strip_date(model: &str) -> &str {
    model.rsplit_once("-20").map_or(model, |(name, _)| name)
}

impl<T> VendorPrices<T> {
    /// Returns whether the vendor's price for this model is known.
    pub(crate) fn lists(&self, model: &str) -> bool {
        self.models.contains_key(model) || self.models.contains_key(strip_date(model))
    }
}

impl VendorPrices {
    /// The usual cost of the work that the table lists under this word.
    pub(crate) fn typical(&self, word: &str) -> Cost {
        let price = self.typical.get(word);
        price.map_or(Cost::Unknown, |price| Cost::Estimate(NanoUsd(price.nanos())))
    }
}

impl ModelPrices {
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
