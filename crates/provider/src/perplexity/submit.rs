//! Sending a request that costs money, for every endpoint: what was accepted, what was refused, and what cannot be known.

use outlast_core::BeginError;
use reqwest::{RequestBuilder, Response};
use tokio::time::{Instant, timeout_at};

use super::api::Api;
use super::errors::{self, HttpAnswer};
use crate::http::{MAX_BODY, read_body, read_refusal, retry_after, send};

/// A submit under way: one limit for all that it waits for.
pub(super) struct Submit<'a> {
    api: &'a Api,
    deadline: Instant,
}

impl<'a> Submit<'a> {
    /// The limit runs from here.
    pub(super) fn new(api: &'a Api) -> Self {
        Self { api, deadline: Instant::now() + api.timeout() }
    }

    /// Sends it and waits for the head of a success; `refusal` says what any other answer means.
    pub(super) async fn send(
        &self,
        request: RequestBuilder,
        refusal: impl FnOnce(&HttpAnswer) -> BeginError,
    ) -> Result<Response, BeginError> {
        let response = self.in_time(send(request)).await?;
        let response = response.map_err(|error| errors::not_begun(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let retry_after = retry_after(response.headers(), self.api.now());
        let body = read_refusal(response, self.api.timeout()).await;
        Err(refusal(&HttpAnswer { status, retry_after, body }))
    }

    /// The whole body of a success. It was accepted, so without its body its fate is unknown.
    pub(super) async fn read(&self, response: Response) -> Result<Vec<u8>, BeginError> {
        let body = self.in_time(read_body(response, MAX_BODY)).await?;
        body.map_err(|error| BeginError::Unknown(errors::broken_answer(&error)))
    }

    /// Waits for something after the request has left.
    pub(super) async fn in_time<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, BeginError> {
        let silent = |_| BeginError::Unknown(errors::silent(self.api.timeout()));
        timeout_at(self.deadline, future).await.map_err(silent)
    }
}
