//! Sending a request that costs money, for every endpoint: what was accepted, what was refused, and what cannot be known.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{BeginError, Output, ProviderError, RemoteRun, Run, Step};
use reqwest::{RequestBuilder, Response};
use tokio::time::{Instant, timeout_at};

use super::errors::{self, HttpAnswer};
use super::service::Service;
use crate::http::{MAX_BODY, read_body, read_refusal, retry_after, send};

/// A submit under way: one limit for all that it waits for.
pub(crate) struct Submit<'a> {
    service: &'a Service,
    limit: Duration,
    deadline: Instant,
}

impl<'a> Submit<'a> {
    /// The limit runs from here.
    pub(crate) fn new(service: &'a Service) -> Self {
        Self::within(service, service.timeout())
    }

    /// The same, with this limit if it is shorter.
    pub(crate) fn within(service: &'a Service, limit: Duration) -> Self {
        let limit = limit.min(service.timeout());
        Self { service, limit, deadline: Instant::now() + limit }
    }

    /// Sends it and waits for the head of a success; `refusal` makes the error of any other answer.
    pub(crate) async fn send(
        &self,
        request: RequestBuilder,
        refusal: impl FnOnce(&HttpAnswer) -> BeginError,
    ) -> Result<Response, BeginError> {
        let response = self.in_time(send(request)).await?;
        let response =
            response.map_err(|error| errors::submit_error(self.service.vendor(), &error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let retry_after = retry_after(response.headers(), self.service.now());
        let body = read_refusal(response, self.service.timeout()).await;
        Err(refusal(&HttpAnswer { status, retry_after, body }))
    }

    /// The whole body of a success. It was accepted, so without its body its outcome is unknown.
    pub(crate) async fn read(&self, response: Response) -> Result<Vec<u8>, BeginError> {
        let body = self.in_time(read_body(response, MAX_BODY)).await?;
        body.map_err(|error| BeginError::Unknown(errors::broken_answer(&error)))
    }

    /// Waits for something after the request has left.
    pub(crate) async fn in_time<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, BeginError> {
        let silent = |_| BeginError::Unknown(errors::silent(self.limit));
        timeout_at(self.deadline, future).await.map_err(silent)
    }
}

/// A result that is already here.
pub(crate) struct DeliveredRun {
    remote: RemoteRun,
    /// Taken when it is returned: it may be megabytes, and is not copied.
    result: Option<(Box<Output>, Vec<u8>)>,
}

impl DeliveredRun {
    /// With the answer as it came.
    pub(crate) fn new(remote: RemoteRun, output: Box<Output>, raw: Vec<u8>) -> Self {
        Self { remote, result: Some((output, raw)) }
    }
}

#[async_trait]
impl Run for DeliveredRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        match self.result.take() {
            Some((output, raw)) => Ok(Step::Done { output, raw: Some(raw) }),
            // Nothing happens after the end.
            None => std::future::pending().await,
        }
    }
}
