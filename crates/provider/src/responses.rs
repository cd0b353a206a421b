//! The Responses protocol, as Perplexity's Agent API and OpenAI speak it: a run that goes on by itself at the provider, its
//! object, its events with numbers, and its cancel. What is asked of a run, and how its report is made of the object, are
//! each vendor's own.

mod api;
mod run;
mod meter;
mod errors;
pub(crate) mod markers;
pub(crate) mod wire;

use outlast_core::{Cost, Step};

use crate::vendor::Status;
pub(crate) use api::Responses;
pub(crate) use errors::run_ended;
pub(crate) use meter::Meter;
pub(crate) use run::ResponseRun;
use wire::Response;

/// The differences of one vendor's API from the others.
pub(crate) struct Dialect {
    /// The name in [`outlast_core::RemoteRun::provider`].
    pub(crate) name: &'static str,
    /// The names that lead to its runs.
    pub(crate) path: [&'static str; 2],
    /// The last step of a run that was not stopped; `None` when it has no report.
    pub(crate) finished: fn(Status, &mut Response, Vec<u8>) -> Option<Step>,
    /// The cost that its object states.
    pub(crate) cost: fn(&Response) -> Cost,
}

/// Adds to a report that its run ended early, and why.
pub(crate) fn note_early_end(text: &mut String, status: Status, response: &Response) {
    if status != Status::Incomplete {
        return;
    }
    let reason = response.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
    let reason = reason
        .filter(|reason| reason.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    let reason = reason.unwrap_or("no reason given");
    text.push_str(&format!("\n\n*The provider ended this report early ({reason}).*"));
}
