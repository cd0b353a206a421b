//! Verifies JWT access tokens of one OAuth 2.1 issuer (RFC 9068) for a resource server.
//!
//! A token decides nothing about how it is verified: the accepted algorithms are a fixed list, the algorithm must be the one of
//! the key, and the key comes from the issuer's key set. Members of a token's header that name or contain keys are ignored;
//! `kid` only selects a key of that set.

mod issuer;
mod jwk;
mod jwt;
mod key_cache;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::{BadProxy, ProxyOptions};
use issuer::Issuer;
pub use issuer::{BadUrl, IssuerMetadata, parse_oauth_url};
use jwt::Jwt;
use key_cache::KeyCache;

/// The tolerance for clocks that differ.
pub const LEEWAY_SECS: i64 = 60;
/// The prefix of owners that come from tokens.
pub const OWNER_PREFIX: &str = "oauth:";

/// The issuer whose tokens are accepted, and the claims that they must have.
#[derive(Clone, Debug)]
pub struct VerifierOptions {
    /// The issuer, exactly as in the claim `iss`.
    pub issuer: String,
    /// The accepted audiences; a token must name one of them.
    pub audiences: Vec<String>,
    /// The address of the key set; by default, the one in the issuer's metadata.
    pub jwks_url: Option<String>,
    /// The claim that identifies the owner.
    pub owner_claim: String,
    /// The proxy to the issuer.
    pub proxy: Option<ProxyOptions>,
    /// The shortest interval at which an unknown key id makes the key set be fetched again.
    pub refetch_after: Duration,
}

impl VerifierOptions {
    /// The default of [`VerifierOptions::refetch_after`].
    pub const REFETCH_AFTER: Duration = Duration::from_secs(30);
}

/// A token whose signature and claims are right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    /// The owner: a digest of the issuer and the owner claim, so that owners of two issuers never collide.
    pub owner: String,
    /// The granted scopes.
    pub scopes: BTreeSet<String>,
    /// The expiry, in seconds since the Unix epoch.
    pub expires_at: i64,
}

/// The reason that a token is not accepted. Contains nothing of the token but its algorithm and type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is not a JWT.
    #[error(
        "the token is opaque, and this server can only verify JWT access tokens (RFC 9068); configure the issuer to issue \
         them for this audience"
    )]
    Opaque,
    /// The token is encrypted.
    #[error("the token is encrypted; this server verifies signed JWT access tokens")]
    Encrypted,
    /// The token is larger than any real one.
    #[error("the token is larger than {} KiB", jwt::MAX_TOKEN_BYTES / 1024)]
    TooLarge,
    /// A part of the token cannot be read.
    #[error("the token is not a valid JWT: {0}")]
    Malformed(&'static str),
    /// The token is not an access token.
    #[error("the token has the type `{0}`; this server accepts access tokens: `at+jwt` or `JWT`")]
    Type(String),
    /// The token is an ID token, or another token for clients.
    #[error(
        "this is not an access token but a token for the client, such as an ID token; send the access token"
    )]
    NotAnAccessToken,
    /// The algorithm is not accepted.
    #[error("the token's algorithm `{0}` is not accepted; RS256, PS256, ES256 and EdDSA are")]
    Algorithm(String),
    /// The header has critical extensions.
    #[error("the token has critical extensions, and this server knows none")]
    Critical,
    /// The token needs a proof of possession.
    #[error("the token is bound to a key (DPoP or mutual TLS); this server accepts bearer tokens")]
    Bound,
    /// No key of the issuer has the token's key id and algorithm.
    #[error("the issuer's key set has no key for this token")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the token's signature is wrong")]
    Signature,
    /// Another issuer, or none.
    #[error(
        "the token comes from another issuer than this server trusts; `iss` must match exactly, with or without a trailing slash"
    )]
    Issuer,
    /// Another audience, or none.
    #[error("the token is for another audience; it must be issued for {0}")]
    Audience(String),
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("the token is not valid yet; check the clocks of the issuer and of this server")]
    NotYetValid,
    /// A claim is missing, or has a wrong type.
    #[error("the token has no usable claim `{0}`")]
    Claim(String),
    /// The issuer's keys cannot be had at the moment.
    #[error("the keys of the issuer cannot be fetched: {0}")]
    Unavailable(String),
}

/// Verifies tokens, with the issuer's keys in a cache.
pub struct TokenVerifier {
    options: VerifierOptions,
    keys: KeyCache,
    issuer: Arc<Issuer>,
}

impl TokenVerifier {
    /// Creates a verifier. Sends nothing: keys are fetched when the first token is verified.
    pub fn new(options: VerifierOptions) -> Result<Self, SetupError> {
        let jwks_url = options.jwks_url.as_deref().map(parse_oauth_url).transpose()?;
        let issuer = Issuer::new(&options.issuer, jwks_url, options.proxy.as_ref())?;
        let issuer = Arc::new(issuer);
        let keys = KeyCache::new(Arc::clone(&issuer), options.refetch_after);
        Ok(Self { options, keys, issuer })
    }

    /// Returns the options.
    pub fn options(&self) -> &VerifierOptions {
        &self.options
    }

    /// Verifies a token at this time, in seconds since the Unix epoch.
    pub async fn verify(&self, token: &str, now: i64) -> Result<VerifiedToken, TokenError> {
        let jwt = Jwt::parse(token)?;
        // Before any key is looked up: a token of another issuer is no reason to ask ours for new keys.
        if jwt.claims.get("iss").and_then(Value::as_str) != Some(&*self.options.issuer) {
            return Err(TokenError::Issuer);
        }
        self.keys.verify_signature(&jwt).await?;
        self.judge(&jwt, now)
    }

    /// Checks the claims of a token whose signature is right.
    fn judge(&self, jwt: &Jwt<'_>, now: i64) -> Result<VerifiedToken, TokenError> {
        let claims = &jwt.claims;
        jwt.check_is_access_token()?;
        if claims.get("cnf").is_some_and(|cnf| !cnf.is_null()) {
            return Err(TokenError::Bound);
        }
        let is_ours = |audience: &str| self.options.audiences.iter().any(|ours| ours == audience);
        if !texts(claims.get("aud")).any(is_ours) {
            let ours = self.options.audiences.first().cloned().unwrap_or_default();
            return Err(TokenError::Audience(ours));
        }
        let expires_at = time(claims, "exp")?.ok_or_else(|| TokenError::Claim("exp".to_owned()))?;
        if now >= expires_at.saturating_add(LEEWAY_SECS) {
            return Err(TokenError::Expired);
        }
        if time(claims, "nbf")?.is_some_and(|begin| now.saturating_add(LEEWAY_SECS) < begin) {
            return Err(TokenError::NotYetValid);
        }
        let claim = &self.options.owner_claim;
        let owner = claims.get(claim).and_then(Value::as_str).filter(|owner| !owner.is_empty());
        let owner = owner.ok_or_else(|| TokenError::Claim(claim.clone()))?;
        Ok(VerifiedToken {
            owner: owner_of(&self.options.issuer, owner),
            scopes: scopes(claims),
            expires_at,
        })
    }

    /// Fetches the issuer's metadata, for a check of the configuration.
    pub async fn issuer_metadata(&self) -> Result<IssuerMetadata, String> {
        self.issuer.metadata().await
    }

    /// Fetches the key set and returns the number of its usable keys, for a check of the configuration.
    pub async fn count_keys(&self) -> Result<usize, String> {
        self.issuer.keys().await.map(|keys| keys.len())
    }
}

/// The reason that a verifier cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// An address cannot be used.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// The proxy cannot be used.
    #[error(transparent)]
    Proxy(#[from] BadProxy),
    /// The HTTP client cannot be created.
    #[error("the HTTP client cannot be created: {0}")]
    Client(#[from] reqwest::Error),
}

/// Returns the owner for a claim of an issuer. Neither contains a NUL, so no two pairs have the same text.
pub fn owner_of(issuer: &str, claim: &str) -> String {
    let digest =
        Sha256::new().chain_update(issuer).chain_update([0]).chain_update(claim).finalize();
    let digits: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{OWNER_PREFIX}{digits}")
}

/// Returns a claim that is a string or a list of strings.
fn texts(claim: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = claim.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    claim.and_then(Value::as_str).into_iter().chain(list.iter().filter_map(Value::as_str))
}

/// Returns the scopes of `scope` and `scp`: words of a string, or the strings of a list.
fn scopes(claims: &Map<String, Value>) -> BTreeSet<String> {
    let mut scopes = BTreeSet::new();
    for claim in ["scope", "scp"].into_iter().filter_map(|name| claims.get(name)) {
        match claim {
            Value::String(words) => scopes.extend(words.split(' ').map(str::to_owned)),
            Value::Array(_) => scopes.extend(texts(Some(claim)).map(str::to_owned)),
            _ => {}
        }
    }
    scopes.remove("");
    scopes
}

/// Returns a date in seconds. A date with a fraction is rounded down.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, TokenError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let whole = value.as_i64();
    let rounded = || value.as_f64().map(|seconds| seconds.floor() as i64);
    whole.or_else(rounded).map(Some).ok_or_else(|| TokenError::Claim(name.to_owned()))
}
