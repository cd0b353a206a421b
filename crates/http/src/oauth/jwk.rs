//! The issuer's key set (RFC 7517). Keys that this server cannot use are skipped; the others verify one algorithm each, or, for
//! an RSA key that names none, the two for RSA.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use super::jwt::{Algorithm, Jwt, decode};

/// The maximum number of keys that are kept. Issuers publish two or three.
const MAX_KEYS: usize = 64;

#[derive(Deserialize)]
struct KeySetDocument {
    keys: Vec<Value>,
}

/// A member of the set, as published.
#[derive(Deserialize)]
struct PublishedKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The usable keys of an issuer.
#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    /// The algorithm that the issuer names for the key.
    algorithm: Option<Algorithm>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point of P-256.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The result of looking for the key of a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SignatureCheck {
    Right,
    Wrong,
    NoSuchKey,
}

impl KeySet {
    /// Reads a key set; `None` if it is not one.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let document: KeySetDocument = serde_json::from_slice(text).ok()?;
        let usable = document.keys.into_iter().filter_map(|key| {
            let key: PublishedKey = serde_json::from_value(key).ok()?;
            Key::from_published(key)
        });
        Some(Self(usable.take(MAX_KEYS).collect()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Checks a signature with the keys that the token may have been signed with. A token without a key id may have been signed
    /// with any.
    pub(super) fn check(&self, jwt: &Jwt<'_>) -> SignatureCheck {
        let mut check = SignatureCheck::NoSuchKey;
        for key in &self.0 {
            let is_named = jwt.key_id.is_none() || jwt.key_id == key.id;
            if !is_named || !key.verifies(jwt.algorithm) {
                continue;
            }
            if key.is_signature(jwt) {
                return SignatureCheck::Right;
            }
            check = SignatureCheck::Wrong;
        }
        check
    }
}

impl Key {
    fn from_published(key: PublishedKey) -> Option<Self> {
        let verifies = key.key_ops.is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if key.purpose.is_some_and(|purpose| purpose != "sig") || !verifies {
            return None;
        }
        // A key for an algorithm that we do not accept is no key for one that we do.
        let algorithm = match key.alg {
            Some(name) => Some(Algorithm::named(&name)?),
            None => None,
        };
        let part = |part: Option<String>| decode(&part?);
        let material = match (&*key.kty, key.crv.as_deref()) {
            ("RSA", _) => {
                Material::Rsa { n: trim_zeros(part(key.n)?), e: trim_zeros(part(key.e)?) }
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (part(key.x)?, part(key.y)?);
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                Material::P256([&[4], &*x, &*y].concat())
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(part(key.x)?),
            _ => return None,
        };
        let key = Self { id: key.kid, algorithm: None, material };
        match algorithm {
            Some(named) if !key.verifies(named) => None,
            algorithm => Some(Self { algorithm, ..key }),
        }
    }

    fn verifies(&self, algorithm: Algorithm) -> bool {
        let fits = match self.material {
            Material::Rsa { .. } => matches!(algorithm, Algorithm::Rs256 | Algorithm::Ps256),
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        fits && self.algorithm.is_none_or(|own| own == algorithm)
    }

    fn is_signature(&self, jwt: &Jwt<'_>) -> bool {
        let (signed, signature) = (jwt.signed, &*jwt.signature);
        let verified = match (&self.material, jwt.algorithm) {
            (Material::Rsa { n, e }, Algorithm::Ps256) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PSS_2048_8192_SHA256, signed, signature)
            }
            (Material::Rsa { n, e }, _) => RsaPublicKeyComponents { n, e }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                signed,
                signature,
            ),
            (Material::P256(point), _) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            (Material::Ed25519(point), _) => {
                UnparsedPublicKey::new(&ED25519, point).verify(signed, signature)
            }
        };
        verified.is_ok()
    }
}

/// Removes leading zeros, which some issuers publish and ring refuses.
fn trim_zeros(number: Vec<u8>) -> Vec<u8> {
    number.into_iter().skip_while(|byte| *byte == 0).collect()
}
