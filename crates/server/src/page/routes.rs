//! The routing table under `/ui`. The HTTP server has already identified the visitor.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use super::layout::see_other;
use super::{
    actions, asking, conversations, downloads, events, job, list, several, sign_in, spend,
};
use crate::export::REPORT_STYLE;
use crate::http::App;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const ICON: &str = include_str!("icon.svg");

/// The address of the sign-in form.
pub(crate) const SIGN_IN: &str = "/ui/sign-in";

/// Returns true if the path belongs to the page.
pub(crate) fn is_page(path: &str) -> bool {
    path == "/" || path == "/ui" || path.starts_with("/ui/")
}

/// Returns true if a path of the page is served to everyone: the sign-in paths and the assets (I8).
pub(crate) fn is_public(path: &str) -> bool {
    matches!(
        path,
        "/" | SIGN_IN
            | "/ui/sign-out"
            | "/ui/enter"
            | "/ui/page.css"
            | "/ui/page.js"
            | "/ui/icon.svg"
    )
}

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(|| async { see_other("/ui") }))
        .route("/ui", get(list::view))
        .route("/ui/", get(|| async { see_other("/ui") }))
        .route("/ui/jobs/{id}", get(job::view))
        .route("/ui/jobs/{id}/{action}", post(actions::act))
        .route("/ui/jobs/{id}/export/{format}", get(downloads::of_job))
        .route("/ui/several", post(several::act))
        .route("/ui/conversations", get(conversations::list))
        .route("/ui/conversations/{id}", get(conversations::view))
        .route("/ui/conversations/{id}/export/{format}", get(downloads::of_conversation))
        .route("/ui/ask", get(asking::view).post(asking::ask))
        .route("/ui/spend", get(spend::view))
        .route("/ui/events", get(events::stream))
        .route(SIGN_IN, get(|| async { see_other("/ui") }).post(sign_in::sign_in))
        .route("/ui/sign-out", post(sign_in::sign_out))
        .route("/ui/enter", get(sign_in::enter))
        .route(
            "/ui/page.css",
            get(|| async { asset("text/css; charset=utf-8", [STYLE, REPORT_STYLE].concat()) }),
        )
        .route(
            "/ui/page.js",
            get(|| async { asset("text/javascript; charset=utf-8", SCRIPT.to_owned()) }),
        )
        .route("/ui/icon.svg", get(|| async { asset("image/svg+xml", ICON.to_owned()) }))
        .route("/ui/{*rest}", get(sign_in::answer_not_found))
}

fn asset(kind: &'static str, text: String) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text).into_response()
}
