//! `outlast spend` on the command line.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use outlast_core::{Day, SpendBy};

use super::word;

/// `outlast spend`
#[derive(Debug, Args)]
pub(crate) struct SpendArgs {
    /// Grouping of the sums
    #[arg(long, value_name = "WHAT", default_value = "day", value_parser = by())]
    pub(crate) by: SpendBy,
    /// The first day that counts, as YYYY-MM-DD in UTC [default: 29 days ago]
    #[arg(long, value_name = "DATE", value_parser = day)]
    pub(crate) since: Option<Day>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn by() -> impl TypedValueParser<Value = SpendBy> {
    let words = PossibleValuesParser::new([
        word("day", "The UTC day on which a run was asked for"),
        word("provider", "The provider that was paid"),
        word("model", "The model that did the work"),
        word("owner", "The owner who asked; shows every owner, not only you"),
    ]);
    words.map(|word| match word.as_str() {
        "provider" => SpendBy::Provider,
        "model" => SpendBy::Model,
        "owner" => SpendBy::Owner,
        _ => SpendBy::Day,
    })
}

fn day(text: &str) -> Result<Day, &'static str> {
    Day::parse(text).ok_or("a day such as 2026-11-16 is expected")
}
