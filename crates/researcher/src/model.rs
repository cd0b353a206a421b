//! The one chat dialect: `POST {model_url}/chat/completions`, not streamed.

pub(crate) mod json;
pub(crate) mod tokens;
pub(crate) mod window;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use outlast_core::{ProviderError, ProviderErrorKind};
use outlast_http::{error_chain, read_body};
use reqwest::{Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Host;

use crate::SharedState;
use crate::waits::unreachable;

/// The server in sentences.
pub(crate) const MODEL_SERVER: &str = "the model server";
/// The time to the first byte of an answer. A local model may take minutes to read a long prompt.
const FIRST_BYTE: Duration = Duration::from_secs(300);
/// The time for the rest of the answer.
const BODY: Duration = Duration::from_secs(120);
const MAX_BODY: usize = 1 << 20;
/// Longer answers are cut: a model that repeats itself has nothing more to say.
const MAX_CONTENT: usize = 128 << 10;
/// The longest wait that a server may ask for.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The requests to a server on another machine at a time.
const PARALLEL: usize = 4;

/// A request to the model.
#[derive(Clone, Debug)]
pub(crate) struct ChatRequest {
    pub(crate) system: String,
    pub(crate) user: String,
    /// The name of the schema.
    pub(crate) name: &'static str,
    pub(crate) schema: Value,
    pub(crate) max_tokens: u64,
    pub(crate) seed: u32,
}

/// An answer of the model, as the journal stores it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChatAnswer {
    pub(crate) content: String,
    /// The reason why it ends, as the server states it.
    #[serde(default)]
    pub(crate) finish: String,
    /// The number of tokens read; zero if the server does not state it.
    #[serde(default)]
    pub(crate) read: u64,
    #[serde(default)]
    pub(crate) written: u64,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) enum ChatEnd {
    Answered(ChatAnswer),
    /// The prompt does not fit the window. Nothing was accepted.
    TooLong,
    /// Nothing was accepted, and the same request may be sent after a wait.
    Busy {
        wait: Duration,
        error: ProviderError,
    },
    /// Nothing was accepted, and the same request would be refused again.
    Refused(ProviderError),
    /// The request may have been accepted.
    Unanswered(ProviderError),
}

/// The form of structured answers that a server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFormat {
    Schema,
    Object,
    Plain,
}

/// The parameters that a server accepts for a model.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    format: AnswerFormat,
    has_temperature: bool,
    has_seed: bool,
    /// True for `max_completion_tokens` in the place of `max_tokens`.
    counts_completion: bool,
}

impl Dialect {
    const FIRST: Self = Self {
        format: AnswerFormat::Schema,
        has_temperature: true,
        has_seed: true,
        counts_completion: false,
    };

    /// Returns the dialect without the parameter that a server has refused; without a format if it names none.
    fn without_refused(self, message: &str) -> Option<Self> {
        let message = message.to_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if !self.counts_completion && names(&["max_completion_tokens"]) {
            return Some(Self { counts_completion: true, ..self });
        }
        if self.has_temperature && names(&["temperature"]) {
            return Some(Self { has_temperature: false, ..self });
        }
        if self.has_seed && names(&["seed"]) {
            return Some(Self { has_seed: false, ..self });
        }
        // Servers refuse a format in many words: llama.cpp fails to initialize its samplers. A refused request is free.
        match self.format {
            AnswerFormat::Schema => Some(Self { format: AnswerFormat::Object, ..self }),
            AnswerFormat::Object => Some(Self { format: AnswerFormat::Plain, ..self }),
            AnswerFormat::Plain => None,
        }
    }

    fn body(self, request: &ChatRequest, model: &str) -> Value {
        let system = match self.format {
            AnswerFormat::Schema => request.system.clone(),
            AnswerFormat::Object | AnswerFormat::Plain => format!(
                "{}\n\nAnswer with one JSON object and nothing else. Its JSON schema is:\n{}",
                request.system, request.schema
            ),
        };
        let mut body = json!({
            "model": model,
            "messages": [
                { "role": "system", "content": system },
                { "role": "user", "content": request.user },
            ],
            "stream": false,
        });
        if self.has_temperature {
            body["temperature"] = json!(0);
        }
        if self.has_seed {
            body["seed"] = json!(request.seed);
        }
        let limit = if self.counts_completion { "max_completion_tokens" } else { "max_tokens" };
        body[limit] = json!(request.max_tokens);
        match self.format {
            AnswerFormat::Schema => {
                body["response_format"] = json!({
                    "type": "json_schema",
                    "json_schema": { "name": request.name, "strict": true, "schema": request.schema },
                });
            }
            AnswerFormat::Object => body["response_format"] = json!({ "type": "json_object" }),
            AnswerFormat::Plain => {}
        }
        body
    }
}

type ByServer<T> = Mutex<HashMap<String, T>>;

/// Waits for a slot of the model server. A server on this machine answers one request at a time, whatever the number of
/// jobs.
pub(crate) async fn wait_for_slot(shared: &SharedState) -> Option<OwnedSemaphorePermit> {
    static SLOTS: OnceLock<ByServer<Arc<Semaphore>>> = OnceLock::new();
    let slots = {
        let mut all =
            SLOTS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let name = shared.model_url.origin().ascii_serialization();
        let parallel = parallel(shared);
        Arc::clone(
            all.entry(format!("{name} {parallel}"))
                .or_insert_with(|| Arc::new(Semaphore::new(parallel))),
        )
    };
    slots.acquire_owned().await.ok()
}

/// Returns the number of requests to the model server at a time.
pub(crate) fn parallel(shared: &SharedState) -> usize {
    match shared.settings.parallel {
        0 if is_loopback(shared) => 1,
        0 => PARALLEL,
        parallel => parallel,
    }
}

/// Returns true for a model server on this machine.
pub(crate) fn is_loopback(shared: &SharedState) -> bool {
    match shared.model_url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The parameters that worked, for each server and model.
fn dialects() -> MutexGuard<'static, HashMap<String, Dialect>> {
    static DIALECTS: OnceLock<ByServer<Dialect>> = OnceLock::new();
    DIALECTS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

fn dialect_name(shared: &SharedState) -> String {
    format!("{} {}", shared.model_url, shared.settings.model)
}

/// Returns the form of structured answers that the server has accepted, if it has answered before.
pub(crate) fn accepted_format(shared: &SharedState) -> Option<AnswerFormat> {
    Some(dialects().get(&dialect_name(shared))?.format)
}

/// Sends a request. The parameters that worked are remembered for the server and model.
pub(crate) async fn chat(shared: &SharedState, request: &ChatRequest) -> ChatEnd {
    let name = dialect_name(shared);
    let mut dialect = dialects().get(&name).copied().unwrap_or(Dialect::FIRST);
    loop {
        let body = dialect.body(request, &shared.settings.model);
        let response = match send(shared, &body).await {
            Ok(response) => response,
            Err(end) => return end,
        };
        let status = response.status();
        if status.is_success() {
            dialects().insert(name, dialect);
            return read_answer(response).await;
        }
        let wait = retry_after(&response);
        let message = read_error(response).await;
        if matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
            && !is_too_long(&message)
            && let Some(next) = dialect.without_refused(&message)
        {
            dialect = next;
            continue;
        }
        return classify(status, message, wait);
    }
}

async fn send(shared: &SharedState, body: &Value) -> Result<Response, ChatEnd> {
    let url = format!("{}/chat/completions", shared.model_url.as_str().trim_end_matches('/'));
    let mut request = shared.client.post(url).json(body);
    if let Some(key) = &shared.settings.api_key {
        request = request.bearer_auth(key);
    }
    match tokio::time::timeout(FIRST_BYTE, request.send()).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) if error.is_connect() || error.is_builder() => {
            let error = error.without_url();
            let error =
                unreachable(MODEL_SERVER, &shared.model_url, "researcher.model_url", &error);
            Err(ChatEnd::Busy { wait: Duration::from_secs(1), error })
        }
        Ok(Err(error)) => Err(ChatEnd::Unanswered(detailed(
            ProviderErrorKind::Unavailable { retry_after: None },
            "the connection to the model server broke before its answer",
            error_chain(&error.without_url()),
        ))),
        Err(_) => Err(ChatEnd::Unanswered(timed_out())),
    }
}

fn timed_out() -> ProviderError {
    ProviderError::new(ProviderErrorKind::TimedOut, "the model did not answer in time")
}

fn detailed(kind: ProviderErrorKind, sentence: &str, detail: String) -> ProviderError {
    ProviderError { detail: Some(detail), ..ProviderError::new(kind, sentence) }
}

async fn read_answer(response: Response) -> ChatEnd {
    #[derive(Deserialize)]
    struct Completion {
        #[serde(default)]
        choices: Vec<Choice>,
        usage: Option<Usage>,
    }
    #[derive(Deserialize)]
    struct Choice {
        message: Message,
        finish_reason: Option<String>,
    }
    #[derive(Deserialize)]
    struct Message {
        content: Option<String>,
    }
    #[derive(Default, Deserialize)]
    struct Usage {
        #[serde(default)]
        prompt_tokens: u64,
        #[serde(default)]
        completion_tokens: u64,
    }
    let body = match tokio::time::timeout(BODY, read_body(response, MAX_BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => {
            let sentence = "the model's answer broke off";
            let kind = ProviderErrorKind::Unavailable { retry_after: None };
            return ChatEnd::Unanswered(detailed(kind, sentence, error_chain(&error)));
        }
        Err(_) => return ChatEnd::Unanswered(timed_out()),
    };
    // An answer without a completion was paid for like any other, and says nothing.
    let Ok(completion) = serde_json::from_slice::<Completion>(&body) else {
        return ChatEnd::Answered(ChatAnswer {
            finish: "unreadable".to_owned(),
            ..ChatAnswer::default()
        });
    };
    let usage = completion.usage.unwrap_or_default();
    let choice = completion.choices.into_iter().next();
    let (content, finish) = match choice {
        Some(Choice { message, finish_reason }) => {
            (message.content.unwrap_or_default(), finish_reason.unwrap_or_default())
        }
        None => (String::new(), String::new()),
    };
    let mut content = content;
    content.truncate(content.floor_char_boundary(MAX_CONTENT));
    ChatEnd::Answered(ChatAnswer {
        content,
        finish,
        read: usage.prompt_tokens,
        written: usage.completion_tokens,
    })
}

/// Returns the wait that the server asks for.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(seconds.trim().parse().ok()?))
}

pub(crate) async fn read_error(response: Response) -> String {
    let body = tokio::time::timeout(BODY, read_body(response, MAX_BODY)).await;
    let text = match body {
        Ok(Ok(body)) => String::from_utf8_lossy(&body).into_owned(),
        Ok(Err(_)) | Err(_) => String::new(),
    };
    text[..text.floor_char_boundary(2_000)].to_owned()
}

fn is_too_long(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "exceed_context_size",
        "context_length_exceeded",
        "context length",
        "context size",
        "context window",
        "prompt is too long",
    ]
    .iter()
    .any(|words| message.contains(words))
}

pub(crate) fn classify(status: StatusCode, message: String, wait: Option<Duration>) -> ChatEnd {
    let refused =
        |kind, sentence: &str| ChatEnd::Refused(detailed(kind, sentence, message.clone()));
    let is_quota = message.contains("insufficient_quota");
    match status.as_u16() {
        400 | 413 | 422 if is_too_long(&message) => ChatEnd::TooLong,
        401 | 403 => refused(
            ProviderErrorKind::Unauthorized,
            "the model server refused the key; check researcher.api_key",
        ),
        402 => refused(
            ProviderErrorKind::QuotaExhausted,
            "the account at the model server has no credit left",
        ),
        429 if is_quota => refused(
            ProviderErrorKind::QuotaExhausted,
            "the account at the model server has no credit left",
        ),
        404 => refused(
            ProviderErrorKind::Misconfigured,
            "the model server does not know this model or address; check researcher.model and researcher.model_url",
        ),
        429 | 503 => ChatEnd::Busy {
            wait: wait.unwrap_or(Duration::from_secs(2)).min(MAX_WAIT),
            error: detailed(
                ProviderErrorKind::RateLimited { retry_after: wait },
                "the model server is busy",
                message,
            ),
        },
        500..=599 => ChatEnd::Unanswered(detailed(
            ProviderErrorKind::Unavailable { retry_after: wait },
            "the model server failed",
            message,
        )),
        _ => refused(ProviderErrorKind::Rejected, "the model server refused the request"),
    }
}
