//! Every setting with its value and where that comes from, fit to be shown: no secret is in it.

use std::path::PathBuf;

use super::error::ConfigResult;
use super::file::ConfigFile;
use super::layers::{Flags, Layers, Source};
use super::redact::presentable;
use super::settings::SETTINGS;
use super::{Config, ResearchProvider, StoreUrl};

/// A setting as people may see it.
#[derive(Debug)]
pub(crate) struct ShownSetting {
    /// `section.key` in outlast.toml.
    pub(crate) key: &'static str,
    /// What counts; empty when there is none.
    pub(crate) value: String,
    pub(crate) source: Source,
    /// What it is for.
    pub(crate) about: &'static str,
}

/// The whole configuration as people may see it.
#[derive(Debug)]
pub(crate) struct ShownConfig {
    /// The file that was read, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// Whether that holds what others must not read.
    pub(crate) file_has_secrets: bool,
    pub(crate) settings: Vec<ShownSetting>,
    /// What the program makes of it.
    pub(crate) config: ConfigResult<Config>,
}

impl ShownConfig {
    /// Reads all layers; fails only where the file itself cannot be read.
    pub(crate) fn read(flags: Flags) -> ConfigResult<Self> {
        Ok(Self::of(&mut Layers::read(flags)?))
    }

    pub(super) fn of(layers: &mut Layers) -> Self {
        let config = Config::from_layers(layers);
        let settings = SETTINGS.iter().map(|setting| {
            let found = layers.find(setting.key);
            let derived = config.as_ref().ok().and_then(|config| derived(config, setting.key));
            let value = match (found.text.is_empty(), derived) {
                (true, Some(derived)) => derived,
                _ => presentable(setting.key, &found.text),
            };
            ShownSetting { key: setting.key, value, source: found.source, about: setting.help }
        });
        let settings = settings.collect();
        let file_has_secrets = layers.file.as_ref().is_some_and(ConfigFile::has_secrets);
        let file = layers.file.as_ref().map(|file| file.path.clone());
        Self { file, file_has_secrets, settings, config }
    }

    /// One setting.
    pub(crate) fn setting(&self, key: &str) -> Option<&ShownSetting> {
        self.settings.iter().find(|shown| shown.key == key)
    }
}

/// What counts where nothing is set and the default depends on other settings.
fn derived(config: &Config, key: &str) -> Option<String> {
    match key {
        "store.url" => Some(match &config.store {
            StoreUrl::Sqlite(path) => format!("sqlite:{}", path.display()),
            other => other.to_string(),
        }),
        "store.data_dir" => Some(config.data_dir.display().to_string()),
        "store.conversation_logs_dir" => {
            config.conversation_logs.as_ref().map(|dir| dir.display().to_string())
        }
        "server.tools" => Some(joined(config.tools.iter().map(|set| set.name()))),
        "server.providers" => Some(joined(config.providers.iter().map(ResearchProvider::name))),
        "server.log" => Some(config.log.clone()),
        _ => None,
    }
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_shown_with_its_value_and_where_that_comes_from() {
        let environment = [
            ("PERPLEXITY_API_KEY", "pplx-hunter2"),
            ("OUTLAST_TOKENS", "ann=hunter2"),
            ("HTTPS_PROXY", "http://u:hunter2@proxy"),
            ("OUTLAST_DATA_DIR", "/data"),
        ];
        let file = "[server]\nconcurrency = 7\n[perplexity]\napi_key = \"pplx-hunter2\"\n";
        let showing = ShownConfig::of(&mut Layers::of(&environment, Some(file)).unwrap());
        assert_eq!(showing.settings.len(), SETTINGS.len());
        assert!(!format!("{showing:?}").contains("hunter2"), "{showing:?}");
        let cases = [
            ("perplexity.api_key", "[redacted]", Source::Variable("PERPLEXITY_API_KEY")),
            ("server.concurrency", "7", Source::File("outlast.toml".into())),
            ("server.owner", "local", Source::Default),
            ("store.url", "sqlite:/data/outlast.db", Source::Default),
            ("network.proxy", "http://[redacted]@proxy", Source::Variable("HTTPS_PROXY")),
            ("library.folders", "", Source::Default),
        ];
        for (key, value, source) in cases {
            let shown = showing.setting(key).unwrap();
            assert_eq!((shown.value.as_str(), &shown.source), (value, &source), "{key}");
        }
    }

    #[test]
    fn a_setting_that_is_not_allowed_hides_none_of_the_others() {
        let environment = [("OUTLAST_DATA_DIR", "/data"), ("OUTLAST_CONCURRENCY", "lots")];
        let showing = ShownConfig::of(&mut Layers::of(&environment, None).unwrap());
        assert_eq!(showing.setting("server.concurrency").unwrap().value, "lots");
        assert_eq!(showing.settings.len(), SETTINGS.len());
        assert!(showing.config.is_err());
    }
}
