//! Checks every request for the page before its route: the host, that no other site sent it, the signed-in owner, the
//! connection and the rate (I5).
//!
//! A browser reports in `Sec-Fetch-Site` and `Origin` which site a request comes from. Every change must come from the page
//! itself; a request with neither header does not come from a page in a browser and may not change anything.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, ORIGIN};
use http::{HeaderMap, Method};

use super::admission::{HttpPeer, count_wrong_token, has_room, own_host, with_cors};
use super::app::App;
use super::http_refusal::HttpRefusal;
use super::tokens::the_one;
use crate::page;

/// Passes a request on to the page, or answers it.
pub(super) async fn check(app: &App, peer: &HttpPeer, request: Request, next: Next) -> Response {
    secure(match admit(app, peer, request).await {
        Ok(request) => next.run(request).await,
        Err(refused) => *refused,
    })
}

fn secure(response: Response) -> Response {
    // No other site may read the page, whatever origins may use MCP.
    let mut response = with_cors(response, None);
    page::secure(response.headers_mut());
    response
}

async fn admit(app: &App, peer: &HttpPeer, mut request: Request) -> Result<Request, Box<Response>> {
    let host = own_host(app, &request).map_err(refuse)?;
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let is_same_site = match came_from(request.headers(), host) {
        CameFrom::ThePage => true,
        CameFrom::Unsaid => !changes,
        // Another site may link to the page, but cannot read the answer and may not send anything.
        CameFrom::Elsewhere => !changes && !request.headers().contains_key(ORIGIN),
    };
    if !is_same_site {
        return Err(refuse(HttpRefusal::cross_site()));
    }
    let path = request.uri().path();
    if page::is_public(path) {
        if app.stop.is_asked() {
            return Err(refuse(HttpRefusal::leaving()));
        }
        if path == page::SIGN_IN && *request.method() == Method::POST {
            let proxies = &app.options.trusted_proxies;
            let client = proxies.client_address(peer.address, request.headers());
            // Checked before the body is read: the token in it is not checked either.
            let waits = app.limits.sign_in(client);
            waits.map_err(|wait| Box::new(page::too_many_sign_ins(wait)))?;
        }
        return Ok(request);
    }
    let Some(visitor) = page::visitor(app, request.headers()).await else {
        // Anyone may load the form without a limit; a token in a header counts as an attempt.
        if request.headers().contains_key(AUTHORIZATION) {
            count_wrong_token(app, peer, request.headers()).map_err(refuse)?;
        }
        let wanted = request.uri().path_and_query().map_or("/ui", |wanted| wanted.as_str());
        return Err(Box::new(page::sign_in_form(wanted, &app.options.page, "")));
    };
    has_room(app, peer, &visitor.owner).map_err(refuse)?;
    request.extensions_mut().insert(visitor);
    Ok(request)
}

fn refuse(refusal: HttpRefusal) -> Box<Response> {
    Box::new(refusal.into_response())
}

/// The origin of a request, as the browser reports it.
enum CameFrom {
    ThePage,
    Elsewhere,
    Unsaid,
}

fn came_from(headers: &HeaderMap, host: &str) -> CameFrom {
    let is_own_origin = headers.contains_key(ORIGIN).then(|| {
        let origin = the_one(headers, &ORIGIN).and_then(|origin| origin.to_str().ok());
        let own = origin.and_then(|origin| origin.split_once("://"));
        own.is_some_and(|(scheme, name)| matches!(scheme, "http" | "https") && name == host)
    });
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    match (site, is_own_origin) {
        (_, Some(false)) => CameFrom::Elsewhere,
        (Some(b"same-origin" | b"none"), _) | (None, Some(true)) => CameFrom::ThePage,
        (Some(_), _) => CameFrom::Elsewhere,
        (None, None) => CameFrom::Unsaid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i5_only_the_page_itself_counts_as_the_page() {
        let table = [
            (Some("same-origin"), Some("http://localhost:1"), "page"),
            (Some("same-origin"), None, "page"),
            (Some("none"), None, "page"),
            (None, Some("http://localhost:1"), "page"),
            (None, None, "unsaid"),
            (Some("same-site"), None, "elsewhere"),
            (Some("cross-site"), None, "elsewhere"),
            (Some("cross-site"), Some("http://localhost:1"), "elsewhere"),
            (Some("same-origin"), Some("http://evil.example"), "elsewhere"),
            (None, Some("http://localhost:2"), "elsewhere"),
            (None, Some("null"), "elsewhere"),
        ];
        for (site, origin, expected) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in [("sec-fetch-site", site), ("origin", origin)] {
                if let Some(value) = value {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            let found = match came_from(&headers, "localhost:1") {
                CameFrom::ThePage => "page",
                CameFrom::Elsewhere => "elsewhere",
                CameFrom::Unsaid => "unsaid",
            };
            assert_eq!(found, expected, "{site:?} {origin:?}");
        }
    }
}
