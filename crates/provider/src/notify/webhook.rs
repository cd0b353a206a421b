//! Posts notices to an address.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{BoxError, Clock, NotDelivered, Notice, Notifier};
use outlast_http::ProxyOptions;
use reqwest::{Client, Url};
use sha2::{Digest as _, Sha256};

use super::not_delivered;

/// The longest time the receiver may take.
const LIMIT: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);

/// The options of a webhook.
pub struct WebhookOptions {
    /// The address to post to.
    pub url: String,
    /// The key that signs the posts.
    pub secret: String,
    /// The proxy, if configured.
    pub proxy: Option<ProxyOptions>,
    /// Dates a signature.
    pub clock: Arc<dyn Clock>,
}

/// Posts notices to an address, each with an `Outlast-Signature`. Follows no redirect.
pub struct Webhook {
    url: Url,
    secret: String,
    proxy: Option<ProxyOptions>,
    clock: Arc<dyn Clock>,
    /// Made at first use: a server that never posts anything never pays for TLS.
    client: OnceLock<Client>,
}

/// Neither the secret nor the address, which may hold one, is shown.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhook")
    }
}

impl Webhook {
    /// Connects to nothing yet; fails on an address or a proxy that cannot be used.
    pub fn new(options: WebhookOptions) -> Result<Self, BoxError> {
        let WebhookOptions { url, secret, proxy, clock } = options;
        let url = Url::parse(&url).map_err(|error| format!("notify.url is no address: {error}"))?;
        if let Some(proxy) = &proxy {
            proxy.to_proxy()?;
        }
        Ok(Self { url, secret, proxy, clock, client: OnceLock::new() })
    }

    fn client(&self) -> Result<Client, BoxError> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let builder = outlast_http::client_builder(self.proxy.as_ref(), CONNECT)?;
        let client = builder.timeout(LIMIT).pool_max_idle_per_host(0).build()?;
        Ok(self.client.get_or_init(|| client).clone())
    }
}

#[async_trait]
impl Notifier for Webhook {
    async fn deliver(&self, notice: &Notice) -> Result<(), NotDelivered> {
        let client = self.client().map_err(|error| not_delivered(error.to_string()))?;
        let seconds = self.clock.now().as_millis().div_euclid(1000);
        let post = client
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header("outlast-signature", signature(&self.secret, seconds, &notice.body))
            .body(notice.body.clone());
        let answer = post.send().await.map_err(|error| NotDelivered {
            why: "the receiver did not answer".to_owned(),
            detail: Some(outlast_http::error_chain(&error.without_url())),
        })?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(not_delivered(format!("the receiver answered {}", status.as_u16()))),
        }
    }
}

const BLOCK: usize = 64;

/// `t=<seconds>,v1=<hex of the HMAC of "seconds.body">`.
fn signature(secret: &str, seconds: i64, body: &str) -> String {
    let signed = hmac(secret.as_bytes(), &[seconds.to_string().as_bytes(), b".", body.as_bytes()]);
    let hex: String = signed.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x36));
    parts.iter().for_each(|part| inner.update(part));
    let mut outer = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: [u8; 32]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The cases 1, 2 and 6 of RFC 4231.
    #[test]
    fn hmac_is_that_of_the_standard() {
        let cases: [(&[u8], &[u8], &str); 3] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, data, expected) in cases {
            assert_eq!(hex(hmac(key, &[data])), expected);
            let (one, two) = data.split_at(3);
            assert_eq!(hex(hmac(key, &[one, two])), expected);
        }
    }

    /// G7: the time and the body are signed together; any other secret, time or body has another signature.
    #[test]
    fn g7_a_signature_names_its_time() {
        let signed = signature("s3cret", 1_794_700_000, "{}");
        let (time, hex) = signed.split_once(",v1=").unwrap();
        assert_eq!((time, hex.len()), ("t=1794700000", 64));
        for other in [
            signature("other", 1_794_700_000, "{}"),
            signature("s3cret", 1_794_700_001, "{}"),
            signature("s3cret", 1_794_700_000, "{ }"),
        ] {
            assert_ne!(other, signed);
        }
    }
}
