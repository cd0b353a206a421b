//! Settings of `serve --http`: the callers, the host names, and the rate limits.

use std::fmt;
use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use outlast_server::{BadToken, Hosts, Origins, Token, Tokens, TrustedProxies};

use super::error::{ConfigError, ConfigResult};
use super::layers::{FoundValue, Layers};
use super::oauth::Oauth;
use super::settings;

/// The owner of the token that is created at first start: also the default owner of stdio and the command line.
pub(crate) const LOCAL: &str = "local";

/// The part of the configuration that only `serve --http` needs.
#[derive(Debug)]
pub(crate) struct Http {
    pub(crate) tokens: TokenSources,
    /// The names to which the server answers, if any are configured.
    pub(crate) hosts: Option<Hosts>,
    pub(crate) origins: Origins,
    /// The proxies that report the client of a request that they pass on.
    pub(crate) trusted_proxies: TrustedProxies,
    /// The address under which people reach this server.
    pub(crate) public_url: Option<String>,
    pub(crate) rate_per_minute: NonZeroU32,
    /// The issuer of access tokens.
    pub(crate) oauth: Option<Oauth>,
    /// The file of the token that is created at first start, if there is a data directory.
    token_file: Option<PathBuf>,
}

impl Http {
    /// Returns the token of a server without a configured one, created when it is first needed, and its file.
    pub(crate) fn own_token(&self) -> ConfigResult<(Tokens, &Path)> {
        let Some(path) = &self.token_file else {
            return Err(ConfigError::NoDataDir("the server's own token has no place".to_owned()));
        };
        let unusable = |why: String| ConfigError::BadTokens {
            name: "the server's own token".to_owned(),
            source_name: path.display().to_string(),
            why,
        };
        if !path.exists() {
            make_token(path).map_err(|error| unusable(format!("it cannot be made: {error}")))?;
        }
        let text = read_private(path).map_err(unusable)?;
        let mut tokens = Tokens::default();
        add(&mut tokens, LOCAL, text.trim()).map_err(|why| unusable(why.to_string()))?;
        Ok((tokens, path))
    }
}

/// Writes a new token in one step: the file always has a whole token, and of two servers that start together one wins.
fn make_token(path: &Path) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random).map_err(std::io::Error::other)?;
    let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    // From the start, only its owner can read it.
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    writeln!(file, "{token}")?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

/// Parses an address without a query, and removes a slash at its end.
fn public_url(given: &str) -> Option<String> {
    let url = given.trim_end_matches('/');
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let is_plain = |c: char| c.is_ascii_graphic() && !"?#\"'<>\\@".contains(c);
    (!rest.is_empty() && !rest.starts_with('/') && rest.chars().all(is_plain))
        .then(|| url.to_owned())
}

impl Layers {
    pub(super) fn http(&self) -> ConfigResult<Http> {
        let hosts = match self.is_set(settings::SERVER_ALLOWED_HOSTS) {
            false => None,
            true => Some(self.parsed(
                settings::SERVER_ALLOWED_HOSTS,
                "host names or addresses, each perhaps with a :port, separated by commas",
                |list| Hosts::parse(list).ok(),
            )?),
        };
        let origins = self.parsed(
            settings::SERVER_ALLOWED_ORIGINS,
            "origins such as https://app.example, or null, separated by commas",
            |list| Origins::parse(list).ok(),
        )?;
        let trusted_proxies = self.parsed(
            settings::SERVER_TRUSTED_PROXIES,
            "addresses or networks such as 10.0.0.0/8, separated by commas",
            |list| TrustedProxies::parse(list).ok(),
        )?;
        let public_url = match self.is_set(settings::SERVER_PUBLIC_URL) {
            false => None,
            true => Some(self.parsed(
                settings::SERVER_PUBLIC_URL,
                "the http or https address under which people reach this server, such as https://research.example",
                public_url,
            )?),
        };
        let rate: u32 = self.number(settings::LIMITS_RATE_PER_MINUTE, 1..=1_000_000)?;
        Ok(Http {
            tokens: TokenSources {
                list: self.find(settings::SERVER_TOKENS),
                file: self.find(settings::SERVER_TOKENS_FILE),
            },
            hosts,
            origins,
            trusted_proxies,
            public_url,
            oauth: self.oauth()?,
            rate_per_minute: NonZeroU32::new(rate).unwrap_or(NonZeroU32::MIN),
            token_file: self.data_dir().ok().map(|dir| dir.join("http-token")),
        })
    }
}

/// The configured sources of tokens. Read when they are needed: other commands must not fail because of them.
pub(crate) struct TokenSources {
    list: FoundValue,
    file: FoundValue,
}

impl fmt::Debug for TokenSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl TokenSources {
    /// Reads all configured tokens; there may be none.
    pub(crate) fn read(&self) -> ConfigResult<Tokens> {
        let mut tokens = Tokens::default();
        let found = &self.list;
        for entry in found.text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, token) = entry.split_once('=').unwrap_or(("", entry));
            add(&mut tokens, name.trim(), token.trim())
                .map_err(|why| bad_tokens(found, why.to_string()))?;
        }
        let found = &self.file;
        if !found.text.is_empty() {
            let unusable = |why: String| bad_tokens(found, why);
            let text = read_private(Path::new(&found.text)).map_err(unusable)?;
            let lines = text.lines().map(str::trim).enumerate();
            for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
                let (name, token) = line.split_once(char::is_whitespace).unwrap_or(("", line));
                add(&mut tokens, name, token.trim())
                    .map_err(|why| unusable(format!("line {}: {why}", at + 1)))?;
            }
        }
        Ok(tokens)
    }
}

fn add(tokens: &mut Tokens, name: &str, token: &str) -> Result<(), BadToken> {
    tokens.add(Token::new(name, token)?)
}

fn bad_tokens(found: &FoundValue, why: String) -> ConfigError {
    ConfigError::BadTokens { name: found.name(), source_name: found.source.to_string(), why }
}

/// Reads a file that only its owner can read.
pub(super) fn read_private(path: &Path) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let mut file = std::fs::File::open(path).map_err(cannot)?;
    // Checked on the open file, so that the checked file is the one that is read.
    let mode = file.metadata().map_err(cannot)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(format!(
            "{} has mode {:04o}; others could read it, so it must be 0600",
            path.display(),
            mode & 0o7777
        ));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(cannot)?;
    Ok(text)
}
