//! Gemini's deep-research agents over the Interactions API: submitted to run in the background, then looked at until
//! a look shows how it ended. The stream of events is progress only: it is cut after minutes, and may never report the end.

mod run;
mod calls;
mod meter;
mod report;
mod wire;

#[doc(hidden)]
pub mod fuzzing;

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, BoxError, Cost, Effort, Profile, Provider, ProviderError, ProviderErrorKind,
    RecoverySemantics, RemoteRun, Request, ResearchKind, ResendPolicy, ResumePolicy, Run,
    StopOutcome,
};
use reqwest::Url;

use self::run::GeminiRun;
use crate::prices::Prices;
use crate::vendor::{
    CheckedAnswer, HttpAnswer, KeyHeader, Service, StopCalls, Submit, Vendor, VendorOptions,
    object, stop_outcome,
};

/// The conventions of Gemini's service.
pub const VENDOR: Vendor = Vendor {
    name: "Gemini",
    key_variable: "GEMINI_API_KEY",
    base_url_variable: "GEMINI_BASE_URL",
    proxy_variable: "GEMINI_PROXY",
    querying: "Querying Gemini...",
    retired_hint: "update outlast",
    key_header: KeyHeader::Named("x-goog-api-key"),
    headers: &[],
};

/// The version of the API whose JSON `wire` knows.
const API_VERSION: &str = "v1beta";

/// The agent that is asked if the configuration names none.
const AGENT: &str = "deep-research-preview-04-2026";

/// The same for high effort.
const MAX_AGENT: &str = "deep-research-max-preview-04-2026";

/// The time limit for the list of agents when it is only requested to word an error.
const LIST_LIMIT: Duration = Duration::from_secs(10);

/// Gemini as a provider.
#[derive(Clone)]
pub struct Gemini {
    api: Service,
    /// The agent for every effort, if the configuration names one.
    agent: Option<String>,
}

impl Gemini {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "gemini";

    /// Makes the adapter; nothing is sent yet.
    pub fn new(options: VendorOptions) -> Result<Self, BoxError> {
        let agent = options.model.clone().filter(|agent| !agent.is_empty());
        let base_url = with_version(&options.base_url)?;
        let api = Service::new(&VENDOR, VendorOptions { base_url, ..options })?;
        Ok(Self { api, agent })
    }

    /// The requirements for a worker that runs this adapter's jobs: the same service and the same key.
    pub fn profile(&self) -> Profile {
        self.api.profile(Self::NAME)
    }

    /// Makes a free call to check that the service answers and accepts the key. Warns of an agent
    /// that it no longer lists.
    pub async fn check(&self, limit: Duration) -> Result<CheckedAnswer, ProviderError> {
        let (mut checked, listed) = self.api.check_agents(limit).await?;
        for effort in [Effort::Medium, Effort::High] {
            let agent = self.agent(Some(effort));
            // Without any agent in it the list is of models alone, and proves nothing.
            if !listed.is_empty() && !listed.iter().any(|listed| listed == agent) {
                let listed = listed.join(", ");
                let warning = format!("Gemini does not list the agent {agent}; it lists {listed}");
                checked.warnings.push(warning);
            }
            if self.agent.is_some() {
                break;
            }
        }
        Ok(checked)
    }

    /// The agent that works this hard.
    fn agent(&self, effort: Option<Effort>) -> &str {
        let by_effort = match effort {
            Some(Effort::High) => MAX_AGENT,
            Some(Effort::Minimal | Effort::Low | Effort::Medium) | None => AGENT,
        };
        self.agent.as_deref().unwrap_or(by_effort)
    }

    /// The error of a submit to an agent that does not exist: it names those that do.
    async fn no_such_agent(&self, agent: &str, error: ProviderError) -> ProviderError {
        let listed = self.api.check_agents(LIST_LIMIT).await;
        let listed = listed.map(|(_, listed)| listed.join(", ")).unwrap_or_default();
        let known = if listed.is_empty() { String::new() } else { format!(" (it lists {listed})") };
        let sentence = format!(
            "Gemini does not know the agent {agent}{known}; set `model` in [gemini] to another"
        );
        ProviderError { kind: ProviderErrorKind::Misconfigured, sentence, ..error }
    }
}

#[async_trait]
impl Provider for Gemini {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        // The API has neither idempotency keys nor a list of interactions: a lost submit cannot be found again.
        RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Always,
            can_stop: true,
        }
    }

    fn expected_model(&self, request: &Request) -> Option<String> {
        let ask = request.research()?;
        Some(self.agent(ask.effort).to_owned())
    }

    fn typical_cost(&self, request: &Request) -> Cost {
        let Some(ask) = request.research() else { return Cost::Unknown };
        Prices::current().gemini.typical(self.agent(ask.effort))
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask = request.to_research()?;
        if ask.kind != ResearchKind::Research {
            return Err(BeginError::NotSent(research_only()));
        }
        let agent = self.agent(ask.effort);
        let request = self.api.post(&["interactions"], &wire::submit(ask, agent, key))?;
        let submit = Submit::new(&self.api);
        let mut is_unknown_agent = false;
        let refusal = |answer: &HttpAnswer| {
            is_unknown_agent = calls::is_unknown_agent(answer, agent);
            self.api.submit_error(answer)
        };
        let response = match submit.send(request, refusal).await {
            Err(BeginError::Refused(error)) if is_unknown_agent => {
                return Err(BeginError::Refused(self.no_such_agent(agent, error).await));
            }
            response => response?,
        };
        let body = submit.read(response).await?;
        let id = object::<wire::Interaction>(&body).and_then(wire::Interaction::into_id);
        let id = id.ok_or_else(|| BeginError::Unknown(self.api.no_id(&body)))?;
        let remote = self.api.remote(Self::NAME, id);
        Ok(Box::new(GeminiRun::follow(self.api.clone(), remote)))
    }

    async fn resume(
        &self,
        _request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        Ok(Box::new(GeminiRun::follow(self.api.clone(), run.clone())))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        let names = ["interactions", &run.id];
        let calls = StopCalls {
            look: || self.api.get_run(&run.id, self.api.stop_limit()),
            end: |body: &[u8]| {
                let mut run = object::<wire::Interaction>(body)?;
                let (status, cost) = (run.status(), report::cost(&run));
                stop_outcome(status, cost, || report::final_step(&mut run, Vec::new()).is_some())
            },
            to_error: |answer: &HttpAnswer| self.api.call_error(answer),
        };
        self.api.stop(run, &names, calls).await
    }
}

fn research_only() -> ProviderError {
    let sentence = "Gemini is asked for deep research only; ask for that, or ask another provider";
    ProviderError::new(ProviderErrorKind::Rejected, sentence)
}

/// The address with the version of the API in its path, which may be there already.
fn with_version(base_url: &str) -> Result<String, BoxError> {
    let mut url = Url::parse(base_url)?;
    let is_version = |name: &str| {
        let digits = name.strip_prefix('v').unwrap_or_default();
        digits.starts_with(|first: char| first.is_ascii_digit())
    };
    let mut names = url.path_segments().into_iter().flatten();
    let last = names.rfind(|name| !name.is_empty());
    if !last.is_some_and(is_version)
        && let Ok(mut path) = url.path_segments_mut()
    {
        path.pop_if_empty().push(API_VERSION);
    }
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_may_have_the_version_of_the_api_or_not() {
        let cases = [
            ("https://g.example", "https://g.example/v1beta"),
            ("https://g.example/", "https://g.example/v1beta"),
            ("https://g.example/v1beta", "https://g.example/v1beta"),
            ("https://g.example/v1beta/", "https://g.example/v1beta/"),
            ("https://g.example/v1", "https://g.example/v1"),
            ("https://g.example/vertex", "https://g.example/vertex/v1beta"),
            ("https://g.example/gemini?team=a", "https://g.example/gemini/v1beta?team=a"),
        ];
        for (given, expected) in cases {
            assert_eq!(with_version(given).unwrap(), expected);
        }
        assert!(with_version("no address").is_err());
    }
}
