//! Signs a browser in, by a token or by a one-time link. Neither stays in an address (I5).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};

use super::form::Fields;
use super::layout::{self, Tab, View, html, see_other};
use super::options::PageOptions;
use super::request::ALL_JOBS;
use super::session;
use crate::export::escaped;
use crate::http::{App, Callers};

/// The page that asks for a token, in the place of one that needs it.
pub(crate) fn sign_in_form(path: &str, options: &PageOptions, why: &str) -> Response {
    let why = match why {
        "" => String::new(),
        why => format!("<div class=\"notice bad\" role=\"alert\"><p>{}</p></div>\n", escaped(why)),
    };
    let body = match &options.entry {
        // There is no token to show: the link of `outlast ui` is the only way in.
        Some(_) => format!(
            "<h1>Signed out</h1>\n{why}<div class=\"notice\"><p>This page is opened by the link that <code>outlast ui</code> prints. \
             A link is good once and for a minute.</p><p>Start <code>outlast ui</code> again to get a new one.</p></div>\n"
        ),
        None => format!(
            "<h1>Sign in</h1>\n{why}<form class=\"form\" method=\"post\" action=\"/ui/sign-in\">\n\
             <label>Token<input type=\"password\" name=\"token\" required autocomplete=\"current-password\" autofocus></label>\n\
             <input type=\"hidden\" name=\"next\" value=\"{}\">\n<div><button class=\"go\">Sign in</button></div>\n</form>\n\
             <p class=\"soft\">Tokens are those of the server: OUTLAST_TOKENS, OUTLAST_TOKENS_FILE, or the file <code>http-token</code> in its data directory.</p>\n",
            escaped(path)
        ),
    };
    let view = View { title: "Sign in", tab: Tab::Other, live: None, body };
    html(StatusCode::UNAUTHORIZED, view.text(None))
}

/// A token was sent.
pub(super) async fn sign_in(app: State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    let Some(fields) = Fields::read(body).await else { return nothing_here().await };
    let next = fields.get("next").filter(|next| is_ours(next)).unwrap_or("/ui");
    let Callers::WithToken(tokens) = &app.options.callers else { return see_other(next) };
    let found = fields.get("token").and_then(|token| tokens.owner_of(token));
    let Some((owner, key)) = found else {
        return sign_in_form(next, &app.options.page, "This is no token of this server.");
    };
    let cookie = session::set_cookie(&key, &owner, app.engine().now(), is_tls(&headers));
    with_cookie(see_other(next), &cookie)
}

/// A one-time link was opened.
pub(super) async fn enter(
    app: State<Arc<App>>,
    headers: HeaderMap,
    Query(fields): Query<Fields>,
) -> Response {
    match (&app.options.page.entry, fields.get("code")) {
        (Some(entry), Some(code)) if entry.takes(code) => {
            let (now, is_tls) = (app.engine().now(), is_tls(&headers));
            let cookie = session::set_cookie(&entry.key, &entry.owner, now, is_tls);
            with_cookie(see_other("/ui"), &cookie)
        }
        _ => {
            let why = "This link was used already, or is older than a minute.";
            sign_in_form("/ui", &app.options.page, why)
        }
    }
}

pub(super) async fn sign_out() -> Response {
    with_cookie(see_other("/ui"), &session::clear_cookie())
}

fn with_cookie(response: Response, cookie: &str) -> Response {
    ([(SET_COOKIE, cookie)], response).into_response()
}

/// Only a path of the page: a form must not lead elsewhere.
fn is_ours(path: &str) -> bool {
    super::is_page(path.split('?').next().unwrap_or_default())
        && path.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether the browser came to a proxy in front of us over TLS.
fn is_tls(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https")
}

/// Shown where a browser may not go.
pub(super) async fn nothing_here() -> Response {
    layout::message(StatusCode::NOT_FOUND, None, "Not found", "There is nothing here.", ALL_JOBS)
}
