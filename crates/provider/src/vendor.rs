//! Code shared by the adapters of all vendors: the service behind an address and a key, paid requests, checks of a run,
//! errors in our own words. Only the error envelope, which all vendors have in common, is known here of their JSON.

mod service;
mod submit;
mod stop;
mod waits;
mod follow;
mod milestones;
mod ended;
mod errors;
mod events;
pub(crate) mod lenient;
pub(crate) mod billed;
pub(crate) mod citations;

use std::sync::Arc;

use outlast_core::{Clock, Effort};

use crate::http::HttpOptions;
pub(crate) use ended::{ErrorCode, RunError, Status, run_ended};
pub(crate) use errors::{
    HttpAnswer, NO_ID, provider_error, refusal, report_malformed, silent, stream_before_id,
    unknown_run, unreadable, with_likely_address,
};
pub(crate) use events::EventStream;
pub(crate) use follow::{FollowedRun, RunLink, VendorRun};
pub(crate) use lenient::object;
pub(crate) use milestones::{Milestones, WorkDone};
pub use service::{CheckedAnswer, KeyState};
pub(crate) use service::{Service, is_event_stream};
pub(crate) use stop::{StopCalls, stop_outcome};
pub(crate) use submit::{DeliveredRun, Submit};
pub(crate) use waits::Checks;
pub use waits::PollIntervals;

/// The options of an adapter.
pub struct VendorOptions {
    /// The address of the API.
    pub base_url: String,
    /// The key; never logged.
    pub api_key: String,
    /// The model or agent to ask, if the configuration names one.
    pub model: Option<String>,
    /// Limits and proxy.
    pub http: HttpOptions,
    /// Dates runs and reads `x-ratelimit-reset`.
    pub clock: Arc<dyn Clock>,
    /// The waits between checks in place of the API's own; only a test wants that.
    pub waits: Option<PollIntervals>,
}

/// A vendor, as texts name it and as its service is called.
#[derive(Debug)]
pub struct Vendor {
    /// Its name in texts.
    pub name: &'static str,
    /// The variable that has the key.
    pub key_variable: &'static str,
    /// The variable that has the address.
    pub base_url_variable: &'static str,
    /// The variable that has the proxy.
    pub proxy_variable: &'static str,
    /// The first progress of a run (B6).
    pub(crate) querying: &'static str,
    /// The hint for a service that no longer has an endpoint.
    pub(crate) retired_hint: &'static str,
    /// The place of the key in a request.
    pub(crate) key_header: KeyHeader,
    /// Further headers of every request.
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

/// The place of the key in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyHeader {
    /// `Authorization: Bearer`.
    Bearer,
    /// A header of this name.
    Named(&'static str),
}

/// The vendor's word for an effort; `None` if that is left to the provider.
pub(crate) fn effort_word(asked: Option<Effort>) -> Option<&'static str> {
    Some(match asked? {
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    })
}

impl Vendor {
    /// The key is refused.
    pub(crate) fn bad_key(&self) -> String {
        let key = self.key_variable;
        format!("the provider refused the API key; check {key}, and that its account has credit")
    }

    fn bad_proxy(&self) -> String {
        format!("the proxy wants other credentials; check {}", self.proxy_variable)
    }

    /// The account cannot pay.
    pub(crate) fn no_credit(&self) -> String {
        let key = self.key_variable;
        format!("the provider account has no credit left; add credit, or use another {key}")
    }

    fn describe_retirement(&self) -> String {
        format!("the provider no longer serves this endpoint; {}", self.retired_hint)
    }

    fn unreachable(&self) -> String {
        let base_url = self.base_url_variable;
        format!(
            "the provider cannot be reached; check the network, {base_url} and the proxy settings"
        )
    }
}
