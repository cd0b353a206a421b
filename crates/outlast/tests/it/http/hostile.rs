//! Malformed and hostile requests: each gets its status, and without a token only the server's health is served.

use serde_json::Value;

use super::client::{ANN, Client, Served, initialize};
use crate::support::World;

const HOST: &str = "Host: 127.0.0.1";
const TOKEN: &str = "Authorization: Bearer ann-0123456789abcdef0123";
const TYPE: &str = "Content-Type: application/json";
const ACCEPT: &str = "Accept: application/json, text/event-stream";

/// Returns a request as bytes.
fn said(line: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let mut text = format!("{line} HTTP/1.1\r\n");
    for header in headers {
        text.push_str(&format!("{header}\r\n"));
    }
    let framed = |header: &&&str| {
        header.starts_with("Content-Length") || header.starts_with("Transfer-Encoding")
    };
    if !body.is_empty() && headers.iter().find(framed).is_none() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    format!("{text}\r\n{body}").into_bytes()
}

fn get(line: &str, headers: &[&str]) -> Vec<u8> {
    said(line, headers, "")
}

fn unknown(headers: &[&str]) -> Vec<u8> {
    get("GET /nothing", headers)
}

fn health(headers: &[&str]) -> Vec<u8> {
    get("GET /health", headers)
}

fn post(headers: &[&str], body: &str) -> Vec<u8> {
    said("POST /mcp", headers, body)
}

/// Returns a request with everything necessary, and these headers.
fn good(more: &[&str], body: &str) -> Vec<u8> {
    post(&[&[HOST, TOKEN, TYPE, ACCEPT], more].concat(), body)
}

/// Every case is one request on a separate connection.
#[tokio::test]
async fn every_hostile_request_gets_its_status() {
    let mut world = World::new().await;
    world.set("OUTLAST_ALLOWED_ORIGINS", "https://app.example");
    let served = Served::start(&mut world, &[]).await;
    let hello = initialize().to_string();
    let hello = hello.as_str();
    let large = "x".repeat(5 << 20);
    let chunks: String = (0..5).map(|_| format!("100000\r\n{}\r\n", &large[..1 << 20])).collect();
    let chunks = format!("{chunks}0\r\n\r\n");
    let chunked_hello = format!("{:x}\r\n{hello}\r\n0\r\n\r\n", hello.len());
    let long_header = format!("X-Long: {}", "x".repeat(40_000));
    let many: Vec<String> = (0..200).map(|at| format!("X-{at}: y")).collect();
    let many: Vec<&str> = [HOST].into_iter().chain(many.iter().map(String::as_str)).collect();
    let batch = format!("[{hello}]");
    let long = hello.replace("\"test\"", &format!("\"{}\"", &large[..4_000_000]));
    let cases: Vec<(&str, Vec<u8>, u16)> = vec![
        // A correct request.
        ("a good request", good(&[], hello), 200),
        ("any port of this machine", post(&["Host: localhost:9", TOKEN, TYPE, ACCEPT], hello), 200),
        (
            "a scheme in lower case",
            post(&[HOST, &TOKEN.replace("Bearer", "bearer"), TYPE, ACCEPT], hello),
            200,
        ),
        (
            "a charset",
            post(&[HOST, TOKEN, "Content-Type: application/json; charset=utf-8", ACCEPT], hello),
            200,
        ),
        ("in chunks", good(&["Transfer-Encoding: chunked"], &chunked_hello), 200),
        ("large, but not too large", good(&[], &long), 200),
        ("an allowed origin", good(&["Origin: https://app.example"], hello), 200),
        ("health", health(&[HOST]), 200),
        ("health with a query", get("GET /health?x=1", &[HOST]), 200),
        ("health of an absolute target", get("GET http://localhost/health", &[HOST]), 200),
        // The host.
        ("another host", post(&["Host: evil.example", TOKEN, TYPE, ACCEPT], hello), 421),
        ("another host, health", health(&["Host: evil.example"]), 200),
        ("no host, ready", get("GET /readyz", &[]), 200),
        ("another host, alive", get("GET /livez", &["Host: evil.example"]), 200),
        ("another host, figures", get("GET /metrics", &["Host: evil.example", TOKEN]), 200),
        (
            "another host, figures without a token",
            get("GET /metrics", &["Host: evil.example"]),
            401,
        ),
        ("no host", unknown(&[]), 421),
        ("no host in HTTP/1.0", b"GET /nothing HTTP/1.0\r\n\r\n".to_vec(), 421),
        ("an empty host", unknown(&["Host:"]), 421),
        ("two hosts", unknown(&[HOST, "Host: evil.example"]), 421),
        ("two hosts the other way", unknown(&["Host: evil.example", HOST]), 421),
        ("the same host twice", unknown(&[HOST, HOST]), 421),
        ("a host with a user", unknown(&["Host: evil.example@127.0.0.1"]), 421),
        ("a host like ours", unknown(&["Host: localhost.evil.example"]), 421),
        ("a host that rebinds", unknown(&["Host: 127.0.0.1.nip.io"]), 421),
        ("a list of hosts", unknown(&["Host: 127.0.0.1, evil.example"]), 421),
        ("an absolute target elsewhere", get("GET http://evil.example/nothing", &[HOST]), 421),
        (
            "an absolute target, host elsewhere",
            get("GET http://localhost/nothing", &["Host: evil.example"]),
            421,
        ),
        (
            "forwarded to another host",
            unknown(&["Host: evil.example", "X-Forwarded-Host: 127.0.0.1"]),
            421,
        ),
        // The origin.
        ("another origin", good(&["Origin: https://evil.example"], hello), 403),
        ("another origin, health", health(&[HOST, "Origin: https://evil.example"]), 403),
        ("our own address as origin", health(&[HOST, "Origin: http://127.0.0.1"]), 403),
        ("the origin null", health(&[HOST, "Origin: null"]), 403),
        ("an empty origin", health(&[HOST, "Origin:"]), 403),
        (
            "two origins",
            health(&[HOST, "Origin: https://app.example", "Origin: https://evil.example"]),
            403,
        ),
        ("an allowed origin's other scheme", health(&[HOST, "Origin: http://app.example"]), 403),
        // The token.
        ("no token", post(&[HOST, TYPE, ACCEPT], hello), 401),
        ("an empty token", post(&[HOST, "Authorization: Bearer ", TYPE, ACCEPT], hello), 401),
        (
            "the start of a token",
            post(&[HOST, &TOKEN[..TOKEN.len() - 1], TYPE, ACCEPT], hello),
            401,
        ),
        ("a token and more", post(&[HOST, &format!("{TOKEN}0"), TYPE, ACCEPT], hello), 401),
        ("two tokens", post(&[HOST, TOKEN, TOKEN, TYPE, ACCEPT], hello), 401),
        (
            "a password",
            post(&[HOST, "Authorization: Basic YW5uOmFubg==", TYPE, ACCEPT], hello),
            401,
        ),
        (
            "a token in the query",
            said(
                &format!("POST /mcp?token={ANN}&access_token={ANN}"),
                &[HOST, TYPE, ACCEPT],
                hello,
            ),
            401,
        ),
        (
            "a token in a cookie",
            post(&[HOST, &format!("Cookie: token={ANN}"), TYPE, ACCEPT], hello),
            401,
        ),
        ("an unknown path without a token", get("GET /nothing", &[HOST]), 401),
        ("health in other words", get("GET /health/", &[HOST]), 401),
        ("health in yet other words", get("GET //health", &[HOST]), 401),
        ("a way around", get("GET /health/../mcp", &[HOST]), 401),
        // The route and the method.
        ("an unknown path", get("GET /nothing", &[HOST, TOKEN]), 404),
        ("a path below", get("GET /mcp/x", &[HOST, TOKEN]), 404),
        ("PUT", get("PUT /mcp", &[HOST, TOKEN]), 405),
        ("OPTIONS", get("OPTIONS /mcp", &[HOST, TOKEN]), 405),
        ("TRACE", get("TRACE /mcp", &[HOST, TOKEN]), 405),
        ("a method of no standard", get("DANCE /mcp", &[HOST, TOKEN]), 405),
        ("POST to health", get("POST /health", &[HOST]), 405),
        ("GET without a session", get("GET /mcp", &[HOST, TOKEN, ACCEPT]), 400),
        ("GET that takes no stream", get("GET /mcp", &[HOST, TOKEN, "Accept: text/html"]), 406),
        (
            "GET of the newer era",
            get("GET /mcp", &[HOST, TOKEN, ACCEPT, "MCP-Protocol-Version: 2026-07-28"]),
            405,
        ),
        ("DELETE without a session", get("DELETE /mcp", &[HOST, TOKEN]), 400),
        ("DELETE of no session", get("DELETE /mcp", &[HOST, TOKEN, "Mcp-Session-Id: none"]), 404),
        // The body.
        ("no content type", post(&[HOST, TOKEN, ACCEPT], hello), 415),
        (
            "a form",
            post(&[HOST, TOKEN, "Content-Type: application/x-www-form-urlencoded", ACCEPT], hello),
            415,
        ),
        (
            "text, which needs no preflight",
            post(&[HOST, TOKEN, "Content-Type: text/plain", ACCEPT], hello),
            415,
        ),
        (
            "a type like ours",
            post(&[HOST, TOKEN, "Content-Type: application/jsonp", ACCEPT], hello),
            415,
        ),
        ("a body that says it is gzipped", good(&["Content-Encoding: gzip"], "\u{1f}\u{8b}"), 415),
        ("an answer it cannot take", post(&[HOST, TOKEN, TYPE, "Accept: text/html"], hello), 406),
        ("no JSON", good(&[], "{"), 400),
        ("no message", good(&[], "null"), 400),
        ("a batch", good(&[], &batch), 400),
        ("an empty body", good(&["Content-Length: 0"], ""), 400),
        ("too large", good(&[], &large), 413),
        ("too large, and says so", good(&["Content-Length: 99999999999"], ""), 413),
        ("too large in chunks", good(&["Transfer-Encoding: chunked"], &chunks), 413),
        (
            "too large without a token",
            post(&[HOST, TYPE, ACCEPT, "Content-Length: 99999999999"], ""),
            401,
        ),
        ("two lengths", good(&["Content-Length: 5", "Content-Length: 6"], "hello!"), 400),
        (
            // hyper drops the length, as RFC 9112 6.3 requires.
            "a length and chunks, of which the chunks count",
            good(&["Content-Length: 5", "Transfer-Encoding: chunked"], &chunked_hello),
            200,
        ),
        ("chunks of an unknown kind", good(&["Transfer-Encoding: xchunked"], "0\r\n\r\n"), 400),
        ("an unknown version", good(&["MCP-Protocol-Version: 1999-01-01"], hello), 400),
        // The head.
        ("a header too long", health(&[HOST, &long_header]), 431),
        ("too many headers", health(&many), 431),
        ("a space before the colon", health(&[HOST, "Host : evil.example"]), 400),
        ("no HTTP", b"HELO mail.example\r\n\r\n".to_vec(), 400),
    ];
    let mut wrong = Vec::new();
    for (name, said, expected) in cases {
        let Some(reply) = served.say(&said).await else {
            wrong.push(format!("{name}: no answer"));
            continue;
        };
        let status = reply.status;
        if status != expected {
            wrong.push(format!("{name}: {status} and not {expected}"));
        }
        let challenged =
            reply.header("www-authenticate").is_some_and(|it| it.starts_with("Bearer"));
        assert_eq!(challenged, status == 401, "{name}: {}", reply.head);
        let body = reply.body().await;
        assert!(!body.contains(ANN), "{name}: {body}");
        if !body.is_empty() && status != 200 {
            let error: Value =
                serde_json::from_str(&body).unwrap_or_else(|_| panic!("{name}: {body}"));
            assert!(error["error"]["message"].is_string(), "{name}: {body}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let log = served.process.log();
    assert!(!log.contains(ANN) && !log.contains("panicked"), "{log}");
}

#[tokio::test]
async fn nothing_is_served_without_a_token_but_the_health() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    for path in ["/", "/mcp", "/metrics", "/health", "/livez", "/readyz", "/nothing", "*"] {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
            let reply = served.say(&get(&format!("{method} {path}"), &[HOST])).await;
            let status = reply.expect("an answer").status;
            let expected = match (path, method) {
                ("/health" | "/livez" | "/readyz", "GET" | "HEAD") => 200,
                ("/health" | "/livez" | "/readyz", _) => 405,
                // Redirects to the page, which asks for a sign-in.
                ("/", "GET" | "HEAD") => 303,
                // A change that does not come from our page.
                ("/", _) => 403,
                _ => 401,
            };
            // A target of `*` is only for OPTIONS; the rest is not HTTP.
            assert!(
                status == expected || path == "*" && status == 400,
                "{method} {path}: {status}"
            );
        }
    }
}

/// A browser sends a preflight request: only pages of listed origins are allowed.
#[tokio::test]
async fn only_listed_origins_may_ask() {
    let mut world = World::new().await;
    world.set("OUTLAST_ALLOWED_ORIGINS", "https://app.example");
    let served = Served::start(&mut world, &[]).await;
    let ask = |origin: &str| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "authorization, mcp-session-id, x-evil"),
        ];
        let client = Client { token: String::new(), ..served.client(ANN) };
        client.bytes("OPTIONS /mcp", &headers, "")
    };
    let reply = served.say(&ask("https://app.example")).await.unwrap();
    assert_eq!(reply.status, 204, "{}", reply.head);
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("authorization, mcp-session-id"));
    assert_eq!(reply.header("access-control-allow-credentials"), None);
    let reply = served.say(&ask("https://evil.example")).await.unwrap();
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, None));
    let refused = served.client("wrong-0123456789abcdef");
    let reply = refused.send("GET /mcp", &[("Origin", "https://app.example")], "").await;
    assert_eq!(reply.status, 401);
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example"));
}
