//! The layers and the search for a value: flag, then environment, then file, then default.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{ConfigError, ConfigResult};
use super::file::{ConfigFile, default_path};
use super::redact::presentable;
use super::settings::Setting;

/// The time that a detached worker stays without work.
const WORKER_IDLE: Duration = Duration::from_secs(60);

/// Values from the command line.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    /// The file named with `--config`.
    pub(crate) config: Option<PathBuf>,
    /// Settings that were given by a flag: the setting, the flag's name, the value.
    pub(crate) values: Vec<(&'static Setting, &'static str, String)>,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueSource {
    Flag(&'static str),
    Variable(&'static str),
    File(PathBuf),
    Default,
}

impl ValueSource {
    /// Returns the name of a setting in this source, if it has a separate one.
    pub(crate) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Flag(name) | Self::Variable(name) => Some(name),
            Self::File(_) | Self::Default => None,
        }
    }
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "the flag {name}"),
            Self::Variable(name) => write!(f, "the environment variable {name}"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Default => f.write_str("the default"),
        }
    }
}

/// A setting's value, and its layer.
pub(super) struct FoundValue {
    pub(super) setting: &'static Setting,
    pub(super) text: String,
    pub(super) source: ValueSource,
}

impl FoundValue {
    /// Returns its name in its layer.
    pub(super) fn name(&self) -> String {
        self.source.name().unwrap_or(self.setting.key).to_owned()
    }

    /// Returns the error for a value that is not allowed.
    pub(super) fn bad(&self, allowed: impl Into<String>) -> ConfigError {
        let value = presentable(self.setting, &self.text).chars().take(100).collect();
        let source_name = self.source.to_string();
        ConfigError::BadValue { name: self.name(), value, source_name, allowed: allowed.into() }
    }
}

/// Flags, environment and file, ready for queries.
pub(super) struct Layers {
    flags: Flags,
    pub(super) environment: HashMap<String, String>,
    pub(super) file: Option<ConfigFile>,
    pub(super) warnings: Vec<String>,
}

impl Layers {
    /// Reads the environment and the named file, or the one in the user's own directory, if it exists.
    pub(super) fn read(flags: Flags) -> ConfigResult<Self> {
        let environment = environment();
        let usual = || default_path(&environment).filter(|path| path.is_file());
        let path = flags.config.clone().or_else(usual);
        let file = path.map(|path| ConfigFile::read(&path)).transpose()?;
        Ok(Self { flags, environment, file, warnings: Vec::new() })
    }

    #[cfg(test)]
    pub(super) fn of(environment: &[(&str, &str)], file: Option<&str>) -> ConfigResult<Self> {
        let environment = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let path = PathBuf::from("outlast.toml");
        let file = file.map(|text| ConfigFile::parse(&path, text)).transpose()?;
        Ok(Self { flags: Flags::default(), environment, file, warnings: Vec::new() })
    }

    /// Returns the file that was named with `--config`.
    pub(super) fn config_file(&self) -> Option<&Path> {
        self.flags.config.as_deref()
    }

    /// Returns the value of the first layer that has one; an empty value counts as none.
    pub(super) fn find(&self, setting: &'static Setting) -> FoundValue {
        let is_key = setting.key.ends_with("api_key");
        let counts = |found: &FoundValue| !is_key || !is_placeholder(&found.text);
        let text = setting.default.to_owned();
        let default = FoundValue { setting, text, source: ValueSource::Default };
        self.set(setting).find(counts).unwrap_or(default)
    }

    /// Returns the values of a setting in each layer, highest precedence first; an empty variable counts as none.
    pub(super) fn set(&self, setting: &'static Setting) -> impl Iterator<Item = FoundValue> {
        let flag = self.flags.values.iter().find(|(flag, _, _)| *flag == setting);
        let flag = flag.map(|(_, name, value)| (value, ValueSource::Flag(name)));
        let variables = setting.variables.iter().filter_map(|name| {
            let value = self.environment.get(*name).filter(|value| !value.trim().is_empty())?;
            Some((value, ValueSource::Variable(name)))
        });
        let file = self.file.as_ref().and_then(|file| {
            Some((file.values.get(setting.key)?, ValueSource::File(file.path.clone())))
        });
        let found = flag.into_iter().chain(variables).chain(file);
        found.map(move |(text, source)| FoundValue {
            setting,
            text: text.trim().to_owned(),
            source,
        })
    }

    /// Adds one warning for each key of an earlier version in the file.
    pub(super) fn warn_of_old_names(&mut self) {
        let Some(file) = &self.file else { return };
        let path = file.path.display();
        self.warnings.extend(file.renamed.iter().map(|(old, new)| {
            format!("`{old}` in {path} is called `{new}` now; the old name is still read")
        }));
    }

    /// Returns the text, if there is any.
    pub(super) fn text(&self, setting: &'static Setting) -> Option<String> {
        Some(self.find(setting).text).filter(|text| !text.is_empty())
    }

    /// Returns true if a layer has the setting.
    pub(super) fn is_set(&self, setting: &'static Setting) -> bool {
        let found = self.find(setting);
        found.source != ValueSource::Default && !found.text.is_empty()
    }

    /// Returns the folders that are searched for programs.
    pub(super) fn search_path(&self) -> String {
        let path = self.environment.get("PATH");
        path.cloned().unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned())
    }

    /// Returns the time that a detached worker stays without work; tests use a shorter one.
    pub(super) fn worker_idle(&self) -> Duration {
        let millis = self.environment.get("OUTLAST_TEST_WORKER_IDLE_MS");
        let millis = millis.and_then(|text| text.parse().ok());
        millis.map_or(WORKER_IDLE, Duration::from_millis)
    }

    /// Parses a value that must be one of those allowed.
    pub(super) fn parsed<T>(
        &self,
        setting: &'static Setting,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> ConfigResult<T> {
        let found = self.find(setting);
        parse(&found.text).ok_or_else(|| found.bad(allowed))
    }
}

/// Returns true if a value is a placeholder that a client should have replaced: `$NAME`, `${NAME}`, `${NAME:-}`,
/// `${env:NAME}`, `%NAME%`.
pub(super) fn is_placeholder(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let between = |start: &str, end: &str| text.strip_prefix(start)?.strip_suffix(end);
    between("${", "}").is_some_and(|inside| !inside.contains('}'))
        || text.strip_prefix('$').is_some_and(is_name)
        || between("%", "%").is_some_and(is_name)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(super) fn environment() -> HashMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
