//! The provider's endpoints. Handlers check, ask `Runs`, and render; all state is there.

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::errors::Refusal;
use crate::faults::HttpFault;
use crate::journal::Journal;
use crate::limits::{Limits, REQUEST_ID};
use crate::run::Door;
use crate::runs::{Delivery, Receipt, Runs};
use crate::scenario::{Answer, Scenario};
use crate::simulator::SonarMode;
use crate::socket::Hangup;
use crate::stream::{self, Naming};
use crate::{agent, control, prices, search, sonar};

const MOST_BODY_BYTES: usize = 16 * 1024 * 1024;

/// What all handlers share.
pub(crate) struct App {
    pub(crate) runs: Arc<Runs>,
    pub(crate) journal: Journal,
    pub(crate) limits: Limits,
}

pub(crate) fn router(app: Arc<App>, sonar: SonarMode) -> Router {
    let mut router = Router::new().route("/v1/models", get(models));
    for base in ["/v1/agent", "/v1/responses"] {
        router = router
            .route(base, post(submit))
            .route(&format!("{base}/{{id}}"), get(look))
            .route(&format!("{base}/{{id}}/cancel"), post(cancel));
    }
    router
        .merge(sonar::handlers::router(sonar))
        .merge(search::handlers::router())
        .fallback(async || Refusal::not_found())
        .method_not_allowed_fallback(async || Refusal::usual(StatusCode::METHOD_NOT_ALLOWED))
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(app.clone(), record))
        .merge(control::router())
        .with_state(app)
}

async fn submit(
    State(app): State<Arc<App>>,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let receipt = app.accept(&headers, || agent::request::parse(&body))?;
    answer(&app, receipt, &hangup).await
}

impl App {
    /// Turns a submit into a run, or counts why it was refused.
    pub(crate) fn accept(
        &self,
        headers: &HeaderMap,
        parse: impl FnOnce() -> Result<Ask, Refusal>,
    ) -> Result<Receipt, Refusal> {
        let accepted = authorize(headers).and_then(|key| {
            let ask = parse()?;
            let scenario = self.scenario(headers, key, &ask.prompt)?;
            self.runs.submit(ask, scenario)
        });
        accepted.inspect_err(|_| self.runs.refused())
    }

    pub(crate) fn scenario(
        &self,
        headers: &HeaderMap,
        key: &str,
        prompt: &str,
    ) -> Result<Scenario, Refusal> {
        let header = headers.get("x-sim-scenario").and_then(|value| value.to_str().ok());
        Scenario::select(header, key, prompt, || self.runs.queued()).map_err(Refusal::invalid)
    }
}

/// Answers a submit as its scenario says.
pub(crate) async fn answer(
    app: &App,
    receipt: Receipt,
    hangup: &Hangup,
) -> Result<Response, Refusal> {
    let naming = match receipt.answer {
        Answer::Full => Naming::Named,
        Answer::WithoutId => Naming::Nameless,
        Answer::Dropped => {
            hangup.now();
            return Ok(StatusCode::OK.into_response());
        }
        Answer::Gateway { status, body } => {
            return Err(Refusal::scripted(&HttpFault::answered(status, body)));
        }
        Answer::Late { ms } => {
            let clock = &app.runs.clock;
            clock.sleep_until(clock.now() + clock.scaled(ms as f64)).await;
            Naming::Named
        }
    };
    let carriage = receipt.carriage;
    let response = match receipt.delivery {
        Delivery::Stream(opening) => {
            event_stream(stream::events(app.runs.clone(), opening, naming, hangup.clone()))
        }
        Delivery::Queued(object) => carriage.json(named(object, naming)),
        Delivery::Wait => {
            stream::finished(&app.runs, &receipt.id).await;
            carriage.json(named(app.runs.outcome(&receipt.id)?, naming))
        }
    };
    let mut response = carriage.carry(response, &app.runs.clock, hangup);
    // The header holds the id too, so a nameless answer must not carry it.
    if naming == Naming::Named {
        mark(&mut response, &receipt.id);
    }
    Ok(response)
}

#[derive(Deserialize)]
struct Look {
    stream: Option<String>,
    starting_after: Option<i64>,
}

async fn look(
    State(app): State<Arc<App>>,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    Path(id): Path<String>,
    query: Result<Query<Look>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    authorize(&headers)?;
    let Ok(Query(look)) = query else { return Err(Refusal::invalid("invalid request")) };
    let (response, carriage) = match look.stream.as_deref() {
        None | Some("false") => {
            let looked = app.runs.poll(Door::Agent, &id)?;
            (looked.carriage.json(looked.object), looked.carriage)
        }
        Some("true") => {
            let Some(after) = look.starting_after else {
                return Err(Refusal::invalid("validation failed: stream requires starting_after"));
            };
            let opening = app.runs.attach(&id, after)?;
            let carriage = opening.carriage;
            let body = stream::events(app.runs.clone(), opening, Naming::Named, hangup.clone());
            (event_stream(body), carriage)
        }
        Some(_) => return Err(Refusal::invalid("invalid request")),
    };
    let mut response = carriage.carry(response, &app.runs.clock, &hangup);
    mark(&mut response, &id);
    Ok(response)
}

async fn cancel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    authorize(&headers)?;
    app.runs.cancel(&id)?;
    let mut response = Json(json!({"response_id": id, "status": "cancelling"})).into_response();
    mark(&mut response, &id);
    Ok(response)
}

async fn models(headers: HeaderMap) -> Result<Json<Value>, Refusal> {
    authorize(&headers)?;
    Ok(Json(prices::models()))
}

/// The bearer key, unless it is missing or calls itself wrong.
pub(crate) fn authorize(headers: &HeaderMap) -> Result<&str, Refusal> {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, key) = value.and_then(|value| value.split_once(' ')).unwrap_or_default();
    let key = key.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || key.is_empty() || key.contains("wrong") {
        return Err(Refusal::bad_key());
    }
    Ok(key)
}

/// Writes the request down, then dresses its answer like the vendor's.
async fn record(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match to_bytes(body, MOST_BODY_BYTES).await {
        Ok(body) => {
            app.journal.note(&parts.method, &parts.uri, &parts.headers, &body);
            next.run(Request::from_parts(parts, body.into())).await
        }
        Err(_) => Refusal::usual(StatusCode::PAYLOAD_TOO_LARGE).into_response(),
    };
    app.limits.mark(response.status(), response.headers_mut());
    response
}

fn event_stream(body: Body) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, body).into_response()
}

fn mark(response: &mut Response, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id.strip_prefix("resp_").unwrap_or(id)) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
}

fn named(mut object: Value, naming: Naming) -> Value {
    if naming == Naming::Nameless
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("id");
    }
    object
}
