//! The reasons why the configuration cannot be used, each with a correct value.

use std::path::PathBuf;

use crate::error::documentation;

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
    /// A setting needs another one.
    #[error("{name} {why}")]
    Incomplete { name: String, why: String, fix: String },
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
            Self::BadEntry { why, .. } => match nearest_field(why) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("{} lists every key", documentation("configuration.md")),
            },
            Self::BadTokens { .. } => {
                "OUTLAST_TOKENS is name=token,name=token; OUTLAST_TOKENS_FILE holds a line `name token` for each, \
                 and only its owner may read it: chmod 600"
                    .to_owned()
            }
            Self::Incomplete { fix, .. } => fix.clone(),
            Self::NoDataDir(_) => "set OUTLAST_DATA_DIR, or give --data-dir".to_owned(),
        }
    }
}

/// Returns the field that is most similar to the unknown one in the parser's message: "unknown field `a`, expected one of
/// `b`, `c`".
fn nearest_field(why: &str) -> Option<&str> {
    let mut names = why.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    let by_similarity =
        names.map(|name| (strsim::normalized_damerau_levenshtein(unknown, name), name));
    let (similarity, nearest) =
        by_similarity.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (similarity >= 0.6).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_of_a_table_has_a_nearest_one() {
        let hint = |why: &str| {
            let (path, key) = (PathBuf::from("outlast.toml"), "x".to_owned());
            ConfigError::BadEntry { path, line: 3, key, why: why.to_owned() }.hint()
        };
        let unknown =
            "unknown field `descriptionn`, expected one of `name`, `description`, `command`";
        assert_eq!(hint(unknown), "did you mean `description`?");
        for why in ["unknown field `zz`, expected `name` or `command`", "is given twice"] {
            assert!(hint(why).starts_with("https://") && !hint(why).contains(" docs/"), "{why}");
        }
    }
}
