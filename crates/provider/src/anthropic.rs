//! Anthropic's Managed Agents as a research provider. A session is made first and costs nothing; the question, which
//! costs money, is sent inside it by its run, after the session was recorded (G4).

mod account;
mod calls;
mod sessions;
mod run;
mod stop;
mod progress;
mod report;
mod links;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, BoxError, Cost, NanoUsd, Profile, Provider, ProviderError, ProviderErrorKind,
    RecoverySemantics, RemoteRun, Request, ResearchKind, ResendPolicy, ResumePolicy, Run,
    StopOutcome, Store,
};

use crate::prices::Prices;
use crate::vendor::{
    CheckedAnswer, KeyHeader, KeyState, Service, Vendor, VendorOptions, effort_word,
};
use account::Account;
use run::SessionRun;

/// The conventions of Anthropic's service.
pub const VENDOR: Vendor = Vendor {
    name: "Anthropic",
    key_variable: "ANTHROPIC_API_KEY",
    base_url_variable: "ANTHROPIC_BASE_URL",
    proxy_variable: "ANTHROPIC_PROXY",
    querying: "Querying Anthropic...",
    retired_hint: "update outlast",
    key_header: KeyHeader::Named("x-api-key"),
    headers: &[
        ("anthropic-version", "2026-10-21"),
        ("anthropic-beta", "managed-agents-2026-04-01"),
    ],
};

/// The model that is asked if the configuration names none.
const MODEL: &str = "claude-sonnet-5-5";

/// A cent, the smallest amount of a session's budget.
const CENT: u64 = 10_000_000;

/// Anthropic as a provider.
#[derive(Clone)]
pub struct Anthropic {
    service: Service,
    model: String,
    account: Account,
}

impl Anthropic {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "anthropic";

    /// Makes the adapter; nothing is sent yet.
    pub fn new(mut options: VendorOptions) -> Result<Self, BoxError> {
        let base_url = options.base_url.trim_end_matches('/');
        options.base_url = base_url.strip_suffix("/v1").unwrap_or(base_url).to_owned();
        let model = options.model.take().unwrap_or_else(|| MODEL.to_owned());
        let account = Account::new(&model);
        Ok(Self { service: Service::new(&VENDOR, options)?, model, account })
    }

    /// The requirements for a worker that runs this adapter's jobs: the same service and the same key.
    pub fn profile(&self) -> Profile {
        self.service.profile(Self::NAME)
    }

    /// Makes a free call to check that the service answers and accepts the key, and whether it has the
    /// model.
    pub async fn check(&self, limit: Duration) -> Result<CheckedAnswer, ProviderError> {
        let mut checked = self.service.check(limit).await?;
        if checked.key == KeyState::Taken {
            let answer = self.service.get_within(limit, &["v1", "models", &self.model]).await?;
            checked.warnings.extend(wire::model_warning(&self.model, answer.status, &answer.body));
        }
        Ok(checked)
    }
}

#[async_trait]
impl Provider for Anthropic {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn default_cap(&self, request: &Request) -> Option<NanoUsd> {
        let effort = request.research().and_then(|ask| ask.effort);
        Some(wire::default_cap(effort))
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        // A session that was made and not recorded is found by its key, and costs nothing.
        RecoverySemantics {
            resend: ResendPolicy::WithKey,
            resume: ResumePolicy::Always,
            can_stop: true,
        }
    }

    fn expected_model(&self, _request: &Request) -> Option<String> {
        Some(self.model.clone())
    }

    fn typical_cost(&self, request: &Request) -> Cost {
        let Some(ask) = request.research() else { return Cost::Unknown };
        let prices = &Prices::current().anthropic;
        match prices.lists(&self.model) {
            true => prices.typical(effort_word(ask.effort).unwrap_or("medium")),
            false => Cost::Unknown,
        }
    }

    fn set_id_store(&self, store: &Arc<dyn Store>) {
        self.account.keep_in(store);
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask = request.to_research()?;
        if ask.kind != ResearchKind::Research {
            return Err(reject("Anthropic is asked for deep research alone; ask another provider"));
        }
        if ask.budget.is_some_and(|budget| budget < NanoUsd(CENT)) {
            return Err(reject("the smallest budget of a run at Anthropic is $0.01; raise it"));
        }
        let id = self.session(request, ask, key).await?;
        let remote = self.service.remote(Self::NAME, id);
        Ok(Box::new(SessionRun::follow(self.service.clone(), remote, ask)))
    }

    async fn resume(
        &self,
        request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        let ask = request.to_research().map_err(|error| match error {
            BeginError::NotSent(error)
            | BeginError::Refused(error)
            | BeginError::Unknown(error) => error,
        })?;
        Ok(Box::new(SessionRun::follow(self.service.clone(), run.clone(), ask)))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        stop::stop(&self.service, run).await
    }
}

fn reject(sentence: &str) -> BeginError {
    BeginError::NotSent(ProviderError::new(ProviderErrorKind::Rejected, sentence))
}
