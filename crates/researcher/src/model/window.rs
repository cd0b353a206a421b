//! Asks a model server for the window of its model. The servers disagree about where to find it.

use std::time::Duration;

use outlast_core::ProviderError;
use outlast_http::read_body;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use url::Url;

use super::tokens::TokenFactor;
use super::{ChatEnd, MODEL_SERVER, classify, read_error};
use crate::SharedState;
use crate::waits::unreachable;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The time that Ollama may take to load a model.
const LOAD_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_BODY: usize = 4 << 20;
/// The window of a server that does not state it: the smallest that today's hosted models have.
const HOSTED: u32 = 16_384;
/// The window that Ollama gives a model unless it is configured otherwise.
const OLLAMA: u32 = 4_096;

/// The window of the model, without loading it.
pub(crate) enum StatedWindow {
    Configured(u32),
    Stated(u32),
    /// Ollama states it once the model is loaded.
    NotLoaded,
    /// The server does not state it.
    Unknown(u32),
}

/// Returns the window of the model in tokens.
pub(crate) async fn ask_window(shared: &SharedState) -> u32 {
    match stated_window(shared).await {
        StatedWindow::Configured(window)
        | StatedWindow::Stated(window)
        | StatedWindow::Unknown(window) => window,
        StatedWindow::NotLoaded => load_ollama(shared).await.unwrap_or(OLLAMA),
    }
}

/// Returns what is known of the window without loading the model.
pub(crate) async fn stated_window(shared: &SharedState) -> StatedWindow {
    let settings = &shared.settings;
    if settings.context_tokens > 0 {
        return StatedWindow::Configured(settings.context_tokens);
    }
    if let Some(window) = of_llama_cpp(shared).await {
        return StatedWindow::Stated(window);
    }
    if let Some(window) = of_models(shared).await {
        return StatedWindow::Stated(window);
    }
    if get(shared, "api/version").await.is_some_and(|version| version.get("version").is_some()) {
        return of_ollama(shared).await.map_or(StatedWindow::NotLoaded, StatedWindow::Stated);
    }
    StatedWindow::Unknown(HOSTED)
}

/// Returns the names of the models that the server lists; none if it has no list.
pub(crate) async fn read_models(shared: &SharedState) -> Result<Vec<String>, ProviderError> {
    let url = format!("{}/models", shared.model_url.as_str().trim_end_matches('/'));
    let mut request = shared.client.get(url).timeout(TIMEOUT);
    if let Some(key) = &shared.settings.api_key {
        request = request.bearer_auth(key);
    }
    let Ok(response) = request.send().await else { return Ok(Vec::new()) };
    let status = response.status();
    if matches!(status.as_u16(), 401 | 403) {
        let message = read_error(response).await;
        if let ChatEnd::Refused(error) = classify(status, message, None) {
            return Err(error);
        }
        return Ok(Vec::new());
    }
    if !status.is_success() {
        return Ok(Vec::new());
    }
    let body = read_body(response, MAX_BODY).await.unwrap_or_default();
    let list: Value = serde_json::from_slice(&body).unwrap_or_default();
    let models = list.get("data").and_then(Value::as_array).into_iter().flatten();
    let names = models.filter_map(|model| model.get("id")?.as_str().map(str::to_owned));
    Ok(names.collect())
}

/// Checks that the server can be reached, whatever it answers.
pub(crate) async fn reach_server(shared: &SharedState) -> Result<(), ProviderError> {
    let url = format!("{}/models", shared.model_url.as_str().trim_end_matches('/'));
    match shared.client.get(url).timeout(TIMEOUT).send().await {
        Err(error) if error.is_connect() => {
            let error = error.without_url();
            Err(unreachable(MODEL_SERVER, &shared.model_url, "researcher.model_url", &error))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the token factor of the server's tokenizer, if it has one.
pub(crate) async fn ask_token_factor(shared: &SharedState, sample: &str) -> TokenFactor {
    // llama.cpp reads `content`, vLLM `prompt`.
    let body = json!({ "model": shared.settings.model, "content": sample, "prompt": sample });
    let Some(url) = root(shared, "tokenize") else { return TokenFactor::NONE };
    let answer = send(shared, shared.client.post(url).json(&body), TIMEOUT).await;
    let counted = answer.as_ref().and_then(|answer| {
        let listed = answer.get("tokens").and_then(Value::as_array).map(|all| all.len() as u64);
        answer.get("count").and_then(Value::as_u64).or(listed)
    });
    counted
        .filter(|counted| *counted > 0)
        .map_or(TokenFactor::NONE, |counted| TokenFactor::measured(sample, counted))
}

/// llama.cpp states the window of one slot.
async fn of_llama_cpp(shared: &SharedState) -> Option<u32> {
    let props = get(shared, "props").await?;
    let settings = props.get("default_generation_settings")?;
    number(settings.get("n_ctx")?)
}

/// vLLM and LM Studio list it with the model.
async fn of_models(shared: &SharedState) -> Option<u32> {
    let url = format!("{}/models", shared.model_url);
    let list = send(shared, shared.client.get(url), TIMEOUT).await?;
    let models = list.get("data")?.as_array()?;
    let is_ours =
        |model: &&Value| model.get("id").and_then(Value::as_str) == Some(&shared.settings.model);
    let model = models.iter().find(is_ours)?;
    ["max_model_len", "loaded_context_length", "context_length", "context_window"]
        .iter()
        .find_map(|name| number(model.get(name)?))
}

/// Loads a model of Ollama, and returns its window.
async fn load_ollama(shared: &SharedState) -> Option<u32> {
    let body = json!({ "model": shared.settings.model });
    let load = shared.client.post(root(shared, "api/generate")?).json(&body);
    send(shared, load, LOAD_TIMEOUT).await?;
    of_ollama(shared).await
}

/// Ollama states the window of a loaded model only.
async fn of_ollama(shared: &SharedState) -> Option<u32> {
    let loaded = get(shared, "api/ps").await?;
    let own = shared.settings.model.trim_end_matches(":latest");
    let model = loaded.get("models")?.as_array()?.iter().find(|model| {
        let is_own = |field| {
            model.get(field).and_then(Value::as_str).map(|name| name.trim_end_matches(":latest"))
                == Some(own)
        };
        is_own("name") || is_own("model")
    })?;
    number(model.get("context_length")?)
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
}

/// Returns an address next to the `/v1` of the model server.
fn root(shared: &SharedState, path: &str) -> Option<Url> {
    let base = shared.model_url.as_str().trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base);
    Url::parse(&format!("{base}/{path}")).ok()
}

async fn get(shared: &SharedState, path: &str) -> Option<Value> {
    send(shared, shared.client.get(root(shared, path)?), TIMEOUT).await
}

async fn send(shared: &SharedState, request: RequestBuilder, timeout: Duration) -> Option<Value> {
    let request = match &shared.settings.api_key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    let response = request.timeout(timeout).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    serde_json::from_slice(&read_body(response, MAX_BODY).await.ok()?).ok()
}
