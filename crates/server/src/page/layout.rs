//! The shared parts of every view: the frame, times, states, and the security headers (I5).

use std::fmt::Display;

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use outlast_core::{JobId, StateKind, Timestamp};

use super::options::PageView;
use super::session::Visitor;
use crate::export::escaped;
use crate::text::readable_time;

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
    pub(super) body: String,
}

impl View<'_> {
    pub(super) fn answer(self, visitor: &Visitor) -> Response {
        html(StatusCode::OK, self.text(Some(visitor)))
    }

    /// Renders the whole document.
    pub(super) fn text(&self, visitor: Option<&Visitor>) -> String {
        let link = |tab: Tab, path: &str, name: &str| {
            let current = if tab == self.tab { " aria-current=\"page\"" } else { "" };
            format!("<a href=\"{path}\"{current}>{name}</a>")
        };
        let nav = match visitor {
            None => String::new(),
            Some(visitor) => format!(
                "<nav aria-label=\"Main\">{}{}{}{}</nav>\n<span class=\"soft\">{}{}</span>\n\
                 <form method=\"post\" action=\"/ui/sign-out\"><button class=\"link\">Sign out</button></form>",
                link(Tab::Jobs, "/ui", "Jobs"),
                link(Tab::Conversations, "/ui/conversations", "Conversations"),
                link(Tab::Ask, "/ui/ask", "Ask"),
                link(Tab::Spend, "/ui/spend", "Spend"),
                escaped(visitor.owner.as_str()),
                match visitor.view {
                    PageView::Own => "",
                    PageView::AllOwners => ", all owners shown",
                },
            ),
        };
        let live = self.live.as_ref().map(|live| format!(" data-live=\"{}\"", escaped(live)));
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{} - outlast</title>\n<link rel=\"icon\" href=\"/ui/icon.svg\">\n\
             <link rel=\"stylesheet\" href=\"/ui/page.css\">\n<script src=\"/ui/page.js\" defer></script>\n</head>\n\
             <body{}>\n<a class=\"skip\" href=\"#main\">Skip to content</a>\n\
             <header class=\"top\"><strong><a href=\"/ui\">outlast</a></strong>\n{nav}</header>\n\
             <main id=\"main\">\n{}</main>\n\
             <div id=\"link\" role=\"status\" hidden>Connection lost. Trying again.</div>\n{HELP}</body>\n</html>\n",
            escaped(self.title),
            live.unwrap_or_default(),
            self.body,
        )
    }
}

const HELP: &str = "<dialog id=\"help\" aria-labelledby=\"help-title\"><h2 id=\"help-title\">Keys</h2>\n\
    <dl class=\"keys\"><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next and previous</dd>\
    <dt><kbd>Enter</kbd></dt><dd>open</dd><dt><kbd>/</kbd></dt><dd>search</dd>\
    <dt><kbd>a</kbd></dt><dd>ask a question</dd><dt><kbd>?</kbd></dt><dd>this list</dd></dl>\n\
    <form method=\"dialog\"><button>Close</button></form></dialog>\n";

/// Renders a page with a sentence and a link.
pub(super) fn message(
    status: StatusCode,
    visitor: Option<&Visitor>,
    title: &str,
    text: &str,
    next: &str,
) -> Response {
    let body = format!(
        "<h1>{}</h1>\n<div class=\"notice bad\"><p>{}</p></div>\n<p>{next}</p>\n",
        escaped(title),
        escaped(text)
    );
    let view = View { title, tab: Tab::Other, live: None, body };
    html(status, view.text(visitor))
}

pub(super) fn html(status: StatusCode, text: String) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// Lets the browser keep a form and the text in it for its Back button. Otherwise the browser would ask to send the form
/// again.
pub(super) fn kept_for_back(mut answer: Response) -> Response {
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
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    let shown = match now.since(at).as_secs() {
        0..=4 => "just now".to_owned(),
        seconds => format!("{} ago", span(seconds)),
    };
    format!(
        "<time datetime=\"{at}\" title=\"{}\" data-ago>{shown}</time>",
        readable_time(&at.to_string(), "%-d %B %Y, %H:%M:%S UTC")
    )
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

/// Renders progress in percent.
pub(super) fn bar(percent: impl Display, label: &str) -> String {
    format!(
        "<progress max=\"100\" value=\"{percent}\" aria-label=\"{label}\">{percent}%</progress>"
    )
}

pub(super) fn state(state: StateKind) -> String {
    let word = state.as_str();
    format!("<span class=\"state {word}\">{word}</span>")
}
