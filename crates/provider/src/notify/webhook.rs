//! Posts notices to an address.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{BoxError, Clock, NotDelivered, Notice, Notifier};
use outlast_http::ProxyOptions;
use reqwest::{Client, Url};

use super::not_delivered;
use super::signature::signature;

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
