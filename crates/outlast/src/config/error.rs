//! The reasons why the configuration cannot be used, each with a correct value.

use std::path::PathBuf;

pub(crate) type ConfigResult<T> = Result<T, ConfigError>;

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A value is not one of those allowed.
    #[error("{name} = `{value}` (from {source_name}) is not allowed")]
    BadValue { name: String, value: String, source_name: String, allowed: String },
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    /// The file is not TOML. Never shows its text: the line may hold a key.
    #[error("the configuration file {}, line {line}, column {column}: {why}", path.display())]
    Syntax { path: PathBuf, line: usize, column: usize, why: String },
    /// The file has a key that is not in the table of settings.
    #[error("the configuration file {}, line {line}: unknown key `{key}`", path.display())]
    UnknownKey { path: PathBuf, line: usize, key: String, nearest: Option<&'static str> },
    /// A mistake in the definition of a workflow or an upstream server.
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
    /// Returns a hint with a correct value.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::BadValue { allowed, .. } => format!("allowed: {allowed}"),
            Self::Unreadable { .. } | Self::Syntax { .. } => "fix the file, or name another with --config".to_owned(),
            Self::UnknownKey { nearest: Some(nearest), .. } => {
                format!("did you mean `{nearest}`? `outlast config show` lists every key")
            }
            Self::UnknownKey { nearest: None, .. } => {
                "`outlast config show` lists every key".to_owned()
            }
            Self::BadEntry { .. } => "docs/configuration.md lists every key".to_owned(),
            Self::BadTokens { .. } => {
                "OUTLAST_TOKENS is name=token,name=token; OUTLAST_TOKENS_FILE holds a line `name token` for each, \
                 and only its owner may read it: chmod 600"
                    .to_owned()
            }
            Self::NoDataDir(_) => "set OUTLAST_DATA_DIR, or give --data-dir".to_owned(),
        }
    }
}
