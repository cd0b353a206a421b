//! `POST /search`.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, State};
use axum::response::Response;
use axum::routing::post;
use serde_json::{Value, json};

use super::request::{self, Query};
use crate::app::{App, SharedApp, with_key};
use crate::ask::Api;
use crate::errors::Refusal;
use crate::ids::uuid;
use crate::scenario::{Ending, Scenario, without_markers};
use crate::socket::Hangup;
use crate::sources::{self, Source};
use crate::topic::Topic;

const NANOS: u64 = 5_000_000;
const FAST_NANOS: u64 = 1_000_000;
const CHARS_PER_TOKEN: usize = 4;

pub(crate) fn router() -> Router<Arc<App>> {
    with_key(Api::Agent, Router::new().route("/search", post(search)))
}

async fn search(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let query = request::parse(&body)?;
    let prompt = query.texts.join("\n");
    let scenario = app.scenario(&prompt)?;
    let cost = if query.fast { FAST_NANOS } else { NANOS };
    let clock = &app.runs.clock;
    let transport = app.runs.count_search(&prompt, &scenario, cost)?;
    if let Some(ms) = scenario.shape.delay_ms {
        clock.sleep_until(clock.now() + clock.scaled(ms as f64)).await;
    }
    if let Ending::Stuck { .. } = scenario.ending {
        std::future::pending::<()>().await;
    }
    let response = transport.json(answer(&app, &query, &scenario));
    Ok(transport.apply(response, clock, &hangup))
}

fn answer(app: &App, query: &Query, scenario: &Scenario) -> Value {
    let wanted = scenario.shape.sources.unwrap_or(query.results).min(query.results);
    let mut results = Vec::new();
    for text in &query.texts {
        let question = without_markers(text);
        let mut rng = app.runs.search_rng(&question);
        let topic = Topic::of(&question);
        let found = sources::search(&topic, 1, wanted, 0..=0, &mut rng);
        let mut found: Vec<Source> = found.into_iter().flat_map(|search| search.results).collect();
        found.iter_mut().for_each(|source| source.apply(&scenario.shape, scenario.inject));
        results.extend(found.iter().map(|source| result(source, query.page_tokens)));
    }
    json!({"id": uuid(&mut fastrand::Rng::new()).to_string(), "results": results})
}

fn result(source: &Source, tokens: usize) -> Value {
    let mut result = source.json();
    let snippet = source.snippet.chars().take(tokens * CHARS_PER_TOKEN);
    result["snippet"] = snippet.collect::<String>().into();
    result
}
