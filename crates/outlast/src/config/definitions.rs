//! Workflows, upstream servers and `[notify]` as written in outlast.toml, each value with its place in the file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::error::{ConfigError, ConfigResult};
use crate::duration::DurationValue;

/// A value with its place, if the file has it.
pub(super) type PlacedValue<T> = Option<Spanned<T>>;

/// The definitions in the file.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Definitions {
    #[serde(default)]
    pub(super) workflow: Vec<WorkflowEntry>,
    #[serde(default)]
    pub(super) upstream: BTreeMap<Spanned<String>, UpstreamEntry>,
    pub(super) notify: Option<NotifyEntry>,
    pub(super) wrap: Option<WrapEntry>,
}

/// The other keys of the section are settings like those of every other section.
#[derive(Debug, Deserialize)]
pub(super) struct WrapEntry {
    #[serde(default)]
    pub(super) tools: BTreeMap<String, Spanned<DurationValue>>,
}

/// Unknown keys are refused together with those of every other section.
#[derive(Debug, Deserialize)]
pub(super) struct NotifyEntry {
    pub(super) command: PlacedValue<Vec<String>>,
    pub(super) pass_env: PlacedValue<Vec<String>>,
    pub(super) url: PlacedValue<String>,
    pub(super) secret: PlacedValue<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkflowEntry {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    pub(super) command: PlacedValue<Vec<String>>,
    pub(super) tool: PlacedValue<String>,
    pub(super) timeout: PlacedValue<DurationValue>,
    pub(super) retries: PlacedValue<u32>,
    #[serde(default)]
    pub(super) rerun_after_crash: bool,
    pub(super) steps: PlacedValue<bool>,
    pub(super) message_argument: PlacedValue<String>,
    pub(super) reset_timeout_on_progress: PlacedValue<bool>,
    pub(super) max_total_timeout: PlacedValue<DurationValue>,
    pub(super) cwd: PlacedValue<PathBuf>,
    pub(super) env: PlacedValue<BTreeMap<String, String>>,
    pub(super) pass_env: PlacedValue<Vec<String>>,
    pub(super) input_schema: PlacedValue<toml::Value>,
    pub(super) input_schema_file: PlacedValue<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpstreamEntry {
    pub(super) command: PlacedValue<Vec<String>>,
    pub(super) url: PlacedValue<String>,
    pub(super) headers: PlacedValue<BTreeMap<String, String>>,
    pub(super) bearer_env: PlacedValue<String>,
    pub(super) cwd: PlacedValue<PathBuf>,
    pub(super) env: PlacedValue<BTreeMap<String, String>>,
    pub(super) pass_env: PlacedValue<Vec<String>>,
}

/// Reads the definitions; the settings are read elsewhere.
pub(super) fn parse(path: &Path, text: &str) -> ConfigResult<Definitions> {
    toml::from_str(text).map_err(|error| {
        let at = FilePlace { path, text };
        let span = error.span().unwrap_or_default();
        at.wrong(&span, &at.key(&span), what_is_wrong(error.message()))
    })
}

/// Returns the parser's message about a value, without the value, which may be secret: `invalid type: string "...",
/// expected a map`.
fn what_is_wrong(message: &str) -> String {
    match message.rfind(", expected ") {
        Some(at) if message.starts_with("invalid ") => {
            let kind = message.split(':').next().unwrap_or_default();
            format!("{kind}: {}", &message[at + ", ".len()..])
        }
        _ => message.to_owned(),
    }
}

impl Definitions {
    /// Returns true if a header or a variable is set in the file; any of them may be a secret.
    pub(super) fn have_secrets(&self) -> bool {
        let upstreams = self.upstream.values();
        self.workflow.iter().any(|workflow| workflow.env.is_some())
            || upstreams.into_iter().any(|it| it.env.is_some() || it.headers.is_some())
    }
}

/// The file and the position in it, for error messages.
pub(super) struct FilePlace<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl FilePlace<'_> {
    pub(super) fn wrong(
        &self,
        at: &Range<usize>,
        key: &str,
        why: impl Into<String>,
    ) -> ConfigError {
        let (line, _) = line_and_column(self.text, at.start);
        let (path, key) = (self.path.to_owned(), key.to_owned());
        ConfigError::BadEntry { path, line, key, why: why.into() }
    }

    /// Returns the key before the `=` of a line, if it is a plain key; a part of a value is not repeated.
    fn key(&self, span: &Range<usize>) -> String {
        let before = self.text.get(..span.start).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[start..].lines().next().unwrap_or_default();
        let key = line.split_once('=').map_or("", |(key, _)| key.trim());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_plain = !key.is_empty() && key.bytes().all(plain);
        if is_plain { key.to_owned() } else { "an entry".to_owned() }
    }
}

/// Returns the line and column of a byte in a text, counted from one.
pub(crate) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
    (before.matches('\n').count() + 1, column)
}
