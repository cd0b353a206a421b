//! A look at the model server and the search service for `outlast doctor` (K11). Buys nothing.

use std::time::Duration;

use outlast_core::{NanoUsd, ProviderError, ProviderErrorKind};
use serde_json::{Value, json};

use crate::Researcher;
use crate::model::window::{StatedWindow, reach_server, read_models, stated_window};
use crate::model::{AnswerFormat, ChatEnd, ChatRequest, MODEL_SERVER, accepted_format, chat};
use crate::search::ask_searxng;
use crate::settings::SearchBackend;

/// The query that shows if a search service answers.
const QUERY: &str = "outlast";

/// The state of the model server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelState {
    /// False if the server lists models and this is not one of them.
    pub is_listed: Option<bool>,
    /// The models that the server lists.
    pub models: Vec<String>,
    pub window: WindowState,
    pub json: JsonState,
}

/// The window of the model in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowState {
    /// Set as `researcher.context_tokens`.
    Configured(u32),
    /// Stated by the server.
    Stated(u32),
    /// Ollama states it once the model is loaded.
    NotLoaded,
    /// The server does not state it; this one is assumed.
    Assumed(u32),
}

/// The form of structured answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonState {
    /// The server keeps to a JSON schema.
    Schema,
    /// The server has a JSON mode without schemas.
    Object,
    /// The model is asked for JSON in words.
    Words,
    /// Not asked: an answer has a price.
    Priced,
    /// Not asked: the model is not loaded, or did not answer in time.
    NoAnswer,
}

/// The state of the search service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchState {
    /// It answers with this number of hits.
    Answers(usize),
    /// Not asked: a search has a price.
    Priced,
    /// Not asked: the folders of the library, or the tool of a server that is not running.
    NotAsked,
}

impl Researcher {
    /// Looks at the model server, for at most this long.
    pub async fn inspect_model(&self, limit: Duration) -> Result<ModelState, ProviderError> {
        let look = async {
            let shared = &self.shared;
            reach_server(shared).await?;
            let listed = read_models(shared).await?;
            let own = shared.settings.model.trim_end_matches(":latest");
            let is_own = |name: &String| name.trim_end_matches(":latest") == own;
            let is_listed = (!listed.is_empty()).then(|| listed.iter().any(is_own));
            let window = match stated_window(shared).await {
                StatedWindow::Configured(window) => WindowState::Configured(window),
                StatedWindow::Stated(window) => WindowState::Stated(window),
                StatedWindow::NotLoaded => WindowState::NotLoaded,
                StatedWindow::Unknown(assumed) => WindowState::Assumed(assumed),
            };
            Ok::<_, ProviderError>((is_listed, listed, window))
        };
        let looked = tokio::time::timeout(limit / 2, look).await;
        let (is_listed, models, window) = looked.map_err(|_| no_answer(limit / 2))??;
        let prices = &self.shared.settings.prices;
        let json = match (prices.input, prices.output) {
            _ if window == WindowState::NotLoaded || is_listed == Some(false) => {
                JsonState::NoAnswer
            }
            (Some(NanoUsd(0)), Some(NanoUsd(0))) => {
                let asked = tokio::time::timeout(limit / 2, self.ask_for_json()).await;
                asked.unwrap_or(Ok(JsonState::NoAnswer))?
            }
            _ => JsonState::Priced,
        };
        Ok(ModelState { is_listed, models, window, json })
    }

    async fn ask_for_json(&self) -> Result<JsonState, ProviderError> {
        let properties = json!({ "ok": { "type": "boolean" } });
        let schema: Value = json!({
            "type": "object", "properties": properties, "required": ["ok"],
            "additionalProperties": false,
        });
        let request = ChatRequest {
            system: "Answer with the JSON object {\"ok\": true}.".to_owned(),
            user: "Answer.".to_owned(),
            name: "check",
            schema,
            max_tokens: 16,
            seed: 1,
        };
        match chat(&self.shared, &request).await {
            ChatEnd::Answered(_) => Ok(match accepted_format(&self.shared) {
                Some(AnswerFormat::Schema) => JsonState::Schema,
                Some(AnswerFormat::Object) => JsonState::Object,
                Some(AnswerFormat::Plain) => JsonState::Words,
                None => JsonState::NoAnswer,
            }),
            ChatEnd::Refused(error) => Err(error),
            ChatEnd::TooLong | ChatEnd::Busy { .. } | ChatEnd::Unanswered(_) => {
                Ok(JsonState::NoAnswer)
            }
        }
    }

    /// Looks at the search service, for at most this long.
    pub async fn inspect_search(&self, limit: Duration) -> Result<SearchState, ProviderError> {
        let settings = &self.shared.settings;
        let SearchBackend::Searxng { url, api_key } = &settings.search else {
            return Ok(SearchState::NotAsked);
        };
        if settings.prices.search.is_some_and(|price| price > NanoUsd(0)) {
            return Ok(SearchState::Priced);
        }
        let asked = ask_searxng(&self.shared, url, api_key.as_deref(), QUERY, None);
        match tokio::time::timeout(limit, asked).await {
            Ok(hits) => Ok(SearchState::Answers(hits?.len())),
            Err(_) => {
                let sentence = format!(
                    "the search service does not answer within {} s; check researcher.search_url",
                    limit.as_secs_f32()
                );
                Err(ProviderError::new(ProviderErrorKind::TimedOut, sentence))
            }
        }
    }
}

fn no_answer(limit: Duration) -> ProviderError {
    let seconds = limit.as_secs_f32();
    let sentence = format!("{MODEL_SERVER} does not answer within {seconds} s; is it busy?");
    ProviderError::new(ProviderErrorKind::TimedOut, sentence)
}
