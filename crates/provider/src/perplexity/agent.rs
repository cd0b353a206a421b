//! The Agent dialect: submit with `background` and `stream`, so that the run outlives the connection and its id
//! comes with the first event.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    Again, AskKind, BeginError, BoxError, Cost, Nature, Profile, Provider, ProviderError,
    RemoteRun, RemoteStop, ResearchAsk, Run, Trouble,
};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::api::{AgentOptions, Api, is_event_stream};
use super::errors::{self, Answer};
use super::events::EventStream;
use super::run::AgentRun;
use super::search;
use super::submit::kind;
use super::waits::Waits;
use super::wire;
use crate::http::{read_body, retry_after, send};
use crate::prices::{Dialect, Prices};

/// How long the body of a refused submit may take; its status counts without it.
const REFUSAL_LIMIT: Duration = Duration::from_secs(10);

/// Perplexity's Agent API as a provider.
#[derive(Clone)]
pub struct Agent {
    api: Api,
}

impl Agent {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "perplexity/agent";

    /// Makes the adapter; nothing is sent yet.
    pub fn new(options: AgentOptions) -> Result<Self, BoxError> {
        Ok(Self { api: Api::new(options)? })
    }

    /// The same adapter with other waits between checks.
    #[must_use]
    pub fn with_waits(self, waits: Waits) -> Self {
        Self { api: self.api.with_waits(waits) }
    }

    /// What a worker must have to run this adapter's jobs: the same service and the same key.
    pub fn profile(&self) -> Profile {
        self.api.profile(Self::NAME)
    }
}

#[async_trait]
impl Provider for Agent {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn nature(&self, ask: &Value) -> Nature {
        if kind(ask) == AskKind::Results {
            return search::NATURE;
        }
        // The API has neither idempotency keys nor a list of runs: a lost submit cannot be found again.
        Nature { again: Again::Never, resumes: true, stops: true }
    }

    fn typical_cost(&self, ask: &Value) -> Cost {
        let Ok(ask) = ResearchAsk::deserialize(ask) else { return Cost::Unknown };
        Prices::current().typical(Dialect::Agent, ask.kind, ask.effort)
    }

    async fn begin(&self, ask: &Value, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask: ResearchAsk = serde_json::from_value(ask.clone()).map_err(|error| {
            BeginError::NotSent(ProviderError {
                trouble: Trouble::Rejected,
                sentence: "the stored request cannot be read by this version".to_owned(),
                detail: Some(error.to_string()),
            })
        })?;
        if ask.kind == AskKind::Results {
            return search::begin(&self.api, Self::NAME, &ask, key).await;
        }
        let request = self.api.submit(&wire::Submit::from(&ask)).map_err(BeginError::NotSent)?;
        Ok(Box::new(self.submit(request).await?))
    }

    async fn resume(&self, run: &RemoteRun) -> Result<Box<dyn Run>, ProviderError> {
        Ok(Box::new(AgentRun::resumed(self.api.clone(), run.clone())))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<RemoteStop, ProviderError> {
        // A cancel of an unknown run and of a finished one get the same answer, so the state is read first.
        let before = self.api.check_within(self.api.stop_limit(), &run.id).await?;
        if before.status == StatusCode::NOT_FOUND {
            return if self.api.is_settled(run) {
                Ok(RemoteStop::Done)
            } else {
                Err(errors::not_yet())
            };
        }
        if !before.status.is_success() {
            return Err(self.api.trouble(&before));
        }
        if wire::Response::parse(&before.body)
            .is_some_and(|response| response.status().is_terminal())
        {
            return Ok(RemoteStop::Done);
        }
        let answer = self.api.cancel(&run.id).await?;
        match answer.status {
            status if status.is_success() => Ok(RemoteStop::Done),
            // It ended between the two calls.
            StatusCode::BAD_REQUEST => Ok(RemoteStop::Done),
            _ => Err(self.api.trouble(&answer)),
        }
    }
}

impl Agent {
    /// Sends the request and waits for the event, or the body, that names the run.
    async fn submit(&self, request: RequestBuilder) -> Result<AgentRun, BeginError> {
        let limit = self.api.timeout();
        let deadline = Instant::now() + limit;
        let silent = |_| BeginError::Unknown(errors::silent(limit));
        let response = timeout_at(deadline, send(request)).await.map_err(silent)?;
        let response = response.map_err(|error| errors::not_begun(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        timeout_at(deadline, self.begun(response)).await.map_err(silent)?
    }

    /// A submit that was answered with an error. A body that breaks off or never ends is taken for an empty one: it
    /// must not undo what the status says.
    async fn refused(&self, response: Response) -> BeginError {
        let status = response.status();
        let retry_after = retry_after(response.headers(), self.api.now());
        let limit = self.api.timeout().min(REFUSAL_LIMIT);
        let body = match timeout(limit, read_body(response)).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        self.api.refusal(&Answer { status, retry_after, body })
    }

    /// A submit that was accepted: its run, once it has a name.
    async fn begun(&self, response: Response) -> Result<AgentRun, BeginError> {
        if !is_event_stream(&response) {
            let answer = self.api.read(response).await;
            let answer =
                answer.map_err(|error| BeginError::Unknown(errors::broken_answer(&error)))?;
            let id = wire::Response::parse(&answer.body).and_then(wire::Response::into_id);
            let id = id.ok_or_else(|| BeginError::Unknown(errors::no_id()))?;
            return Ok(AgentRun::resumed(self.api.clone(), self.remote(id)));
        }
        let mut events = EventStream::new(response);
        loop {
            let event = events.next().await.map_err(|error| {
                BeginError::Unknown(errors::stream_before_id(
                    error.as_ref().map(ToString::to_string),
                ))
            })?;
            let id = match event.response {
                Some(response) => response.into_id(),
                None if event.ends_the_stream() => None,
                None => continue,
            };
            let id = id.ok_or_else(|| BeginError::Unknown(errors::no_id()))?;
            let heard = event.sequence_number;
            return Ok(AgentRun::streaming(self.api.clone(), self.remote(id), events, heard));
        }
    }

    fn remote(&self, id: String) -> RemoteRun {
        RemoteRun { provider: Self::NAME.to_owned(), id, cursor: None, begun_at: self.api.now() }
    }
}
