//! The parts that the handlers of all APIs share: the state, the key check, the response to a submit.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use axum::{Json, Router};
use serde_json::Value;

use crate::ask::{Api, Ask};
use crate::calls::CallCounts;
use crate::errors::Refusal;
use crate::journal::Journal;
use crate::limits::REQUEST_ID;
use crate::runs::{Delivery, Runs, SubmitReceipt};
use crate::scenario::{Scenario, SubmitAnswer};
use crate::socket::Hangup;
use crate::stream::{self, Naming};
use crate::{anthropic, gemini};

/// The header in which Azure's clients send their key.
pub(crate) const API_KEY: HeaderName = HeaderName::from_static("api-key");

pub(crate) type SharedApp = State<Arc<App>>;

/// The shared state.
pub(crate) struct App {
    pub(crate) runs: Arc<Runs>,
    pub(crate) journal: Journal,
    /// The requests to the scripted model, search and web.
    pub(crate) calls: CallCounts,
    /// The addresses of the hosts of the web.
    pub(crate) origins: Vec<String>,
}

impl App {
    /// Turns a submit into a run, or counts its refusal.
    pub(crate) fn accept(
        &self,
        ask: impl FnOnce() -> Result<Ask, Refusal>,
    ) -> Result<SubmitReceipt, Refusal> {
        let accepted = ask().and_then(|ask| {
            let scenario = self.scenario(&ask.prompt)?;
            self.runs.submit(ask, scenario)
        });
        accepted.inspect_err(|_| self.runs.count_refusal())
    }

    /// Returns the address of the host of a page.
    pub(crate) fn origin(&self, page: usize) -> &str {
        &self.origins[page % self.origins.len()]
    }

    /// Waits, if the clock is real or someone advances it.
    pub(crate) async fn sleep(&self, ms: u64) {
        if ms > 0 {
            let clock = &self.runs.clock;
            clock.sleep_until(clock.now() + clock.scaled(ms as f64)).await;
        }
    }

    pub(crate) fn scenario(&self, prompt: &str) -> Result<Scenario, Refusal> {
        Scenario::select(prompt, || self.runs.queued()).map_err(Refusal::invalid)
    }
}

/// An endpoint that accepts submits in the format of `parse`. It checks the key itself, because a submit with a
/// bad key counts too.
pub(crate) fn submits(
    api: Api,
    parse: fn(&[u8]) -> Result<Ask, Refusal>,
) -> MethodRouter<Arc<App>> {
    post(
        async move |State(app): SharedApp,
                    ConnectInfo(hangup): ConnectInfo<Hangup>,
                    uri: Uri,
                    headers: HeaderMap,
                    body: Bytes| {
            let ask = || api.authorize(&headers, &uri).and_then(|()| parse(&body));
            answer(&app, app.accept(ask)?, &hangup).await
        },
    )
}

/// An endpoint that cancels a run and shows it.
pub(crate) fn cancels(api: Api) -> MethodRouter<Arc<App>> {
    post(async move |State(app): SharedApp, Path(id): Path<String>| {
        app.runs.cancel(api, &id).map(Json)
    })
}

/// Adds the key check of this API to the routes.
pub(crate) fn with_key(api: Api, routes: Router<Arc<App>>) -> Router<Arc<App>> {
    routes.route_layer(from_fn_with_state(
        api,
        async |State(api): State<Api>, request: Request, next: Next| {
            api.authorize(request.headers(), request.uri())?;
            Ok::<_, Refusal>(next.run(request).await)
        },
    ))
}

impl Api {
    fn authorize(self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        match self {
            Self::Gemini => gemini::refusal::authorize(headers, uri),
            Self::Anthropic => anthropic::handlers::allow(headers),
            Self::Agent | Self::OpenAi | Self::SonarAsync | Self::SonarChat => authorize(headers),
        }
    }
}

/// Responds to a submit according to its scenario.
pub(crate) async fn answer(
    app: &App,
    receipt: SubmitReceipt,
    hangup: &Hangup,
) -> Result<Response, Refusal> {
    let naming = match receipt.answer {
        SubmitAnswer::Full => Naming::Named,
        SubmitAnswer::NoId {} => Naming::Nameless,
        SubmitAnswer::DropSubmit {} => {
            hangup.now();
            return Ok(StatusCode::OK.into_response());
        }
        SubmitAnswer::Gateway(fault) => return Err(Refusal::scripted(&fault)),
        SubmitAnswer::LateSubmit { ms } => {
            let clock = &app.runs.clock;
            clock.sleep_until(clock.now() + clock.scaled(ms as f64)).await;
            Naming::Named
        }
    };
    let transport = receipt.transport;
    let response = match receipt.delivery {
        Delivery::Stream(opening) => {
            event_stream(stream::events(app.runs.clone(), *opening, naming, hangup.clone()))
        }
        Delivery::Queued(object) => transport.json(apply_naming(object, naming)),
        Delivery::Wait => {
            stream::finished(&app.runs, &receipt.id).await;
            transport.json(apply_naming(app.runs.outcome(&receipt.id)?, naming))
        }
    };
    let mut response = transport.apply(response, &app.runs.clock, hangup);
    // The header contains the id too, so it must be missing from a nameless response.
    if naming == Naming::Named {
        mark(&mut response, &receipt.id);
    }
    Ok(response)
}

/// Refuses a request whose key is missing or says that it is wrong. Azure uses a different header.
pub(crate) fn authorize(headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|value| value.split_once(' '));
    let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let key = bearer.map(|(_, key)| key).or_else(|| text(API_KEY)).unwrap_or_default().trim();
    if key.is_empty() || key.contains("wrong") {
        return Err(Refusal::bad_key());
    }
    Ok(())
}

pub(crate) fn event_stream(body: Body) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, body).into_response()
}

pub(crate) fn mark(response: &mut Response, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id.strip_prefix("resp_").unwrap_or(id)) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
}

fn apply_naming(mut object: Value, naming: Naming) -> Value {
    if naming == Naming::Nameless
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("id");
        fields.remove("data");
    }
    object
}
