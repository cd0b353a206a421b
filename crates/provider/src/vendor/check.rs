//! Checks that the service answers and accepts the key, with a free call: the list of models.

use std::time::Duration;

use chrono::DateTime;
use outlast_core::{ProviderError, Timestamp};
use reqwest::Url;
use reqwest::header::DATE;

use super::errors::HttpAnswer;
use super::service::Service;
use crate::http::{MAX_BODY, read_body, read_refusal, send};

/// The result of a check of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The state of the key.
    pub key: KeyState,
    /// The server's time, to the second.
    pub server_time: Option<Timestamp>,
    /// Warnings about future errors, one sentence each.
    pub warnings: Vec<String>,
}

/// The judgement of a service about the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It is accepted.
    Taken,
    /// It was not checked: this service has no list of models.
    Unknown,
}

impl Service {
    /// Asks once, within this limit. A key that is refused is an error like any other.
    pub(crate) async fn check(&self, limit: Duration) -> Result<Checked, ProviderError> {
        let trouble = |answer: &HttpAnswer| self.trouble(answer);
        let (checked, _) = self.check_list(self.address(["v1", "models"]), limit, trouble).await?;
        Ok(checked)
    }

    /// The same with the list at this address, which is returned if there is one.
    pub(crate) async fn check_list(
        &self,
        list: Url,
        limit: Duration,
        trouble: impl FnOnce(&HttpAnswer) -> ProviderError,
    ) -> Result<(Checked, Vec<u8>), ProviderError> {
        let request = self.calls()?.get(list).timeout(limit);
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
                return Err(trouble(&HttpAnswer { status, retry_after: None, body }));
            }
        };
        let checked = Checked { key, server_time, warnings: Vec::new() };
        // A list that cannot be read does not concern the key, which was accepted.
        Ok((checked, read_body(response, MAX_BODY).await.unwrap_or_default()))
    }
}
