//! Signs a browser in, by a token or by a one-time link. Neither stays in an address (I5).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use http::header::{REFRESH, RETRY_AFTER, SET_COOKIE};
use http::{HeaderMap, Method, StatusCode};
use maud::html;
use outlast_core::OwnerId;

use super::form::{Fields, MAX_SIGN_IN_BYTES};
use super::layout::{self, Tab, View, page, see_other};
use super::options::PageOptions;
use super::request::all_jobs;
use super::session;
use crate::audit::SignedIn;
use crate::http::{App, Callers, FormSender};

/// Returns the page that asks for a token, in place of a page that needs one.
pub(crate) fn sign_in_form(path: &str, options: &PageOptions, why: &str) -> Response {
    let why = html! {
        @if !why.is_empty() { div .notice.bad role="alert" { p { (why) } } }
    };
    let body = match &options.entry {
        // No token exists to enter: the link of `outlast ui` is the only way in.
        Some(_) => html! {
            h1 { "Signed out" }
            (why)
            div .notice {
                p {
                    "This page is opened by the link that " code { "outlast ui" } " prints. "
                    "A link is good once and for a minute."
                }
                p { "Start " code { "outlast ui" } " again to get a new one." }
            }
        },
        None => html! {
            h1 { "Sign in" }
            (why)
            form .form method="post" action="/ui/sign-in" {
                label {
                    "Token"
                    input type="password" name="token" required autocomplete="current-password" autofocus;
                }
                input type="hidden" name="next" value=(path);
                div { button .go { "Sign in" } }
            }
            p .soft {
                "Tokens are those of the server: OUTLAST_TOKENS, OUTLAST_TOKENS_FILE, or the file "
                code { "http-token" } " in its data directory."
            }
        },
    };
    let view = View { title: "Sign in", tab: Tab::Other, live: None, body };
    page(StatusCode::UNAUTHORIZED, view.text(None))
}

/// Refuses an address that has tried to sign in too often.
pub(crate) fn too_many_sign_ins(wait: Duration) -> Response {
    let seconds = (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1);
    let why = format!("Too many attempts to sign in from this address. Try again in {seconds} s.");
    let next = html! { a href="/ui" { "Sign in" } };
    let page =
        layout::message(StatusCode::TOO_MANY_REQUESTS, None, "Too many attempts", &why, &next);
    ([(RETRY_AFTER, seconds.to_string())], page).into_response()
}

/// Handles a submitted token.
pub(super) async fn sign_in(app: State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    let sent = app.read_form(&headers, body, FormSender::Stranger, MAX_SIGN_IN_BYTES).await;
    let fields = match sent {
        Ok(bytes) => Fields::parse(&bytes),
        Err(refused) => return *refused,
    };
    let next = fields.get("next").filter(|next| is_ours(next)).unwrap_or("/ui");
    let Callers::WithToken(tokens) = &app.options.callers else { return see_other(next) };
    let found = fields.get("token").and_then(|token| tokens.owner_of(token));
    let Some((owner, key)) = found else {
        return sign_in_form(next, &app.options.page, "This is no token of this server.");
    };
    let cookie = session::set_cookie(&key, &owner, app.engine().now(), &headers);
    signed_in(with_cookie(see_other(next), &cookie), &owner)
}

/// Handles an opened one-time link. Only a person's own navigation uses it up: a HEAD, a prefetch or a preview does not.
pub(super) async fn enter(
    app: State<Arc<App>>,
    method: Method,
    headers: HeaderMap,
    Query(fields): Query<Fields>,
) -> Response {
    if method != Method::GET || !is_navigation(&headers) {
        return StatusCode::NO_CONTENT.into_response();
    }
    match (&app.options.page.entry, fields.get("code")) {
        (Some(entry), Some(code)) if entry.takes(code) => {
            let now = app.engine().now();
            let cookie = session::set_cookie(&entry.key, &entry.owner, now, &headers);
            signed_in(with_cookie(redirect_inside(), &cookie), &entry.owner)
        }
        _ => {
            let why = "This link was used already, or is older than a minute.";
            sign_in_form("/ui", &app.options.page, why)
        }
    }
}

/// Attaches the owner who has signed in, for the audit log.
fn signed_in(mut response: Response, owner: &OwnerId) -> Response {
    response.extensions_mut().insert(SignedIn(owner.clone()));
    response
}

/// Continues from the link to the page. Not a redirect: the link was opened from a file, and under `SameSite=Strict` a
/// browser sends the new cookie only with requests that this server's own page makes.
fn redirect_inside() -> Response {
    let body = html! { h1 { "Signed in" } p { a href="/ui" { "Open the page" } } };
    let view = View { title: "Signed in", tab: Tab::Other, live: None, body };
    ([(REFRESH, "0;url=/ui")], page(StatusCode::OK, view.text(None))).into_response()
}

/// Returns true if a browser will show the answer to a person, according to its headers.
fn is_navigation(headers: &HeaderMap) -> bool {
    let says = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_ahead = ["sec-purpose", "purpose", "x-purpose", "x-moz"].iter().any(|name| {
        says(name).is_some_and(|purpose| purpose.contains("prefetch") || purpose == "preview")
    });
    !is_ahead
        && says("sec-fetch-mode").is_none_or(|mode| mode == "navigate")
        && says("sec-fetch-dest").is_none_or(|shown_in| shown_in == "document")
}

/// Signs out, at the server too: all copies of the cookie become invalid.
pub(super) async fn sign_out(app: State<Arc<App>>, headers: HeaderMap) -> Response {
    session::sign_out(&app, &headers).await;
    with_cookie(see_other("/ui"), &session::clear_cookie(&headers))
}

fn with_cookie(response: Response, cookie: &str) -> Response {
    ([(SET_COOKIE, cookie)], response).into_response()
}

/// Accepts only paths of the page: a form must not redirect elsewhere.
fn is_ours(path: &str) -> bool {
    super::is_page(path.split('?').next().unwrap_or_default())
        && path.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Answers for an unknown address.
pub(super) async fn answer_not_found() -> Response {
    layout::message(StatusCode::NOT_FOUND, None, "Not found", "There is nothing here.", &all_jobs())
}
