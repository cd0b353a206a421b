//! outlast.toml: found, read and taken apart into settings and definitions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use super::definitions::{self, Definitions, line_and_column};
use super::error::{ConfigError, ConfigResult};
use super::redact::is_secret;
use super::settings::SETTINGS;

/// Keys of earlier versions, each with the one that replaces it.
const RENAMED: [(&str, &str); 1] = [("server.library", "library.folders")];

/// The file as it was read.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// `section.key` to value.
    pub(super) values: HashMap<String, String>,
    /// Keys of earlier versions that are in it, each with the one that replaces it.
    pub(super) renamed: Vec<(&'static str, &'static str)>,
    pub(super) definitions: Definitions,
}

impl ConfigFile {
    pub(super) fn read(path: &Path) -> ConfigResult<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        Self::parse(path, &text)
    }

    /// `section.key` to value; lists become comma-separated text, as variables have them.
    pub(super) fn parse(path: &Path, text: &str) -> ConfigResult<Self> {
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| syntax_error(path, text, &error))?;
        let definitions = definitions::parse(path, text)?;
        let mut values = HashMap::new();
        for (section, entries) in table {
            if matches!(section.as_str(), "workflow" | "upstream") {
                continue;
            }
            let toml::Value::Table(mut entries) = entries else {
                return Err(ConfigError::UnknownKey { path: path.to_owned(), key: section });
            };
            if section == "wrap" {
                // The names of tools are no settings: `Definitions` has them.
                entries.remove("tools");
            }
            insert_settings(path, &section, entries, &mut values)?;
        }
        let mut renamed = Vec::new();
        for (old, new) in RENAMED {
            if let Some(value) = values.remove(old) {
                values.entry(new.to_owned()).or_insert(value);
                renamed.push((old, new));
            }
        }
        Ok(Self { path: path.to_owned(), text: text.to_owned(), values, renamed, definitions })
    }

    /// Whether it holds what others must not read.
    pub(super) fn has_secrets(&self) -> bool {
        self.values.iter().any(|(key, value)| is_secret(key, value))
            || self.definitions.have_secrets()
    }
}

/// Adds the settings of a section, and of the sections in it.
fn insert_settings(
    path: &Path,
    section: &str,
    entries: toml::Table,
    values: &mut HashMap<String, String>,
) -> ConfigResult<()> {
    for (name, value) in entries {
        let key = format!("{section}.{name}");
        let below = format!("{key}.");
        match value {
            toml::Value::Table(entries)
                if SETTINGS.iter().any(|setting| setting.key.starts_with(&below)) =>
            {
                insert_settings(path, &key, entries, values)?;
            }
            value if is_known(&key) => {
                values.insert(key, plain(&value));
            }
            _ => return Err(ConfigError::UnknownKey { path: path.to_owned(), key }),
        }
    }
    Ok(())
}

fn is_known(key: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.key == key) || RENAMED.iter().any(|(old, _)| *old == key)
}

/// The file in the user's own directory.
pub(super) fn default_path(environment: &HashMap<String, String>) -> Option<PathBuf> {
    // etcetera would do, but an empty home directory must not be an error here.
    environment.get("HOME").filter(|home| !home.is_empty())?;
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("outlast").join("outlast.toml"))
}

/// Where the file is no TOML, and why, in the parser's own words; these repeat nothing of the file.
fn syntax_error(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let (line, column) = line_and_column(text, error.span().map_or(0, |span| span.start));
    let why = error.message().replace('\n', "; ");
    ConfigError::Syntax { path: path.to_owned(), line, column, why }
}

fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
