//! Asks a model server for the window of its model. The servers disagree about where to find it.

use std::time::Duration;

use outlast_http::read_body;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use url::Url;

use super::tokens::TokenFactor;
use crate::Shared;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The time that Ollama may take to load a model.
const LOAD_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_BODY: usize = 4 << 20;
/// The window of a server that does not state it: the smallest that today's hosted models have.
const HOSTED: u32 = 16_384;
/// The window that Ollama gives a model unless it is configured otherwise.
const OLLAMA: u32 = 4_096;

/// Returns the window of the model in tokens.
pub(crate) async fn ask_window(shared: &Shared) -> u32 {
    let settings = &shared.settings;
    if settings.context_tokens > 0 {
        return settings.context_tokens;
    }
    if let Some(window) = of_llama_cpp(shared).await {
        return window;
    }
    if let Some(window) = of_models(shared).await {
        return window;
    }
    if get(shared, "api/version").await.is_some_and(|version| version.get("version").is_some()) {
        return of_ollama(shared).await.unwrap_or(OLLAMA);
    }
    HOSTED
}

/// Returns the token factor of the server's tokenizer, if it has one.
pub(crate) async fn ask_token_factor(shared: &Shared, sample: &str) -> TokenFactor {
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
async fn of_llama_cpp(shared: &Shared) -> Option<u32> {
    let props = get(shared, "props").await?;
    let settings = props.get("default_generation_settings")?;
    number(settings.get("n_ctx")?)
}

/// vLLM and LM Studio list it with the model.
async fn of_models(shared: &Shared) -> Option<u32> {
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

/// Ollama states the window of a loaded model only, so the model is loaded first.
async fn of_ollama(shared: &Shared) -> Option<u32> {
    let body = json!({ "model": shared.settings.model });
    let load = shared.client.post(root(shared, "api/generate")?).json(&body);
    send(shared, load, LOAD_TIMEOUT).await?;
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
fn root(shared: &Shared, path: &str) -> Option<Url> {
    let base = shared.model_url.as_str().trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base);
    Url::parse(&format!("{base}/{path}")).ok()
}

async fn get(shared: &Shared, path: &str) -> Option<Value> {
    send(shared, shared.client.get(root(shared, path)?), TIMEOUT).await
}

async fn send(shared: &Shared, request: RequestBuilder, timeout: Duration) -> Option<Value> {
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
