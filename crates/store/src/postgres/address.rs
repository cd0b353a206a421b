//! The address of a database: parsed as the driver does, and displayed without its password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::password_file::{self, PasswordQuery};

/// Connection settings from sources other than the address. The address takes precedence.
#[derive(Clone, Default)]
pub struct ConnectionDefaults {
    /// The password, for example from `PGPASSWORD`.
    pub password: Option<String>,
    /// The `sslmode`, for example from `PGSSLMODE`.
    pub ssl_mode: Option<String>,
    /// A password file in the format of `.pgpass`.
    pub password_file: Option<PathBuf>,
}

/// Without the password.
impl fmt::Debug for ConnectionDefaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { password: _, ssl_mode, password_file } = self;
        let mut shown = f.debug_struct("ConnectionDefaults");
        shown.field("ssl_mode", ssl_mode).field("password_file", password_file);
        shown.finish_non_exhaustive()
    }
}

/// The reason why an address cannot be used. It never repeats the address, which may contain a password.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The address has a second `@` before the name of the database.
    #[error("the address has an `@` in its host: write an `@` in the password as %40")]
    AtInHost,
    /// The driver cannot parse the address.
    #[error("the address of the database cannot be read: {0}")]
    Unreadable(String),
    /// The value of `sslmode` is unknown.
    #[error("sslmode={0} is not known: use disable, prefer, require or verify-full")]
    UnknownSslMode(String),
    /// A value is not valid percent-encoded UTF-8.
    #[error("the value of {0} in the address is not valid percent-encoded text")]
    BadEncoding(&'static str),
}

/// The parts of an address. The credentials end at the first `@`, as in the driver, so a password may contain `/`, `?` and
/// `#`.
struct Parts<'a> {
    scheme: &'a str,
    credentials: Option<&'a str>,
    /// The hosts and the name of the database.
    place: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    fn split(address: &'a str) -> Result<Self, AddressError> {
        let (scheme, rest) = address
            .split_once("://")
            .ok_or_else(|| AddressError::Unreadable("it has no scheme".to_owned()))?;
        let (credentials, rest) = match rest.split_once('@') {
            Some((credentials, rest)) => (Some(credentials), rest),
            None => (None, rest),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        if place.split('/').next().is_some_and(|hosts| hosts.contains('@')) {
            return Err(AddressError::AtInHost);
        }
        let parameters = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .collect();
        Ok(Self { scheme, credentials, place, parameters })
    }

    fn join(&self, credentials: Option<&str>, keep: impl Fn(&str) -> bool) -> String {
        let credentials = credentials.map(|text| format!("{text}@")).unwrap_or_default();
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .filter(|(name, _)| keep(name))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let query = if parameters.is_empty() {
            String::new()
        } else {
            format!("?{}", parameters.join("&"))
        };
        format!("{}://{credentials}{}{query}", self.scheme, self.place)
    }
}

/// Returns the address without its password. Returns `None` if the address is unreadable; then no part of it may be
/// displayed.
pub fn without_password(address: &str) -> Option<String> {
    read(address).ok()?;
    let parts = Parts::split(address).ok()?;
    let user = parts.credentials.map(|credentials| credentials.split(':').next().unwrap_or(""));
    let user = user.filter(|user| !user.is_empty());
    Some(parts.join(user, |name| !decode(name).is_ok_and(|name| name.ends_with("password"))))
}

/// The values of `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disable,
    Prefer,
    Require,
    VerifyFull,
}

impl TlsMode {
    fn parse(value: &str) -> Result<Self, AddressError> {
        match decode(value).map_err(|()| bad("sslmode"))?.as_str() {
            "disable" => Ok(Self::Disable),
            "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            "verify-full" => Ok(Self::VerifyFull),
            other => Err(AddressError::UnknownSslMode(other.chars().take(20).collect())),
        }
    }
}

/// The TLS mode and files, which the driver does not read.
#[derive(Debug, Default)]
pub(super) struct TlsSettings {
    pub(super) mode: Option<TlsMode>,
    pub(super) roots: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// Parameters that the driver must not see: it supports neither `verify-full` nor files, and would fall back to plain text.
const TLS_PARAMETERS: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];

/// Adds the defaults that an address does not set itself.
pub fn with_defaults(address: &str, defaults: &ConnectionDefaults) -> Result<String, AddressError> {
    let (config, tls) = read(address)?;
    let in_file = || {
        let file = defaults.password_file.as_ref()?;
        password_file::find(file, &read_wanted(&config))
    };
    let password = match config.get_password() {
        Some(_) => None,
        None => defaults.password.clone().or_else(in_file),
    };
    let ssl_mode = defaults.ssl_mode.clone().filter(|_| tls.mode.is_none());
    let encoded = |value: String| utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string();
    let (password, ssl_mode) = (password.map(encoded), ssl_mode.map(encoded));
    let mut parts = Parts::split(address)?;
    parts.parameters.extend(password.as_deref().map(|password| ("password", password)));
    parts.parameters.extend(ssl_mode.as_deref().map(|mode| ("sslmode", mode)));
    let complete = parts.join(parts.credentials, |_| true);
    read(&complete)?;
    Ok(complete)
}

/// Parses an address.
pub(super) fn read(address: &str) -> Result<(Config, TlsSettings), AddressError> {
    let parts = Parts::split(address)?;
    let mut tls = TlsSettings::default();
    for (name, value) in &parts.parameters {
        match *name {
            "sslmode" => tls.mode = Some(TlsMode::parse(value)?),
            "sslrootcert" => tls.roots = Some(path(value, "sslrootcert")?),
            "sslcert" => tls.certificate = Some(path(value, "sslcert")?),
            "sslkey" => tls.key = Some(path(value, "sslkey")?),
            _ => {}
        }
    }
    let for_driver = parts.join(parts.credentials, |name| !TLS_PARAMETERS.contains(&name));
    let config = Config::from_str(&for_driver).map_err(|error| {
        let why = std::error::Error::source(&error).map(ToString::to_string);
        AddressError::Unreadable(why.unwrap_or_else(|| error.to_string()))
    })?;
    Ok((config, tls))
}

/// The entry of a password file that matches a connection. All hosts of an address share one password: that of the first
/// host.
fn read_wanted(config: &Config) -> PasswordQuery {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(_)) | None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().unwrap_or_default().to_owned();
    let database = config.get_dbname().map_or_else(|| user.clone(), ToOwned::to_owned);
    PasswordQuery { host, port, database, user }
}

fn decode(text: &str) -> Result<String, ()> {
    percent_decode_str(text).decode_utf8().map(Into::into).map_err(|_| ())
}

fn path(value: &str, name: &'static str) -> Result<PathBuf, AddressError> {
    decode(value).map(PathBuf::from).map_err(|()| bad(name))
}

fn bad(name: &'static str) -> AddressError {
    AddressError::BadEncoding(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_not_shown_whatever_it_contains() {
        let cases = [
            ("postgres://ann:hunter2@db/jobs", "postgres://ann@db/jobs"),
            ("postgres://ann:hun/ter2@db/jobs", "postgres://ann@db/jobs"),
            ("postgres://ann:hun#ter2@db/jobs", "postgres://ann@db/jobs"),
            ("postgres://ann:hun?ter=2@db/jobs", "postgres://ann@db/jobs"),
            ("postgres://ann:hunt%40er2@db", "postgres://ann@db"),
            ("postgres://:hunter2@db", "postgres://db"),
            (
                "postgresql://db/jobs?password=hunter2&sslmode=require",
                "postgresql://db/jobs?sslmode=require",
            ),
            ("postgres://db/jobs?pass%77ord=hunter2", "postgres://db/jobs"),
            ("postgres://ann@/jobs?host=%2Frun", "postgres://ann@/jobs?host=%2Frun"),
        ];
        for (address, shown) in cases {
            assert_eq!(without_password(address).as_deref(), Some(shown), "{address}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_read_is_not_shown_at_all() {
        for address in [
            "postgres://ann:a@hunter2@db",
            "postgres://ann:hunter2@db:port/jobs",
            "postgres://ann@db/jobs?sslpassword=hunter2",
            "postgres://ann@db/jobs?no_such_parameter=hunter2",
            "hunter2",
        ] {
            assert_eq!(without_password(address), None, "{address}");
            let shown = read(address).unwrap_err().to_string();
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn f1_files_of_tls_are_percent_decoded() {
        let address = "postgres://db/jobs?sslrootcert=%2Fa%20b%2Fca.pem&sslcert=c.pem&sslkey=k.pem&sslmode=verify-full";
        let (_, tls) = read(address).unwrap();
        assert_eq!(tls.roots, Some(PathBuf::from("/a b/ca.pem")));
        assert_eq!(tls.certificate, Some(PathBuf::from("c.pem")));
        assert_eq!(tls.key, Some(PathBuf::from("k.pem")));
        assert_eq!(tls.mode, Some(TlsMode::VerifyFull));
    }

    #[test]
    fn f1_the_address_wins_over_the_defaults() {
        let defaults = ConnectionDefaults {
            password: Some("a&b %?".to_owned()),
            ssl_mode: Some("require".to_owned()),
            password_file: None,
        };
        let read_with = |address: &str| read(&with_defaults(address, &defaults).unwrap()).unwrap();
        for address in ["postgres://ann@db/jobs", "postgres://ann@db", "postgres://db?user=ann"] {
            let (config, tls) = read_with(address);
            assert_eq!(config.get_password(), Some("a&b %?".as_bytes()), "{address}");
            assert_eq!(tls.mode, Some(TlsMode::Require), "{address}");
        }
        let (config, tls) = read_with("postgres://ann:own@db/jobs?sslmode=disable");
        assert_eq!(config.get_password(), Some("own".as_bytes()));
        assert_eq!(tls.mode, Some(TlsMode::Disable));
        let unknown = ConnectionDefaults { ssl_mode: Some("maybe".to_owned()), ..defaults };
        assert!(with_defaults("postgres://ann@db/jobs", &unknown).is_err());
    }
}
