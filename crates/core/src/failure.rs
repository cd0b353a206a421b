//! The reason why an attempt did not succeed: stored, classified and fit to be shown. (An *error* is still in
//! flight.)

use serde::{Deserialize, Serialize};

use crate::{RunStatus, Timestamp};

/// One failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The code for machines.
    pub code: Code,
    /// The message for clients: one plain sentence in our own words, with the next step. It contains no upstream text
    /// except the vendor's own reason, as one bounded sentence in quotes (G9).
    pub message: String,
    /// The text for the operator: what upstream returned, redacted and cut. Never shown to a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub at: Timestamp,
    /// True if the provider may still be working on the recorded run, so that a job can resume it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run_goes_on: bool,
    /// The known status of this attempt's run.
    #[serde(default, skip_serializing_if = "RunStatus::is_unknown")]
    pub run: RunStatus,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, retryable: $retryable:literal, needs_consent: $consent:literal;)*) => {
        /// The kind of a failure, by its remedy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the word that every interface uses for the code.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// Returns the code of this word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.as_str() == word)
            }

            /// Returns whether the same request, as a new job, can succeed without any repair.
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$name => $retryable),* }
            }

            /// Returns whether the request may have been paid for without a result. Such a request is sent again only
            /// with the caller's consent.
            pub fn needs_consent(self) -> bool {
                match self { $(Self::$name => $consent),* }
            }
        }
    };
}

codes! {
    /// The provider refused the request itself.
    ExecutionError = "EXECUTION_ERROR", retryable: false, needs_consent: false;
    /// An attempt or the whole job took too long.
    Timeout = "TIMEOUT", retryable: true, needs_consent: false;
    /// It cannot be known whether the provider accepted the request, so it was not sent a second time.
    SubmitUnknown = "SUBMIT_UNKNOWN", retryable: false, needs_consent: true;
    /// The provider no longer knows the run, which may have been paid for, so no other run was begun.
    RunLost = "RUN_LOST", retryable: false, needs_consent: true;
    /// The key is wrong.
    Unauthorized = "UNAUTHORIZED", retryable: false, needs_consent: false;
    /// The account has no money left.
    QuotaExhausted = "QUOTA_EXHAUSTED", retryable: false, needs_consent: false;
    /// A setting is wrong; for example, the provider does not have the model.
    ConfigurationError = "CONFIGURATION_ERROR", retryable: false, needs_consent: false;
    /// The provider no longer serves this endpoint.
    EndpointRetired = "ENDPOINT_RETIRED", retryable: false, needs_consent: false;
    RateLimited = "RATE_LIMITED", retryable: true, needs_consent: false;
    /// The provider is down or cannot be reached.
    ServiceUnavailable = "SERVICE_UNAVAILABLE", retryable: true, needs_consent: false;
    /// A question of the job was not answered before its deadline.
    NotAnswered = "NOT_ANSWERED", retryable: true, needs_consent: false;
    /// A defect of this program.
    InternalError = "INTERNAL_ERROR", retryable: false, needs_consent: false;
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
