//! Access control: tokens and their owners. Only digests are kept.

use std::fmt;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use outlast_core::OwnerId;
use outlast_core::rules::Sharing;
use sha2::{Digest, Sha256};

/// The minimum length of a token: shorter tokens could be guessed.
const MIN_TOKEN_CHARS: usize = 16;
const MAX_NAME_CHARS: usize = 48;

/// The reason that a token cannot be used. Contains nothing of the token itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// The name is missing or is not a valid owner.
    #[error("a token's name must be 1 to {MAX_NAME_CHARS} of the characters A-Z a-z 0-9 _ -")]
    Name,
    /// The token is too short, or has characters that are not allowed in a header.
    #[error(
        "the token of `{0}` must be {MIN_TOKEN_CHARS} or more visible ASCII characters without commas"
    )]
    Token(String),
    /// A duplicate name or token.
    #[error("the name or the token of `{0}` is there twice")]
    Twice(String),
}

/// A name and the digest of its token.
#[derive(Clone)]
pub struct Token {
    name: String,
    digest: [u8; 32],
}

impl Token {
    /// Creates the token of the owner with that name.
    pub fn new(name: &str, token: &str) -> Result<Self, BadToken> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !(1..=MAX_NAME_CHARS).contains(&name.len()) || !name.bytes().all(fits) {
            return Err(BadToken::Name);
        }
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b',';
        if token.len() < MIN_TOKEN_CHARS || !token.bytes().all(fits) {
            return Err(BadToken::Token(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), digest: Sha256::digest(token).into() })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.name)
    }
}

/// All tokens.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<Token>);

impl Tokens {
    /// Adds a token; neither its name nor its text may exist already.
    pub fn add(&mut self, token: Token) -> Result<(), BadToken> {
        let same = |other: &Token| other.name == token.name || other.digest == token.digest;
        if self.0.iter().any(same) {
            return Err(BadToken::Twice(token.name));
        }
        self.0.push(token);
        Ok(())
    }

    /// Returns true if there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether there are several owners: each owner has one token.
    pub(super) fn sharing(&self) -> Sharing {
        if self.0.len() > 1 { Sharing::SeveralOwners } else { Sharing::OneOwner }
    }

    /// Returns the owner of the token in the `Authorization` header, the only place that is checked.
    pub(crate) fn owner(&self, headers: &HeaderMap) -> Option<OwnerId> {
        self.owner_of(bearer(headers)?).map(|(owner, _)| owner)
    }

    /// Returns the digest of the token with this name.
    pub(crate) fn digest(&self, name: &str) -> Option<[u8; 32]> {
        self.0.iter().find(|token| token.name == name).map(|token| token.digest)
    }

    /// Returns the owner and the digest of this token.
    pub(crate) fn owner_of(&self, token: &str) -> Option<(OwnerId, [u8; 32])> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        // Every token is compared in full: the time that this takes reveals nothing.
        let mut found = None;
        for known in &self.0 {
            let differs =
                known.digest.iter().zip(digest).fold(0, |differs, (a, b)| differs | (a ^ b));
            if differs == 0 {
                found = Some(known);
            }
        }
        found.map(|known| (OwnerId::new(&known.name), known.digest))
    }
}

/// The callers that may use the server.
pub enum Callers {
    /// Clients that show one of these tokens; its name is the owner.
    WithToken(Tokens),
    /// Every client that can connect, as this owner.
    WithoutToken(OwnerId),
}

impl Callers {
    /// Returns whether several owners share the server.
    pub fn sharing(&self) -> Sharing {
        match self {
            Self::WithToken(tokens) => tokens.sharing(),
            Self::WithoutToken(_) => Sharing::OneOwner,
        }
    }
}

/// Returns the token of the `Authorization` header.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = the_one(headers, &AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

/// Returns the header's value if the header occurs exactly once.
pub(crate) fn the_one<'a>(
    headers: &'a HeaderMap,
    name: &http::HeaderName,
) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn tokens() -> Tokens {
        let mut tokens = Tokens::default();
        tokens.add(Token::new("ann", "ann-0123456789abcdef").unwrap()).unwrap();
        tokens.add(Token::new("bob", "bob-0123456789abcdef").unwrap()).unwrap();
        tokens
    }

    #[test]
    fn only_a_whole_token_in_the_header_says_who_asks() {
        let cases: [(&[&str], Option<&str>); 12] = [
            (&["Bearer ann-0123456789abcdef"], Some("ann")),
            (&["bearer bob-0123456789abcdef"], Some("bob")),
            (&["BEARER   ann-0123456789abcdef"], Some("ann")),
            (&[], None),
            (&["Bearer"], None),
            (&["Bearer "], None),
            (&["Bearer ann-0123456789abcde"], None),
            (&["Bearer ann-0123456789abcdef0"], None),
            (&["Bearer ANN-0123456789ABCDEF"], None),
            (&["Basic ann-0123456789abcdef"], None),
            (&["ann-0123456789abcdef"], None),
            (&["Bearer ann-0123456789abcdef", "Bearer ann-0123456789abcdef"], None),
        ];
        for (shown, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in shown {
                headers.append(AUTHORIZATION, HeaderValue::from_static(value));
            }
            let owner = tokens().owner(&headers);
            assert_eq!(owner.as_ref().map(OwnerId::as_str), expected, "{shown:?}");
        }
    }

    #[test]
    fn a_token_that_is_weak_or_there_twice_is_refused() {
        let long = "x".repeat(MAX_NAME_CHARS + 1);
        for (name, token, expected) in [
            ("", "0123456789abcdef", BadToken::Name),
            ("a b", "0123456789abcdef", BadToken::Name),
            ("oauth:0f", "0123456789abcdef", BadToken::Name),
            (long.as_str(), "0123456789abcdef", BadToken::Name),
            ("ann", "0123456789abcde", BadToken::Token("ann".to_owned())),
            ("ann", "0123456789 abcdef", BadToken::Token("ann".to_owned())),
        ] {
            assert_eq!(Token::new(name, token).unwrap_err(), expected);
        }
        let mut tokens = tokens();
        for (name, token) in [("ann", "another-0123456789"), ("eve", "bob-0123456789abcdef")] {
            let twice = tokens.add(Token::new(name, token).unwrap());
            assert_eq!(twice, Err(BadToken::Twice(name.to_owned())));
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        assert_eq!(format!("{:?}", tokens()), "Tokens([Token(ann), Token(bob)])");
    }
}
