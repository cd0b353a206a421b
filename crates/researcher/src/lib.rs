//! Deep research on any model: plans, searches, reads, takes notes, writes and verifies (K1).
//!
//! The steps are fixed, and each of them that leaves this process is recorded in the journal of the job, so that
//! another process continues where this one ended. No sentence stays in a report unless the stored page that it
//! cites has its facts.

mod settings;
mod limits;
mod model;
mod prompts;
mod engine_channel;
mod steps;
mod waits;
mod work;
mod run;
mod plan;
mod search;
mod read;
mod approval;
mod collect;
mod earlier;
mod notes;
mod verify;
mod write;
mod report;
mod results;
mod research;
mod preview;
mod inspect;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, Clock, Cost, NanoUsd, Provider, ProviderError, RecoverySemantics, RemoteRun,
    Request, ResearchKind, ResendPolicy, ResumePolicy, Run, StopOutcome,
};
use outlast_http::{BadProxy, client_builder};
use reqwest::Client;
use url::Url;

pub use self::inspect::{JsonState, ModelState, SearchState, WindowState};
use self::limits::Limits;
pub use self::preview::{PlanPreview, PreviewedQuestion};
use self::run::ResearchRun;
pub use self::search::SearchTool;
pub use self::settings::{Prices, SearchBackend, Settings};

/// The provider of research on the user's own model.
pub struct Researcher {
    shared: Arc<SharedState>,
}

/// The data that all runs of a process share.
pub(crate) struct SharedState {
    pub(crate) settings: Settings,
    /// The address of the model server, without a slash at the end.
    pub(crate) model_url: Url,
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The reasons a researcher cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ResearcherError {
    /// The address of the model server is not an http or https address.
    #[error("`{0}` is not the address of a model server; an example is http://127.0.0.1:11434/v1")]
    ModelUrl(String),
    /// The address of the search service is not an http or https address.
    #[error("`{0}` is not the address of a search service")]
    SearchUrl(String),
    /// No model is named.
    #[error("no model is named")]
    NoModel,
    /// The proxy is wrong.
    #[error(transparent)]
    Proxy(#[from] BadProxy),
    /// The HTTP client cannot be created.
    #[error("cannot create an HTTP client: {0}")]
    Client(#[source] reqwest::Error),
}

impl Researcher {
    /// The name of the provider in [`RemoteRun::provider`].
    pub const NAME: &'static str = "researcher";

    /// Checks the settings; sends nothing.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, ResearcherError> {
        let address = |text: &str| {
            let url = Url::parse(text.trim().trim_end_matches('/')).ok()?;
            (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
        };
        let model_url = address(&settings.model_url)
            .ok_or_else(|| ResearcherError::ModelUrl(settings.model_url.clone()))?;
        if let SearchBackend::Searxng { url, .. } = &settings.search
            && address(url).is_none()
        {
            return Err(ResearcherError::SearchUrl(url.clone()));
        }
        if settings.model.trim().is_empty() {
            return Err(ResearcherError::NoModel);
        }
        let client = client_builder(settings.proxy.as_ref(), settings::CONNECT_TIMEOUT)?
            .build()
            .map_err(ResearcherError::Client)?;
        Ok(Self { shared: Arc::new(SharedState { settings, model_url, client, clock }) })
    }
}

#[async_trait]
impl Provider for Researcher {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        RecoverySemantics {
            resend: ResendPolicy::Idempotent,
            resume: ResumePolicy::FromJournal,
            can_stop: true,
        }
    }

    fn expected_model(&self, request: &Request) -> Option<String> {
        let has_model = request.kind() != ResearchKind::Results;
        has_model.then(|| self.shared.settings.model.clone())
    }

    fn typical_cost(&self, request: &Request) -> Cost {
        let settings = &self.shared.settings;
        match Limits::of(request, settings).typical_cost(&settings.prices) {
            Some(NanoUsd(0)) => Cost::Computed(NanoUsd(0)),
            Some(cost) => Cost::Estimate(cost),
            None => Cost::Unknown,
        }
    }

    fn default_cap(&self, request: &Request) -> Option<NanoUsd> {
        let settings = &self.shared.settings;
        let bound = Limits::of(request, settings).highest_cost(&settings.prices)?;
        // A free run has nothing to reserve. Caps count in cents.
        (bound.0 > 0).then(|| NanoUsd(bound.0.div_ceil(limits::CENT).saturating_mul(limits::CENT)))
    }

    /// A quarter more than the run may take, for steps that are in flight at its end.
    fn attempt_time(&self, _request: &Request) -> Option<Duration> {
        let minutes = u64::from(self.shared.settings.max_minutes);
        Some(Duration::from_secs(minutes.saturating_mul(75)))
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        request.to_research()?;
        let remote = RemoteRun {
            provider: Self::NAME.to_owned(),
            id: key.to_owned(),
            cursor: None,
            begun_at: self.shared.clock.now(),
        };
        Ok(Box::new(ResearchRun::new(Arc::clone(&self.shared), request.clone(), remote)))
    }

    async fn resume(
        &self,
        request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        Ok(Box::new(ResearchRun::new(Arc::clone(&self.shared), request.clone(), run.clone())))
    }

    async fn stop(&self, _run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        // The work is done by the worker that holds the job, and ends when it drops the run.
        Ok(StopOutcome::Ended { cost: Cost::Unknown })
    }
}
