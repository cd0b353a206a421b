//! OpenAI as a research provider: the Responses API with a web search, in the background. The same at Azure, and at servers
//! that speak the protocol and run requests in the background.

mod refusal;
mod report;
mod citations;
mod wire;

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, BoxError, Cost, Profile, Provider, ProviderError, ProviderErrorKind,
    RecoverySemantics, RemoteRun, Request, ResearchKind, ResendPolicy, ResumePolicy, Run, Step,
    StopOutcome,
};
use reqwest::Url;

use crate::prices::Prices;
use crate::responses::wire::Response;
use crate::responses::{Dialect, ResponseRun, Responses};
use crate::vendor::{
    CheckedAnswer, DeliveredRun, KeyHeader, Service, Status, Submit, Vendor, VendorOptions,
    effort_word, object,
};

/// The conventions of OpenAI's service.
pub const VENDOR: Vendor = Vendor {
    name: "OpenAI",
    key_variable: "OPENAI_API_KEY",
    base_url_variable: "OPENAI_BASE_URL",
    proxy_variable: "OPENAI_PROXY",
    querying: "Querying OpenAI...",
    retired_hint: "update outlast",
    key_header: KeyHeader::Bearer,
    headers: &[],
};

/// The same service at Azure, which has its own header for keys.
const AZURE: Vendor = Vendor { key_header: KeyHeader::Named("api-key"), ..VENDOR };

const DIALECT: Dialect = Dialect {
    name: OpenAi::NAME,
    path: ["v1", "responses"],
    finished: report::final_step,
    cost: report::stated_cost,
};

/// The model that is asked if the configuration names none.
const DEFAULT_MODEL: &str = "gpt-6-sol";

/// The time limit for the list of models that is requested after a model was refused.
const LIST_LIMIT: Duration = Duration::from_secs(10);

/// OpenAI as a provider.
#[derive(Clone)]
pub struct OpenAi {
    api: Responses,
    model: String,
}

impl OpenAi {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "openai";

    /// Makes the adapter; nothing is sent yet.
    pub fn new(options: VendorOptions) -> Result<Self, BoxError> {
        let model = options.model.clone().unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        let address = self::address(&options.base_url);
        let vendor = if address.is_azure { &AZURE } else { &VENDOR };
        let options = VendorOptions { base_url: address.root, ..options };
        let service = Service::new(vendor, options)?;
        Ok(Self { api: Responses { service, dialect: &DIALECT }, model })
    }

    /// The requirements for a worker that runs this adapter's jobs: the same service and the same key.
    pub fn profile(&self) -> Profile {
        self.api.service.profile(Self::NAME)
    }

    /// Makes a free call to check that the service answers and accepts the key; warns of a model that
    /// it does not list, or that it will shut down.
    pub async fn check(&self, limit: Duration) -> Result<CheckedAnswer, ProviderError> {
        let (checked, list) = self.models(limit).await?;
        let warnings = wire::Models::parse(&list).and_then(|models| models.warning(&self.model));
        Ok(CheckedAnswer { warnings: warnings.into_iter().collect(), ..checked })
    }

    async fn models(&self, limit: Duration) -> Result<(CheckedAnswer, Vec<u8>), ProviderError> {
        let service = &self.api.service;
        let list = service.address(["v1", "models"]);
        service.check_list(list, limit, |answer| service.provider_error(answer)).await
    }

    /// A refusal that names the model, with the models there are.
    async fn with_models(&self, error: BeginError) -> BeginError {
        let BeginError::Refused(error) = error else { return error };
        let list = self.models(LIST_LIMIT).await.map(|(_, list)| list).unwrap_or_default();
        let known = wire::Models::parse(&list).map(|models| models.names()).unwrap_or_default();
        let sentence = refusal::no_model(&self.model, &known);
        BeginError::Refused(ProviderError {
            kind: ProviderErrorKind::Misconfigured,
            sentence,
            ..error
        })
    }
}

#[async_trait]
impl Provider for OpenAi {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        // The API has neither idempotency keys nor a list of runs: a lost submit cannot be found again.
        RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Always,
            can_stop: true,
        }
    }

    fn expected_model(&self, _request: &Request) -> Option<String> {
        Some(self.model.clone())
    }

    fn typical_cost(&self, request: &Request) -> Cost {
        let Some(ask) = request.research() else { return Cost::Unknown };
        Prices::current().typical_openai(&self.model, effort_word(ask.effort).unwrap_or("medium"))
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask = request.to_research()?;
        if ask.kind != ResearchKind::Research {
            return Err(BeginError::NotSent(research_only()));
        }
        let service = &self.api.service;
        let request = service.post(&DIALECT.path, &wire::submit(ask, &self.model, key))?;
        let submit = Submit::new(service);
        let mut no_model = false;
        let refused = |answer: &crate::vendor::HttpAnswer| {
            let (error, why) = refusal::of(service.refusal(answer), answer);
            no_model = why == refusal::RefusalKind::NoModel;
            error
        };
        let response = match submit.send(request, refused).await {
            Err(error) if no_model => return Err(self.with_models(error).await),
            sent => sent?,
        };
        let body = submit.read(response).await?;
        let no_id = || BeginError::Unknown(service.no_id(&body));
        let mut response = object::<Response>(&body).ok_or_else(no_id)?;
        let status = response.status();
        let remote = self.api.remote(response.id().ok_or_else(no_id)?);
        // A server that knows no background has done the work by now, and may not keep it.
        if let Status::Completed | Status::Incomplete = status
            && let Some(Step::Done { output, .. }) =
                report::final_step(status, &mut response, Vec::new())
        {
            return Ok(Box::new(DeliveredRun::new(remote, output, body)));
        }
        Ok(Box::new(ResponseRun::resume(self.api.clone(), remote)))
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

fn research_only() -> ProviderError {
    let sentence = "OpenAI is asked for deep research only; use the perplexity tools for quick answers and searches";
    ProviderError::new(ProviderErrorKind::Rejected, sentence)
}

/// Azure's names for resources that serve the API.
const AZURE_HOSTS: [&str; 3] =
    [".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"];

/// The address of the API.
#[derive(Debug, PartialEq)]
struct ApiAddress {
    /// The address before the version and the endpoints.
    root: String,
    /// True if keys go into Azure's own header.
    is_azure: bool,
}

/// Parses the configured address; one that is not a URL is left to the HTTP client.
fn address(base_url: &str) -> ApiAddress {
    let Ok(mut url) = Url::parse(base_url) else {
        return ApiAddress { root: base_url.to_owned(), is_azure: false };
    };
    let is_azure =
        url.host_str().is_some_and(|host| AZURE_HOSTS.iter().any(|name| host.ends_with(name)));
    let path = url.path().trim_end_matches('/');
    let root = path.strip_suffix("/v1").unwrap_or(path).to_owned();
    url.set_path(if is_azure && root.is_empty() { "/openai" } else { &root });
    ApiAddress { root: url.into(), is_azure }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G3: `base_url` is the vendor's root, with or without its version path; Azure's is found by its host.
    #[test]
    fn g3_the_root_is_the_same_with_and_without_the_version() {
        let cases = [
            ("https://api.openai.com", "https://api.openai.com/", false),
            ("https://api.openai.com/v1", "https://api.openai.com/", false),
            ("https://api.openai.com/v1/", "https://api.openai.com/", false),
            ("http://127.0.0.1:8000/openai/v1", "http://127.0.0.1:8000/openai", false),
            ("http://localhost:1234/v10", "http://localhost:1234/v10", false),
            ("https://a.openai.azure.com", "https://a.openai.azure.com/openai", true),
            ("https://a.openai.azure.com/openai/v1/", "https://a.openai.azure.com/openai", true),
            (
                "https://a.services.ai.azure.com/openai/v1",
                "https://a.services.ai.azure.com/openai",
                true,
            ),
            (
                "https://openai.azure.com.evil.example/v1",
                "https://openai.azure.com.evil.example/",
                false,
            ),
            ("https://gw.example/v1?tenant=7", "https://gw.example/?tenant=7", false),
            ("no url", "no url", false),
        ];
        for (given, root, is_azure) in cases {
            assert_eq!(address(given), ApiAddress { root: root.to_owned(), is_azure }, "{given}");
        }
    }
}
