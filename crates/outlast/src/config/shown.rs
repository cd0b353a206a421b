//! Every setting with its value and where that comes from, fit to be shown: no secret is in it.

use std::path::{Path, PathBuf};

use super::layers::{ConfigError, Flags, Found, Layers, Source, is_http};
use super::settings::SETTINGS;
use super::{Config, StoreUrl};

/// Settings whose value nobody may see.
const SECRETS: &[&str] = &["perplexity.api_key", "server.tokens"];

/// What stands for a secret.
const REDACTED: &str = "[redacted]";

/// A setting as people may see it.
#[derive(Debug)]
pub(crate) struct Shown {
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
pub(crate) struct Showing {
    /// The file that was read, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// Whether that holds what others must not read.
    pub(crate) file_has_secrets: bool,
    pub(crate) settings: Vec<Shown>,
    /// What the program makes of it.
    pub(crate) config: Result<Config, ConfigError>,
}

impl Showing {
    /// Reads all layers; fails only where the file itself cannot be read.
    pub(crate) fn read(flags: Flags) -> Result<Self, ConfigError> {
        Ok(Self::of(&mut Layers::read(flags)?))
    }

    pub(super) fn of(layers: &mut Layers) -> Self {
        let config = Config::from_layers(layers);
        let settings = SETTINGS.iter().map(|setting| {
            let (setting, found) = layers.find(setting.key);
            let derived = config.as_ref().ok().and_then(|config| derived(config, setting.key));
            let value = match (found.text.is_empty(), derived) {
                (true, Some(derived)) => derived,
                _ => presentable(setting.key, &found),
            };
            Shown { key: setting.key, value, source: found.source, about: setting.help }
        });
        let settings = settings.collect();
        let file = layers.file().map(Path::to_owned);
        Self { file, file_has_secrets: layers.file_has_secrets(), settings, config }
    }

    /// One setting.
    pub(crate) fn setting(&self, key: &str) -> Option<&Shown> {
        self.settings.iter().find(|shown| shown.key == key)
    }
}

/// What counts where nothing is set and the default depends on other settings.
fn derived(config: &Config, key: &str) -> Option<String> {
    match key {
        "store.url" => Some(match &config.store {
            StoreUrl::Memory => "memory:".to_owned(),
            StoreUrl::Sqlite(path) => format!("sqlite:{}", path.display()),
        }),
        "store.data_dir" => Some(config.data_dir.display().to_string()),
        "store.conversation_logs_dir" => {
            config.conversation_logs.as_ref().map(|dir| dir.display().to_string())
        }
        "server.log" => Some(config.log.clone()),
        _ => None,
    }
}

/// A value fit to be shown.
pub(super) fn presentable(key: &str, found: &Found) -> String {
    match found.text.as_str() {
        "" => String::new(),
        _ if SECRETS.contains(&key) => REDACTED.to_owned(),
        // Where it is no address, what of it is a password cannot be told.
        text if key == "perplexity.base_url" && !is_http(text) => REDACTED.to_owned(),
        text => without_credentials(text),
    }
}

/// Whether a value is one that others must not read.
pub(super) fn is_secret(key: &str, value: &str) -> bool {
    SECRETS.contains(&key) || without_credentials(value) != value
}

/// An address without the name and the password in it. Anything up to an `@` in the authority is taken for those; so is
/// what follows a `?`, and the whole of a list of settings that has a password.
fn without_credentials(text: &str) -> String {
    if text.contains("password=") {
        return REDACTED.to_owned();
    }
    if let (true, Some(at)) = (text.contains("://"), text.find('?')) {
        return format!("{}?{REDACTED}", without_credentials(&text[..at]));
    }
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) if scheme.is_empty() && !rest[..at].contains(':') => text.to_owned(),
        Some(at) => format!("{scheme}{REDACTED}{}", &rest[at..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_an_address_are_not_shown() {
        let cases = [
            ("http://user:hunter2@proxy:8080", "http://[redacted]@proxy:8080"),
            ("http://hunter2@proxy", "http://[redacted]@proxy"),
            ("http://a@b:hunter2@proxy/x@y", "http://[redacted]@proxy/x@y"),
            ("user:hunter2@proxy:8080", "[redacted]@proxy:8080"),
            ("https://api.perplexity.ai", "https://api.perplexity.ai"),
            ("https://api.example/a@b", "https://api.example/a@b"),
            ("ann@example", "ann@example"),
            ("https://api.example/v1?key=hunter2", "https://api.example/v1?[redacted]"),
            ("host=db password=hunter2", "[redacted]"),
            ("sqlite:/data/jobs.db", "sqlite:/data/jobs.db"),
        ];
        for (text, shown) in cases {
            assert_eq!(without_credentials(text), shown);
        }
    }

    #[test]
    fn every_setting_is_shown_with_its_value_and_where_that_comes_from() {
        let environment = [
            ("PERPLEXITY_API_KEY", "pplx-hunter2"),
            ("OUTLAST_TOKENS", "ann=hunter2"),
            ("HTTPS_PROXY", "http://u:hunter2@proxy"),
            ("OUTLAST_DATA_DIR", "/data"),
        ];
        let file = "[server]\nconcurrency = 7\n[perplexity]\napi_key = \"pplx-hunter2\"\n";
        let showing = Showing::of(&mut Layers::of(&environment, Some(file)).unwrap());
        assert_eq!(showing.settings.len(), SETTINGS.len());
        assert!(!format!("{showing:?}").contains("hunter2"), "{showing:?}");
        let cases = [
            ("perplexity.api_key", "[redacted]", Source::Variable("PERPLEXITY_API_KEY")),
            ("server.concurrency", "7", Source::File("outlast.toml".into())),
            ("server.owner", "local", Source::Default),
            ("store.url", "sqlite:/data/outlast.db", Source::Default),
            ("network.proxy", "http://[redacted]@proxy", Source::Variable("HTTPS_PROXY")),
            ("server.library", "", Source::Default),
        ];
        for (key, value, source) in cases {
            let shown = showing.setting(key).unwrap();
            assert_eq!((shown.value.as_str(), &shown.source), (value, &source), "{key}");
        }
    }

    #[test]
    fn a_setting_that_is_not_allowed_hides_none_of_the_others() {
        let environment = [("OUTLAST_DATA_DIR", "/data"), ("OUTLAST_CONCURRENCY", "lots")];
        let showing = Showing::of(&mut Layers::of(&environment, None).unwrap());
        assert_eq!(showing.setting("server.concurrency").unwrap().value, "lots");
        assert_eq!(showing.settings.len(), SETTINGS.len());
        assert!(showing.config.is_err());
    }
}
