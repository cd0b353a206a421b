//! Why a try did not succeed: stored, classified, fit to be shown. (An *error* is still in flight.)

use serde::{Deserialize, Serialize};

use crate::{RunStatus, Timestamp};

/// One failed try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// For machines.
    pub code: Code,
    /// For clients: one plain sentence in our own words, with the next step. Of upstream text only the vendor's own reason,
    /// one bounded sentence in quotes (G9).
    pub message: String,
    /// For the operator: what upstream said, redacted and cut. Never shown to a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When.
    pub at: Timestamp,
    /// Whether the provider may still be at work under the run on record, so that a job can take it up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run_goes_on: bool,
    /// What is known of the run that this try had.
    #[serde(default, skip_serializing_if = "RunStatus::is_unknown")]
    pub run: RunStatus,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, retryable: $retryable:literal, needs_consent: $consent:literal;)*) => {
        /// What kind of failure, by what can be done about it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word for it in every face.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// Whether the same request, as a new job, can succeed without any repair.
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$name => $retryable),* }
            }

            /// Whether the request may have been paid for without a result, so that it is sent again only with the caller's
            /// consent.
            pub fn needs_consent(self) -> bool {
                match self { $(Self::$name => $consent),* }
            }
        }
    };
}

codes! {
    /// The provider refused the request itself.
    ExecutionError = "EXECUTION_ERROR", retryable: false, needs_consent: false;
    /// A try or the whole job took too long.
    Timeout = "TIMEOUT", retryable: true, needs_consent: false;
    /// Whether the provider accepted the request cannot be known, so it was not sent a second time.
    SubmitUnknown = "SUBMIT_UNKNOWN", retryable: false, needs_consent: true;
    /// The provider no longer knows the run, which may have been paid for, so no other was begun.
    RunLost = "RUN_LOST", retryable: false, needs_consent: true;
    /// The key is wrong.
    Unauthorized = "UNAUTHORIZED", retryable: false, needs_consent: false;
    /// The account has no money left.
    QuotaExhausted = "QUOTA_EXHAUSTED", retryable: false, needs_consent: false;
    /// A setting is wrong: the provider does not have the model, say.
    ConfigurationError = "CONFIGURATION_ERROR", retryable: false, needs_consent: false;
    /// The provider no longer serves this endpoint.
    EndpointRetired = "ENDPOINT_RETIRED", retryable: false, needs_consent: false;
    /// Too many requests.
    RateLimited = "RATE_LIMITED", retryable: true, needs_consent: false;
    /// The provider is down or cannot be reached.
    ServiceUnavailable = "SERVICE_UNAVAILABLE", retryable: true, needs_consent: false;
    /// A defect of ours.
    InternalError = "INTERNAL_ERROR", retryable: false, needs_consent: false;
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
