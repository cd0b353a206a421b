//! What is served where under `/ui`. Who asks was found out by the HTTP face.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};

use super::actions::{self, Action};
use super::form::Fields;
use super::layout::{self, message, see_other};
use super::session::Visitor;
use super::{asking, conversations, downloads, events, job, list, sign_in, spend};
use crate::export::REPORT_STYLE;
use crate::http::App;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const ICON: &str = include_str!("icon.svg");

/// Whether a path is the page's.
pub(crate) fn is_page(path: &str) -> bool {
    path == "/" || path == "/ui" || path.starts_with("/ui/")
}

/// Whether a path of the page is served to everyone: how to sign in, and the assets (I8).
pub(crate) fn is_public(path: &str) -> bool {
    matches!(
        path,
        "/" | "/ui/sign-in"
            | "/ui/sign-out"
            | "/ui/enter"
            | "/ui/page.css"
            | "/ui/page.js"
            | "/ui/icon.svg"
    )
}

/// The page's routes.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(|| async { see_other("/ui") }))
        .route("/ui", get(show_list))
        .route("/ui/", get(|| async { see_other("/ui") }))
        .route("/ui/jobs/{id}", get(show_job))
        .route("/ui/jobs/{id}/{action}", post(act))
        .route("/ui/jobs/{id}/export/{format}", get(job_file))
        .route("/ui/conversations", get(show_conversations))
        .route("/ui/conversations/{id}", get(show_conversation))
        .route("/ui/conversations/{id}/export/{format}", get(conversation_file))
        .route("/ui/ask", get(show_ask).post(ask))
        .route("/ui/spend", get(show_spend))
        .route("/ui/events", get(show_events))
        .route("/ui/sign-in", get(|| async { see_other("/ui") }).post(signs_in))
        .route("/ui/sign-out", post(|| async { sign_in::sign_out() }))
        .route("/ui/enter", get(enters))
        .route(
            "/ui/page.css",
            get(|| async { asset("text/css; charset=utf-8", [STYLE, REPORT_STYLE].concat()) }),
        )
        .route(
            "/ui/page.js",
            get(|| async { asset("text/javascript; charset=utf-8", SCRIPT.to_owned()) }),
        )
        .route("/ui/icon.svg", get(|| async { asset("image/svg+xml", ICON.to_owned()) }))
        .route("/ui/{*rest}", get(|| async { sign_in::nothing_here() }))
}

fn asset(kind: &'static str, text: String) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text).into_response()
}

type Asks = (State<Arc<App>>, Extension<Visitor>);

async fn show_list((State(app), Extension(visitor)): Asks, RawQuery(query): RawQuery) -> Response {
    list::view(app.engine(), &app.page, &visitor, &query.unwrap_or_default()).await
}

async fn show_job((State(app), Extension(visitor)): Asks, Path(id): Path<String>) -> Response {
    job::view(app.engine(), &app.page, &visitor, &id).await
}

async fn act(
    (State(app), Extension(visitor)): Asks,
    Path((id, action)): Path<(String, String)>,
    body: Body,
) -> Response {
    let Some(action) = Action::parse(&action) else { return layout::not_found(&visitor) };
    let Some(fields) = Fields::read(body).await else { return unreadable_form(&visitor) };
    actions::act(app.engine(), &app.page, &visitor, (&id, action), &fields).await
}

async fn job_file(
    (State(app), Extension(visitor)): Asks,
    Path((id, format)): Path<(String, String)>,
) -> Response {
    downloads::of_job(app.engine(), &visitor, &id, &format).await
}

async fn show_conversations(
    (State(app), Extension(visitor)): Asks,
    RawQuery(query): RawQuery,
) -> Response {
    conversations::list(app.engine(), &visitor, &query.unwrap_or_default()).await
}

async fn show_conversation(
    (State(app), Extension(visitor)): Asks,
    Path(id): Path<String>,
) -> Response {
    conversations::view(app.engine(), &app.page, &visitor, &id).await
}

async fn conversation_file(
    (State(app), Extension(visitor)): Asks,
    Path((id, format)): Path<(String, String)>,
) -> Response {
    downloads::of_conversation(app.engine(), &visitor, &id, &format).await
}

async fn show_ask((State(app), Extension(visitor)): Asks) -> Response {
    asking::view(&app.page, &visitor)
}

async fn ask((State(app), Extension(visitor)): Asks, body: Body) -> Response {
    let Some(fields) = Fields::read(body).await else { return unreadable_form(&visitor) };
    asking::ask(app.engine(), &app.page, &visitor, &fields).await
}

async fn show_spend((State(app), Extension(visitor)): Asks) -> Response {
    spend::view(app.engine(), &app.page, &visitor).await
}

async fn show_events(
    (State(app), Extension(visitor)): Asks,
    RawQuery(query): RawQuery,
) -> Response {
    events::stream(app.engine(), &visitor, &query.unwrap_or_default(), app.stop.clone()).await
}

async fn signs_in(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    let Some(fields) = Fields::read(body).await else { return sign_in::nothing_here() };
    sign_in::sign_in(&app.page, &app.callers, &headers, &fields, app.engine().now())
}

async fn enters(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    sign_in::enter(&app.page, &headers, &query.unwrap_or_default(), app.engine().now())
}

fn unreadable_form(visitor: &Visitor) -> Response {
    message(
        StatusCode::BAD_REQUEST,
        Some(visitor),
        "Not done",
        "The form is too long, or did not arrive whole.",
        "<a href=\"/ui\">All jobs</a>",
    )
}
