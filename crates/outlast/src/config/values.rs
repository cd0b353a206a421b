//! Converts the values of the layers to the types that the program uses.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use outlast_core::{NanoUsd, Profile};
use outlast_provider::http::{ProxyOptions, ProxyScope};
use outlast_server::{ResearchMode, ToolSet};
use outlast_store::{ConnectionDefaults, ConnectionLimits};

use super::error::{ConfigError, ConfigResult};
use super::layers::{Layers, ValueSource, is_placeholder};
use super::redact::is_http;
use super::settings::{self, Setting};
use super::{Dialect, ResearchProvider, Secret, StoreUrl};

impl Layers {
    /// Returns the API key of a provider. A placeholder that a client did not replace by a key counts as not set (P2):
    /// there is one warning, and the next layer is used.
    pub(super) fn api_key(&mut self, setting: &'static Setting) -> Option<Secret> {
        let found = self.find(setting);
        let placeholders = self.set(setting).filter(|found| is_placeholder(&found.text));
        let sources: Vec<_> = placeholders.map(|found| found.source.to_string()).collect();
        if !sources.is_empty() {
            self.warnings.push(format!(
                "{} from {} is a placeholder that was not replaced, and counts as not set",
                setting.key,
                sources.join(" and from ")
            ));
        }
        (!found.text.is_empty()).then_some(Secret(found.text))
    }

    /// Returns paths, separated as the system separates them; a list in the file.
    pub(super) fn paths(&self, setting: &'static Setting) -> Vec<PathBuf> {
        let found = self.find(setting);
        let split: Vec<PathBuf> = match &found.source {
            ValueSource::File(_) => found.text.split(',').map(PathBuf::from).collect(),
            ValueSource::Flag(_) | ValueSource::Variable(_) | ValueSource::Default => {
                std::env::split_paths(&found.text).collect()
            }
        };
        split.into_iter().filter(|path| !path.as_os_str().is_empty()).collect()
    }

    /// Returns a program: its name or its path.
    pub(super) fn program(&self, setting: &'static Setting) -> ConfigResult<PathBuf> {
        self.parsed(setting, "the name of a program, or an absolute path", |text| {
            let program = PathBuf::from(text);
            (program.is_absolute() || !text.contains('/')).then_some(program)
        })
    }

    /// Returns the API that is used at the provider.
    pub(super) fn dialect(&self) -> ConfigResult<Dialect> {
        self.parsed(settings::PERPLEXITY_API, "agent, sonar", |text| match text {
            "agent" => Some(Dialect::Agent),
            "sonar" => Some(Dialect::Sonar),
            _ => None,
        })
    }

    /// Returns a whole number in a range.
    pub(super) fn number(
        &self,
        setting: &'static Setting,
        range: RangeInclusive<u32>,
    ) -> ConfigResult<u32> {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let within = |text: &str| text.parse().ok().filter(|number| range.contains(number));
        self.parsed(setting, &allowed, within)
    }

    /// Returns a number of bytes, or of KiB, MiB or GiB.
    pub(super) fn bytes(&self, setting: &'static Setting) -> ConfigResult<u64> {
        let allowed = "a number of bytes above 0, or one with KiB, MiB or GiB";
        self.parsed(setting, allowed, |text| {
            let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
            let with_unit = |(unit, shift)| Some((text.strip_suffix(unit)?, shift));
            let (number, shift) = units.into_iter().find_map(with_unit).unwrap_or((text, 0));
            let number = number.trim_end().parse::<u64>().ok()?;
            number.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
        })
    }

    /// Returns US dollars, if any are set.
    pub(super) fn dollars(&self, setting: &'static Setting) -> ConfigResult<Option<NanoUsd>> {
        let allowed = "US dollars such as 5 or 0.25, with at most nine decimals";
        self.parsed(setting, allowed, |text| match text {
            "" => Some(None),
            text => NanoUsd::parse(text).map(Some),
        })
    }

    /// Returns milliseconds; a value that is not a positive number is replaced by the default with one warning (A6).
    pub(super) fn millis(&mut self, setting: &'static Setting) -> Duration {
        let default = self.find(setting).setting.default.parse().unwrap_or(1);
        self.millis_or(setting, Duration::from_millis(default))
    }

    /// Returns the same with a default that depends on other settings.
    pub(super) fn millis_or(&mut self, setting: &'static Setting, default: Duration) -> Duration {
        let found = self.find(setting);
        let parsed = found.text.parse::<u64>().ok().filter(|millis| *millis > 0);
        let Some(millis) = parsed else {
            let default_ms = default.as_millis();
            self.warnings.push(format!("{}; using {default_ms} ms", found.bad("")));
            return default;
        };
        // A year is long enough for any wait, and sums of years do not overflow.
        Duration::from_millis(millis.min(365 * 24 * 60 * 60 * 1000))
    }

    /// Returns milliseconds; a value that is not a positive number is refused.
    pub(super) fn duration(&self, setting: &'static Setting) -> ConfigResult<Duration> {
        let millis = self.number(setting, 1..=u32::MAX)?;
        Ok(Duration::from_millis(millis.into()))
    }

    /// Returns whole seconds; a number out of bounds is brought into them with one warning, anything else is refused.
    pub(super) fn seconds_within(
        &mut self,
        setting: &'static Setting,
        range: RangeInclusive<u32>,
    ) -> ConfigResult<Duration> {
        let found = self.find(setting);
        let (least, most) = (f64::from(*range.start()), f64::from(*range.end()));
        let Some(number) = found.text.parse::<f64>().ok().filter(|number| number.is_finite())
        else {
            return Err(found.bad(format!("a number of seconds from {least} to {most}")));
        };
        let within = number.round().clamp(least, most);
        if within != number {
            self.warnings.push(format!(
                "{} = `{}` (from {}) is no whole number from {least} to {most}; using {within}",
                found.name(),
                found.text,
                found.source
            ));
        }
        Ok(Duration::from_secs_f64(within))
    }

    /// Returns a switch.
    pub(super) fn flag(&self, setting: &'static Setting) -> ConfigResult<bool> {
        self.parsed(setting, "true, 1, false, 0", |text| match text.to_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" | "" => Some(false),
            _ => None,
        })
    }

    /// Returns the mode of deep research; an unknown word means blocking, with one warning (B1). Of its two names the
    /// new one counts.
    pub(super) fn research_mode(&mut self) -> ResearchMode {
        let [found, old] =
            [settings::SERVER_ASYNC_RESEARCH, settings::PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH]
                .map(|setting| self.find(setting));
        let found = match (self.is_set(found.setting), self.is_set(old.setting)) {
            (false, true) => old,
            (true, true) if !found.text.eq_ignore_ascii_case(&old.text) => {
                self.warnings.push(format!(
                    "{} = `{}` and {} = `{}` are the old and the new name of one setting; {} counts",
                    old.name(),
                    old.text,
                    found.name(),
                    found.text,
                    found.name()
                ));
                found
            }
            _ => found,
        };
        match found.text.to_lowercase().as_str() {
            "true" | "1" => ResearchMode::Queued,
            "auto" => ResearchMode::Auto,
            "false" | "0" | "" => ResearchMode::Blocking,
            _ => {
                let error = found.bad("");
                self.warnings
                    .push(format!("{error}; using false (known are true, auto and false)"));
                ResearchMode::Blocking
            }
        }
    }

    /// Returns an HTTP address. Credentials in it are removed, with one warning: the key identifies us to the provider,
    /// and the address becomes part of every job's profile.
    pub(super) fn url(&mut self, setting: &'static Setting) -> ConfigResult<String> {
        let found = self.find(setting);
        if !is_http(&found.text) {
            return Err(found.bad("an address that starts with https:// or http://"));
        }
        let (scheme, rest) = found.text.split_once("://").unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let Some((_, host)) = authority.rsplit_once('@') else { return Ok(found.text) };
        self.warnings.push(format!("the user name and password in {} are not used", found.name()));
        Ok(format!("{scheme}://{host}{path}"))
    }

    /// Returns the proxy to a provider: the one named for it, otherwise the one for all programs.
    pub(super) fn provider_proxy(&self, setting: &'static Setting) -> Option<ProxyOptions> {
        let own = self.text(setting);
        own.map(|url| self.proxy(url, ProxyScope::Everything)).or_else(|| self.common_proxy())
    }

    /// Returns the proxy for all programs.
    pub(super) fn common_proxy(&self) -> Option<ProxyOptions> {
        self.text(settings::NETWORK_PROXY).map(|url| self.proxy(url, ProxyScope::OtherMachines))
    }

    fn proxy(&self, url: String, scope: ProxyScope) -> ProxyOptions {
        ProxyOptions {
            url,
            scope,
            except: self.text(settings::NETWORK_NO_PROXY).unwrap_or_default(),
        }
    }

    /// Returns the owner of the jobs; a name that is safe in every store and log.
    pub(super) fn owner(&self) -> ConfigResult<String> {
        let allowed = "1 to 64 of the characters A-Z a-z 0-9 - _ . @";
        self.parsed(settings::SERVER_OWNER, allowed, |text| {
            let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
            let fits = (1..=64).contains(&text.len()) && text.bytes().all(is_safe);
            fits.then(|| text.to_owned())
        })
    }

    /// Returns a filter for the log.
    pub(super) fn log(&self) -> String {
        self.text(settings::SERVER_LOG)
            .or_else(|| self.text(settings::PERPLEXITY_LOG_LEVEL))
            .unwrap_or_default()
    }

    /// Returns the tool sets; if none is named, those that suit the provider that is asked first (G2).
    pub(super) fn tools(&self, first: Option<&ResearchProvider>) -> ConfigResult<Vec<ToolSet>> {
        if self.find(settings::SERVER_TOOLS).source == ValueSource::Default {
            let research = match first {
                Some(provider) if provider.name() != Profile::PERPLEXITY => ToolSet::DeepResearch,
                Some(_) | None => ToolSet::Research,
            };
            return Ok(vec![research, ToolSet::ResearchJobs]);
        }
        let allowed = ToolSet::ALL.map(ToolSet::name).join(", ");
        let mut sets = Vec::new();
        for set in
            self.list(settings::SERVER_TOOLS, &allowed, |name| ToolSet::from_name(name).ok())?
        {
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        Ok(sets)
    }

    /// Returns a list separated by commas, in which each item must be one of those allowed; at least one.
    pub(super) fn list<T>(
        &self,
        setting: &'static Setting,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> ConfigResult<Vec<T>> {
        let mut found = self.find(setting);
        let mut list = Vec::new();
        for name in found.text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let Some(parsed) = parse(name) else {
                found.text = name.to_owned();
                return Err(found.bad(allowed));
            };
            list.push(parsed);
        }
        if list.is_empty() { Err(found.bad(allowed)) } else { Ok(list) }
    }

    /// Returns the location of the job store.
    pub(super) fn store(&self) -> ConfigResult<StoreUrl> {
        if self.text(settings::STORE_URL).is_none() {
            return Ok(StoreUrl::Sqlite(self.data_dir()?.join("outlast.db")));
        }
        let found = self.find(settings::STORE_URL);
        StoreUrl::parse(&found.text, &self.connection_defaults()).map_err(|why| found.bad(why))
    }

    /// Returns the settings of database connections that PostgreSQL's own programs take from the environment.
    pub(super) fn connection_defaults(&self) -> ConnectionDefaults {
        let usual = || Some(PathBuf::from(self.environment.get("HOME")?).join(".pgpass"));
        ConnectionDefaults {
            password: self.text(settings::STORE_PASSWORD),
            ssl_mode: self.text(settings::STORE_SSLMODE),
            password_file: self
                .text(settings::STORE_PASSWORD_FILE)
                .map(PathBuf::from)
                .or_else(usual),
        }
    }

    /// Returns the time for which running jobs may continue after SIGTERM.
    pub(super) fn drain_timeout(&self) -> ConfigResult<Duration> {
        self.duration_within(settings::SERVER_DRAIN_TIMEOUT, 0..=86_400)
    }

    /// Returns the time for which pages and notes of ended runs are kept.
    pub(super) fn keep_pages(&self) -> ConfigResult<Duration> {
        self.duration_within(settings::RESEARCHER_KEEP_PAGES, 0..=3_650 * 86_400)
    }

    fn duration_within(
        &self,
        setting: &'static Setting,
        range: RangeInclusive<u64>,
    ) -> ConfigResult<Duration> {
        let allowed = format!("a duration from {} s to {} s", range.start(), range.end());
        self.parsed(setting, &allowed, |text| {
            let duration = crate::duration::parse(text).ok()?;
            range.contains(&duration.as_secs()).then_some(duration)
        })
    }

    /// Returns the limits of database connections.
    pub(super) fn connection_limits(&self) -> ConfigResult<ConnectionLimits> {
        Ok(ConnectionLimits {
            connect: self.duration_within(settings::STORE_CONNECT_TIMEOUT, 0..=86_400)?,
            statement: self.duration_within(settings::STORE_STATEMENT_TIMEOUT, 1..=3_600)?,
            pool_size: self.number(settings::STORE_POOL_SIZE, 2..=500)? as usize,
        })
    }

    /// Returns the folder in which conversations are written as files, if they are to be. For a store of many machines
    /// the folder must be set explicitly.
    pub(super) fn conversation_logs(&self, store: &StoreUrl) -> ConfigResult<Option<PathBuf>> {
        if !self.flag(settings::STORE_MIRROR)? {
            return Ok(None);
        }
        match self.text(settings::STORE_CONVERSATION_LOGS_DIR) {
            Some(dir) => Ok(Some(PathBuf::from(dir))),
            None if matches!(store, StoreUrl::Postgres(_)) => Ok(None),
            None => Ok(Some(self.data_dir()?.join("conversation-logs"))),
        }
    }

    /// Returns the directory for everything but configuration; next to the job store if there is no other.
    pub(super) fn data_dir_beside(&self, store: &StoreUrl) -> ConfigResult<PathBuf> {
        self.data_dir().or_else(|error| match store {
            StoreUrl::Sqlite(path) => Ok(path.parent().unwrap_or(Path::new(".")).to_owned()),
            StoreUrl::Memory | StoreUrl::Postgres(_) => Err(error),
        })
    }

    /// Returns the user's state directory as XDG defines it. Relative paths do not count.
    pub(super) fn state_dir(&self) -> Option<PathBuf> {
        let absolute = |name: &str| {
            self.environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let base = absolute("XDG_STATE_HOME")
            .or_else(|| Some(absolute("HOME")?.join(".local").join("state")))?;
        Some(base.join("outlast"))
    }

    pub(super) fn data_dir(&self) -> ConfigResult<PathBuf> {
        if let Some(dir) = self.text(settings::STORE_DATA_DIR) {
            return Ok(PathBuf::from(dir));
        }
        let strategy = etcetera::choose_base_strategy();
        let strategy = strategy.map_err(|error| ConfigError::NoDataDir(error.to_string()))?;
        Ok(strategy.data_dir().join("outlast"))
    }
}
