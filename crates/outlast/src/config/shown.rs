//! Every setting with its value and source, fit to be shown: it contains no secret.

use std::path::PathBuf;

use super::error::ConfigResult;
use super::file::ConfigFile;
use super::layers::{Flags, Layers, ValueSource};
use super::redact::presentable;
use super::settings::{self, Setting};
use super::{Config, ResearchProvider, StoreUrl};

/// A setting as people may see it.
#[derive(Debug)]
pub(crate) struct ShownSetting {
    pub(crate) setting: &'static Setting,
    /// The effective value; empty if there is none.
    pub(crate) value: String,
    pub(crate) source: ValueSource,
}

/// The whole configuration as people may see it.
#[derive(Debug)]
pub(crate) struct ShownConfig {
    /// The file that was read, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// True if the file holds values that others must not read.
    pub(crate) file_has_secrets: bool,
    pub(crate) settings: Vec<ShownSetting>,
    /// The configuration that the program loads from it.
    pub(crate) config: ConfigResult<Config>,
}

impl ShownConfig {
    /// Reads all layers; fails only if the file itself cannot be read.
    pub(crate) fn read(flags: Flags) -> ConfigResult<Self> {
        Ok(Self::of(&mut Layers::read(flags)?))
    }

    pub(super) fn of(layers: &mut Layers) -> Self {
        let config = Config::from_layers(layers);
        let settings = settings::SETTINGS.iter().map(|setting| {
            let found = layers.find(setting);
            let derived = config.as_ref().ok().and_then(|config| derive(config, setting));
            let value = match (found.text.is_empty(), derived) {
                (true, Some(derived)) => derived,
                _ => presentable(setting, &found.text),
            };
            ShownSetting { setting, value, source: found.source }
        });
        let settings = settings.collect();
        let file_has_secrets = layers.file.as_ref().is_some_and(ConfigFile::has_secrets);
        let file = layers.file.as_ref().map(|file| file.path.clone());
        Self { file, file_has_secrets, settings, config }
    }

    /// Returns one setting.
    pub(crate) fn setting(&self, setting: &Setting) -> Option<&ShownSetting> {
        self.settings.iter().find(|shown| shown.setting == setting)
    }
}

/// Returns the value of a setting that is not set and whose default depends on other settings.
fn derive(config: &Config, setting: &Setting) -> Option<String> {
    match setting {
        settings::STORE_URL => Some(match &config.store {
            StoreUrl::Sqlite(path) => format!("sqlite:{}", path.display()),
            other => other.to_string(),
        }),
        settings::STORE_DATA_DIR => Some(config.data_dir.display().to_string()),
        settings::STORE_CONVERSATION_LOGS_DIR => {
            config.conversation_logs.as_ref().map(|dir| dir.display().to_string())
        }
        settings::SERVER_TOOLS => Some(join_names(config.tools.iter().map(|set| set.name()))),
        settings::SERVER_PROVIDERS => {
            Some(join_names(config.providers.iter().map(ResearchProvider::name)))
        }
        settings::SERVER_LOG => Some(config.log.clone()),
        _ => None,
    }
}

fn join_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::super::settings;
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
        assert_eq!(showing.settings.len(), settings::SETTINGS.len());
        assert!(!format!("{showing:?}").contains("hunter2"), "{showing:?}");
        let cases = [
            (
                settings::PERPLEXITY_API_KEY,
                "[redacted]",
                ValueSource::Variable("PERPLEXITY_API_KEY"),
            ),
            (settings::SERVER_CONCURRENCY, "7", ValueSource::File("outlast.toml".into())),
            (settings::SERVER_OWNER, "local", ValueSource::Default),
            (settings::STORE_URL, "sqlite:/data/outlast.db", ValueSource::Default),
            (
                settings::NETWORK_PROXY,
                "http://[redacted]@proxy",
                ValueSource::Variable("HTTPS_PROXY"),
            ),
            (settings::LIBRARY_FOLDERS, "", ValueSource::Default),
        ];
        for (setting, value, source) in cases {
            let shown = showing.setting(setting).unwrap();
            assert_eq!((shown.value.as_str(), &shown.source), (value, &source), "{}", setting.key);
        }
    }

    #[test]
    fn a_setting_that_is_not_allowed_hides_none_of_the_others() {
        let environment = [("OUTLAST_DATA_DIR", "/data"), ("OUTLAST_CONCURRENCY", "lots")];
        let showing = ShownConfig::of(&mut Layers::of(&environment, None).unwrap());
        assert_eq!(showing.setting(settings::SERVER_CONCURRENCY).unwrap().value, "lots");
        assert_eq!(showing.settings.len(), settings::SETTINGS.len());
        assert!(showing.config.is_err());
    }
}
