//! The status of a run at its vendor, and the error of a run without a report.

use std::fmt;

use outlast_core::{ProviderError, ProviderErrorKind};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Vendor;
use super::lenient::Lenient;

/// The status of a run. An unknown status counts as running, and is checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Running,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
    RequiresAction,
}

impl Status {
    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "completed" => Self::Completed,
            "incomplete" => Self::Incomplete,
            "failed" => Self::Failed,
            "cancelled" | "canceled" => Self::Cancelled,
            "requires_action" => Self::RequiresAction,
            _ => Self::Running,
        }
    }

    pub(crate) fn is_terminal(self) -> bool {
        self != Self::Running
    }
}

/// A run that ended without a report. Only one that failed may be repeated: the others were paid for and would end
/// the same way, or were stopped on purpose (B9a).
///
/// `limit` is the vendor's word for a limit that was reached; `cause` classifies a failure.
pub(crate) fn run_ended(
    vendor: &Vendor,
    status: Status,
    limit: Option<&str>,
    error: Option<&RunError>,
    cause: impl Fn(&RunError) -> ProviderErrorKind,
    redact: impl Fn(&str) -> String,
) -> ProviderError {
    let (kind, sentence) = match status {
        Status::Cancelled => {
            (ProviderErrorKind::RunStopped, "the run was stopped at the provider".to_owned())
        }
        Status::RequiresAction => (
            ProviderErrorKind::Rejected,
            "the provider asks for an action in the middle of the run, which is not supported; ask in another way"
                .to_owned(),
        ),
        Status::Completed if error.is_some_and(RunError::is_refusal) => (
            ProviderErrorKind::Rejected,
            "the provider's model refused to write the report; ask in another way".to_owned(),
        ),
        Status::Completed => (
            ProviderErrorKind::Malformed,
            "the provider calls the run completed, but shows no report".to_owned(),
        ),
        Status::Incomplete => {
            let limit = limit.map(|limit| format!(" ({limit})")).unwrap_or_default();
            let sentence = format!(
                "the provider's run reached a limit before it wrote anything{limit}; ask for less at a time"
            );
            (ProviderErrorKind::Rejected, sentence)
        }
        Status::Failed | Status::Running => match error.map_or(ProviderErrorKind::RunFailed, cause) {
            ProviderErrorKind::QuotaExhausted => (ProviderErrorKind::QuotaExhausted, vendor.no_credit()),
            ProviderErrorKind::Rejected => (
                ProviderErrorKind::Rejected,
                "the provider's run rejected the request; change the question or its options"
                    .to_owned(),
            ),
            _ => (ProviderErrorKind::RunFailed, "the provider's run failed".to_owned()),
        },
    };
    let reason = error.and_then(|error| error.message.as_deref()).map(&redact);
    let detail = error.map(|error| redact(&error.detail()));
    ProviderError { reason, detail, ..ProviderError::new(kind, sentence) }
}

/// The code of a model's refusal.
const REFUSAL: &str = "refusal";

/// Its error object; any of it may be missing.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RunError {
    pub(crate) message: Lenient<String>,
    pub(crate) code: Lenient<ErrorCode>,
    #[serde(rename = "type")]
    pub(crate) kind: Lenient<String>,
}

impl RunError {
    /// An error for a model's refusal to write.
    pub(crate) fn refusal(words: &str) -> Self {
        let code = Lenient(Some(ErrorCode::Word(REFUSAL.to_owned())));
        Self { message: Lenient(Some(words.to_owned())), code, kind: Lenient(None) }
    }

    /// Returns true if it is the model's refusal.
    fn is_refusal(&self) -> bool {
        matches!(&*self.code, Some(ErrorCode::Word(word)) if word == REFUSAL)
    }

    /// The provider's code or type, and its message.
    pub(crate) fn detail(&self) -> String {
        let code = self.code.as_ref().map(ToString::to_string).or(self.kind.0.clone());
        let message = self.message.as_deref().unwrap_or_default();
        format!("{} {message}", code.unwrap_or_default())
    }
}

/// A word or a number, as it comes.
#[derive(Clone, Debug)]
pub(crate) enum ErrorCode {
    Word(String),
    Number(u64),
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        let number = text.parse().ok().map(Self::Number);
        let word = || serde_json::from_str(text).map(Self::Word).map_err(D::Error::custom);
        number.map_or_else(word, Ok)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}
