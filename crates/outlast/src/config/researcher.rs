//! `[researcher]`: the model and the search service of the researcher (K1).

use std::net::IpAddr;
use std::path::PathBuf;

use outlast_core::NanoUsd;
use outlast_researcher::Prices;
use url::{Host, Url};

use super::Secret;
use super::error::ConfigResult;
use super::layers::Layers;
use super::settings::{self, Setting};
use super::workflows::Upstream;

/// The settings of the researcher.
#[derive(Clone, Debug)]
pub(crate) struct ResearcherSettings {
    /// The address of the model server; empty if none is set.
    pub(crate) model_url: String,
    /// The name of the model; empty if none is set.
    pub(crate) model: String,
    pub(crate) api_key: Option<Secret>,
    /// True if the user declares the model server to be theirs.
    pub(crate) is_own_server: bool,
    pub(crate) context_tokens: u32,
    pub(crate) parallel: usize,
    pub(crate) prices: Prices,
    pub(crate) search: SearchService,
    pub(crate) search_api_key: Option<Secret>,
    pub(crate) max_resend: NanoUsd,
    pub(crate) max_pages: u32,
    pub(crate) max_tokens: u32,
    pub(crate) max_minutes: u32,
}

/// The search service of the researcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SearchService {
    /// A SearXNG server, by its address; empty if none is set.
    Searxng(String),
    /// The folders of the library.
    Library,
    /// A tool of a server under `[upstream]`.
    Tool { upstream: String, tool: String },
}

impl SearchService {
    /// Returns it as written in the settings.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Searxng(_) => "searxng".to_owned(),
            Self::Library => "library".to_owned(),
            Self::Tool { upstream, tool } => format!("tool:{upstream}.{tool}"),
        }
    }
}

impl ResearcherSettings {
    /// Returns true if text that is sent to the model stays with the user: the server is on this machine or declared to
    /// be theirs. Models of Ollama whose name ends in `cloud` run elsewhere (K9).
    pub(crate) fn is_local(&self) -> bool {
        let is_here = is_loopback(&self.model_url) || self.is_own_server;
        is_here && !self.model.trim_end().ends_with("cloud")
    }
}

impl ResearcherSettings {
    /// Returns what is not set and needed, as a noun and the way to set it.
    pub(crate) fn find_missing(&self, folders: &[PathBuf]) -> Option<(&'static str, &'static str)> {
        if self.model_url.is_empty() {
            return Some((
                "no model server",
                "set OUTLAST_MODEL_URL to its address, such as http://127.0.0.1:11434/v1 for Ollama",
            ));
        }
        if self.model.is_empty() {
            return Some((
                "no model",
                "set OUTLAST_MODEL to the name of a model at OUTLAST_MODEL_URL",
            ));
        }
        match &self.search {
            SearchService::Searxng(url) if url.is_empty() => Some((
                "no search service",
                "set OUTLAST_SEARCH_URL to the address of a SearXNG server, or OUTLAST_SEARCH to library or tool:UPSTREAM.TOOL",
            )),
            SearchService::Library if folders.is_empty() => {
                Some(("no folders to search", "set OUTLAST_LIBRARY to folders of documents"))
            }
            SearchService::Searxng(_) | SearchService::Library | SearchService::Tool { .. } => None,
        }
    }
}

/// Returns true if the address is on this machine.
pub(crate) fn is_loopback(address: &str) -> bool {
    let Ok(url) = Url::parse(address.trim()) else { return false };
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        None => false,
    }
}

impl Layers {
    /// Reads `[researcher]`. Called only if the researcher is among the providers.
    pub(super) fn researcher(&mut self) -> ConfigResult<ResearcherSettings> {
        let model_url = self.optional_url(settings::RESEARCHER_MODEL_URL)?;
        let search = self.search_service()?;
        let data = "questions, pages and the API key";
        self.warn_of_open_address(settings::RESEARCHER_MODEL_URL, &model_url, data);
        if let SearchService::Searxng(url) = &search {
            self.warn_of_open_address(settings::RESEARCHER_SEARCH_URL, url, "queries and the key");
        }
        let searches_here = match &search {
            SearchService::Searxng(url) => is_loopback(url),
            SearchService::Library => true,
            SearchService::Tool { upstream, .. } => self.is_upstream_here(upstream)?,
        };
        let (of_model, of_search) = (is_loopback(&model_url), searches_here);
        let prices = Prices {
            input: self.price(settings::RESEARCHER_PRICE_IN, of_model)?,
            output: self.price(settings::RESEARCHER_PRICE_OUT, of_model)?,
            search: self.price(settings::RESEARCHER_PRICE_SEARCH, of_search)?,
        };
        Ok(ResearcherSettings {
            model_url,
            model: self.text(settings::RESEARCHER_MODEL).unwrap_or_default(),
            api_key: self.api_key(settings::RESEARCHER_API_KEY),
            is_own_server: self.flag(settings::RESEARCHER_LOCAL)?,
            context_tokens: self.number(settings::RESEARCHER_CONTEXT_TOKENS, 0..=10_000_000)?,
            parallel: self.number(settings::RESEARCHER_PARALLEL, 0..=64)? as usize,
            prices,
            search,
            search_api_key: self.api_key(settings::RESEARCHER_SEARCH_API_KEY),
            max_resend: self.dollars(settings::RESEARCHER_MAX_RESEND_USD)?.unwrap_or_default(),
            max_pages: self.number(settings::RESEARCHER_MAX_PAGES, 0..=500)?,
            max_tokens: self.number(settings::RESEARCHER_MAX_TOKENS, 0..=100_000_000)?,
            max_minutes: self.number(settings::RESEARCHER_MAX_MINUTES, 1..=1_440)?,
        })
    }

    fn optional_url(&mut self, setting: &'static Setting) -> ConfigResult<String> {
        if self.text(setting).is_some() { self.url(setting) } else { Ok(String::new()) }
    }

    fn search_service(&mut self) -> ConfigResult<SearchService> {
        let named = self.parsed(
            settings::RESEARCHER_SEARCH,
            "searxng, library, or tool: with the name of an upstream, a dot and the name of its tool",
            |text| match text {
                "searxng" => Some(SearchService::Searxng(String::new())),
                "library" => Some(SearchService::Library),
                text => {
                    let (upstream, tool) = text.strip_prefix("tool:")?.split_once('.')?;
                    let (upstream, tool) = (upstream.to_owned(), tool.to_owned());
                    (!upstream.is_empty() && !tool.is_empty())
                        .then_some(SearchService::Tool { upstream, tool })
                }
            },
        )?;
        match named {
            SearchService::Searxng(_) => {
                let url = self.optional_url(settings::RESEARCHER_SEARCH_URL)?;
                Ok(SearchService::Searxng(url))
            }
            other => Ok(other),
        }
    }

    /// Returns true if the server is at an address of this machine. A program may ask a paid service.
    fn is_upstream_here(&self, name: &str) -> ConfigResult<bool> {
        let (_, upstreams) = self.workflows()?;
        Ok(matches!(upstreams.get(name), Some(Upstream::Url { url, .. }) if is_loopback(url)))
    }

    /// Returns a price. Without one, services of this machine are free, and the price of others is unknown.
    fn price(&self, setting: &'static Setting, is_here: bool) -> ConfigResult<Option<NanoUsd>> {
        Ok(self.dollars(setting)?.or(is_here.then_some(NanoUsd(0))))
    }

    /// Warns of an address on another machine that is not encrypted.
    fn warn_of_open_address(&mut self, setting: &'static Setting, address: &str, data: &str) {
        if address.starts_with("http://") && !is_loopback(address) {
            let name = self.find(setting).name();
            self.warnings.push(format!(
                "{name} is an http address on another machine: {data} are sent to it unencrypted"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], file: Option<&str>) -> (ResearcherSettings, Vec<String>) {
        let mut layers = Layers::of(variables, file).unwrap();
        let read = layers.researcher().unwrap();
        (read, layers.warnings)
    }

    /// K9: loopback addresses and servers that the user declares to be theirs, but no cloud model.
    #[test]
    fn k9_text_stays_with_the_user_on_a_local_model() {
        let cases = [
            ("http://127.0.0.1:11434/v1", "qwen3:8b", "false", true),
            ("http://[::1]:8080/v1", "m", "false", true),
            ("http://localhost:8080/v1", "m", "false", true),
            ("http://127.0.0.1:11434/v1", "gpt-oss:120b-cloud", "false", false),
            ("http://127.0.0.1:11434/v1", "gpt-oss:120b-cloud", "true", false),
            ("https://models.example/v1", "m", "false", false),
            ("https://models.example/v1", "m", "true", true),
            ("http://127.0.0.1.example/v1", "m", "false", false),
            ("http://user@10.0.0.7/v1", "m", "false", false),
        ];
        for (url, model, local, expected) in cases {
            let file = format!("[researcher]\nlocal = {local}\n");
            let variables = [("OUTLAST_MODEL_URL", url), ("OUTLAST_MODEL", model)];
            let (settings, _) = read(&variables, Some(&file));
            assert_eq!(settings.is_local(), expected, "{url} {model} {local}");
        }
    }

    /// K3: services of this machine are free, and the price of others is unknown until it is set.
    #[test]
    fn k3_prices_default_to_zero_on_this_machine_alone() {
        let free = Some(NanoUsd(0));
        let here = ("OUTLAST_MODEL_URL", "http://127.0.0.1:11434/v1");
        let there = ("OUTLAST_MODEL_URL", "https://api.example/v1");
        let searxng = ("OUTLAST_SEARCH_URL", "http://localhost:8888");
        let (settings, warnings) = read(&[here, searxng], None);
        assert_eq!(settings.prices, Prices::FREE);
        assert!(warnings.is_empty(), "{warnings:?}");
        let (settings, _) = read(&[there, ("OUTLAST_SEARCH", "library")], None);
        assert_eq!(settings.prices, Prices { input: None, output: None, search: free });
        let file = "[researcher]\nprice_in = \"0.15\"\nprice_out = 1\n";
        let (settings, _) = read(&[there, ("OUTLAST_SEARCH", "tool:web.search")], Some(file));
        let (read_price, write_price) = (NanoUsd(150_000_000), NanoUsd(1_000_000_000));
        let expected = Prices { input: Some(read_price), output: Some(write_price), search: None };
        assert_eq!(settings.prices, expected);
        let search = SearchService::Tool { upstream: "web".into(), tool: "search".into() };
        assert_eq!(settings.search, search);
        assert_eq!(settings.max_resend, NanoUsd(20_000_000));
    }

    /// K1: an address on another machine without encryption.
    #[test]
    fn k1_an_unencrypted_model_address_on_another_machine_warns() {
        let (_, warnings) = read(&[("OUTLAST_MODEL_URL", "http://10.0.0.7:8000/v1")], None);
        assert!(warnings.iter().any(|it| it.contains("unencrypted")), "{warnings:?}");
        let (_, warnings) = read(&[("OUTLAST_SEARCH_URL", "http://10.0.0.7:8888")], None);
        let expected =
            "OUTLAST_SEARCH_URL is an http address on another machine: queries and the key";
        assert!(warnings.iter().any(|it| it.starts_with(expected)), "{warnings:?}");
        let (_, warnings) = read(&[("OUTLAST_MODEL_URL", "https://10.0.0.7:8000/v1")], None);
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn k1_a_wrong_search_service_is_refused() {
        for wrong in ["bing", "tool:", "tool:web", "tool:.x", "tool:web."] {
            let mut layers = Layers::of(&[("OUTLAST_SEARCH", wrong)], None).unwrap();
            assert!(layers.researcher().is_err(), "{wrong}");
        }
    }
}
