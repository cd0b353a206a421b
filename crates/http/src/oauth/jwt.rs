//! The compact form of a signed JWT, and the checks that need no key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::TokenError;

/// The maximum size of a token. Real ones have one or two KiB.
pub(super) const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The maximum length of a text from a token that an error repeats.
const MAX_SHOWN_CHARS: usize = 20;

/// An accepted algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Ps256,
    Es256,
    EdDsa,
}

impl Algorithm {
    /// Returns the accepted algorithm with this name; names are compared exactly.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            // The name of RFC 9864 for the only curve that we accept.
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// The members of a header that mean something here. Duplicates are refused.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
    enc: Option<Value>,
    b64: Option<Value>,
}

/// A token that was read, but not verified.
pub(super) struct Jwt<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    /// The type, in lower case and without `application/`.
    kind: Option<String>,
    pub(super) claims: Map<String, Value>,
    /// The signed bytes.
    pub(super) signed: &'a [u8],
    pub(super) signature: Vec<u8>,
}

impl<'a> Jwt<'a> {
    pub(super) fn parse(token: &'a str) -> Result<Self, TokenError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::TooLarge);
        }
        let parts: Vec<&str> = token.split('.').collect();
        let (head, body, signature) = match parts[..] {
            [head, body, signature] => (head, body, signature),
            [head, _, _, _, _] if json_object(head).is_some() => return Err(TokenError::Encrypted),
            _ => return Err(TokenError::Opaque),
        };
        // Other tokens with dots are opaque too: only a JSON object in the first part makes it a JWT.
        let head = json_object(head).ok_or(TokenError::Opaque)?;
        let header: Header = serde_json::from_slice(&head)
            .map_err(|_| TokenError::Malformed("its header cannot be read"))?;
        let algorithm = Algorithm::named(&header.alg)
            .ok_or_else(|| TokenError::Algorithm(shorten(&header.alg)))?;
        if header.crit.is_some() || header.b64.is_some() {
            return Err(TokenError::Critical);
        }
        if header.enc.is_some() {
            return Err(TokenError::Encrypted);
        }
        let claims = decode(body)
            .and_then(|body| serde_json::from_slice(&body).ok())
            .ok_or(TokenError::Malformed("its claims cannot be read"))?;
        let signature_bytes =
            decode(signature).ok_or(TokenError::Malformed("its signature cannot be read"))?;
        let kind = header.typ.map(|typ| {
            let typ = typ.to_ascii_lowercase();
            typ.strip_prefix("application/").map(str::to_owned).unwrap_or(typ)
        });
        Ok(Self {
            algorithm,
            key_id: header.kid,
            kind,
            claims,
            signed: &token.as_bytes()[..token.len() - signature.len() - 1],
            signature: signature_bytes,
        })
    }

    /// Refuses tokens that the issuer made for another purpose. ID tokens of issuers that give every token the type `JWT` are
    /// recognized by their claims.
    pub(super) fn check_is_access_token(&self) -> Result<(), TokenError> {
        match self.kind.as_deref() {
            Some("at+jwt") => return Ok(()),
            Some("jwt") | None => {}
            Some(other) => return Err(TokenError::Type(shorten(other))),
        }
        let text = |name: &str| self.claims.get(name).and_then(Value::as_str);
        let has = |name: &str| self.claims.contains_key(name);
        // Keycloak and Cognito name the purpose in a claim.
        let is_named_bearer = text("typ").is_some_and(|typ| typ.eq_ignore_ascii_case("bearer"));
        let is_other = (has("typ") && !is_named_bearer)
            || text("token_use").is_some_and(|purpose| purpose != "access")
            || ["at_hash", "c_hash", "s_hash", "events"].into_iter().any(has);
        let grants = ["scope", "scp"].into_iter().any(has);
        if is_other || (has("nonce") && !grants) {
            return Err(TokenError::NotAnAccessToken);
        }
        Ok(())
    }
}

/// Decodes base64url without padding, and nothing like it.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Decodes a part that is a JSON object.
fn json_object(part: &str) -> Option<Vec<u8>> {
    let text = decode(part)?;
    let is_object = serde_json::from_slice::<Value>(&text).is_ok_and(|value| value.is_object());
    is_object.then_some(text)
}

/// Returns a part of a token's header that may be repeated in an error.
fn shorten(text: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || "+-_./".contains(*c);
    text.chars().filter(plain).take(MAX_SHOWN_CHARS).collect()
}
