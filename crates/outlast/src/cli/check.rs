//! `outlast check` on the command line.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::word;

/// `outlast check`
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The id of a job or conversation with a report, or a Markdown file; - is standard input
    #[arg(value_name = "ID|FILE")]
    pub(crate) target: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Fetch the sources again, although the report was checked before
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Print the id of the check and leave it to a background worker
    #[arg(long, conflicts_with = "fail_on")]
    pub(crate) detach: bool,
    /// Fetch the web sources of a report with text of local documents, without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Compare a report of the library with the files in this folder, which it was written from; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) library: Vec<PathBuf>,
    /// Exit with 1 if a claim or a source has one of these verdicts, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true, value_parser = verdict())]
    pub(crate) fail_on: Vec<String>,
}

fn verdict() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new([
        word("differs", "The source has another value"),
        word("not_found", "The source does not have the facts"),
        word("partly", "The source has some of the facts, or has them in another sense"),
        word("unchecked", "The source cannot be judged"),
        word("no_facts", "The sentence has nothing that can be compared"),
        word("dead", "The page does not exist"),
        word("moved", "The page redirects to the beginning of its site"),
        word("blocked", "The site refuses robots or visitors without an account"),
        word("refused", "A rule forbids fetching the address"),
        word("changed", "The local file has changed"),
        word("unreachable", "The page did not answer"),
        word("unreadable", "The answer is not text that can be read"),
    ])
}
