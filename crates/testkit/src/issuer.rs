//! An OAuth issuer on this machine: metadata, a key set that can misbehave, and keys that sign any token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The path of the key set.
pub const JWKS: &str = "/jwks";
/// The path of the metadata.
pub const METADATA: &str = "/.well-known/oauth-authorization-server";

/// An answer of the issuer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// This document.
    Document(String),
    /// This status, with a `Location` if it is a redirect.
    Status(u16, Option<String>),
    /// Nothing, for ever.
    Silence,
    /// A body without an end.
    Endless,
}

#[derive(Default)]
struct State {
    answers: HashMap<String, Answer>,
    requests: Vec<String>,
}

/// A running issuer.
pub struct TestIssuer {
    url: String,
    state: Arc<Mutex<State>>,
    serving: JoinHandle<()>,
}

impl Drop for TestIssuer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl TestIssuer {
    /// Starts an issuer that publishes these keys.
    pub async fn start(keys: &[&SigningKey]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::<Mutex<State>>::default();
        let serving = tokio::spawn({
            let state = Arc::clone(&state);
            async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(serve(stream, Arc::clone(&state)));
                }
            }
        });
        let issuer = Self { url, state, serving };
        issuer.answer(
            METADATA,
            Answer::Document(
                json!({
                    "issuer": issuer.url,
                    "jwks_uri": format!("{}{JWKS}", issuer.url),
                    "authorization_endpoint": format!("{}/authorize", issuer.url),
                    "token_endpoint": format!("{}/token", issuer.url),
                    "registration_endpoint": format!("{}/register", issuer.url),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                })
                .to_string(),
            ),
        );
        issuer.publish(keys);
        issuer
    }

    /// Returns the issuer's name, which is its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Replaces the published keys.
    pub fn publish(&self, keys: &[&SigningKey]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        self.answer(JWKS, Answer::Document(json!({ "keys": keys }).to_string()));
    }

    /// Sets the answer at a path.
    pub fn answer(&self, path: &str, answer: Answer) {
        self.state.lock().unwrap().answers.insert(path.to_owned(), answer);
    }

    /// Returns the number of requests for a path.
    pub fn requests(&self, path: &str) -> usize {
        self.state.lock().unwrap().requests.iter().filter(|asked| *asked == path).count()
    }

    /// Returns the claims of a good access token: one hour from `now`, with both usual scopes.
    pub fn claims(&self, subject: &str, audience: &str, now: i64) -> Value {
        json!({
            "iss": self.url, "sub": subject, "aud": audience, "client_id": "test",
            "iat": now, "exp": now + 3600, "jti": "1", "scope": "outlast:read outlast:run",
        })
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
    let (input, mut output) = stream.into_split();
    let mut lines = BufReader::new(input).lines();
    let Ok(Some(first)) = lines.next_line().await else { return };
    while let Ok(Some(line)) = lines.next_line().await {
        if line.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let answer = {
        let mut state = state.lock().unwrap();
        state.requests.push(path.clone());
        state.answers.get(&path).cloned()
    };
    let head = "Content-Type: application/json\r\nConnection: close\r\n";
    let text = match answer.unwrap_or(Answer::Status(404, None)) {
        Answer::Document(text) => {
            format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n{text}", text.len())
        }
        Answer::Status(status, location) => {
            let location = location.map(|at| format!("Location: {at}\r\n")).unwrap_or_default();
            format!("HTTP/1.1 {status} X\r\n{head}{location}Content-Length: 0\r\n\r\n")
        }
        Answer::Silence => return std::future::pending().await,
        Answer::Endless => {
            let start = format!("HTTP/1.1 200 OK\r\n{head}\r\n{{\"keys\": [");
            drop(output.write_all(start.as_bytes()).await);
            while output.write_all(&[b' '; 4096]).await.is_ok() {}
            return;
        }
    };
    drop(output.write_all(text.as_bytes()).await);
}

enum Pair {
    Rsa(Box<RsaKeyPair>, &'static str),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// A key that signs tokens.
pub struct SigningKey {
    /// The key id.
    pub id: String,
    pair: Pair,
}

impl SigningKey {
    /// Returns the RSA key of the tests; `algorithm` is RS256 or PS256.
    pub fn rsa(id: &str, algorithm: &'static str) -> Self {
        let pair = RsaKeyPair::from_pkcs8(include_bytes!("issuer/rsa.p8")).unwrap();
        Self { id: id.to_owned(), pair: Pair::Rsa(Box::new(pair), algorithm) }
    }

    /// Creates a key of P-256.
    pub fn p256(id: &str) -> Self {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap();
        Self { id: id.to_owned(), pair: Pair::P256(pair) }
    }

    /// Creates a key of Ed25519.
    pub fn ed25519(id: &str) -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap();
        Self { id: id.to_owned(), pair: Pair::Ed25519(pair) }
    }

    /// Returns the name of its algorithm.
    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Rsa(_, algorithm) => algorithm,
            Pair::P256(_) => "ES256",
            Pair::Ed25519(_) => "EdDSA",
        }
    }

    /// Returns the public key as published.
    pub fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Rsa(pair, _) => {
                let public: ring::rsa::PublicKeyComponents<Vec<u8>> = pair.public().into();
                json!({ "kty": "RSA", "n": encode(public.n), "e": encode(public.e) })
            }
            Pair::P256(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
                json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y })
            }
            Pair::Ed25519(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key()) })
            }
        };
        jwk["kid"] = json!(self.id);
        jwk["alg"] = json!(self.algorithm());
        jwk["use"] = json!("sig");
        jwk
    }

    /// Returns the header of an access token.
    pub fn header(&self) -> Value {
        json!({ "alg": self.algorithm(), "typ": "at+jwt", "kid": self.id })
    }

    /// Returns an access token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        self.sign(&self.header(), claims)
    }

    /// Signs any header and claims.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = unsigned(header, claims);
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Rsa(pair, algorithm) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let padding: &dyn ring::signature::RsaEncoding =
                    if *algorithm == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                pair.sign(padding, &random, signed.as_bytes(), &mut signature).unwrap();
                signature
            }
            Pair::P256(pair) => pair.sign(&random, signed.as_bytes()).unwrap().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        format!("{signed}.{}", encode(signature))
    }
}

/// Returns the first two parts of a token.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encode(header.to_string()), encode(claims.to_string()))
}

/// Encodes a part of a token.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns a token whose signature is a MAC with a secret: the algorithm HS256.
pub fn sign_with_secret(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let signed = unsigned(header, claims);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    format!("{signed}.{}", encode(ring::hmac::sign(&key, signed.as_bytes())))
}
