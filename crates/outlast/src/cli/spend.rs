//! `outlast spend` on the command line.

use clap::{Args, ValueEnum};
use outlast_core::{Day, SpendBy};

/// `outlast spend`
#[derive(Debug, Args)]
pub(crate) struct SpendArgs {
    /// What the sums are made by
    #[arg(long, value_name = "WHAT", default_value = "day")]
    pub(crate) by: SpendKey,
    /// The first day that counts, as YYYY-MM-DD in UTC [default: 29 days ago]
    #[arg(long, value_name = "DATE", value_parser = day)]
    pub(crate) since: Option<Day>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What sums are made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpendKey {
    /// The UTC day on which a run was asked for
    Day,
    /// Who was paid
    Provider,
    /// The model that did the work
    Model,
    /// Who asked; shows every owner, not only you
    Owner,
}

impl From<SpendKey> for SpendBy {
    fn from(key: SpendKey) -> Self {
        match key {
            SpendKey::Day => Self::Day,
            SpendKey::Provider => Self::Provider,
            SpendKey::Model => Self::Model,
            SpendKey::Owner => Self::Owner,
        }
    }
}

fn day(text: &str) -> Result<Day, &'static str> {
    Day::parse(text).ok_or("a day such as 2026-11-16 is expected")
}
