//! The issuer's keys in memory. They are fetched when they are first needed, when they are no longer fresh, and when a token
//! names an unknown one, but not more often than an attacker with invented key ids may cause.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::TokenError;
use super::issuer::Issuer;
use super::jwk::{KeySet, SignatureCheck};
use super::jwt::Jwt;

/// The age from which keys are fetched again, so that a key that the issuer removed is soon refused.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// The age up to which keys are used while the issuer does not answer.
const USABLE: Duration = Duration::from_secs(24 * 60 * 60);
/// The pause between attempts while there are no keys at all.
const FIRST_RETRY: Duration = Duration::from_secs(2);

pub(super) struct KeyCache {
    issuer: Arc<Issuer>,
    refetch_after: Duration,
    held: Mutex<CachedKeys>,
    /// One fetch at a time.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Clone, Default)]
struct CachedKeys {
    keys: Option<Arc<KeySet>>,
    fetched_at: Option<Instant>,
    tried_at: Option<Instant>,
    /// The reason that the last attempt failed.
    failure: Option<String>,
}

impl CachedKeys {
    /// Returns the keys unless they are too old to be used.
    fn usable_keys(&self) -> Option<&KeySet> {
        self.keys.as_deref().filter(|_| !self.is_older_than(USABLE))
    }

    fn is_older_than(&self, age: Duration) -> bool {
        self.fetched_at.is_none_or(|fetched_at| fetched_at.elapsed() >= age)
    }
}

impl KeyCache {
    pub(super) fn new(issuer: Arc<Issuer>, refetch_after: Duration) -> Self {
        Self {
            issuer,
            refetch_after,
            held: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Checks a token's signature with the issuer's keys.
    pub(super) async fn verify_signature(&self, jwt: &Jwt<'_>) -> Result<(), TokenError> {
        let held = self.held.lock().clone();
        let known = held.usable_keys().map(|keys| keys.check(jwt));
        match known {
            Some(SignatureCheck::Right | SignatureCheck::Wrong) if held.is_older_than(FRESH) => {
                // Only one request waits for the issuer; the others go on with the keys that are there.
                if let Ok(_one) = self.fetching.try_lock() {
                    self.fetch_if_due().await;
                }
            }
            Some(SignatureCheck::Right) => return Ok(()),
            Some(SignatureCheck::Wrong) => return Err(TokenError::Signature),
            Some(SignatureCheck::NoSuchKey) | None => {
                let _one = self.fetching.lock().await;
                self.fetch_if_due().await;
            }
        }
        let held = self.held.lock().clone();
        match held.usable_keys().map(|keys| keys.check(jwt)) {
            Some(SignatureCheck::Right) => Ok(()),
            Some(SignatureCheck::Wrong) => Err(TokenError::Signature),
            // After a failed fetch it is unknown if the issuer has the key.
            Some(SignatureCheck::NoSuchKey) | None => Err(match held.failure {
                Some(failure) => TokenError::Unavailable(failure),
                // The request that fetches them was given up.
                None if held.keys.is_none() => {
                    TokenError::Unavailable("no answer has arrived yet".to_owned())
                }
                None => TokenError::UnknownKey,
            }),
        }
    }

    /// Fetches the keys unless that was tried a moment ago.
    async fn fetch_if_due(&self) {
        {
            let mut held = self.held.lock();
            let pause = match held.keys {
                Some(_) => self.refetch_after,
                None => self.refetch_after.min(FIRST_RETRY),
            };
            if held.tried_at.is_some_and(|tried_at| tried_at.elapsed() < pause) {
                return;
            }
            held.tried_at = Some(Instant::now());
        }
        let fetched = self.issuer.keys().await;
        let mut held = self.held.lock();
        match fetched {
            Ok(keys) => {
                if keys.len() == 0 {
                    tracing::warn!(
                        "the issuer's key set has no usable key: every token is refused"
                    );
                }
                held.keys = Some(Arc::new(keys));
                held.fetched_at = Some(Instant::now());
                held.failure = None;
            }
            Err(failure) => {
                tracing::warn!("failed to fetch the issuer's keys: {failure}");
                held.failure = Some(failure);
            }
        }
    }
}
