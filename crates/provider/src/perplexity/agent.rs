//! The Agent dialect: submit with `background` and `stream`, so that the run outlives the connection and its id
//! comes with the first event.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    Again, BeginError, BoxError, Clock, Nature, Profile, Provider, ProviderError, RemoteRun,
    RemoteStop, ResearchAsk, Run, Trouble,
};
use reqwest::header::CONTENT_TYPE;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::errors::{self, Answer};
use super::run::{AgentRun, EventStream};
use super::wire;
use crate::http::{Http, HttpOptions, read_body, retry_after, send};

/// What the adapter is made from.
pub struct AgentOptions {
    /// Where the API is.
    pub base_url: String,
    /// The key; never logged.
    pub api_key: String,
    /// Limits and proxy.
    pub http: HttpOptions,
    /// Dates runs and reads `x-ratelimit-reset`.
    pub clock: Arc<dyn Clock>,
}

/// Perplexity's Agent API as a provider.
#[derive(Clone)]
pub struct Agent {
    shared: Arc<Shared>,
}

struct Shared {
    base_url: String,
    api_key: String,
    http: Http,
    clock: Arc<dyn Clock>,
}

impl Agent {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "perplexity/agent";

    /// Makes the adapter; nothing is sent yet.
    pub fn new(options: AgentOptions) -> Result<Self, BoxError> {
        let base_url = options.base_url.trim_end_matches('/').to_owned();
        reqwest::Url::parse(&base_url)?;
        let http = Http::new(options.http)?;
        let shared = Shared { base_url, api_key: options.api_key, http, clock: options.clock };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// What a worker must have to run this adapter's jobs: the same service and the same key.
    pub fn profile(&self) -> Profile {
        let digest = Sha256::digest(self.shared.api_key.as_bytes());
        let fingerprint: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        Profile::new(format!("{} {} {fingerprint}", Self::NAME, self.shared.base_url))
    }

    pub(super) fn now(&self) -> outlast_core::Timestamp {
        self.shared.clock.now()
    }

    fn authorised(&self, request: RequestBuilder) -> RequestBuilder {
        request.bearer_auth(&self.shared.api_key)
    }

    /// Asks for a run's present state.
    pub(super) async fn check(&self, id: &str) -> Result<Answer, ProviderError> {
        let url = format!("{}/v1/agent/{id}", self.shared.base_url);
        let request = self.calls()?.get(url).timeout(self.shared.http.timeout());
        self.answer(self.authorised(request)).await
    }

    /// Takes up a run's event stream after the event of this number; `None` when it cannot be had.
    pub(super) async fn attach(
        &self,
        id: &str,
        cursor: u64,
    ) -> Result<Option<EventStream>, ProviderError> {
        let url =
            format!("{}/v1/agent/{id}?stream=true&starting_after={cursor}", self.shared.base_url);
        let request = self.calls()?.get(url).header("accept", "text/event-stream");
        let response =
            send(self.authorised(request)).await.map_err(|error| errors::no_answer(&error))?;
        Ok((response.status() == StatusCode::OK && is_event_stream(&response))
            .then(|| EventStream::new(response)))
    }

    async fn cancel(&self, id: &str) -> Result<Answer, ProviderError> {
        let url = format!("{}/v1/agent/{id}/cancel", self.shared.base_url);
        let request = self.calls()?.post(url).timeout(STOP_LIMIT).json(&serde_json::json!({}));
        self.answer(self.authorised(request)).await
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Answer, ProviderError> {
        let response = send(request).await.map_err(|error| errors::no_answer(&error))?;
        self.read(response).await.map_err(|error| errors::broken_answer(&error))
    }

    async fn read(&self, response: Response) -> Result<Answer, crate::http::BodyError> {
        let status = response.status();
        let retry_after = retry_after(response.headers(), self.now());
        let body = read_body(response).await?;
        Ok(Answer { status, retry_after, body })
    }

    fn calls(&self) -> Result<reqwest::Client, ProviderError> {
        self.shared.http.calls().map_err(|error| errors::no_client(&*error))
    }

    /// What an answer that is not a success means, with this key kept out of it.
    pub(super) fn trouble(&self, answer: &Answer) -> ProviderError {
        errors::trouble(answer, &self.shared.api_key)
    }
}

/// A stop that takes longer is tried again later.
const STOP_LIMIT: Duration = Duration::from_secs(15);

#[async_trait]
impl Provider for Agent {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn nature(&self, _ask: &Value) -> Nature {
        // The API has neither idempotency keys nor a list of runs: a lost submit cannot be found again.
        Nature { again: Again::Never, resumes: true, stops: true }
    }

    async fn begin(&self, ask: &Value, _key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask: ResearchAsk = serde_json::from_value(ask.clone()).map_err(|error| {
            BeginError::NotSent(ProviderError {
                trouble: Trouble::Rejected,
                sentence: "the stored request cannot be read by this version".to_owned(),
                detail: Some(error.to_string()),
            })
        })?;
        let client = self.shared.http.submits();
        let client = client.map_err(|error| BeginError::NotSent(errors::no_client(&*error)))?;
        let url = format!("{}/v1/agent", self.shared.base_url);
        let request = client.post(url).json(&wire::Submit::from(&ask));
        let limit = self.shared.http.timeout();
        match tokio::time::timeout(limit, self.submit(self.authorised(request))).await {
            Ok(begun) => begun.map(|run| Box::new(run) as Box<dyn Run>),
            Err(_) => Err(BeginError::Unknown(errors::silent(limit))),
        }
    }

    async fn resume(&self, run: &RemoteRun) -> Result<Box<dyn Run>, ProviderError> {
        Ok(Box::new(AgentRun::resumed(self.clone(), run.clone())))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<RemoteStop, ProviderError> {
        // A cancel of an unknown run and of a finished one get the same answer, so the state is read first.
        let before = self.check(&run.id).await?;
        if before.status == StatusCode::NOT_FOUND {
            return Ok(RemoteStop::Done);
        }
        if !before.status.is_success() {
            return Err(self.trouble(&before));
        }
        if wire::Response::parse(&before.body)
            .is_some_and(|response| response.status().is_terminal())
        {
            return Ok(RemoteStop::Done);
        }
        let answer = self.cancel(&run.id).await?;
        match answer.status {
            status if status.is_success() => Ok(RemoteStop::Done),
            // It ended between the two calls.
            StatusCode::BAD_REQUEST => Ok(RemoteStop::Done),
            _ => Err(self.trouble(&answer)),
        }
    }
}

impl Agent {
    /// Sends the request and waits for the event, or the body, that names the run.
    async fn submit(&self, request: RequestBuilder) -> Result<AgentRun, BeginError> {
        let response = send(request).await.map_err(|error| errors::not_begun(&error))?;
        if !response.status().is_success() {
            return match self.read(response).await {
                Ok(answer) => Err(errors::refusal(&answer, &self.shared.api_key)),
                Err(error) => Err(BeginError::Unknown(errors::broken_answer(&error))),
            };
        }
        if !is_event_stream(&response) {
            let answer = self.read(response).await;
            let answer =
                answer.map_err(|error| BeginError::Unknown(errors::broken_answer(&error)))?;
            let id = wire::Response::parse(&answer.body).and_then(|response| response.id);
            let id = id.ok_or_else(|| BeginError::Unknown(errors::no_id()))?;
            return Ok(AgentRun::resumed(self.clone(), self.remote(id)));
        }
        let mut stream = EventStream::new(response);
        loop {
            let event = stream.next().await.map_err(|error| {
                BeginError::Unknown(errors::stream_before_id(
                    error.as_ref().map(ToString::to_string),
                ))
            })?;
            let ended = event.status().is_some_and(wire::Status::is_terminal);
            let id = match event.response {
                Some(response) => response.id,
                None if ended => None,
                None => continue,
            };
            let id = id.ok_or_else(|| BeginError::Unknown(errors::no_id()))?;
            return Ok(AgentRun::streaming(
                self.clone(),
                self.remote(id),
                stream,
                event.sequence_number,
            ));
        }
    }

    fn remote(&self, id: String) -> RemoteRun {
        RemoteRun { provider: Self::NAME.to_owned(), id, cursor: None, begun_at: self.now() }
    }
}

fn is_event_stream(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|text| text.trim_start().starts_with("text/event-stream"))
}
