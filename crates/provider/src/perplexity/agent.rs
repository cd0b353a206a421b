//! The Agent dialect: submit with `background` and `stream`, so that the run outlives the connection and its id
//! comes with the first event.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, BoxError, Cost, Effort, Profile, Provider, ProviderError, RecoverySemantics,
    RemoteRun, Request, ResearchKind, ResendPolicy, ResumePolicy, Run, StopOutcome,
};
use reqwest::Response;

use super::{VENDOR, report, search, wire};
use crate::prices::Prices;
use crate::responses::wire::{Event, Response as RunObject};
use crate::responses::{self, ResponseRun, Responses};
use crate::vendor::{
    CheckedAnswer, EventStream, FollowedRun, NO_ID, Service, Submit, VendorOptions,
    is_event_stream, object, report_malformed, stream_before_id,
};

/// The Agent API among those that speak the protocol.
pub(crate) const DIALECT: responses::Dialect = responses::Dialect {
    name: Agent::NAME,
    path: ["v1", "agent"],
    finished: report::final_step,
    cost: report::stated_cost,
};

/// Perplexity's Agent API as a provider.
#[derive(Clone)]
pub struct Agent {
    api: Responses,
}

impl Agent {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "perplexity/agent";

    /// Makes the adapter; nothing is sent yet.
    pub fn new(options: VendorOptions) -> Result<Self, BoxError> {
        let service = Service::new(&VENDOR, options)?;
        Ok(Self { api: Responses { service, dialect: &DIALECT } })
    }

    /// The requirements for a worker that runs this adapter's jobs: the same service and the same key.
    pub fn profile(&self) -> Profile {
        self.api.service.profile(Self::NAME)
    }

    /// Makes a free call to check that the service answers and accepts the key.
    pub async fn check(&self, limit: Duration) -> Result<CheckedAnswer, ProviderError> {
        self.api.service.check(limit).await
    }
}

#[async_trait]
impl Provider for Agent {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn recovery_semantics(&self, request: &Request) -> RecoverySemantics {
        if request.kind() == ResearchKind::Results {
            return search::NATURE;
        }
        // The API has neither idempotency keys nor a list of runs: a lost submit cannot be found again.
        RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Always,
            can_stop: true,
        }
    }

    fn expected_model(&self, request: &Request) -> Option<String> {
        let ask = request.research().filter(|ask| ask.kind != ResearchKind::Results)?;
        let effort = wire::effort(ask.kind, ask.effort).unwrap_or(wire::DEEP_RESEARCH);
        Some(format!("perplexity agent ({effort})"))
    }

    fn typical_cost(&self, request: &Request) -> Cost {
        let Some(ask) = request.research() else { return Cost::Unknown };
        typical(ask.kind, ask.effort)
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask = request.to_research()?;
        if ask.kind == ResearchKind::Results {
            return search::begin(&self.api.service, Self::NAME, ask, key).await;
        }
        let request = self.api.service.post(&DIALECT.path, &wire::submit(ask))?;
        let submit = Submit::new(&self.api.service);
        let response = submit.send(request, |answer| self.api.service.refusal(answer)).await?;
        if is_event_stream(&response) {
            let run = submit.in_time(self.wait_for_run(response)).await??;
            return Ok(Box::new(run));
        }
        let body = submit.read(response).await?;
        let response = object::<RunObject>(&body).unwrap_or_default();
        let no_id = || BeginError::Unknown(self.api.service.no_id(&body));
        let id = response.id().ok_or_else(no_id)?;
        Ok(Box::new(ResponseRun::resume(self.api.clone(), self.api.remote(id))))
    }

    async fn resume(
        &self,
        _request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        Ok(Box::new(ResponseRun::resume(self.api.clone(), run.clone())))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        self.api.stop(run).await
    }
}

impl Agent {
    /// Waits for the event that names the run.
    async fn wait_for_run(
        &self,
        response: Response,
    ) -> Result<FollowedRun<ResponseRun>, BeginError> {
        let mut events = EventStream::new(response);
        loop {
            let mut event = events.next(Event::parse).await.map_err(stream_before_id)?;
            if event.response.is_none() && !event.ends_the_stream() {
                continue;
            }
            let mut response = event.response.take().unwrap_or_default();
            let error = event.error.0.or(response.error.take());
            let detail = error.map(|error| self.api.service.redact(&error.detail()));
            let no_id = || BeginError::Unknown(ProviderError { detail, ..report_malformed(NO_ID) });
            let id = response.id().ok_or_else(no_id)?;
            let heard = *event.sequence_number;
            return Ok(ResponseRun::follow_stream(
                self.api.clone(),
                self.api.remote(id),
                events,
                heard,
            ));
        }
    }
}

/// The usual cost of an ask of this kind and effort.
pub(crate) fn typical(kind: ResearchKind, effort: Option<Effort>) -> Cost {
    let prices = Prices::current();
    match kind {
        ResearchKind::Results => Cost::Estimate(prices.search()),
        _ => prices.agent.typical(wire::effort(kind, effort).unwrap_or(wire::DEEP_RESEARCH)),
    }
}
