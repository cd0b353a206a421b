//! The Agent dialect: submit with `background` and `stream`, so that the run outlives the connection and its id
//! comes with the first event.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    Again, BeginError, BoxError, Clock, Nature, Profile, Provider, ProviderError, RemoteRun,
    RemoteStop, ResearchAsk, Run, Timestamp, Trouble,
};
use reqwest::header::CONTENT_TYPE;
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout, timeout_at};

use super::errors::{self, Answer};
use super::events::EventStream;
use super::run::AgentRun;
use super::waits::Waits;
use super::wire;
use crate::http::{BodyError, Http, HttpOptions, read_body, retry_after, send};

/// A stop that takes longer is tried again later.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// How long the body of a refused submit may take; its status counts without it.
const REFUSAL_LIMIT: Duration = Duration::from_secs(10);

/// A run may be missing for a moment after it was accepted; it is gone only when missing later than this.
const SETTLED_AFTER: Duration = Duration::from_secs(30);

/// What the adapter is made from.
pub struct AgentOptions {
    /// Where the API is.
    pub base_url: String,
    /// The key; never logged.
    pub api_key: String,
    /// Limits and proxy.
    pub http: HttpOptions,
    /// Dates runs and reads `x-ratelimit-reset`.
    pub clock: Arc<dyn Clock>,
}

/// Perplexity's Agent API as a provider.
#[derive(Clone)]
pub struct Agent {
    shared: Arc<Shared>,
    waits: Waits,
}

struct Shared {
    base_url: Url,
    api_key: String,
    http: Http,
    clock: Arc<dyn Clock>,
}

impl Agent {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "perplexity/agent";

    /// Makes the adapter; nothing is sent yet.
    pub fn new(options: AgentOptions) -> Result<Self, BoxError> {
        let base_url = Url::parse(&options.base_url)?;
        // `localhost:8080` is a URL too, of a scheme called localhost.
        if !matches!(base_url.scheme(), "http" | "https") {
            return Err("the base URL must begin with http:// or https://".into());
        }
        let http = Http::new(options.http)?;
        let shared = Shared { base_url, api_key: options.api_key, http, clock: options.clock };
        Ok(Self { shared: Arc::new(shared), waits: Waits::default() })
    }

    /// The same adapter with other waits between checks.
    #[must_use]
    pub fn with_waits(self, waits: Waits) -> Self {
        Self { waits, ..self }
    }

    /// What a worker must have to run this adapter's jobs: the same service and the same key.
    pub fn profile(&self) -> Profile {
        let digest = Sha256::digest(self.shared.api_key.as_bytes());
        let fingerprint: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let base_url = self.shared.base_url.as_str().trim_end_matches('/');
        Profile::new(format!("{} {base_url} {fingerprint}", Self::NAME))
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub(super) fn waits(&self) -> &Waits {
        &self.waits
    }

    /// Whether the run is old enough that the provider must know it.
    pub(super) fn is_settled(&self, run: &RemoteRun) -> bool {
        self.now().since(run.begun_at) >= SETTLED_AFTER
    }

    /// The address of what these names lead to. Whatever an id holds, it stays one segment of the path.
    fn url<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.shared.base_url.clone();
        // Fails only for URLs without a host, which `new` does not take.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["v1", "agent"]).extend(names);
        }
        url
    }

    fn authorised(&self, request: RequestBuilder) -> RequestBuilder {
        request.bearer_auth(&self.shared.api_key)
    }

    /// Asks for a run's present state.
    pub(super) async fn check(&self, id: &str) -> Result<Answer, ProviderError> {
        self.check_within(self.shared.http.timeout(), id).await
    }

    async fn check_within(&self, limit: Duration, id: &str) -> Result<Answer, ProviderError> {
        let request = self.calls()?.get(self.url([id])).timeout(limit);
        self.answer(self.authorised(request)).await
    }

    /// Takes up a run's event stream after the event of this number.
    pub(super) async fn attach(&self, id: &str, cursor: u64) -> Result<Attached, ProviderError> {
        let mut url = self.url([id]);
        url.set_query(Some(&format!("stream=true&starting_after={cursor}")));
        let request = self.calls()?.get(url).header("accept", "text/event-stream");
        let response =
            send(self.authorised(request)).await.map_err(|error| errors::no_answer(&error))?;
        if response.status() == StatusCode::OK && is_event_stream(&response) {
            return Ok(Attached::Stream(Box::new(EventStream::new(response))));
        }
        let status = response.status();
        if status.is_success() || matches!(status.as_u16(), 400 | 405 | 410 | 422) {
            return Ok(Attached::Refused);
        }
        // A stream that cannot be had now may be had later.
        Err(self.trouble(&Answer { status, retry_after: None, body: Vec::new() }))
    }

    async fn cancel(&self, id: &str) -> Result<Answer, ProviderError> {
        let request = self.calls()?.post(self.url([id, "cancel"]));
        let request = request.timeout(self.stop_limit()).json(&serde_json::json!({}));
        self.answer(self.authorised(request)).await
    }

    fn stop_limit(&self) -> Duration {
        self.shared.http.timeout().min(STOP_LIMIT)
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Answer, ProviderError> {
        let response = send(request).await.map_err(|error| errors::no_answer(&error))?;
        self.read(response).await.map_err(|error| errors::broken_answer(&error))
    }

    async fn read(&self, response: Response) -> Result<Answer, BodyError> {
        let status = response.status();
        let retry_after = retry_after(response.headers(), self.now());
        let body = read_body(response).await?;
        Ok(Answer { status, retry_after, body })
    }

    fn calls(&self) -> Result<reqwest::Client, ProviderError> {
        self.shared.http.calls().map_err(|error| errors::no_client(&*error))
    }

    /// What an answer that is not a success means, with this key kept out of it.
    pub(super) fn trouble(&self, answer: &Answer) -> ProviderError {
        errors::trouble(answer, &self.shared.api_key)
    }

    /// What the end of a run without a report means, with this key kept out of it.
    pub(super) fn run_ended(
        &self,
        status: wire::Status,
        error: Option<wire::RunError>,
    ) -> ProviderError {
        errors::run_ended(status, error, &self.shared.api_key)
    }
}

/// What came of asking for a stream.
pub(super) enum Attached {
    /// It is there.
    Stream(Box<EventStream>),
    /// This run has none; asking again is of no use.
    Refused,
}

#[async_trait]
impl Provider for Agent {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn nature(&self, _ask: &Value) -> Nature {
        // The API has neither idempotency keys nor a list of runs: a lost submit cannot be found again.
        Nature { again: Again::Never, resumes: true, stops: true }
    }

    async fn begin(&self, ask: &Value, _key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask: ResearchAsk = serde_json::from_value(ask.clone()).map_err(|error| {
            BeginError::NotSent(ProviderError {
                trouble: Trouble::Rejected,
                sentence: "the stored request cannot be read by this version".to_owned(),
                detail: Some(error.to_string()),
            })
        })?;
        let client = self.shared.http.submits();
        let client = client.map_err(|error| BeginError::NotSent(errors::no_client(&*error)))?;
        let request = client.post(self.url([])).json(&wire::Submit::from(&ask));
        let run = self.submit(self.authorised(request)).await?;
        Ok(Box::new(run))
    }

    async fn resume(&self, run: &RemoteRun) -> Result<Box<dyn Run>, ProviderError> {
        Ok(Box::new(AgentRun::resumed(self.clone(), run.clone())))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<RemoteStop, ProviderError> {
        // A cancel of an unknown run and of a finished one get the same answer, so the state is read first.
        let before = self.check_within(self.stop_limit(), &run.id).await?;
        if before.status == StatusCode::NOT_FOUND {
            return if self.is_settled(run) {
                Ok(RemoteStop::Done)
            } else {
                Err(errors::not_yet())
            };
        }
        if !before.status.is_success() {
            return Err(self.trouble(&before));
        }
        if wire::Response::parse(&before.body)
            .is_some_and(|response| response.status().is_terminal())
        {
            return Ok(RemoteStop::Done);
        }
        let answer = self.cancel(&run.id).await?;
        match answer.status {
            status if status.is_success() => Ok(RemoteStop::Done),
            // It ended between the two calls.
            StatusCode::BAD_REQUEST => Ok(RemoteStop::Done),
            _ => Err(self.trouble(&answer)),
        }
    }
}

impl Agent {
    /// Sends the request and waits for the event, or the body, that names the run.
    async fn submit(&self, request: RequestBuilder) -> Result<AgentRun, BeginError> {
        let limit = self.shared.http.timeout();
        let deadline = Instant::now() + limit;
        let silent = |_| BeginError::Unknown(errors::silent(limit));
        let response = timeout_at(deadline, send(request)).await.map_err(silent)?;
        let response = response.map_err(|error| errors::not_begun(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        timeout_at(deadline, self.begun(response)).await.map_err(silent)?
    }

    /// A submit that was answered with an error. A body that breaks off or never ends is taken for an empty one: it
    /// must not undo what the status says.
    async fn refused(&self, response: Response) -> BeginError {
        let status = response.status();
        let retry_after = retry_after(response.headers(), self.now());
        let limit = self.shared.http.timeout().min(REFUSAL_LIMIT);
        let body = match timeout(limit, read_body(response)).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        errors::refusal(&Answer { status, retry_after, body }, &self.shared.api_key)
    }

    /// A submit that was accepted: its run, once it has a name.
    async fn begun(&self, response: Response) -> Result<AgentRun, BeginError> {
        if !is_event_stream(&response) {
            let answer = self.read(response).await;
            let answer =
                answer.map_err(|error| BeginError::Unknown(errors::broken_answer(&error)))?;
            let id = wire::Response::parse(&answer.body).and_then(wire::Response::into_id);
            let id = id.ok_or_else(|| BeginError::Unknown(errors::no_id()))?;
            return Ok(AgentRun::resumed(self.clone(), self.remote(id)));
        }
        let mut events = EventStream::new(response);
        loop {
            let event = events.next().await.map_err(|error| {
                BeginError::Unknown(errors::stream_before_id(
                    error.as_ref().map(ToString::to_string),
                ))
            })?;
            let id = match event.response {
                Some(response) => response.into_id(),
                None if event.ends_the_stream() => None,
                None => continue,
            };
            let id = id.ok_or_else(|| BeginError::Unknown(errors::no_id()))?;
            let heard = event.sequence_number;
            return Ok(AgentRun::streaming(self.clone(), self.remote(id), events, heard));
        }
    }

    fn remote(&self, id: String) -> RemoteRun {
        RemoteRun { provider: Self::NAME.to_owned(), id, cursor: None, begun_at: self.now() }
    }
}

fn is_event_stream(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = content_type.and_then(|text| text.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}
