//! `[oauth]`: the issuer whose access tokens `serve --http` accepts.

use outlast_http::oauth::parse_oauth_url;
use outlast_server::ScopeNames;

use super::error::{ConfigError, ConfigResult};
use super::layers::Layers;
use super::settings::{self, Setting};

/// The issuer of access tokens, and the claims that they need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Oauth {
    /// The issuer, exactly as its tokens name it.
    pub(crate) issuer: String,
    /// The audiences; empty for those of the public address.
    pub(crate) audiences: Vec<String>,
    /// The address of the key set, if it is not taken from the issuer's metadata.
    pub(crate) jwks_url: Option<String>,
    pub(crate) owner_claim: String,
    pub(crate) scopes: ScopeNames,
}

const URL: &str = "an https address (http only for this machine), without user, query and fragment";

impl Layers {
    /// Returns the issuer, if one is configured.
    pub(super) fn oauth(&self) -> ConfigResult<Option<Oauth>> {
        if !self.is_set(settings::OAUTH_ISSUER) {
            return match self.first_without_issuer() {
                None => Ok(None),
                Some(setting) => Err(ConfigError::Incomplete {
                    name: self.find(setting).name(),
                    why: "has no effect without `oauth.issuer`".to_owned(),
                    fix: "set oauth.issuer (OUTLAST_OAUTH_ISSUER), or remove it".to_owned(),
                }),
            };
        }
        if !self.is_set(settings::SERVER_PUBLIC_URL) {
            return Err(ConfigError::Incomplete {
                name: self.find(settings::OAUTH_ISSUER).name(),
                why: "needs `server.public_url`: clients are sent there, and tokens are issued for it".to_owned(),
                fix: "set server.public_url (OUTLAST_PUBLIC_URL) to the address under which clients reach this server, such as https://research.example"
                    .to_owned(),
            });
        }
        // Exactly as given: a slash at its end is part of an issuer's name.
        let url = |text: &str| parse_oauth_url(text).is_ok().then(|| text.to_owned());
        let issuer = self.parsed(settings::OAUTH_ISSUER, URL, url)?;
        let jwks_url = match self.is_set(settings::OAUTH_JWKS_URL) {
            false => None,
            true => Some(self.parsed(settings::OAUTH_JWKS_URL, URL, url)?),
        };
        let audiences = match self.is_set(settings::OAUTH_AUDIENCE) {
            false => Vec::new(),
            true => {
                self.list(settings::OAUTH_AUDIENCE, "audiences, separated by commas", |it| {
                    Some(it.to_owned())
                })?
            }
        };
        let owner_claim = self.parsed(
            settings::OAUTH_OWNER_CLAIM,
            "the name of a claim, such as sub",
            |claim| (!claim.is_empty()).then(|| claim.to_owned()),
        )?;
        Ok(Some(Oauth { issuer, audiences, jwks_url, owner_claim, scopes: self.scope_names()? }))
    }

    /// Returns the first other setting of the section that is set.
    fn first_without_issuer(&self) -> Option<&'static Setting> {
        let others = [
            settings::OAUTH_AUDIENCE,
            settings::OAUTH_JWKS_URL,
            settings::OAUTH_OWNER_CLAIM,
            settings::OAUTH_SCOPES,
        ];
        others.into_iter().find(|setting| self.is_set(setting))
    }

    fn scope_names(&self) -> ConfigResult<ScopeNames> {
        let allowed = "three names, separated by commas: for reading, for running, for operators";
        let is_scope = |name: &str| {
            name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
        };
        let names = self.list(settings::OAUTH_SCOPES, allowed, |name| {
            is_scope(name).then(|| name.to_owned())
        })?;
        match <[String; 3]>::try_from(names) {
            Ok([read, run, admin]) if read != run && run != admin && read != admin => {
                Ok(ScopeNames { read, run, admin })
            }
            Ok(_) | Err(_) => Err(self.find(settings::OAUTH_SCOPES).bad(allowed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oauth(environment: &[(&str, &str)]) -> ConfigResult<Option<Oauth>> {
        Layers::of(environment, None).unwrap().oauth()
    }

    #[test]
    fn m1_the_issuer_is_configured_whole_or_not_at_all() {
        let issuer = ("OUTLAST_OAUTH_ISSUER", "https://id.example/");
        let public = ("OUTLAST_PUBLIC_URL", "https://research.example");
        assert_eq!(oauth(&[public]).unwrap(), None);
        let found = oauth(&[issuer, public]).unwrap().unwrap();
        assert_eq!(found.issuer, "https://id.example/", "the slash is part of the name");
        assert_eq!((found.owner_claim.as_str(), found.audiences.len()), ("sub", 0));
        assert_eq!(found.scopes, ScopeNames::default());
        let audience = ("OUTLAST_OAUTH_AUDIENCE", "api://outlast, https://research.example/mcp");
        let scopes = ("OUTLAST_OAUTH_SCOPES", "read,run,admin");
        let found = oauth(&[issuer, public, audience, scopes]).unwrap().unwrap();
        assert_eq!(found.audiences, ["api://outlast", "https://research.example/mcp"]);
        assert_eq!(found.scopes.run, "run");
        for (bad, named) in [
            (&[issuer][..], "server.public_url"),
            (&[audience, public], "oauth.issuer"),
            (&[("OUTLAST_OAUTH_ISSUER", "http://id.example"), public], "OUTLAST_OAUTH_ISSUER"),
            (&[issuer, public, ("OUTLAST_OAUTH_JWKS_URL", "id.example")], "OUTLAST_OAUTH_JWKS_URL"),
            (&[issuer, public, ("OUTLAST_OAUTH_SCOPES", "a,b")], "OUTLAST_OAUTH_SCOPES"),
            (&[issuer, public, ("OUTLAST_OAUTH_SCOPES", "a,b,a")], "OUTLAST_OAUTH_SCOPES"),
            (&[issuer, public, ("OUTLAST_OAUTH_SCOPES", "a,b,c\"")], "OUTLAST_OAUTH_SCOPES"),
        ] {
            let error = oauth(bad).unwrap_err();
            assert!(error.to_string().contains(named), "{error}");
        }
    }
}
