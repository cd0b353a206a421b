//! The error that the provider reports for a request.

use std::time::Duration;

use serde::Deserialize;

use crate::vendor::lenient::{Items, Known, object};

/// The error envelope of a refused request.
#[derive(Clone, Debug, Default, Deserialize)]
pub(in crate::gemini) struct Envelope {
    error: Known<EnvelopeError>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct EnvelopeError {
    message: Known<String>,
    details: Items<Detail>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Detail {
    reason: Known<String>,
    #[serde(rename = "retryDelay")]
    retry_delay: Known<String>,
}

impl Envelope {
    /// The envelope in a body; empty if the body has none.
    pub(in crate::gemini) fn parse(body: &[u8]) -> Self {
        object(body).unwrap_or_default()
    }

    /// Its message, in lower case.
    pub(in crate::gemini) fn message(&self) -> String {
        let message = self.error.as_ref().and_then(|error| error.message.as_deref());
        message.unwrap_or_default().to_lowercase()
    }

    /// Returns true if the key is refused: the API does that with a 400.
    pub(in crate::gemini) fn refuses_the_key(&self) -> bool {
        let reasons = self.details().filter_map(|detail| detail.reason.as_deref());
        let mut reasons = reasons.filter(|reason| reason.starts_with("API_KEY_"));
        reasons.next().is_some() || self.message().contains("api key not valid")
    }

    /// The wait it asks for, which may be given in the body alone.
    pub(in crate::gemini) fn retry_delay(&self) -> Option<Duration> {
        let mut delays = self.details().filter_map(|detail| detail.retry_delay.as_deref());
        let seconds = delays.next()?.strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    fn details(&self) -> impl Iterator<Item = &Detail> {
        self.error.iter().flat_map(|error| error.details.iter().flatten())
    }
}
