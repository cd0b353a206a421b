//! Checks every request before its route: the host, the origin, the token, the connection and the rate, in this order.
//!
//! Without a token the server answers only `/livez`, `/readyz` and `/health`, preflight requests (CORS), the metadata of an OAuth
//! resource server if it is one, and "not found" under `/.well-known/`.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL, HOST, ORIGIN, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use outlast_core::OwnerId;

use super::Routes;
use super::app::{App, HEALTH, LIVEZ, METRICS, READYZ};
use super::connections::Connection;
use super::http_refusal::HttpRefusal;
use super::oauth::{self, ResourceServer};
use super::page_admission;
use super::tokens::{Callers, bearer, the_one};
use crate::audit::AuditedRequest;
use crate::caller::{Access, Identification, Principal};
use crate::page;

/// The path prefix of RFC 8615, under which we serve nothing but the metadata.
const WELL_KNOWN: &str = "/.well-known/";

/// The known facts about a connection.
#[derive(Clone)]
pub(super) struct HttpPeer {
    /// The address of the peer.
    pub(super) address: IpAddr,
    /// The connection, which is counted for its owner.
    pub(super) connection: Connection,
}

/// Passes a request on to its route, or answers it.
pub(super) async fn guard(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<HttpPeer>,
    request: Request,
    next: Next,
) -> Response {
    let route = match request.uri().path() {
        "/mcp" | "/mcp/" => "/mcp",
        METRICS => METRICS,
        HEALTH => HEALTH,
        LIVEZ => LIVEZ,
        READYZ => READYZ,
        path if page::is_page(path) => "/ui",
        _ => "other",
    };
    let is_page = app.options.routes == Routes::All && page::is_page(request.uri().path());
    let audited = audited(&app, &peer, &request);
    let response = match is_page {
        true => page_admission::check(&app, &peer, request, next).await,
        false => check(&app, &peer, request, next).await,
    };
    app.server.metrics.count_answer(route, response.status().as_u16());
    if let Some(audited) = audited {
        audited.record(&app, &response);
    }
    response
}

/// Returns the facts of a request for the audit log, if there is one.
fn audited(app: &App, peer: &HttpPeer, request: &Request) -> Option<AuditedRequest> {
    app.audit()?;
    Some(AuditedRequest {
        address: app.options.trusted_proxies.client_address(peer.address, request.headers()),
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
    })
}

async fn check(app: &App, peer: &HttpPeer, request: Request, next: Next) -> Response {
    if let Some(oauth) = &app.options.oauth
        && own_host(app, &request).is_ok()
    {
        if let Some(metadata) = oauth.metadata(&request) {
            return with_cors(metadata, None);
        }
        // A preflight request reveals nothing; the request that follows must come from an allowed origin.
        if let Some(mut preflight) = preflight(&request, request.headers().get(ORIGIN)) {
            oauth::allow_any_origin(preflight.headers_mut());
            return with_cors(preflight, None);
        }
    }
    let origin = match check_addresses(app, &request) {
        Ok(origin) => origin.cloned(),
        Err(refused) => return with_cors(refused.into_response(), None),
    };
    if let Some(preflight) = preflight(&request, origin.as_ref()) {
        return with_cors(preflight, origin);
    }
    // Clients look here for an authorization server before they send a token: this does not count as an attempt with a wrong
    // token.
    if request.uri().path().starts_with(WELL_KNOWN) {
        return with_cors(HttpRefusal::not_found().into_response(), origin);
    }
    let response = match admit(app, peer, request).await {
        Ok(request) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    with_cors(response, origin)
}

/// Checks that the request is addressed to this server and comes from an allowed page; returns the page's origin.
fn check_addresses<'a>(
    app: &App,
    request: &'a Request,
) -> Result<Option<&'a HeaderValue>, HttpRefusal> {
    let headers = request.headers();
    // Orchestrators and Prometheus use the address of a machine. A page that tricks a browser into such a request learns
    // only that a server exists, and sends no token.
    let is_guarded = matches!(app.options.callers, Callers::WithToken(_));
    match request.uri().path() {
        HEALTH | LIVEZ | READYZ => {}
        METRICS if is_guarded => {}
        _ => own_host(app, request).map(drop)?,
    }
    if !headers.contains_key(ORIGIN) {
        return Ok(None);
    }
    let origin = the_one(headers, &ORIGIN);
    let allowed =
        |origin: &&HeaderValue| origin.to_str().is_ok_and(|it| app.options.origins.allow(it));
    origin.filter(allowed).map(Some).ok_or_else(HttpRefusal::bad_origin)
}

/// Returns the host name that the request is addressed to, which must be a name of this server.
pub(super) fn own_host<'a>(app: &App, request: &'a Request) -> Result<&'a str, HttpRefusal> {
    let host = the_one(request.headers(), &HOST).and_then(|host| host.to_str().ok());
    // For an absolute target, the host header and the target must both be ours: intermediaries disagree about which one
    // counts.
    let target = request.uri().authority().map(|authority| authority.as_str());
    let ours = |name: &&str| app.options.hosts.allow(name);
    let host = host.filter(ours).ok_or_else(HttpRefusal::bad_host)?;
    if target.is_some_and(|target| !ours(&target)) {
        return Err(HttpRefusal::bad_host());
    }
    Ok(host)
}

/// Identifies the owner and attaches it to the request.
async fn admit(app: &App, peer: &HttpPeer, mut request: Request) -> Result<Request, HttpRefusal> {
    if matches!(request.uri().path(), HEALTH | LIVEZ | READYZ) {
        return Ok(request);
    }
    let principal = match &app.options.callers {
        Callers::WithoutToken(owner) => {
            Principal::of_server(owner.clone(), Identification::Nothing)
        }
        Callers::WithToken(tokens) => match (tokens.owner(request.headers()), &app.options.oauth) {
            (Some(owner), _) => Principal::of_server(owner, Identification::Token),
            (None, None) => {
                count_wrong_token(app, peer, request.headers())?;
                return Err(HttpRefusal::no_token());
            }
            (None, Some(oauth)) => {
                identify(app, oauth, peer, request.headers(), request.uri().path()).await?
            }
        },
    };
    has_room(app, peer, &principal.owner)?;
    request.extensions_mut().insert(principal);
    Ok(request)
}

/// Identifies the principal of an access token, which needs a scope for every route.
async fn identify(
    app: &App,
    oauth: &ResourceServer,
    peer: &HttpPeer,
    headers: &HeaderMap,
    path: &str,
) -> Result<Principal, HttpRefusal> {
    let now = app.engine().now();
    let principal = match bearer(headers) {
        Some(token) => oauth.principal(token, now).await.map_err(Some),
        None => Err(None),
    };
    let principal = match principal {
        Ok(principal) => principal,
        Err(problem) => {
            count_wrong_token(app, peer, headers)?;
            return Err(HttpRefusal::bad_access_token(oauth, problem.as_ref()));
        }
    };
    let needed = match path {
        METRICS => Access::Admin,
        _ => Access::Read,
    };
    match principal.access < needed {
        true => Err(HttpRefusal::insufficient_scope(oauth, needed)),
        false => Ok(principal),
    }
}

/// Counts a request without a token of this server; refuses it if there were too many.
pub(super) fn count_wrong_token(
    app: &App,
    peer: &HttpPeer,
    headers: &HeaderMap,
) -> Result<(), HttpRefusal> {
    let client = app.options.trusted_proxies.client_address(peer.address, headers);
    app.limits.stranger(client).map_err(HttpRefusal::too_many_requests)
}

/// Checks that a request of this owner can be served now.
pub(super) fn has_room(app: &App, peer: &HttpPeer, owner: &OwnerId) -> Result<(), HttpRefusal> {
    if !peer.connection.belongs_to(owner) {
        tracing::warn!(%owner, "connections are closed: their owner has too many");
        return Err(HttpRefusal::too_many_connections());
    }
    app.limits.owner(owner).map_err(HttpRefusal::too_many_requests)?;
    if app.stop.is_asked() {
        return Err(HttpRefusal::leaving());
    }
    Ok(())
}

/// Answers the preflight request that a browser sends before it lets a page of an allowed origin call the server.
fn preflight(request: &Request, origin: Option<&HeaderValue>) -> Option<Response> {
    let asks = request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if request.method() != Method::OPTIONS || !asks || origin.is_none() {
        return None;
    }
    let known = |name: &str| {
        matches!(name, "accept" | "authorization" | "content-type" | "last-event-id")
            || name.starts_with("mcp-")
    };
    let asked = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS);
    let asked =
        asked.and_then(|names| names.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
    let granted: Vec<&str> = asked.split(',').map(str::trim).filter(|name| known(name)).collect();
    let granted = HeaderValue::from_str(&granted.join(", ")).ok()?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, granted);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    Some(response)
}

/// Adds the headers of every answer: no caching, no guessing of content types, and the origin that may read it.
pub(super) fn with_cors(mut response: Response, origin: Option<HeaderValue>) -> Response {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        let exposed = HeaderValue::from_static("Mcp-Session-Id, Retry-After, WWW-Authenticate");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response
}
