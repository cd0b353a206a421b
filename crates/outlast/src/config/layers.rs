//! The layers, and how a value is found, parsed and complained about.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use outlast_provider::http::{ProxyOptions, ProxyScope};
use outlast_server::{ResearchMode, ToolSet};

use super::settings::{SETTINGS, Setting};
use super::workflows::{self, Definitions};
use super::{Dialect, Secret, StoreUrl, shown};

/// Values from the command line, by key.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    /// The file named with `--config`.
    pub(crate) config: Option<PathBuf>,
    /// Settings that have a flag: the key, the flag's name, the value.
    pub(crate) values: Vec<(&'static str, &'static str, String)>,
}

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A value is not one of those allowed.
    #[error("{name} = `{value}` (from {source_name}) is not allowed")]
    BadValue { name: String, value: String, source_name: String, allowed: String },
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    /// The file is no TOML. Never shows its text: the line may hold a key.
    #[error("the configuration file {}, line {line}, column {column}: {why}", path.display())]
    Syntax { path: PathBuf, line: usize, column: usize, why: String },
    /// The file has a key nobody knows.
    #[error("the configuration file {} has an unknown key `{key}`", path.display())]
    UnknownKey { path: PathBuf, key: String },
    /// Something in the definition of a workflow or an upstream server.
    #[error("the configuration file {}, line {line}: `{key}` {why}", path.display())]
    BadEntry { path: PathBuf, line: usize, key: String, why: String },
    /// A list of tokens cannot be used. Never shows a token.
    #[error("{name} (from {source_name}) cannot be used: {why}")]
    BadTokens { name: String, source_name: String, why: String },
    /// There is no place for the job store.
    #[error("no data directory: {0}")]
    NoDataDir(String),
}

impl ConfigError {
    /// What would be right.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::BadValue { allowed, .. } => format!("allowed: {allowed}"),
            Self::Unreadable { .. } | Self::Syntax { .. } => "mend the file, or name another with --config".to_owned(),
            Self::UnknownKey { .. } | Self::BadEntry { .. } => {
                "docs/configuration.md lists every key".to_owned()
            }
            Self::BadTokens { .. } => {
                "OUTLAST_TOKENS is name=token,name=token; OUTLAST_TOKENS_FILE holds a line `name token` for each, \
                 and only its owner may read it: chmod 600"
                    .to_owned()
            }
            Self::NoDataDir(_) => "set OUTLAST_DATA_DIR, or give --data-dir".to_owned(),
        }
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Flag(&'static str),
    Variable(&'static str),
    File(PathBuf),
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "the flag {name}"),
            Self::Variable(name) => write!(f, "the environment variable {name}"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Default => f.write_str("the default"),
        }
    }
}

pub(super) struct Found {
    pub(super) text: String,
    pub(super) source: Source,
}

impl Found {
    /// Where it came from, for people.
    pub(super) fn source_name(&self) -> String {
        self.source.to_string()
    }

    /// What it is called there.
    pub(super) fn name(&self, setting: &Setting) -> String {
        match &self.source {
            Source::Flag(name) | Source::Variable(name) => (*name).to_owned(),
            Source::File(_) | Source::Default => setting.key.to_owned(),
        }
    }
}

/// The file as it was read.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// `section.key` to value.
    values: HashMap<String, String>,
    pub(super) definitions: Definitions,
}

/// Flags, environment and file, ready to be asked.
pub(super) struct Layers {
    flags: Flags,
    pub(super) environment: HashMap<String, String>,
    pub(super) file: Option<File>,
    warnings: Vec<String>,
}

impl Layers {
    /// Reads the environment and the file.
    pub(super) fn read(flags: Flags) -> Result<Self, ConfigError> {
        let environment = environment();
        let file = match &flags.config {
            Some(path) => Some(read_file(path)?),
            None => match default_file(&environment) {
                Some(path) if path.is_file() => Some(read_file(&path)?),
                _ => None,
            },
        };
        Ok(Self { flags, environment, file, warnings: Vec::new() })
    }

    #[cfg(test)]
    pub(super) fn of(
        environment: &[(&str, &str)],
        file: Option<&str>,
    ) -> Result<Self, ConfigError> {
        let environment = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let path = PathBuf::from("outlast.toml");
        let file = file.map(|text| parse_file(&path, text)).transpose()?;
        Ok(Self { flags: Flags::default(), environment, file, warnings: Vec::new() })
    }

    /// The file that was read, if there is one.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }

    /// Whether the file holds what others must not read.
    pub(super) fn file_has_secrets(&self) -> bool {
        self.file.as_ref().is_some_and(|file| {
            let secret = |(key, value): (&String, &String)| shown::is_secret(key, value);
            file.values.iter().any(secret) || file.definitions.have_secrets()
        })
    }

    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// The value of the first layer that has one; an empty one counts as none.
    pub(super) fn find(&self, key: &str) -> (&'static Setting, Found) {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
            // A key that is asked for and not in the table is a defect, caught by the test that loads a default.
            return (&SETTINGS[0], Found { text: String::new(), source: Source::Default });
        };
        let counts = |found: &Found| !is_key(key) || !is_placeholder(&found.text);
        let found = self.set(setting).find(counts);
        let default = || Found { text: setting.default.to_owned(), source: Source::Default };
        (setting, found.unwrap_or_else(default))
    }

    /// What each layer has of a setting, the first that counts first; an empty variable counts as none.
    fn set(&self, setting: &'static Setting) -> impl Iterator<Item = Found> {
        let flag = self.flags.values.iter().find(|(flag, _, _)| *flag == setting.key);
        let flag = flag.map(|(_, name, value)| (value, Source::Flag(name)));
        let variables = setting.variables.iter().filter_map(|name| {
            let value = self.environment.get(*name).filter(|value| !value.trim().is_empty())?;
            Some((value, Source::Variable(name)))
        });
        let file = self.file.as_ref().and_then(|file| {
            Some((file.values.get(setting.key)?, Source::File(file.path.clone())))
        });
        let found = flag.into_iter().chain(variables).chain(file);
        found.map(|(text, source)| Found { text: text.trim().to_owned(), source })
    }

    /// The key of a provider's account. What a client was to replace by a key and did not is none (P2): one warning, and
    /// the next layer counts.
    pub(super) fn api_key(&mut self, key: &'static str) -> Option<Secret> {
        let (setting, found) = self.find(key);
        let placeholders = self.set(setting).filter(|found| is_placeholder(&found.text));
        let sources: Vec<_> = placeholders.map(|found| found.source_name()).collect();
        if !sources.is_empty() {
            self.warnings.push(format!(
                "{key} from {} is a placeholder that nothing was put in for, and counts as not set",
                sources.join(" and from ")
            ));
        }
        (!found.text.is_empty()).then_some(Secret(found.text))
    }

    pub(super) fn bad(
        &self,
        setting: &Setting,
        found: Found,
        allowed: impl Into<String>,
    ) -> ConfigError {
        let name = found.name(setting);
        let value: String = shown::presentable(setting.key, &found).chars().take(100).collect();
        ConfigError::BadValue {
            name,
            value,
            source_name: found.source.to_string(),
            allowed: allowed.into(),
        }
    }

    /// Text, if there is any.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let (_, found) = self.find(key);
        (!found.text.is_empty()).then_some(found.text)
    }

    /// Whether anybody set it.
    pub(super) fn is_set(&self, key: &str) -> bool {
        let (_, found) = self.find(key);
        found.source != Source::Default && !found.text.is_empty()
    }

    /// Paths, separated as the system separates them; a list in the file.
    pub(super) fn paths(&self, key: &str) -> Vec<PathBuf> {
        let (_, found) = self.find(key);
        let split: Vec<PathBuf> = match &found.source {
            Source::File(_) => found.text.split(',').map(PathBuf::from).collect(),
            Source::Flag(_) | Source::Variable(_) | Source::Default => {
                std::env::split_paths(&found.text).collect()
            }
        };
        split.into_iter().filter(|path| !path.as_os_str().is_empty()).collect()
    }

    /// A program: its name, or where it is.
    pub(super) fn program(&self, key: &str) -> Result<PathBuf, ConfigError> {
        let (setting, found) = self.find(key);
        let program = PathBuf::from(&found.text);
        if program.is_absolute() || !found.text.contains('/') {
            return Ok(program);
        }
        Err(self.bad(setting, found, "the name of a program, or an absolute path"))
    }

    /// The folders in which programs are looked for.
    pub(super) fn search_path(&self) -> String {
        let path = self.environment.get("PATH");
        path.cloned().unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned())
    }

    /// What is spoken at the provider.
    pub(super) fn dialect(&self) -> Result<Dialect, ConfigError> {
        let (setting, found) = self.find("perplexity.api");
        match found.text.as_str() {
            "agent" => Ok(Dialect::Agent),
            "sonar" => Ok(Dialect::Sonar),
            _ => Err(self.bad(setting, found, "agent, sonar")),
        }
    }

    /// A whole number in a range.
    pub(super) fn number(&self, key: &str, range: RangeInclusive<u32>) -> Result<u32, ConfigError> {
        let (setting, found) = self.find(key);
        match found.text.parse::<u32>() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => {
                let allowed = format!("a whole number from {} to {}", range.start(), range.end());
                Err(self.bad(setting, found, allowed))
            }
        }
    }

    /// A number of bytes, or of KiB, MiB or GiB.
    pub(super) fn bytes(&self, key: &str) -> Result<u64, ConfigError> {
        let (setting, found) = self.find(key);
        let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
        let with_unit = |(unit, shift)| Some((found.text.strip_suffix(unit)?, shift));
        let (number, shift) =
            units.into_iter().find_map(with_unit).unwrap_or((found.text.as_str(), 0));
        let bytes = number.trim_end().parse::<u64>().ok();
        let bytes = bytes.and_then(|number| number.checked_mul(1 << shift));
        match bytes.filter(|bytes| *bytes > 0) {
            Some(bytes) => Ok(bytes),
            None => Err(self.bad(
                setting,
                found,
                "a number of bytes above 0, or one with KiB, MiB or GiB",
            )),
        }
    }

    /// Milliseconds; what is no positive number is replaced by the default with one warning (A6).
    pub(super) fn millis(&mut self, key: &str) -> Duration {
        let (setting, found) = self.find(key);
        let parsed = |text: &str| text.parse::<u64>().ok().filter(|millis| *millis > 0);
        let millis = parsed(&found.text).unwrap_or_else(|| {
            let error = self.bad(setting, found, "");
            self.warnings.push(format!("{error}; using {} ms", setting.default));
            parsed(setting.default).unwrap_or(1)
        });
        // A year is long enough for any wait, and adds up to no overflow.
        Duration::from_millis(millis.min(365 * 24 * 60 * 60 * 1000))
    }

    /// Milliseconds; what is no positive number is refused.
    pub(super) fn duration(&self, key: &str) -> Result<Duration, ConfigError> {
        let millis = self.number(key, 1..=u32::MAX)?;
        Ok(Duration::from_millis(millis.into()))
    }

    /// Whole seconds; a number out of bounds is brought into them with one warning, anything else is refused.
    pub(super) fn seconds_within(
        &mut self,
        key: &str,
        range: RangeInclusive<u32>,
    ) -> Result<Duration, ConfigError> {
        let (setting, found) = self.find(key);
        let (least, most) = (f64::from(*range.start()), f64::from(*range.end()));
        let Some(number) = found.text.parse::<f64>().ok().filter(|number| number.is_finite())
        else {
            let allowed = format!("a number of seconds from {least} to {most}");
            return Err(self.bad(setting, found, allowed));
        };
        let within = number.round().clamp(least, most);
        if within != number {
            let name = found.name(setting);
            let source = found.source_name();
            self.warnings.push(format!(
                "{name} = `{}` (from {source}) is no whole number from {least} to {most}; using {within}",
                found.text
            ));
        }
        Ok(Duration::from_secs_f64(within))
    }

    /// A switch.
    pub(super) fn flag(&self, key: &str) -> Result<bool, ConfigError> {
        let (setting, found) = self.find(key);
        match found.text.to_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" | "" => Ok(false),
            _ => Err(self.bad(setting, found, "true, 1, false, 0")),
        }
    }

    /// How deep research is answered; a word nobody knows is blocking, with one warning (B1).
    pub(super) fn research_mode(&mut self) -> ResearchMode {
        let (setting, found) = self.find("perplexity.enable_async_deep_research");
        match found.text.to_lowercase().as_str() {
            "true" | "1" => ResearchMode::Queued,
            "auto" => ResearchMode::Auto,
            "false" | "0" | "" => ResearchMode::Blocking,
            _ => {
                let error = self.bad(setting, found, "");
                self.warnings
                    .push(format!("{error}; using false (known are true, auto and false)"));
                ResearchMode::Blocking
            }
        }
    }

    /// An HTTP address. Credentials in it are left out, with one warning: the key is what a provider knows us by, and the
    /// address becomes part of every job's profile.
    pub(super) fn url(&mut self, key: &str) -> Result<String, ConfigError> {
        let (setting, found) = self.find(key);
        if !is_http(&found.text) {
            return Err(self.bad(
                setting,
                found,
                "an address that starts with https:// or http://",
            ));
        }
        let (scheme, rest) = found.text.split_once("://").unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let Some((_, host)) = authority.rsplit_once('@') else { return Ok(found.text) };
        let address = format!("{scheme}://{host}{path}");
        let name = found.name(setting);
        self.warnings.push(format!("the user name and password in {name} are not used"));
        Ok(address)
    }

    /// The proxy to the provider: the one named for it, else the one for all programs.
    pub(super) fn provider_proxy(&self) -> Option<ProxyOptions> {
        let own = self.text("perplexity.proxy");
        own.map(|url| self.proxy(url, ProxyScope::Everything)).or_else(|| self.common_proxy())
    }

    /// The proxy for all programs.
    pub(super) fn common_proxy(&self) -> Option<ProxyOptions> {
        self.text("network.proxy").map(|url| self.proxy(url, ProxyScope::OtherMachines))
    }

    fn proxy(&self, url: String, scope: ProxyScope) -> ProxyOptions {
        ProxyOptions { url, scope, except: self.text("network.no_proxy").unwrap_or_default() }
    }

    /// Whose jobs; a name that is safe in every store and log.
    pub(super) fn owner(&self) -> Result<String, ConfigError> {
        let (setting, found) = self.find("server.owner");
        let ok =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'@');
        if (1..=64).contains(&found.text.len()) && found.text.bytes().all(ok) {
            return Ok(found.text);
        }
        Err(self.bad(setting, found, "1 to 64 of the characters A-Z a-z 0-9 - _ . @"))
    }

    /// A filter for the log.
    pub(super) fn log(&self) -> String {
        self.text("server.log").or_else(|| self.text("perplexity.log_level")).unwrap_or_default()
    }

    /// The tool sets; those of the default that do not exist yet are left out, those named must exist.
    pub(super) fn tools(&self) -> Result<Vec<ToolSet>, ConfigError> {
        let (setting, found) = self.find("server.tools");
        let mut sets = Vec::new();
        for name in found.text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match ToolSet::named(name) {
                Ok(set) if sets.contains(&set) => {}
                Ok(set) => sets.push(set),
                Err(_) if found.source == Source::Default => {}
                Err(_) => {
                    let allowed = ToolSet::ALL.map(ToolSet::name).join(", ");
                    let text = name.to_owned();
                    return Err(self.bad(setting, Found { text, source: found.source }, allowed));
                }
            }
        }
        if sets.is_empty() {
            return Err(self.bad(setting, found, ToolSet::ALL.map(ToolSet::name).join(", ")));
        }
        Ok(sets)
    }

    /// Where jobs live.
    pub(super) fn store(&self) -> Result<StoreUrl, ConfigError> {
        let (setting, found) = self.find("store.url");
        if found.text.is_empty() {
            return Ok(StoreUrl::Sqlite(self.data_dir()?.join("outlast.db")));
        }
        match found.text.split_once(':') {
            Some(("memory", "")) => Ok(StoreUrl::Memory),
            Some(("sqlite", path)) if !path.is_empty() => Ok(StoreUrl::Sqlite(PathBuf::from(path))),
            _ => Err(self.bad(setting, found, "sqlite:FILE, memory:")),
        }
    }

    /// Where conversations are shown as files, if they are to be.
    pub(super) fn conversation_logs(&self) -> Result<Option<PathBuf>, ConfigError> {
        if !self.flag("store.mirror")? {
            return Ok(None);
        }
        match self.text("store.conversation_logs_dir") {
            Some(dir) => Ok(Some(PathBuf::from(dir))),
            None => Ok(Some(self.data_dir()?.join("conversation-logs"))),
        }
    }

    /// The directory for everything but configuration; beside the job store where there is no other.
    pub(super) fn data_dir_beside(&self, store: &StoreUrl) -> Result<PathBuf, ConfigError> {
        self.data_dir().or_else(|error| match store {
            StoreUrl::Sqlite(path) => Ok(path.parent().unwrap_or(Path::new(".")).to_owned()),
            StoreUrl::Memory => Err(error),
        })
    }

    pub(super) fn data_dir(&self) -> Result<PathBuf, ConfigError> {
        if let Some(dir) = self.text("store.data_dir") {
            return Ok(PathBuf::from(dir));
        }
        let strategy = etcetera::choose_base_strategy();
        let strategy = strategy.map_err(|error| ConfigError::NoDataDir(error.to_string()))?;
        Ok(strategy.data_dir().join("outlast"))
    }
}

/// Whether a setting is the key of a provider's account.
fn is_key(key: &str) -> bool {
    key.ends_with(".api_key")
}

/// Whether a value is one that a client was to replace: `$NAME`, `${NAME}`, `${NAME:-}`, `${env:NAME}`, `%NAME%`.
fn is_placeholder(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let between = |start: &str, end: &str| text.strip_prefix(start)?.strip_suffix(end);
    between("${", "}").is_some_and(|inside| !inside.contains('}'))
        || text.strip_prefix('$').is_some_and(is_name)
        || between("%", "%").is_some_and(is_name)
}

/// Whether this is an address with a scheme of the web's and a host.
pub(super) fn is_http(text: &str) -> bool {
    let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(super) fn environment() -> HashMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn default_file(environment: &HashMap<String, String>) -> Option<PathBuf> {
    // etcetera would do, but an empty home directory must not be an error here.
    environment.get("HOME").filter(|home| !home.is_empty())?;
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("outlast").join("outlast.toml"))
}

fn read_file(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    parse_file(path, &text)
}

/// `section.key` to value; lists become comma-separated text, as variables have them.
fn parse_file(path: &Path, text: &str) -> Result<File, ConfigError> {
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| syntax_error(path, text, &error))?;
    let definitions = workflows::parse(path, text)?;
    let mut values = HashMap::new();
    for (section, entries) in table {
        if matches!(section.as_str(), "workflow" | "upstream") {
            continue;
        }
        let toml::Value::Table(entries) = entries else {
            return Err(ConfigError::UnknownKey { path: path.to_owned(), key: section });
        };
        insert_settings(path, &section, entries, &mut values)?;
    }
    Ok(File { path: path.to_owned(), text: text.to_owned(), values, definitions })
}

/// Adds the settings of a section, and of the sections in it.
fn insert_settings(
    path: &Path,
    section: &str,
    entries: toml::Table,
    values: &mut HashMap<String, String>,
) -> Result<(), ConfigError> {
    for (name, value) in entries {
        let key = format!("{section}.{name}");
        let below = format!("{key}.");
        match value {
            toml::Value::Table(entries)
                if SETTINGS.iter().any(|setting| setting.key.starts_with(&below)) =>
            {
                insert_settings(path, &key, entries, values)?;
            }
            value if SETTINGS.iter().any(|setting| setting.key == key) => {
                values.insert(key, plain(&value));
            }
            _ => return Err(ConfigError::UnknownKey { path: path.to_owned(), key }),
        }
    }
    Ok(())
}

/// Where the file is no TOML, and why, in the parser's own words; these repeat nothing of the file.
fn syntax_error(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let at = error.span().map_or(0, |span| span.start);
    let before = text.get(..at).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    ConfigError::Syntax {
        path: path.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        why: error.message().replace('\n', "; "),
    }
}

fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
