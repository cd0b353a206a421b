//! The command line of `outlast call`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

/// `outlast call`
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The address of the server, with its path, such as http://127.0.0.1:8080/mcp
    #[arg(long, value_name = "URL", conflicts_with = "program")]
    pub(crate) url: Option<String>,
    /// The tool to call; without it, the server's tools are listed
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Its arguments, as a JSON object
    #[arg(long, value_name = "JSON", requires = "tool")]
    pub(crate) args: Option<String>,
    /// Give up after this long without an answer, such as 90s, 5m or 2h
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::limit)]
    pub(crate) timeout: Option<Duration>,
    /// Let progress restart the time of --timeout
    #[arg(long)]
    pub(crate) reset_timeout_on_progress: bool,
    /// Give up after this long in total
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::limit)]
    pub(crate) max_total_timeout: Option<Duration>,
    /// Cancel the task that the call became when giving up
    #[arg(long, requires = "tool")]
    pub(crate) cancel_on_timeout: bool,
    /// Send this header, as in 'Name: value'; may be repeated
    #[arg(long, value_name = "HEADER", conflicts_with = "program")]
    pub(crate) header: Vec<String>,
    /// Send the token in this variable
    #[arg(long, value_name = "NAME", conflicts_with = "program")]
    pub(crate) bearer_env: Option<String>,
    /// Give the program this variable, as in NAME=value; may be repeated
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The program of the server, and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) program: Vec<OsString>,
}
