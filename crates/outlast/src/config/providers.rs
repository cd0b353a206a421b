//! The providers that may be asked, in order (G1): the names of OUTLAST_PROVIDERS, and the tables of the vendors among
//! them. A vendor that is not named there is not read at all, regardless of its variables.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use outlast_core::Profile;
use outlast_provider::anthropic::Anthropic;
use outlast_provider::gemini::Gemini;
use outlast_provider::http::ProxyOptions;
use outlast_provider::openai::OpenAi;
use outlast_provider::vendor::Vendor;
use outlast_provider::{anthropic, gemini, openai, perplexity};

use super::Secret;
use super::error::ConfigResult;
use super::layers::Layers;
use super::researcher::ResearcherSettings;
use super::settings::{self, Setting};

/// A provider that may be asked.
#[derive(Clone, Debug)]
pub(crate) enum ResearchProvider {
    /// A vendor, by its own table.
    Vendor(VendorSettings),
    /// Research on any model, step by step.
    Researcher(Box<ResearcherSettings>),
    /// The documents on this machine.
    Library,
}

impl ResearchProvider {
    /// All names.
    pub(crate) const NAMES: [&str; 6] = [
        Profile::PERPLEXITY,
        OpenAi::NAME,
        Anthropic::NAME,
        Gemini::NAME,
        Profile::RESEARCHER,
        Profile::LIBRARY,
    ];

    /// Returns its name in OUTLAST_PROVIDERS and in profiles.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Vendor(vendor) => vendor.name.as_str(),
            Self::Researcher(_) => Profile::RESEARCHER,
            Self::Library => Profile::LIBRARY,
        }
    }

    /// Returns its vendor; the researcher and the library have none.
    pub(crate) fn vendor_name(&self) -> Option<VendorName> {
        match self {
            Self::Vendor(vendor) => Some(vendor.name),
            Self::Researcher(_) | Self::Library => None,
        }
    }
}

/// A vendor. Each but Perplexity is asked only if it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VendorName {
    Perplexity,
    OpenAi,
    Anthropic,
    Gemini,
}

impl VendorName {
    const ALL: [Self; 4] = [Self::Perplexity, Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// Returns the vendor with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| vendor.as_str() == name)
    }

    /// Returns its name, which is also that of its table.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Perplexity => Profile::PERPLEXITY,
            Self::OpenAi => OpenAi::NAME,
            Self::Anthropic => Anthropic::NAME,
            Self::Gemini => Gemini::NAME,
        }
    }

    /// Returns the setting that holds its API key.
    pub(crate) fn api_key(self) -> &'static Setting {
        self.settings().api_key
    }

    /// Returns the settings in its section of the file.
    fn settings(self) -> VendorSection {
        let section = |api_key, base_url, model, proxy, timeout| VendorSection {
            api_key,
            base_url,
            model: Some(model),
            proxy,
            timeout: Some(timeout),
        };
        match self {
            // Its timeout is the common one, and its model follows from the question.
            Self::Perplexity => VendorSection {
                api_key: settings::PERPLEXITY_API_KEY,
                base_url: settings::PERPLEXITY_BASE_URL,
                model: None,
                proxy: settings::PERPLEXITY_PROXY,
                timeout: None,
            },
            Self::OpenAi => section(
                settings::OPENAI_API_KEY,
                settings::OPENAI_BASE_URL,
                settings::OPENAI_MODEL,
                settings::OPENAI_PROXY,
                settings::OPENAI_TIMEOUT_MS,
            ),
            Self::Anthropic => section(
                settings::ANTHROPIC_API_KEY,
                settings::ANTHROPIC_BASE_URL,
                settings::ANTHROPIC_MODEL,
                settings::ANTHROPIC_PROXY,
                settings::ANTHROPIC_TIMEOUT_MS,
            ),
            Self::Gemini => section(
                settings::GEMINI_API_KEY,
                settings::GEMINI_BASE_URL,
                settings::GEMINI_MODEL,
                settings::GEMINI_PROXY,
                settings::GEMINI_TIMEOUT_MS,
            ),
        }
    }

    /// Returns the names of the vendor and its variables for texts.
    pub(crate) fn vendor(self) -> &'static Vendor {
        match self {
            Self::Perplexity => &perplexity::VENDOR,
            Self::OpenAi => &openai::VENDOR,
            Self::Anthropic => &anthropic::VENDOR,
            Self::Gemini => &gemini::VENDOR,
        }
    }
}

/// The settings of one vendor.
struct VendorSection {
    api_key: &'static Setting,
    base_url: &'static Setting,
    model: Option<&'static Setting>,
    proxy: &'static Setting,
    timeout: Option<&'static Setting>,
}

/// The access to a vendor.
#[derive(Clone, Debug)]
pub(crate) struct VendorSettings {
    pub(crate) name: VendorName,
    pub(crate) api_key: Option<Secret>,
    pub(crate) base_url: String,
    /// The model or agent, unless the adapter chooses it.
    pub(crate) model: Option<String>,
    pub(crate) proxy: Option<ProxyOptions>,
    pub(crate) timeout: Duration,
}

impl Layers {
    /// Returns the providers that may be asked: those that are named, otherwise Perplexity if it has a key, the library
    /// if it has folders, and last the researcher if it has what it needs.
    pub(super) fn providers(
        &mut self,
        library: &[PathBuf],
        timeout: Duration,
    ) -> ConfigResult<Vec<ResearchProvider>> {
        if !self.is_set(settings::SERVER_PROVIDERS) {
            let perplexity = self.vendor(VendorName::Perplexity, timeout)?;
            let perplexity = perplexity.api_key.is_some().then_some(perplexity);
            let mut providers: Vec<_> =
                perplexity.map(ResearchProvider::Vendor).into_iter().collect();
            if !library.is_empty() {
                providers.push(ResearchProvider::Library);
            }
            if self.is_set(settings::RESEARCHER_MODEL_URL) {
                let researcher = self.researcher()?;
                if researcher.find_missing(library).is_none() {
                    providers.push(ResearchProvider::Researcher(Box::new(researcher)));
                }
            }
            return Ok(providers);
        }
        let mut providers = Vec::new();
        for name in self.provider_names()? {
            providers.push(match VendorName::from_name(name) {
                Some(vendor) => ResearchProvider::Vendor(self.vendor(vendor, timeout)?),
                None if name == Profile::RESEARCHER => {
                    ResearchProvider::Researcher(Box::new(self.researcher()?))
                }
                None => ResearchProvider::Library,
            });
        }
        Ok(providers)
    }

    /// Returns the names as given; each is known and occurs once.
    fn provider_names(&self) -> ConfigResult<Vec<&'static str>> {
        let allowed = format!("{}, each of them once", ResearchProvider::NAMES.join(", "));
        let known = |name: &str| ResearchProvider::NAMES.into_iter().find(|known| *known == name);
        let names = self.list(settings::SERVER_PROVIDERS, &allowed, known)?;
        match names.iter().collect::<HashSet<_>>().len() == names.len() {
            true => Ok(names),
            false => Err(self.find(settings::SERVER_PROVIDERS).bad(allowed)),
        }
    }

    /// Reads a vendor's table; `timeout` bounds the calls to every vendor without its own limit.
    fn vendor(&mut self, name: VendorName, timeout: Duration) -> ConfigResult<VendorSettings> {
        let settings = name.settings();
        let model = settings.model.and_then(|setting| self.text(setting));
        let timeout = match settings.timeout {
            Some(setting) if self.is_set(setting) => self.millis_or(setting, timeout),
            Some(_) | None => timeout,
        };
        Ok(VendorSettings {
            name,
            api_key: self.api_key(settings.api_key),
            base_url: self.url(settings.base_url)?,
            model,
            proxy: self.provider_proxy(settings.proxy),
            timeout,
        })
    }
}
