//! The error that the provider reports for a run.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::lenient::Known;

/// The code of a model's refusal.
const REFUSAL: &str = "refusal";

/// Its error object; any of it may be missing.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RunError {
    pub(crate) message: Known<String>,
    pub(crate) code: Known<ErrorCode>,
    #[serde(rename = "type")]
    pub(crate) kind: Known<String>,
}

impl RunError {
    /// An error for a model's refusal to write.
    pub(crate) fn refusal(words: &str) -> Self {
        let code = Known(Some(ErrorCode::Word(REFUSAL.to_owned())));
        Self { message: Known(Some(words.to_owned())), code, kind: Known(None) }
    }

    /// Returns true if it is the model's refusal.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(&*self.code, Some(ErrorCode::Word(word)) if word == REFUSAL)
    }

    /// The provider's code or type, and its message.
    pub(crate) fn said(&self) -> String {
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
