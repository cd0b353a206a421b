//! Makes a [`ProviderError`] from its kind and its sentence.

use outlast_core::{ProviderError, Trouble};

pub(crate) fn provider_error(trouble: Trouble, sentence: impl Into<String>) -> ProviderError {
    ProviderError::new(trouble, sentence)
}

/// The same with the upstream message, for the operator.
pub(crate) fn detailed(
    trouble: Trouble,
    sentence: impl Into<String>,
    detail: impl Into<String>,
) -> ProviderError {
    ProviderError { detail: Some(detail.into()), ..provider_error(trouble, sentence) }
}
