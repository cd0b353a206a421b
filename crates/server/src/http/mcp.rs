//! `/mcp`: reads the request within its limits and passes it to rmcp with its owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Full};
use rmcp::ServerHandler;
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::Instant;

use super::app::{App, McpService};
use super::body::{self, BodyLimit, CountMoment};
use super::http_refusal::HttpRefusal;
use super::lost_calls;
use super::scopes;
use super::sessions::{NamedSession, OwnSessions, SessionUse};
use super::unheld_calls::UnheldCall;
use crate::caller::{BodyRoom, Identification, Principal};
use crate::malformed;
use crate::resources;
use crate::tasks_2025::{self, TaskListing};

/// The maximum size of a body.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
const MESSAGE: BodyLimit = BodyLimit {
    bytes: MAX_BODY_BYTES,
    counted: CountMoment::AsTheyArrive,
    discarded: 32 * 1024 * 1024,
};

/// Serves every MCP request.
pub(super) async fn endpoint(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    request: Request,
) -> Response {
    answer(&app, principal, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn answer(
    app: &App,
    principal: Principal,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let Principal { owner, access, expires, identified_by } = principal;
    let listing = match identified_by {
        Identification::Token => TaskListing::Offered,
        Identification::Nothing => TaskListing::Absent,
    };
    let (mut parts, body) = request.into_parts();
    let body = if parts.method == Method::POST {
        plain_json(&parts.headers)?;
        let mut room = app.bodies.none(&owner);
        let body = body::read(&parts.headers, body, &mut room, MESSAGE).await?;
        // Attached to the call, because the body stays in memory until it is processed.
        parts.extensions.insert(BodyRoom::new(room));
        body
    } else {
        Bytes::new()
    };
    if let Some(oauth) = &app.options.oauth {
        let needed = scopes::needed_access(&body);
        if access < needed {
            return Err(HttpRefusal::insufficient_scope(oauth, needed));
        }
    }
    let (mut config, mut in_use, mut unheld) = (config(app), None, None);
    if let Some(id) = session(&parts.headers) {
        let session = app.sessions.enter(&owner, &id).ok_or_else(HttpRefusal::no_session)?;
        if parts.method == Method::DELETE {
            app.sessions.delete(&id).await;
            // Some clients take 202 for a failure.
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        match session {
            NamedSession::Held(session) => {
                let session = Arc::new(session);
                // Attached to the call, so that the session is in use until the call is answered, even if no client listens
                // any more.
                parts.extensions.insert(Arc::clone(&session));
                in_use = Some(session);
            }
            NamedSession::NotHeld => {
                if let Some(lost) = lost_calls::answer(&parts.headers) {
                    return Ok(lost);
                }
                config.legacy_session_mode = false;
                unheld = app.unheld_calls.hear(id, &body);
            }
        }
    }
    let method = parts.method.clone();
    let sessions = Arc::new(OwnSessions {
        sessions: Arc::clone(&app.sessions),
        owner,
        refused: AtomicBool::new(false),
    });
    let is_of_2025 = revision(&parts.headers) == Some(ProtocolVersion::V_2025_11_25.as_str());
    let renamed = if is_of_2025 { tasks_2025::rename(&body) } else { None };
    let body = renamed.or_else(|| resources::rewrite(&body)).map_or(body, Bytes::from);
    let greets = tasks_2025::is_initialize(&body);
    let message = body.clone();
    let request = Request::from_parts(parts, Full::new(body));
    let mut response = (app.mcp_service)(request, Arc::clone(&sessions), config).await;
    if greets && response.status().is_success() {
        response = greet_with_tasks(response, listing);
    }
    if sessions.refused.load(Ordering::Relaxed) {
        return Err(HttpRefusal::too_many_sessions());
    }
    // The content type was checked above, so this status means that rmcp could not read the message.
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
        && let Some(answer) = malformed::answer(&message)
    {
        return Ok((StatusCode::BAD_REQUEST, Json(answer)).into_response());
    }
    let ends = StreamEnd { is_endless: method == Method::GET, expires };
    render(app, ends, response, in_use, unheld).await
}

/// Returns the service over this handler.
pub(super) fn mcp_service<H: ServerHandler + Clone>(handler: H) -> McpService {
    Box::new(move |request, sessions, config| {
        // Created for each request: this is how rmcp's sessions learn the owner of the request.
        let handler = handler.clone();
        let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
        Box::pin(async move { service.handle(request).await.map(Body::new) })
    })
}

fn config(app: &App) -> StreamableHttpServerConfig {
    // `admission` checks hosts and origins, for every route and with our own answers.
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .with_cancellation_token(app.closed.clone())
}

/// Returns the session that a request names, in the era that has sessions.
fn session(headers: &HeaderMap) -> Option<SessionId> {
    if revision(headers).is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str()) {
        return None;
    }
    // A value that is not text names no session; an empty name is unknown as well.
    headers.get("mcp-session-id").map(|id| id.to_str().unwrap_or_default().into())
}

/// Returns the protocol revision that a request names.
fn revision(headers: &HeaderMap) -> Option<&str> {
    headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok())
}

/// Adds the capability of the tasks of 2025-11-25 to the answer to `initialize`. Each event arrives in one piece.
fn greet_with_tasks(response: Response, listing: TaskListing) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let body = body.into_data_stream().map(move |piece| {
        piece.map(|piece| match std::str::from_utf8(&piece) {
            Ok(text) => Bytes::from(with_tasks(text, listing)),
            Err(_) => piece,
        })
    });
    Response::from_parts(parts, Body::from_stream(body))
}

/// Adds the capability to each answer in a text of events, or in a text that is an answer.
fn with_tasks(text: &str, listing: TaskListing) -> String {
    let changed = |line: &str| {
        let (start, text) = match line.strip_prefix("data:") {
            Some(text) => ("data: ", text),
            None => ("", line),
        };
        let mut answer = serde_json::from_str(text).ok()?;
        let end = if line.ends_with('\n') { "\n" } else { "" };
        tasks_2025::add_capability(&mut answer, listing).then(|| format!("{start}{answer}{end}"))
    };
    let lines = text.split_inclusive('\n');
    lines.map(|line| changed(line).unwrap_or_else(|| line.to_owned())).collect()
}

fn plain_json(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let content_type =
        headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let coded = headers.get_all(CONTENT_ENCODING).iter().any(|coding| coding != "identity");
    if coded || !essence.eq_ignore_ascii_case("application/json") {
        return Err(HttpRefusal::bad_media_type());
    }
    Ok(())
}

/// The end of a stream. A stream with a call ends with its answer, also if the token expires in the meantime.
struct StreamEnd {
    is_endless: bool,
    expires: Option<Instant>,
}

impl StreamEnd {
    async fn expiry(&self) {
        match self.expires {
            Some(expires) => tokio::time::sleep_until(expires).await,
            None => std::future::pending().await,
        }
    }
}

/// Rewrites rmcp's error response in our format, and ends streams when the server stops.
async fn render(
    app: &App,
    ends: StreamEnd,
    response: Response,
    in_use: Option<Arc<SessionUse>>,
    unheld: Option<UnheldCall>,
) -> Result<Response, HttpRefusal> {
    let (parts, body) = response.into_parts();
    let is = |kind: &str| parts.headers.get(CONTENT_TYPE).is_some_and(|found| found == kind);
    let is_success = parts.status.is_success();
    if is_success && is("text/event-stream") {
        let events = body.into_data_stream().map(move |piece| {
            let _in_use = &in_use;
            piece
        });
        let stop = app.stop.clone();
        let body = match unheld {
            Some(call) => Body::from_stream(call.events(events)),
            None if !ends.is_endless => Body::from_stream(events),
            // A stream without a call ends for no other reason, and would delay the shutdown.
            None => Body::from_stream(events.take_until(Box::pin(async move {
                tokio::select! {
                    () = stop.wait() => {}
                    () = ends.expiry() => {}
                }
            }))),
        };
        return Ok(Response::from_parts(parts, body));
    }
    if is_success || is("application/json") {
        return Ok(Response::from_parts(parts, body));
    }
    let said = body.collect().await.map(|said| said.to_bytes()).unwrap_or_default();
    Err(HttpRefusal::by_rmcp(parts.status, &parts.headers, &String::from_utf8_lossy(&said)))
}
