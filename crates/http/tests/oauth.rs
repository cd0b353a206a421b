//! M1: access tokens, good ones and forged ones, against an issuer on this machine.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use outlast_http::oauth::{TokenError, TokenVerifier, VerifiedToken, VerifierOptions, owner_of};
use outlast_testkit::issuer::{
    Answer, JWKS, METADATA, SigningKey, TestIssuer, encode, sign_with_secret, unsigned,
};
use serde_json::{Value, json};

const NOW: i64 = 1_800_000_000;
const OURS: &str = "https://research.example/mcp";

/// An issuer with one key, and a server that trusts it.
struct Trust {
    key: SigningKey,
    issuer: TestIssuer,
    verifier: TokenVerifier,
}

impl Trust {
    async fn in_key(key: SigningKey) -> Self {
        let issuer = TestIssuer::start(&[&key]).await;
        let verifier = verifier(issuer.url(), None);
        Self { key, issuer, verifier }
    }

    async fn new() -> Self {
        Self::in_key(SigningKey::p256("one")).await
    }

    fn claims(&self) -> Value {
        self.issuer.claims("ann", OURS, NOW)
    }

    /// Verifies a token of the issuer whose claims are changed: null removes a claim.
    async fn with(&self, changes: Value) -> Result<VerifiedToken, TokenError> {
        let mut claims = self.claims();
        merge(&mut claims, changes);
        self.verify(&self.key.token(&claims)).await
    }

    /// Verifies a token of the issuer whose header is changed.
    async fn headed(&self, changes: Value) -> Result<VerifiedToken, TokenError> {
        let mut header = self.key.header();
        merge(&mut header, changes);
        self.verify(&self.key.sign(&header, &self.claims())).await
    }

    async fn verify(&self, token: &str) -> Result<VerifiedToken, TokenError> {
        self.verifier.verify(token, NOW).await
    }
}

fn merge(into: &mut Value, changes: Value) {
    let object = into.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(object.remove(name)),
            value => drop(object.insert(name.clone(), value.clone())),
        }
    }
}

fn options(issuer: &str) -> VerifierOptions {
    VerifierOptions {
        issuer: issuer.to_owned(),
        audiences: vec![OURS.to_owned(), "https://research.example".to_owned()],
        jwks_url: None,
        owner_claim: "sub".to_owned(),
        proxy: None,
        refetch_after: Duration::from_millis(50),
    }
}

fn verifier(issuer: &str, jwks_url: Option<String>) -> TokenVerifier {
    TokenVerifier::new(VerifierOptions { jwks_url, ..options(issuer) }).unwrap()
}

#[tokio::test]
async fn m1_a_good_token_of_each_algorithm_is_accepted() {
    for key in [
        SigningKey::rsa("a", "RS256"),
        SigningKey::rsa("b", "PS256"),
        SigningKey::p256("c"),
        SigningKey::ed25519("d"),
    ] {
        let trust = Trust::in_key(key).await;
        let accepted = trust.with(json!({})).await.unwrap();
        assert_eq!(accepted.owner, owner_of(trust.issuer.url(), "ann"));
        assert_eq!(accepted.owner.len(), "oauth:".len() + 32);
        assert_eq!(accepted.expires_at, NOW + 3600);
        let scopes: Vec<_> = accepted.scopes.iter().map(String::as_str).collect();
        assert_eq!(scopes, ["outlast:read", "outlast:run"]);
        assert!(trust.headed(json!({ "typ": "application/at+JWT" })).await.is_ok());
        assert!(trust.headed(json!({ "typ": "JWT" })).await.is_ok());
        assert!(trust.headed(json!({ "typ": null })).await.is_ok());
        assert!(trust.headed(json!({ "kid": null })).await.is_ok(), "the only key");
        assert_eq!(trust.issuer.requests(JWKS), 1, "cached");
    }
}

/// M1, attack: the algorithm is chosen by the key, never by the token alone.
#[tokio::test]
async fn m1_algorithms_cannot_be_confused() {
    let trust = Trust::in_key(SigningKey::rsa("rsa", "RS256")).await;
    let claims = trust.claims();
    for alg in ["none", "None", "nOnE", "", "HS256", "RS384", "RS512", "ES384", "rs256", "RS256 "] {
        let header = json!({ "alg": alg, "typ": "at+jwt", "kid": "rsa" });
        for signature in ["", "x", &encode([0; 256])] {
            let token = format!("{}.{signature}", unsigned(&header, &claims));
            let refused = trust.verify(&token).await.unwrap_err();
            assert!(matches!(refused, TokenError::Algorithm(_)), "{alg}: {refused:?}");
        }
    }
    // The public key as the secret of a MAC, in the forms in which an attacker has it.
    let jwk = trust.key.jwk();
    for secret in [jwk.to_string(), jwk["n"].as_str().unwrap().to_owned()] {
        for alg in ["HS256", "RS256"] {
            let header = json!({ "alg": alg, "typ": "at+jwt", "kid": "rsa" });
            let token = sign_with_secret(&header, &claims, secret.as_bytes());
            assert!(trust.verify(&token).await.is_err(), "{alg}");
        }
    }
    // A good signature by another algorithm than the key's.
    let other = SigningKey::rsa("rsa", "PS256");
    let refused = trust.verify(&other.token(&claims)).await.unwrap_err();
    assert_eq!(refused, TokenError::UnknownKey);
    // ES256 and EdDSA signatures under the id of the RSA key.
    for other in [SigningKey::p256("rsa"), SigningKey::ed25519("rsa")] {
        let refused = trust.verify(&other.token(&claims)).await.unwrap_err();
        assert_eq!(refused, TokenError::UnknownKey);
    }
}

/// M1, attack: a key id only selects a key; other members of the header that name keys are not read.
#[tokio::test]
async fn m1_a_token_cannot_bring_a_key() {
    let trust = Trust::new().await;
    let mallory = SigningKey::p256("one");
    let claims = trust.claims();
    let forged = mallory.token(&claims);
    assert_eq!(trust.verify(&forged).await, Err(TokenError::Signature));
    for kid in [
        "../../../../dev/null",
        "/etc/passwd",
        "one' OR '1'='1",
        "http://127.0.0.1:1/jwks",
        "one\u{0}",
        "ONE",
        "",
        &"k".repeat(5000),
    ] {
        let header = json!({ "alg": "ES256", "typ": "at+jwt", "kid": kid });
        let refused = trust.verify(&mallory.sign(&header, &claims)).await;
        assert_eq!(refused, Err(TokenError::UnknownKey), "{kid}");
    }
    let elsewhere = TestIssuer::start(&[&mallory]).await;
    let jku = format!("{}{JWKS}", elsewhere.url());
    for (name, value) in
        [("jwk", mallory.jwk()), ("jku", json!(jku)), ("x5u", json!(jku)), ("x5c", json!(["MII"]))]
    {
        let mut header = mallory.header();
        header[name] = value;
        let refused = trust.verify(&mallory.sign(&header, &claims)).await;
        assert_eq!(refused, Err(TokenError::Signature), "{name}");
    }
    assert_eq!(elsewhere.requests(JWKS), 0);
    for wrong in [json!({ "kid": 7 }), json!({ "kid": ["one"] }), json!({ "alg": ["ES256"] })] {
        assert!(matches!(trust.headed(wrong).await, Err(TokenError::Malformed(_))));
    }
    let critical = json!({ "crit": ["exp"] });
    assert_eq!(trust.headed(critical).await, Err(TokenError::Critical));
    assert_eq!(trust.headed(json!({ "b64": false })).await, Err(TokenError::Critical));
}

/// M1, attack: tokens of another issuer, for another server, or for another purpose.
#[tokio::test]
async fn m1_only_access_tokens_for_this_server_are_accepted() {
    let trust = Trust::new().await;
    let url = trust.issuer.url().to_owned();
    for iss in [json!(format!("{url}/")), json!("https://evil.example"), json!([url]), Value::Null]
    {
        assert_eq!(trust.with(json!({ "iss": iss })).await, Err(TokenError::Issuer), "{iss}");
    }
    let replayed = [
        json!("https://other.example/mcp"),
        json!(["https://other.example"]),
        json!("https://research.example/mcp/../x"),
        json!("https://research.example.evil.example"),
        json!("https://RESEARCH.example/mcp"),
        json!({ "https://research.example/mcp": true }),
        json!(7),
        json!([]),
        Value::Null,
    ];
    for aud in replayed {
        let refused = trust.with(json!({ "aud": aud })).await;
        assert!(matches!(refused, Err(TokenError::Audience(_))), "{aud}: {refused:?}");
    }
    assert!(trust.with(json!({ "aud": ["https://a.example", OURS] })).await.is_ok());
    assert!(trust.with(json!({ "aud": "https://research.example" })).await.is_ok());
    for typ in ["id_token", "logout+jwt", "dpop+jwt", "secevent+jwt", "JWE", "at+jwtx"] {
        let refused = trust.headed(json!({ "typ": typ })).await;
        assert!(matches!(refused, Err(TokenError::Type(_))), "{typ}");
    }
    let plain = |claims: Value| {
        let mut all = trust.claims();
        merge(&mut all, claims);
        let header = json!({ "alg": "ES256", "typ": "JWT", "kid": "one" });
        trust.key.sign(&header, &all)
    };
    for id_token in [
        json!({ "nonce": "n", "scope": null }),
        json!({ "at_hash": "x" }),
        json!({ "c_hash": "x" }),
        json!({ "token_use": "id" }),
        json!({ "typ": "ID" }),
        json!({ "typ": "Refresh" }),
        json!({ "events": {} }),
    ] {
        let refused = trust.verify(&plain(id_token.clone())).await;
        assert_eq!(refused, Err(TokenError::NotAnAccessToken), "{id_token}");
    }
    assert!(trust.verify(&plain(json!({ "typ": "Bearer", "nonce": "n" }))).await.is_ok());
    assert_eq!(trust.with(json!({ "cnf": { "jkt": "x" } })).await, Err(TokenError::Bound));
}

/// M1: dates with a tolerance of 60 seconds.
#[tokio::test]
async fn m1_a_token_is_good_between_its_dates() {
    let trust = Trust::new().await;
    for (claims, expected) in [
        (json!({ "exp": NOW - 59 }), Ok(())),
        (json!({ "exp": NOW - 60 }), Err(TokenError::Expired)),
        (json!({ "exp": -1 }), Err(TokenError::Expired)),
        (json!({ "exp": NOW as f64 + 0.5 }), Ok(())),
        (json!({ "exp": i64::MAX }), Ok(())),
        (json!({ "exp": 1e300 }), Ok(())),
        (json!({ "exp": null }), Err(TokenError::Claim("exp".to_owned()))),
        (json!({ "exp": "2099-01-01" }), Err(TokenError::Claim("exp".to_owned()))),
        (json!({ "nbf": NOW + 60 }), Ok(())),
        (json!({ "nbf": NOW + 61 }), Err(TokenError::NotYetValid)),
        (json!({ "nbf": i64::MIN }), Ok(())),
        (json!({ "nbf": "soon" }), Err(TokenError::Claim("nbf".to_owned()))),
    ] {
        assert_eq!(trust.with(claims.clone()).await.map(drop), expected, "{claims}");
    }
}

#[tokio::test]
async fn m1_what_is_not_a_jwt_is_refused_by_name() {
    let trust = Trust::new().await;
    let good = trust.key.token(&trust.claims());
    for opaque in ["", "abc", "a.b.c", "....", "gho_16C7e42F292c6912E7710c838347Ae178B4a", "e30"] {
        assert_eq!(trust.verify(opaque).await, Err(TokenError::Opaque), "{opaque}");
    }
    assert_eq!(trust.verify("e30.a.b.c.d").await, Err(TokenError::Encrypted));
    assert_eq!(trust.verify(&"x".repeat(16 * 1024 + 1)).await, Err(TokenError::TooLarge));
    let deep = format!("{}{}", "[".repeat(4000), "]".repeat(4000));
    let deep = format!("{}.{}.x", encode(json!({ "alg": "ES256" }).to_string()), encode(deep));
    for broken in [format!("{good}="), format!("{good} "), format!("{good}A"), deep] {
        assert!(trust.verify(&broken).await.is_err(), "{broken}");
    }
    let twice = format!("{}.{}", encode(r#"{"alg":"ES256","alg":"none"}"#), "e30.x");
    assert!(matches!(trust.verify(&twice).await, Err(TokenError::Malformed(_))));
    // One changed character of any part.
    for at in (0..good.len()).step_by(7) {
        let mut bytes = good.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        assert!(changed == good || trust.verify(&changed).await.is_err(), "{at}");
    }
}

/// M1: scopes as a string or a list, by either name, and never from a part of a word.
#[tokio::test]
async fn m1_scopes_come_as_text_or_as_a_list() {
    let trust = Trust::new().await;
    for (claims, expected) in [
        (json!({ "scope": "a b" }), vec!["a", "b"]),
        (json!({ "scope": ["a", "b"] }), vec!["a", "b"]),
        (json!({ "scope": null, "scp": ["a"] }), vec!["a"]),
        (json!({ "scope": null, "scp": "a  b" }), vec!["a", "b"]),
        (json!({ "scope": "a", "scp": ["b"] }), vec!["a", "b"]),
        (json!({ "scope": null }), vec![]),
        (json!({ "scope": { "outlast:admin": true } }), vec![]),
        (json!({ "scope": ["a outlast:admin", 7] }), vec!["a outlast:admin"]),
        (json!({ "scope": "a\toutlast:admin" }), vec!["a\toutlast:admin"]),
    ] {
        let accepted = trust.with(claims.clone()).await.unwrap();
        assert_eq!(accepted.scopes.iter().collect::<Vec<_>>(), expected, "{claims}");
    }
}

/// M1: two issuers, or two people, never have one owner.
#[tokio::test]
async fn m1_owners_do_not_collide() {
    let trust = Trust::new().await;
    let mut owners =
        vec![owner_of("https://a", "b"), owner_of("https://ab", ""), owner_of("", "https://ab")];
    for sub in ["ann", "Ann", "ann ", "ann\u{0}", "local", "oauth:ann", &"x".repeat(4000)] {
        owners.push(trust.with(json!({ "sub": sub })).await.unwrap().owner);
    }
    for owner in &owners {
        let digits = owner.strip_prefix("oauth:").unwrap();
        assert!(digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
    owners.sort();
    let all = owners.len();
    owners.dedup();
    assert_eq!(owners.len(), all);
    for sub in [json!(""), json!(7), json!(["ann"]), json!({ "ann": 1 }), Value::Null] {
        let refused = trust.with(json!({ "sub": sub })).await;
        assert_eq!(refused, Err(TokenError::Claim("sub".to_owned())), "{sub}");
    }
    let by_mail =
        VerifierOptions { owner_claim: "email".to_owned(), ..options(trust.issuer.url()) };
    let by_mail = TokenVerifier::new(by_mail).unwrap();
    let mut claims = trust.claims();
    claims["email"] = json!("ann@example.org");
    let accepted = by_mail.verify(&trust.key.token(&claims), NOW).await.unwrap();
    assert_eq!(accepted.owner, owner_of(trust.issuer.url(), "ann@example.org"));
}

/// M1: a key set that is broken, huge, slow, or elsewhere makes the issuer unavailable, and bounds memory and time.
#[tokio::test]
async fn m1_a_key_set_is_fetched_within_limits() {
    let elsewhere = TestIssuer::start(&[&SigningKey::p256("one")]).await;
    let huge = json!({ "keys": [], "pad": "x".repeat(64 * 1024) }).to_string();
    let there = format!("{}{JWKS}", elsewhere.url());
    for answer in [
        Answer::Document(String::new()),
        Answer::Document("[]".to_owned()),
        Answer::Document("{\"keys\": 7}".to_owned()),
        Answer::Document(huge),
        Answer::Endless,
        Answer::Silence,
        Answer::Status(500, None),
        Answer::Status(302, Some(there)),
    ] {
        let trust = Trust::new().await;
        trust.issuer.answer(JWKS, answer.clone());
        let limit = Duration::from_secs(20);
        let refused = tokio::time::timeout(limit, trust.with(json!({}))).await.unwrap();
        assert!(matches!(refused, Err(TokenError::Unavailable(_))), "{answer:?}: {refused:?}");
    }
    assert_eq!(elsewhere.requests(JWKS), 0, "redirects are not followed");
    let trust = Trust::new().await;
    trust.issuer.publish(&[]);
    assert_eq!(trust.with(json!({})).await, Err(TokenError::UnknownKey));
}

/// M1: of a set with many kinds of keys, the usable ones are used.
#[tokio::test]
async fn m1_unusable_keys_are_skipped() {
    let trust = Trust::new().await;
    let good = trust.key.jwk();
    let changed = |changes: Value| {
        let mut jwk = good.clone();
        merge(&mut jwk, changes);
        jwk
    };
    for bad in [
        json!({ "kty": "oct", "k": "c2VjcmV0", "kid": "one", "alg": "HS256" }),
        changed(json!({ "use": "enc" })),
        changed(json!({ "key_ops": ["sign"] })),
        changed(json!({ "alg": "ES384" })),
        changed(json!({ "alg": "RS256" })),
        changed(json!({ "crv": "P-384" })),
        changed(json!({ "x": "AA" })),
        changed(json!({ "y": null })),
        json!("key"),
    ] {
        trust.issuer.answer(JWKS, Answer::Document(json!({ "keys": [bad] }).to_string()));
        let alone = verifier(trust.issuer.url(), None);
        let token = trust.key.token(&trust.claims());
        assert_eq!(alone.verify(&token, NOW).await, Err(TokenError::UnknownKey), "{bad}");
        let both = json!({ "keys": [bad, good] }).to_string();
        trust.issuer.answer(JWKS, Answer::Document(both));
        assert!(verifier(trust.issuer.url(), None).verify(&token, NOW).await.is_ok(), "{bad}");
    }
    // Without `alg`, an RSA key verifies both paddings.
    let rsa = SigningKey::rsa("r", "RS256");
    let mut jwk = rsa.jwk();
    merge(&mut jwk, json!({ "alg": null, "use": null }));
    trust.issuer.answer(JWKS, Answer::Document(json!({ "keys": [jwk] }).to_string()));
    let either = verifier(trust.issuer.url(), None);
    for key in [rsa, SigningKey::rsa("r", "PS256")] {
        assert!(either.verify(&key.token(&trust.claims()), NOW).await.is_ok());
    }
}

/// M1: keys are fetched again for an unknown key id, at intervals; a key that was removed is refused.
#[tokio::test]
async fn m1_rotated_keys_are_found_and_a_flood_of_key_ids_is_not_passed_on() {
    let old = SigningKey::p256("old");
    let issuer = TestIssuer::start(&[&old]).await;
    let refetch_after = Duration::from_millis(400);
    let trusting = VerifierOptions { refetch_after, ..options(issuer.url()) };
    let verifier = TokenVerifier::new(trusting).unwrap();
    let claims = issuer.claims("ann", OURS, NOW);
    assert!(verifier.verify(&old.token(&claims), NOW).await.is_ok());
    let new = SigningKey::ed25519("new");
    issuer.publish(&[&new]);
    for number in 0..200 {
        let header = json!({ "alg": "ES256", "kid": format!("invented-{number}") });
        let refused = verifier.verify(&old.sign(&header, &claims), NOW).await;
        assert_eq!(refused, Err(TokenError::UnknownKey));
    }
    assert!(issuer.requests(JWKS) <= 2, "{}", issuer.requests(JWKS));
    tokio::time::sleep(refetch_after).await;
    assert!(verifier.verify(&new.token(&claims), NOW).await.is_ok());
    assert_eq!(verifier.verify(&old.token(&claims), NOW).await, Err(TokenError::UnknownKey));
}

/// M2: tokens of known keys are verified while the issuer is down.
#[tokio::test]
async fn m2_an_issuer_that_is_down_stops_nobody_whose_key_is_known() {
    let trust = Trust::new().await;
    assert!(trust.with(json!({})).await.is_ok());
    trust.issuer.answer(JWKS, Answer::Status(503, None));
    let new = SigningKey::p256("new");
    tokio::time::sleep(Duration::from_millis(60)).await;
    let refused = trust.verify(&new.token(&trust.claims())).await;
    assert!(matches!(refused, Err(TokenError::Unavailable(_))), "{refused:?}");
    assert!(trust.with(json!({})).await.is_ok());
}

/// M1: the key set is found by the issuer's metadata, which must name the issuer exactly.
#[tokio::test]
async fn m1_the_metadata_of_the_issuer_is_found_and_checked() {
    let key = SigningKey::p256("one");
    let issuer = TestIssuer::start(&[&key]).await;
    let token = key.token(&issuer.claims("ann", OURS, NOW));
    let openid = "/.well-known/openid-configuration";
    let document = |name: &str, jwks: &str| {
        Answer::Document(json!({ "issuer": name, "jwks_uri": jwks }).to_string())
    };
    let jwks = format!("{}{JWKS}", issuer.url());
    issuer.answer(METADATA, Answer::Status(404, None));
    issuer.answer(openid, document(issuer.url(), &jwks));
    assert!(verifier(issuer.url(), None).verify(&token, NOW).await.is_ok());
    for wrong in [
        document(&format!("{}/", issuer.url()), &jwks),
        document(issuer.url(), "http://192.0.2.1/jwks"),
        document(issuer.url(), "file:///etc/passwd"),
        Answer::Document(json!({ "issuer": issuer.url() }).to_string()),
    ] {
        issuer.answer(openid, wrong.clone());
        let refused = verifier(issuer.url(), None).verify(&token, NOW).await;
        assert!(matches!(refused, Err(TokenError::Unavailable(_))), "{wrong:?}: {refused:?}");
    }
    let named = verifier(issuer.url(), Some(jwks));
    assert!(named.verify(&token, NOW).await.is_ok(), "a configured address needs no metadata");
    let unsafe_url = Some("http://keys.example/jwks".to_owned());
    let setup = VerifierOptions { jwks_url: unsafe_url, ..options(issuer.url()) };
    assert!(TokenVerifier::new(setup).is_err());
}
