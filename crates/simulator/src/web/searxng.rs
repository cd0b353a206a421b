//! The JSON interface of SearXNG over the pages.
//!
//! The address of the server selects its faults: `/searxng/SWITCHES`, several separated by commas, `-` for none.
//! `json=off` answers 403 as an instance without the format does, `none` finds nothing, `hostile` adds hostile
//! pages, `slow=MS` delays the answer, `busy=N` refuses the first N requests for a query with 429, `html` answers
//! with a page, `moved` returns addresses that redirect. Any other `name=value` only names a lane for the counts.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::corpus;
use super::pages::HOSTILE;
use crate::app::{App, SharedApp};
use crate::calls::Kind;
use crate::switches::Switches;

const RESULTS_PER_PAGE: usize = 10;
const FORBIDDEN: &str = "<!doctype html>\n<html lang=en>\n<title>403 Forbidden</title>\n<h1>Forbidden</h1>\n\
    <p>You don&#39;t have the permission to access the requested resource. It is either read-protected or not readable by the server.</p>\n";

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new().route("/searxng/{switches}/search", get(search))
}

#[derive(Deserialize)]
struct SearchQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    format: String,
    #[serde(default)]
    pageno: Option<usize>,
}

async fn search(
    State(app): SharedApp,
    Path(lane): Path<String>,
    Query(asked): Query<SearchQuery>,
) -> Response {
    let switches = Switches::parse(&lane);
    let page = asked.pageno.unwrap_or(1).max(1);
    let body = format!("{page} {}", asked.q);
    let seen = app.calls.count_request(&lane, Kind::Search, body.as_bytes());
    app.sleep(switches.number("slow")).await;
    if seen < switches.number("busy") {
        let wait = [(header::RETRY_AFTER, "1")];
        return (StatusCode::TOO_MANY_REQUESTS, wait, "Too Many Requests").into_response();
    }
    if asked.q.trim().is_empty() {
        return (StatusCode::BAD_REQUEST, "Bad Request").into_response();
    }
    if asked.format == "json" && switches.text("json") == Some("off") {
        return (StatusCode::FORBIDDEN, Html(FORBIDDEN)).into_response();
    }
    app.calls.count_answer(&lane, Kind::Search, body.as_bytes());
    if asked.format != "json" || switches.has("html") {
        return Html("<!doctype html><title>SearXNG</title><p>Results</p>").into_response();
    }
    let results = results(&app, &asked.q, page, &switches);
    Json(json!({
        "query": asked.q,
        "number_of_results": 0,
        "results": results,
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": [],
        "unresponsive_engines": [["slow engine", "timeout"]],
    }))
    .into_response()
}

fn results(app: &App, query: &str, page: usize, switches: &Switches) -> Vec<Value> {
    if switches.has("none") {
        return Vec::new();
    }
    let found = corpus::search(query).into_iter().skip((page - 1) * RESULTS_PER_PAGE);
    let prefix = if switches.has("moved") { "moved/" } else { "" };
    let pages = found.take(RESULTS_PER_PAGE).map(|number| {
        let page = &corpus::pages()[number];
        let url = format!("{}/{prefix}{}", app.origin(number), page.path);
        (url, page.title.clone(), page.snippet())
    });
    let hostile = HOSTILE.iter().enumerate().map(|(nth, name)| {
        let url = format!("{}/hostile/{name}", app.origin(nth));
        (url, crate::hostile::TITLE.to_owned(), format!("{query} {}", crate::hostile::text(80)))
    });
    let hostile = hostile.filter(|_| switches.has("hostile") && page == 1);
    let results = pages.chain(hostile).enumerate().map(|(nth, (url, title, content))| {
        app.calls.offer(&url);
        json!({
            "url": url,
            "title": title,
            "content": content,
            "engine": "scripted",
            "engines": ["scripted"],
            "template": "default.html",
            "parsed_url": Value::Null,
            "positions": [nth + 1],
            "score": 1.0 / (nth + 1) as f64,
            "category": "general",
        })
    });
    results.collect()
}
