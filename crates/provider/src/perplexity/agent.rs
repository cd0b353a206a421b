//! The Agent dialect: submit with `background` and `stream`, so that the run outlives the connection and its id
//! comes with the first event.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    Again, AskKind, BeginError, BoxError, Cost, Nature, Profile, Provider, ProviderError,
    RemoteRun, RemoteStop, ResearchAsk, Resumes, Run,
};
use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::events::EventStream;
use super::run::AgentRun;
use super::search;
use super::{VENDOR, wire};
use crate::prices::{Dialect, Prices};
use crate::vendor::{
    Checked, NO_ID, Service, Submit, VendorOptions, Waits, is_event_stream, malformed, not_yet,
    stream_before_id,
};

/// Perplexity's Agent API as a provider.
#[derive(Clone)]
pub struct Agent {
    api: Service,
}

impl Agent {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "perplexity/agent";

    /// Makes the adapter; nothing is sent yet.
    pub fn new(options: VendorOptions) -> Result<Self, BoxError> {
        Ok(Self { api: Service::new(&VENDOR, options)? })
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

    /// Asks the service for something that costs nothing, to see that it answers and takes the key.
    pub async fn check(&self, limit: Duration) -> Result<Checked, ProviderError> {
        self.api.check(limit).await
    }
}

#[async_trait]
impl Provider for Agent {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn nature(&self, ask: &Value) -> Nature {
        if AskKind::stored(ask) == AskKind::Results {
            return search::NATURE;
        }
        // The API has neither idempotency keys nor a list of runs: a lost submit cannot be found again.
        Nature { again: Again::Never, resumes: Resumes::Always, stops: true }
    }

    fn expected_model(&self, ask: &Value) -> Option<String> {
        let ask = ResearchAsk::stored(ask).ok().filter(|ask| ask.kind != AskKind::Results)?;
        let effort = wire::effort(ask.kind, ask.effort).unwrap_or(wire::DEEP_RESEARCH);
        Some(format!("perplexity agent ({effort})"))
    }

    fn typical_cost(&self, ask: &Value) -> Cost {
        let Ok(ask) = ResearchAsk::stored(ask) else { return Cost::Unknown };
        Prices::current().typical(Dialect::Agent, ask.kind, ask.effort)
    }

    async fn begin(&self, ask: &Value, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask = ResearchAsk::stored(ask)?;
        if ask.kind == AskKind::Results {
            return search::begin(&self.api, Self::NAME, &ask, key).await;
        }
        let request = self.api.post(&["v1", "agent"], &wire::submit(&ask))?;
        let submit = Submit::new(&self.api);
        let response = submit.send(request, |answer| self.api.refusal(answer)).await?;
        if is_event_stream(&response) {
            let run = submit.in_time(self.begun(response)).await??;
            return Ok(Box::new(run));
        }
        let body = submit.read(response).await?;
        let id = wire::Response::parse(&body).and_then(wire::Response::into_id);
        let id = id.ok_or_else(|| BeginError::Unknown(self.api.no_id(&body)))?;
        Ok(Box::new(AgentRun::resumed(self.api.clone(), self.remote(id))))
    }

    async fn resume(&self, _ask: &Value, run: &RemoteRun) -> Result<Box<dyn Run>, ProviderError> {
        Ok(Box::new(AgentRun::resumed(self.api.clone(), run.clone())))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<RemoteStop, ProviderError> {
        // A cancel of an unknown run and of a finished one get the same answer, so the state is read first.
        let before = self.api.get_within(self.api.stop_limit(), &["v1", "agent", &run.id]).await?;
        if before.status == StatusCode::NOT_FOUND {
            if !self.api.is_settled(run) {
                return Err(not_yet());
            }
            // It may only be hidden for a while, so it is told all the same.
            let answer = self.api.cancel(&run.id).await?;
            return match answer.status {
                status if status.is_success() => Ok(RemoteStop::Done),
                StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND => Ok(RemoteStop::Unsupported),
                _ => Err(self.api.trouble(&answer)),
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
    /// Waits for the event that names the run.
    async fn begun(&self, response: Response) -> Result<AgentRun, BeginError> {
        let mut events = EventStream::new(response);
        loop {
            let mut event = events.next().await.map_err(stream_before_id)?;
            if event.response.is_none() && !event.ends_the_stream() {
                continue;
            }
            let mut response = event.response.take().unwrap_or_default();
            let error = event.error.0.or(response.error.take());
            let detail = error.map(|error| self.api.said(error));
            let no_id = || BeginError::Unknown(ProviderError { detail, ..malformed(NO_ID) });
            let id = response.into_id().ok_or_else(no_id)?;
            let heard = *event.sequence_number;
            return Ok(AgentRun::streaming(self.api.clone(), self.remote(id), events, heard));
        }
    }

    fn remote(&self, id: String) -> RemoteRun {
        self.api.remote(Self::NAME, id)
    }
}
