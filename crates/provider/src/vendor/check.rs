//! Whether the service answers and takes the key, asked with a call that costs nothing: the list of models.

use std::time::Duration;

use chrono::DateTime;
use outlast_core::{ProviderError, Timestamp};
use reqwest::header::DATE;

use super::errors::HttpAnswer;
use super::service::Service;
use crate::http::{read_refusal, send};

/// What the service said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What became of the key.
    pub key: KeyState,
    /// What time it is there, to the second.
    pub server_time: Option<Timestamp>,
    /// What an operator should know before it becomes an error.
    pub warnings: Vec<String>,
}

/// What a service that answers makes of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It is taken.
    Taken,
    /// It was not looked at: this service has no list of models.
    Unknown,
}

impl Service {
    /// Asks once, within this limit. A key that is refused is an error like any other.
    pub(crate) async fn check(&self, limit: Duration) -> Result<Checked, ProviderError> {
        let request = self.calls()?.get(self.address(["v1", "models"])).timeout(limit);
        let response =
            send(self.authorised(request)).await.map_err(|error| self.no_answer(&error))?;
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        let server_time = date.map(|date| Timestamp::from_millis(date.timestamp_millis()));
        let status = response.status();
        let key = match status.as_u16() {
            200..=299 => KeyState::Taken,
            404 | 405 | 501 => KeyState::Unknown,
            _ => {
                let body = read_refusal(response, limit).await;
                return Err(self.trouble(&HttpAnswer { status, retry_after: None, body }));
            }
        };
        Ok(Checked { key, server_time, warnings: Vec::new() })
    }
}
