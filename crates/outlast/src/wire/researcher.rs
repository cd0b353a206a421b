//! Creates the researcher: its model, its search service, and the profile of its jobs.

use std::sync::Arc;

use anyhow::Context as _;
use outlast_core::Profile;
use outlast_researcher::{Researcher, SearchBackend, Settings};
use sha2::{Digest as _, Sha256};

use super::search_tool::UpstreamSearch;
use super::{
    Guard, ProviderWithProfile, fetch_options, open_library, own_program, pdf_reader, upstreams,
};
use crate::config::{
    Config, ResearchProvider, ResearcherSettings, SearchService, Secret, without_credentials,
};
use crate::error::{CommandResult, OrUsage as _, refuse};

/// Returns the researcher with these settings, and the profile of its jobs.
pub(super) fn provider(
    config: &Config,
    settings: &ResearcherSettings,
) -> CommandResult<ProviderWithProfile> {
    let (researcher, described) = create(config, settings)?;
    Ok((profile(settings, &described), Arc::new(researcher)))
}

/// Returns the configured researcher; `None` if it is not among the providers.
pub(crate) fn researcher(config: &Config) -> CommandResult<Option<Researcher>> {
    let settings = config.providers.iter().find_map(|provider| match provider {
        ResearchProvider::Researcher(settings) => Some(settings),
        ResearchProvider::Vendor(_) | ResearchProvider::Library => None,
    });
    settings.map(|settings| Ok(create(config, settings)?.0)).transpose()
}

/// Returns the researcher with these settings, and the name of its search service in the profile of jobs.
fn create(config: &Config, settings: &ResearcherSettings) -> CommandResult<(Researcher, String)> {
    let (search, described) = search_backend(config, settings)?;
    let researcher = Researcher::new(
        Settings {
            model_url: settings.model_url.clone(),
            model: settings.model.clone(),
            api_key: text_of(settings.api_key.as_ref()).map(str::to_owned),
            context_tokens: settings.context_tokens,
            parallel: settings.parallel,
            prices: settings.prices,
            search,
            max_resend: settings.max_resend,
            max_pages: settings.max_pages,
            max_tokens: settings.max_tokens.into(),
            max_minutes: settings.max_minutes,
            patience: Settings::PATIENCE,
            fetch: fetch_options(config),
            pdf: Some(pdf_reader(config)?),
            proxy: config.proxy.clone(),
        },
        Arc::new(config.clock.clone()),
    );
    let researcher = researcher.context("set up the researcher");
    let researcher = researcher.or_usage("check OUTLAST_MODEL_URL and OUTLAST_SEARCH_URL")?;
    Ok((researcher, described))
}

/// Returns the search service, and its name in the profile of jobs.
fn search_backend(
    config: &Config,
    settings: &ResearcherSettings,
) -> CommandResult<(SearchBackend, String)> {
    let name = settings.search.name();
    Ok(match &settings.search {
        SearchService::Searxng(url) => {
            let api_key = text_of(settings.search_api_key.as_ref()).map(str::to_owned);
            (
                SearchBackend::Searxng { url: url.clone(), api_key },
                format!("searxng@{}", without_credentials(url)),
            )
        }
        SearchService::Library => {
            let library = open_library(config, config.library.clone())?;
            let described = library.profile().as_str().replace(' ', "@");
            (SearchBackend::Library(library), described)
        }
        SearchService::Tool { upstream, tool } => {
            let guard = Arc::new(Guard::new(own_program()?, vec!["guard".into()]));
            let Some(server) = upstreams(config, &guard)?.remove(upstream.as_str()) else {
                return refuse(
                    format!(
                        "researcher.search names the server `{upstream}`, which is not configured"
                    ),
                    format!("add [upstream.{upstream}] to outlast.toml, or change OUTLAST_SEARCH"),
                );
            };
            let clock = Arc::new(config.clock.clone());
            let tool = UpstreamSearch::new(server, tool.clone(), clock);
            (SearchBackend::Tool { name: name.clone(), tool: Arc::new(tool) }, name)
        }
    })
}

/// Returns the profile of the researcher's jobs: model address, model, search service, and a digest of the keys (K1).
fn profile(settings: &ResearcherSettings, search: &str) -> Profile {
    let mut keys = Sha256::new();
    for key in [&settings.api_key, &settings.search_api_key] {
        let key = text_of(key.as_ref()).unwrap_or_default();
        keys.update((key.len() as u64).to_le_bytes());
        keys.update(key);
    }
    let digest = keys.finalize();
    let fingerprint: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    // A query may hold a key, and so may the part before the host.
    let address = without_credentials(&settings.model_url);
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let (address, model) = (address.trim_end_matches('/'), &settings.model);
    // Decides whether text of documents leaves this machine (K9).
    let dialect = match (&settings.search, settings.is_local()) {
        (SearchService::Library, true) => Profile::LOCAL_RESEARCHER,
        (SearchService::Library, false) => Profile::SHARING_RESEARCHER,
        (_, true) => "researcher/local",
        (_, false) => "researcher/remote",
    };
    Profile::new(format!("{dialect} {address} {model} {search} {fingerprint}"))
}

fn text_of(secret: Option<&Secret>) -> Option<&str> {
    secret.map(|Secret(text)| text.as_str())
}
