//! Serves the pages, hostile ones too.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use super::corpus::{self, Format};
use super::{html, pdf};
use crate::app::{App, SharedApp};
use crate::hostile;
use crate::socket::Hangup;

/// The hostile pages, below `/hostile/`.
pub(super) const HOSTILE: [&str; 9] =
    ["gigabyte", "silent", "drip", "gone", "forbidden", "script-only", "hang-up", "text", "loop"];

/// The text of `/hostile/text` has a line of this length.
const LONG_LINE: usize = 1_000_000;
const CHUNK: usize = 65_536;
const GIGABYTE: usize = 1 << 30;

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new().fallback(page).with_state(app)
}

async fn page(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let origin = format!("http://{host}");
    app.calls.count_page(&format!("{origin}{uri}"));
    let path = uri.path().trim_start_matches('/');
    if let Some(name) = path.strip_prefix("hostile/") {
        return hostile_page(name, &hangup).await;
    }
    if path.starts_with("trap/") {
        return "The trap was visited in 1999.".into_response();
    }
    if let Some(target) = path.strip_prefix("moved/") {
        let target = format!("{origin}/{target}");
        app.calls.offer(&target);
        return (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, target)]).into_response();
    }
    let Some(page) = corpus::find(path) else {
        return (StatusCode::NOT_FOUND, "no such page").into_response();
    };
    let (media_type, body) = match page.format {
        Format::Html => ("text/html; charset=utf-8", html::render(page, &origin).into_bytes()),
        Format::Text => ("text/plain; charset=utf-8", page.plain().into_bytes()),
        Format::Pdf => ("application/pdf", pdf::write(&page.plain())),
    };
    ([(header::CONTENT_TYPE, media_type)], body).into_response()
}

async fn hostile_page(name: &str, hangup: &Hangup) -> Response {
    let html = [(header::CONTENT_TYPE, "text/html")];
    match name {
        "gigabyte" => {
            let chunks = (0..GIGABYTE / CHUNK).map(|_| Ok::<_, std::io::Error>(vec![b'x'; CHUNK]));
            (html, Body::from_stream(stream::iter(chunks))).into_response()
        }
        "silent" => std::future::pending().await,
        "drip" => {
            let drops = stream::unfold((), async |()| {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Some((Ok::<_, std::io::Error>(b"x".to_vec()), ()))
            });
            (html, Body::from_stream(drops)).into_response()
        }
        "gone" => StatusCode::GONE.into_response(),
        "forbidden" => {
            (StatusCode::FORBIDDEN, html, "<p>Robots are not allowed.</p>").into_response()
        }
        "script-only" => {
            (html, "<body><div id=root></div><script>render()</script></body>").into_response()
        }
        "hang-up" => {
            hangup.now();
            StatusCode::OK.into_response()
        }
        "text" => {
            (html, format!("<title>{}</title><pre>{}", hostile::TITLE, hostile::text(LONG_LINE)))
                .into_response()
        }
        "loop" => (StatusCode::FOUND, [(header::LOCATION, "/hostile/loop")]).into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
