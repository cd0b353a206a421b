//! A vendor's service behind one address and key, and its calls. Returns what was answered; what it means is decided
//! elsewhere.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use outlast_core::{BeginError, BoxError, Clock, Profile, ProviderError, RemoteRun, Timestamp};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderValue};
use reqwest::{RequestBuilder, Response, Url};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::errors::{self, HttpAnswer};
use super::waits::PollIntervals;
use super::{KeyHeader, Vendor, VendorOptions};
use crate::http::{
    Http, MAX_BODY, SendError, body_shape, read_body, read_refusal, redact, retry_after, send,
};

/// A stop that takes longer is tried again later.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// A run may be missing for a moment after it was accepted; one that is to be stopped is over when it is missing later
/// than this.
const SETTLED_AFTER: Duration = Duration::from_secs(30);

/// The API behind one base URL and key. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Service {
    shared: Arc<ServiceParts>,
    waits: PollIntervals,
}

struct ServiceParts {
    vendor: &'static Vendor,
    base_url: Url,
    api_key: String,
    http: Http,
    clock: Arc<dyn Clock>,
}

impl Service {
    pub(crate) fn new(vendor: &'static Vendor, options: VendorOptions) -> Result<Self, BoxError> {
        let mut base_url = Url::parse(&options.base_url)?;
        // `localhost:8080` is a URL too, of a scheme called localhost.
        if !matches!(base_url.scheme(), "http" | "https") {
            return Err("the base URL must begin with http:// or https://".into());
        }
        // Credentials in the address would be a second `Authorization` next to the key, and part of the profile.
        if base_url.set_username("").is_err() || base_url.set_password(None).is_err() {
            return Err("the base URL must name a host".into());
        }
        let http = Http::new(options.http)?;
        let VendorOptions { api_key, clock, waits, .. } = options;
        let shared = ServiceParts { vendor, base_url, api_key, http, clock };
        Ok(Self { shared: Arc::new(shared), waits: waits.unwrap_or_default() })
    }

    /// The vendor of this service.
    pub(crate) fn vendor(&self) -> &'static Vendor {
        self.shared.vendor
    }

    /// The requirements for a worker that uses the same API with the same key.
    pub(crate) fn profile(&self, dialect: &str) -> Profile {
        let mut hasher = Sha256::new_with_prefix(self.shared.api_key.as_bytes());
        let mut base_url = self.shared.base_url.clone();
        if let Some(query) = self.shared.base_url.query() {
            // The query distinguishes services but may hold a secret: it is hashed, not shown.
            hasher.update(query.as_bytes());
            base_url.set_query(None);
        }
        let digest = hasher.finalize();
        let fingerprint: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let base_url = base_url.as_str().trim_end_matches('/');
        Profile::new(format!("{dialect} {base_url} {fingerprint}"))
    }

    /// The limit of a whole call.
    pub(crate) fn timeout(&self) -> Duration {
        self.shared.http.timeout()
    }

    /// Returns the error of a refused submit, with this key kept out of it.
    pub(crate) fn refusal(&self, answer: &HttpAnswer) -> BeginError {
        errors::refusal(self.vendor(), answer, self.provider_error(answer))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub(crate) fn waits(&self) -> &PollIntervals {
        &self.waits
    }

    /// Returns true if the run is old enough that the provider must know it.
    pub(crate) fn is_settled(&self, run: &RemoteRun) -> bool {
        self.now().since(run.begun_at) >= SETTLED_AFTER
    }

    /// A run that begins now.
    pub(crate) fn remote(&self, provider: &str, id: String) -> RemoteRun {
        RemoteRun { provider: provider.to_owned(), id, cursor: None, begun_at: self.now() }
    }

    /// The address of what these names lead to. Whatever an id holds, it stays one segment of the path.
    pub(crate) fn address<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.shared.base_url.clone();
        // Fails only for URLs without a host, which `new` does not take.
        if let Ok(mut path) = url.path_segments_mut() {
            // The library drops names that are only dots; escaped, they stay names.
            path.pop_if_empty().extend(names.into_iter().map(|name| match name {
                "." => "%2E",
                ".." => "%2E%2E",
                name => name,
            }));
        }
        url
    }

    /// Prepares a request that costs money, on its own connection.
    pub(crate) fn post(
        &self,
        names: &[&str],
        body: &impl Serialize,
    ) -> Result<RequestBuilder, BeginError> {
        let client = self.shared.http.submits();
        let client = client
            .map_err(|error| BeginError::NotSent(errors::no_client(self.vendor(), &*error)))?;
        Ok(self.authorize(client.post(self.address(names.iter().copied())).json(body)))
    }

    /// Asks for a present state.
    pub(crate) async fn get(&self, names: &[&str]) -> Result<HttpAnswer, ProviderError> {
        self.get_within(self.timeout(), names).await
    }

    /// The same, with its own limit.
    pub(crate) async fn get_within(
        &self,
        limit: Duration,
        names: &[&str],
    ) -> Result<HttpAnswer, ProviderError> {
        let request = self.calls()?.get(self.address(names.iter().copied())).timeout(limit);
        self.answer(self.authorize(request)).await
    }

    /// Posts a request that costs nothing and may be repeated.
    pub(crate) async fn tell(
        &self,
        limit: Duration,
        names: &[&str],
        body: &(impl Serialize + Sync),
    ) -> Result<HttpAnswer, ProviderError> {
        let request = self.calls()?.post(self.address(names.iter().copied())).json(body);
        self.answer(self.authorize(request.timeout(limit))).await
    }

    /// Upstream text fit for the operator, with this key kept out of it.
    pub(crate) fn redact(&self, text: &str) -> String {
        redact(text, &self.shared.api_key)
    }

    /// A success that cannot be used, with the shape of its body.
    pub(crate) fn report_malformed(&self, sentence: &str, body: &[u8]) -> ProviderError {
        let detail = Some(body_shape(body, &self.shared.api_key));
        ProviderError { detail, ..errors::report_malformed(sentence) }
    }

    /// A success that names no run (A10).
    pub(crate) fn no_id(&self, body: &[u8]) -> ProviderError {
        self.report_malformed(errors::NO_ID, body)
    }

    pub(crate) fn authorize(&self, request: RequestBuilder) -> RequestBuilder {
        let key = &self.shared.api_key;
        let request = match self.vendor().key_header {
            KeyHeader::Bearer => request.bearer_auth(key),
            KeyHeader::Named(name) => match HeaderValue::from_str(key) {
                Ok(mut value) => {
                    value.set_sensitive(true);
                    request.header(name, value)
                }
                // Sent without a key it is refused, which shows what is wrong.
                Err(_) => request,
            },
        };
        let headers = self.vendor().headers.iter();
        headers.fold(request, |request, (name, value)| request.header(*name, *value))
    }

    /// A call without an answer.
    pub(crate) fn no_answer(&self, error: &SendError) -> ProviderError {
        errors::no_answer(self.vendor(), error)
    }

    pub(crate) fn stop_limit(&self) -> Duration {
        self.shared.http.timeout().min(STOP_LIMIT)
    }

    /// Sends a request that may be repeated, and reads its whole answer.
    pub(crate) async fn answer(
        &self,
        request: RequestBuilder,
    ) -> Result<HttpAnswer, ProviderError> {
        let response = send(request).await.map_err(|error| self.no_answer(&error))?;
        self.read_answer(response).await
    }

    /// Reads a whole answer.
    pub(crate) async fn read_answer(
        &self,
        response: Response,
    ) -> Result<HttpAnswer, ProviderError> {
        let status = response.status();
        let retry_after = retry_after(response.headers(), self.now());
        if !status.is_success() {
            let body = read_refusal(response, self.timeout()).await;
            return Ok(HttpAnswer { status, retry_after, body });
        }
        let body =
            read_body(response, MAX_BODY).await.map_err(|error| errors::broken_answer(&error))?;
        Ok(HttpAnswer { status, retry_after, body })
    }

    pub(crate) fn calls(&self) -> Result<reqwest::Client, ProviderError> {
        self.shared.http.calls().map_err(|error| errors::no_client(self.vendor(), &*error))
    }

    /// Returns the error in an answer that is not a success, with this key kept out of it.
    pub(crate) fn provider_error(&self, answer: &HttpAnswer) -> ProviderError {
        errors::provider_error(self.vendor(), answer, &self.shared.api_key)
    }
}

/// Returns true if the answer is a stream of events.
pub(crate) fn is_event_stream(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = content_type.and_then(|text| text.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

#[cfg(test)]
impl Service {
    /// An API at an address that does not answer, with a clock that stays at zero.
    pub(crate) fn nowhere() -> Self {
        Self::nowhere_after(PollIntervals::default())
    }

    /// The same, with other waits between checks.
    pub(crate) fn nowhere_after(waits: PollIntervals) -> Self {
        struct ZeroClock;

        impl Clock for ZeroClock {
            fn now(&self) -> Timestamp {
                Timestamp::from_millis(0)
            }
        }

        let options = VendorOptions {
            base_url: "http://127.0.0.1:1".to_owned(),
            api_key: "k".to_owned(),
            model: None,
            http: crate::http::HttpOptions { timeout: Duration::from_secs(1), proxy: None },
            clock: Arc::new(ZeroClock),
            waits: Some(waits),
        };
        Self::new(&crate::perplexity::VENDOR, options).unwrap()
    }
}

/// The result of a check of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedAnswer {
    /// The state of the key.
    pub key: KeyState,
    /// The server's time, to the second.
    pub server_time: Option<Timestamp>,
    /// Warnings about future errors, one sentence each.
    pub warnings: Vec<String>,
}

/// The judgement of a service about the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// It is accepted.
    Taken,
    /// It was not checked: this service has no list of models.
    Unknown,
}

impl Service {
    /// Asks once, within this limit. A key that is refused is an error like any other.
    pub(crate) async fn check(&self, limit: Duration) -> Result<CheckedAnswer, ProviderError> {
        let to_error = |answer: &HttpAnswer| self.provider_error(answer);
        let (checked, _) = self.check_list(self.address(["v1", "models"]), limit, to_error).await?;
        Ok(checked)
    }

    /// The same with the list at this address, which is returned if there is one.
    pub(crate) async fn check_list(
        &self,
        list: Url,
        limit: Duration,
        to_error: impl FnOnce(&HttpAnswer) -> ProviderError,
    ) -> Result<(CheckedAnswer, Vec<u8>), ProviderError> {
        let request = self.calls()?.get(list).timeout(limit);
        let response =
            send(self.authorize(request)).await.map_err(|error| self.no_answer(&error))?;
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        let server_time = date.map(|date| Timestamp::from_millis(date.timestamp_millis()));
        let status = response.status();
        let key = match status.as_u16() {
            200..=299 => KeyState::Taken,
            404 | 405 | 501 => KeyState::Unknown,
            _ => {
                let body = read_refusal(response, limit).await;
                return Err(to_error(&HttpAnswer { status, retry_after: None, body }));
            }
        };
        let checked = CheckedAnswer { key, server_time, warnings: Vec::new() };
        // A list that cannot be read does not concern the key, which was accepted.
        Ok((checked, read_body(response, MAX_BODY).await.unwrap_or_default()))
    }
}
