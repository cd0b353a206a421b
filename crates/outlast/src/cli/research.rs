//! The command line of `outlast research` and `outlast run`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use outlast_core::{Effort, NanoUsd, Profile};

use super::word;
use crate::config::{ResearchProvider, VendorName};

/// `outlast research`
#[derive(Debug, Args)]
pub(crate) struct ResearchArgs {
    /// The question; `-` reads it from standard input
    #[arg(value_name = "QUESTION", required = true)]
    pub(crate) question: Vec<String>,
    /// Effort; more costs more
    #[arg(long, value_name = "EFFORT", default_value = "medium", value_parser = effort())]
    pub(crate) effort: Effort,
    /// Answer from the documents in this folder, and from nothing else; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) library: Vec<PathBuf>,
    /// Ask this provider, one of OUTLAST_PROVIDERS [default: the conversation's own, else the first of them]
    ///
    /// A conversation stays with the provider that began it. With this, --follow-up sends its messages to another.
    #[arg(long, value_name = "NAME", value_parser = providers())]
    pub(crate) provider: Option<String>,
    /// Maximum cost of the run in dollars; a run that usually costs more is refused
    #[arg(long, value_name = "USD", value_parser = budget, allow_hyphen_values = true)]
    pub(crate) budget: Option<NanoUsd>,
    /// Continue this conversation; its id, or the first 8 characters or more
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) follow_up: Option<String>,
    /// Show the plan of the researcher and what the run would cost, and do not run it
    ///
    /// One question to the model, whose cost is shown too. Other providers do not show their plan.
    #[arg(long, conflicts_with_all = ["detach", "notify", "output"])]
    pub(crate) plan: bool,
    /// Print the job's id and exit; the job goes on
    #[arg(long)]
    pub(crate) detach: bool,
    /// Refuse to start unless `[notify]` in outlast.toml names a recipient
    ///
    /// With `[notify]` every end sends a notice, with this flag or without.
    #[arg(long)]
    pub(crate) notify: bool,
    /// Write the report to this file, with question, model, cost and sources on top; `-` is standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "detach")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn effort() -> impl TypedValueParser<Value = Effort> {
    let words = PossibleValuesParser::new([
        word("low", "A short look"),
        word("medium", "A thorough look"),
        word("high", "Everything there is"),
    ]);
    words.try_map(|word| serde_json::from_value(word.into()))
}

fn providers() -> [PossibleValue; 6] {
    ResearchProvider::NAMES.map(|name| match VendorName::from_name(name).map(VendorName::vendor) {
        Some(vendor) => {
            PossibleValue::new(name).help(format!("{}, with {}", vendor.name, vendor.key_variable))
        }
        None if name == Profile::RESEARCHER => {
            word(name, "Any model, with OUTLAST_MODEL_URL, OUTLAST_MODEL and a search service")
        }
        None => word(name, "The documents in the folders of OUTLAST_LIBRARY or --library"),
    })
}

fn budget(text: &str) -> Result<NanoUsd, String> {
    let usd = text.strip_prefix('$').unwrap_or(text).parse().ok();
    let most = NanoUsd::MAX_BUDGET_USD;
    usd.and_then(NanoUsd::budget)
        .ok_or_else(|| format!("dollars above 0, {most} at most, such as 2.50"))
}

/// `outlast run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Its name in outlast.toml
    pub(crate) workflow: String,
    /// Its input: a command's standard input, or the argument of a tool that takes it; `-` reads standard input
    pub(crate) message: Option<String>,
    /// Its arguments, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Print the job's id and exit; the job goes on
    #[arg(long)]
    pub(crate) detach: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
