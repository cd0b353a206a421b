//! The shared parts of every view: the frame, times, states, and the security headers (I5).

use std::fmt::Display;

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use maud::{DOCTYPE, Markup, html};
use outlast_core::{Effort, JobId, StateKind, Timestamp, visible};

use super::options::PageView;
use super::session::Visitor;
use crate::text::{readable_time, took};

/// The sections of the page, as the navigation shows them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Jobs,
    Conversations,
    Ask,
    Spend,
    Other,
}

pub(super) struct View<'a> {
    pub(super) title: &'a str,
    pub(super) tab: Tab,
    /// The address of the events that make the view stale; `None` if it is not live.
    pub(super) live: Option<String>,
    pub(super) body: Markup,
}

impl View<'_> {
    pub(super) fn answer(self, visitor: &Visitor) -> Response {
        page(StatusCode::OK, self.text(Some(visitor)))
    }

    /// Renders the whole document.
    pub(super) fn text(&self, visitor: Option<&Visitor>) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (visible(self.title)) " - outlast" }
                    link rel="icon" href="/ui/icon.svg";
                    link rel="stylesheet" href="/ui/page.css";
                    script src="/ui/page.js" defer {}
                }
                body data-live=[&self.live] {
                    a .skip href="#main" { "Skip to content" }
                    header .top {
                        strong { a href="/ui" { "outlast" } }
                        @if let Some(visitor) = visitor { (self.navigation(visitor)) }
                    }
                    main #main { (self.body) }
                    div #link role="status" hidden { "Connection lost. Trying again." }
                    (help())
                }
            }
        }
    }

    fn navigation(&self, visitor: &Visitor) -> Markup {
        let tabs = [
            (Tab::Jobs, "/ui", "Jobs"),
            (Tab::Conversations, "/ui/conversations", "Conversations"),
            (Tab::Ask, "/ui/ask", "Ask"),
            (Tab::Spend, "/ui/spend", "Spend"),
        ];
        html! {
            nav aria-label="Main" {
                @for (tab, path, name) in tabs {
                    a href=(path) aria-current=[(tab == self.tab).then_some("page")] { (name) }
                }
            }
            span .soft {
                (visible(visitor.owner.as_str()))
                @if visitor.view == PageView::AllOwners { ", all owners shown" }
            }
            form method="post" action="/ui/sign-out" { button .link { "Sign out" } }
        }
    }
}

fn help() -> Markup {
    let keys: [(&[&str], &str); 6] = [
        (&["j", "k"], "next and previous"),
        (&["Enter"], "open"),
        (&["x"], "select"),
        (&["/"], "search"),
        (&["a"], "ask a question"),
        (&["?"], "this list"),
    ];
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            dl .keys {
                @for (keys, effect) in keys {
                    dt { @for key in keys { kbd { (key) } " " } }
                    dd { (effect) }
                }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// Renders a page with a sentence and a link.
pub(super) fn message(
    status: StatusCode,
    visitor: Option<&Visitor>,
    title: &str,
    text: &str,
    next: &Markup,
) -> Response {
    let body = html! {
        h1 { (visible(title)) }
        div .notice.bad { p { (visible(text)) } }
        p { (next) }
    };
    let view = View { title, tab: Tab::Other, live: None, body };
    page(status, view.text(visitor))
}

pub(super) fn page(status: StatusCode, document: Markup) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], document.into_string()).into_response()
}

/// Lets the browser keep a form and the text in it for its Back button. Otherwise the browser would ask to send the form
/// again.
pub(super) fn keep_for_back(mut answer: Response) -> Response {
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    answer
}

/// Redirects to `path` with GET.
pub(super) fn see_other(path: &str) -> Response {
    let location = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/ui"));
    (StatusCode::SEE_OTHER, [(http::header::LOCATION, location)]).into_response()
}

pub(super) fn see_job(id: &JobId) -> Response {
    see_other(&format!("/ui/jobs/{id}"))
}

/// Restricts what a browser may do with any answer of the page: it may run and load only content of this server.
pub(crate) fn secure(headers: &mut HeaderMap) {
    const RULES: [(&str, &str); 4] = [
        (
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
        // Not `no-referrer`: with that, a browser sends `Origin: null` for the page's own forms.
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ];
    for (name, value) in RULES {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
}

/// Renders the age of a moment, with the moment itself on hover.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> Markup {
    let shown = match now.since(at).as_secs() {
        0..=4 => "just now".to_owned(),
        seconds => format!("{} ago", span(seconds)),
    };
    let exact = readable_time(&at.to_string(), "%-d %B %Y, %H:%M:%S UTC");
    html! { time datetime=(at.to_string()) title=(exact) data-ago { (shown) } }
}

/// Renders the age of a job that has not ended; the browser counts on.
pub(super) fn clock(seconds: u64) -> Markup {
    html! { span .clock data-clock=(seconds) { (took(seconds)) } }
}

/// Renders a duration in its largest unit.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min", seconds / 60),
        3_600..=86_399 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Returns the word for an effort.
pub(super) fn effort(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

/// Renders progress in percent.
pub(super) fn bar(percent: impl Display, label: &str) -> Markup {
    let percent = percent.to_string();
    html! { progress max="100" value=(percent) aria-label=(label) { (percent) "%" } }
}

pub(super) fn state(state: StateKind) -> Markup {
    let word = state.as_str();
    html! { span class={ "state " (word) } { (word) } }
}
