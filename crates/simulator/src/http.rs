//! The routes of the simulator, and the endpoints of the Agent API. Handlers validate, call `Runs`, and render.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::{App, SharedApp, authorize, event_stream, mark, submits, with_key};
use crate::ask::Api;
use crate::errors::Refusal;
use crate::options::SonarMode;
use crate::prices::MODELS;
use crate::socket::Hangup;
use crate::stream::{self, Naming};
use crate::transport_faults::TransportFault;
use crate::{agent, anthropic, control, gemini, limits, model, openai, search, sonar, web};

const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

pub(crate) fn router(app: Arc<App>, sonar: SonarMode) -> Router {
    let mut submitted = Router::new().route("/v1/models", get(models));
    let mut begun = Router::new();
    for base in ["/v1/agent", "/v1/responses"] {
        submitted = submitted.route(base, submits(Api::Agent, agent::request::parse));
        begun = begun
            .route(&format!("{base}/{{id}}"), looks(Api::Agent))
            .route(&format!("{base}/{{id}}/cancel"), post(cancel));
    }
    submitted
        .merge(with_key(Api::Agent, begun))
        .merge(sonar::handlers::router(sonar))
        .merge(search::handlers::router())
        .merge(openai::handlers::router())
        .merge(gemini::handlers::router())
        .merge(anthropic::handlers::router())
        .fallback(async || Refusal::not_found())
        .method_not_allowed_fallback(async || Refusal::usual(StatusCode::METHOD_NOT_ALLOWED))
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(app.clone(), record))
        .merge(model::router())
        .merge(web::searxng::router())
        .merge(control::router())
        .with_state(app)
}

#[derive(Deserialize)]
struct LookQuery {
    stream: Option<String>,
    starting_after: Option<i64>,
    last_event_id: Option<String>,
}

/// An endpoint that shows a run of this API or opens its stream.
pub(crate) fn looks(api: Api) -> MethodRouter<Arc<App>> {
    get(
        async move |State(app): SharedApp,
                    ConnectInfo(hangup): ConnectInfo<Hangup>,
                    Path(id): Path<String>,
                    query: Result<Query<LookQuery>, QueryRejection>| {
            let Ok(Query(look)) = query else { return Err(Refusal::invalid("invalid request")) };
            let (response, transport) = show(&app, api, &id, &look, &hangup)?;
            let mut response = transport.apply(response, &app.runs.clock, &hangup);
            mark(&mut response, &id);
            Ok(response)
        },
    )
}

fn show(
    app: &App,
    api: Api,
    id: &str,
    look: &LookQuery,
    hangup: &Hangup,
) -> Result<(Response, TransportFault), Refusal> {
    match look.stream.as_deref() {
        None | Some("false") => {
            let (object, transport) = app.runs.poll(api, id)?;
            Ok((transport.json(object), transport))
        }
        Some("true") => {
            let opening = app.runs.attach(api, id, first_event(api, look)?)?;
            let transport = opening.transport;
            let body = stream::events(app.runs.clone(), opening, Naming::Named, hangup.clone());
            Ok((event_stream(body), transport))
        }
        Some(_) => Err(Refusal::invalid("invalid request")),
    }
}

/// Returns the number of the first event that a stream should send.
fn first_event(api: Api, look: &LookQuery) -> Result<usize, Refusal> {
    let first = match (api, look.starting_after) {
        (Api::Gemini, _) => look.last_event_id.as_deref().map_or(Some(0), gemini::events::after),
        (Api::OpenAi, None) => Some(0),
        (_, None) => {
            return Err(Refusal::invalid("validation failed: stream requires starting_after"));
        }
        (_, Some(after)) => usize::try_from(after.saturating_add(1)).ok(),
    };
    first.ok_or_else(|| Refusal::invalid("invalid request"))
}

async fn cancel(State(app): SharedApp, Path(id): Path<String>) -> Result<Response, Refusal> {
    app.runs.cancel(Api::Agent, &id)?;
    let mut response = Json(json!({"response_id": id, "status": "cancelling"})).into_response();
    mark(&mut response, &id);
    Ok(response)
}

async fn models(headers: HeaderMap) -> Result<Json<Value>, Refusal> {
    if anthropic::handlers::is_meant(&headers) {
        anthropic::handlers::authorize(&headers)?;
        return Ok(Json(anthropic::handlers::models()));
    }
    authorize(&headers)?;
    let models = MODELS.iter().map(|model| json!({"id": model.id, "object": "model"}));
    Ok(Json(json!({"object": "list", "data": models.collect::<Vec<_>>()})))
}

/// Records the request, then adds the vendor's headers to the response.
async fn record(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match to_bytes(body, MAX_BODY_BYTES).await {
        Ok(body) => {
            app.journal.note(&parts.method, &parts.uri, &parts.headers, &body);
            next.run(Request::from_parts(parts, body.into())).await
        }
        Err(_) => Refusal::usual(StatusCode::PAYLOAD_TOO_LARGE).into_response(),
    };
    limits::mark(response.status(), response.headers_mut());
    response
}
