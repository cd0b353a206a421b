//! Finds and reads outlast.toml, and splits it into settings and definitions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use toml::de::{DeTable, DeValue};

use super::definitions::{self, Definitions, line_and_column};
use super::error::{ConfigError, ConfigResult};
use super::redact::is_secret;
use super::settings;

/// The least similarity, from 0 to 1, of a known key that is suggested in place of an unknown one.
const MIN_SIMILARITY: f64 = 0.7;

/// Keys of earlier versions, each with the one that replaces it.
const RENAMED: [(&str, &str); 1] = [("server.library", "library.folders")];

/// The content of the file.
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

    /// Parses the values as `section.key` to value; lists become comma-separated text, as variables have them.
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
                return Err(explain_unknown_key(path, text, &section));
            };
            if section == "wrap" {
                // The names of tools are not settings: `Definitions` has them.
                entries.remove("tools");
            }
            insert_settings(&section, entries, &mut values)
                .map_err(|key| explain_unknown_key(path, text, &key))?;
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

    /// Returns true if the file holds values that others must not read.
    pub(super) fn has_secrets(&self) -> bool {
        settings::SETTINGS.iter().any(|setting| {
            self.values.get(setting.key).is_some_and(|value| is_secret(setting, value))
        }) || self.definitions.have_secrets()
    }
}

/// Adds the settings of a section, and of the sections in it; the error is a key without a setting.
fn insert_settings(
    section: &str,
    entries: toml::Table,
    values: &mut HashMap<String, String>,
) -> Result<(), String> {
    for (name, value) in entries {
        let key = format!("{section}.{name}");
        let below = format!("{key}.");
        match value {
            toml::Value::Table(entries)
                if settings::SETTINGS.iter().any(|setting| setting.key.starts_with(&below)) =>
            {
                insert_settings(&key, entries, values)?;
            }
            value if is_known(&key) => {
                values.insert(key, plain(&value));
            }
            _ => return Err(key),
        }
    }
    Ok(())
}

fn is_known(key: &str) -> bool {
    settings::find(key).is_some() || RENAMED.iter().any(|(old, _)| *old == key)
}

fn explain_unknown_key(path: &Path, text: &str, key: &str) -> ConfigError {
    let line = line_of(text, key).unwrap_or(1);
    ConfigError::UnknownKey {
        path: path.to_owned(),
        line,
        key: key.to_owned(),
        nearest: nearest_key(key),
    }
}

/// Returns the line of a key such as `section.name`.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let mut entries = table.get_ref();
    let mut start = 0;
    for part in key.split('.') {
        let (name, value) = entries.iter().find(|(name, _)| name.get_ref() == part)?;
        start = name.span().start;
        match value.get_ref() {
            DeValue::Table(inner) => entries = inner,
            _ => break,
        }
    }
    Some(line_and_column(text, start).0)
}

/// Returns the known key that is most similar to an unknown one, if any is similar.
fn nearest_key(key: &str) -> Option<&'static str> {
    let by_similarity = settings::SETTINGS
        .iter()
        .map(|setting| (strsim::normalized_damerau_levenshtein(key, setting.key), setting.key));
    let (similarity, nearest) =
        by_similarity.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (similarity >= MIN_SIMILARITY).then_some(nearest)
}

/// Returns the path of the file in the user's own directory.
pub(super) fn default_path(environment: &HashMap<String, String>) -> Option<PathBuf> {
    // etcetera would do this, but an empty home directory must not be an error here.
    environment.get("HOME").filter(|home| !home.is_empty())?;
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("outlast").join("outlast.toml"))
}

/// Returns the position at which the file is not TOML, and the parser's message, which repeats nothing of the file.
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
