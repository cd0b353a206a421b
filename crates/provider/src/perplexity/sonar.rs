//! The Sonar dialect: deep research as an asynchronous request under an idempotency key, everything quicker as a
//! streamed chat completion. Retired at the vendor, alive at gateways.

mod research;
mod answer;
mod report;
mod errors;
mod request;
mod wire;
mod fuzzing;

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, BoxError, Cost, Effort, Profile, Provider, ProviderError, RecoverySemantics,
    RemoteRun, Request, ResearchKind, ResendPolicy, ResumePolicy, Run, StopOutcome,
};

use super::{VENDOR, search};
use crate::prices::Prices;
use crate::vendor::{CheckedAnswer, PollIntervals, Service, VendorOptions, effort_word};
pub(super) use fuzzing::fuzz;
use request::model;
use research::ResearchRun;

/// Perplexity's Sonar API as a provider.
#[derive(Clone)]
pub struct Sonar {
    api: Service,
}

impl Sonar {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "perplexity/sonar";

    /// Makes the adapter; nothing is sent yet.
    pub fn new(options: VendorOptions) -> Result<Self, BoxError> {
        let waits = options.waits.clone().or_else(|| Some(PollIntervals::sonar()));
        Ok(Self { api: Service::new(&VENDOR, VendorOptions { waits, ..options })? })
    }

    /// The requirements for a worker that runs this adapter's jobs: the same service and the same key.
    pub fn profile(&self) -> Profile {
        self.api.profile(Self::NAME)
    }

    /// Makes a free call to check that the service answers and accepts the key.
    pub async fn check(&self, limit: Duration) -> Result<CheckedAnswer, ProviderError> {
        self.api.check(limit).await
    }
}

#[async_trait]
impl Provider for Sonar {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn recovery_semantics(&self, request: &Request) -> RecoverySemantics {
        match request.kind() {
            ResearchKind::Research => RecoverySemantics {
                resend: ResendPolicy::WithKey,
                resume: ResumePolicy::Always,
                can_stop: false,
            },
            ResearchKind::Results => search::NATURE,
            // An answer depends on its connection: lost with it, and paid for.
            ResearchKind::Search | ResearchKind::Ask | ResearchKind::Reason => RecoverySemantics {
                resend: ResendPolicy::Never,
                resume: ResumePolicy::Never,
                can_stop: false,
            },
        }
    }

    fn expected_model(&self, request: &Request) -> Option<String> {
        let kind = request.research()?.kind;
        (kind != ResearchKind::Results).then(|| model(kind).to_owned())
    }

    fn typical_cost(&self, request: &Request) -> Cost {
        let Some(ask) = request.research() else { return Cost::Unknown };
        typical(ask.kind, ask.effort)
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask = request.to_research()?;
        match ask.kind {
            ResearchKind::Research => research::begin(&self.api, ask, key).await,
            ResearchKind::Results => search::begin(&self.api, Self::NAME, ask, key).await,
            ResearchKind::Search | ResearchKind::Ask | ResearchKind::Reason => {
                answer::begin(&self.api, ask, key).await
            }
        }
    }

    async fn resume(
        &self,
        _request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        Ok(Box::new(ResearchRun::resume(self.api.clone(), run.clone())))
    }

    async fn stop(&self, _run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        // There is no such call: what was begun goes on to its end.
        Ok(StopOutcome::CannotStop)
    }
}

/// The usual cost of an ask of this kind and effort.
pub(crate) fn typical(kind: ResearchKind, effort: Option<Effort>) -> Cost {
    let prices = Prices::current();
    prices.sonar.typical(match (kind, effort) {
        (ResearchKind::Results, _) => return Cost::Estimate(prices.search()),
        (ResearchKind::Ask, _) => "ask",
        (ResearchKind::Search, _) => "search",
        (ResearchKind::Reason, _) => "reason",
        (ResearchKind::Research, Some(Effort::Minimal)) => "minimal",
        (ResearchKind::Research, effort) => effort_word(effort).unwrap_or("medium"),
    })
}

/// A run that begins now.
fn remote(api: &Service, id: String) -> RemoteRun {
    api.remote(Sonar::NAME, id)
}
