//! Streamable HTTP in both eras, against a scripted socket.

use std::sync::Arc;
use std::time::Duration;

use outlast_client::{CallOptions, Client, ClientError, ConnectOptions, Endpoint, Era, Limit};
use outlast_testkit::peer::web::Web;
use outlast_testkit::peer::{answer, result};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{calling, ms, remembering, timed_out};

/// Enough for the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);

async fn greeted(era: Era) -> (Arc<Client>, Web) {
    let mut web = Web::start().await;
    let endpoint = Endpoint::new(&web.url()).unwrap().bearer("secret").unwrap();
    let endpoint = endpoint.header("X-Own", "yes").unwrap();
    let options = ConnectOptions { era, ..ConnectOptions::default() };
    let greeting = async {
        match era {
            Era::Initialize => web.greet().await,
            Era::Stateless | Era::Auto => web.greet_stateless().await,
        }
    };
    let (client, ()) = tokio::join!(Client::http(endpoint, options), greeting);
    (Arc::new(client.unwrap()), web)
}

fn note(call: &Value, value: f64) -> Value {
    let token = &call["params"]["_meta"]["progressToken"];
    let params = json!({ "progressToken": token, "progress": value });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

/// D3 and D8 over HTTP, in both eras; the headers are the client's own.
#[tokio::test]
async fn d3_progress_on_the_stream_resets_the_timeout_over_http() {
    for era in [Era::Initialize, Era::Stateless] {
        let (client, mut web) = greeted(era).await;
        // Long enough for the slowest machine, and still over before the answer.
        let options = CallOptions::default().timeout(ms(3_000)).reset_timeout_on_progress();
        let (options, told) = remembering(options);
        let call = calling(&client, options);
        let mut request = web.hear("tools/call").await;
        let head = request.head.to_lowercase();
        assert!(head.contains("authorization: bearer secret\r\n"), "{head}");
        assert!(head.contains("x-own: yes\r\n"), "{head}");
        request.begin_events().await;
        let body = request.body.clone();
        for value in 1..=4 {
            tokio::time::sleep(ms(900)).await;
            request.event(&note(&body, f64::from(value))).await;
        }
        request.event(&answer(&body["id"], result("in time"))).await;
        assert_eq!(call.await.unwrap().unwrap().text, "in time", "{era:?}");
        assert_eq!(told.lock().unwrap().len(), 4);
    }
}

/// Bytes that are not progress keep the socket alive, not the call.
#[tokio::test]
async fn comments_on_the_stream_do_not_reset_the_timeout() {
    let (client, mut web) = greeted(Era::Stateless).await;
    let call =
        calling(&client, CallOptions::default().timeout(ms(400)).reset_timeout_on_progress());
    let mut request = web.hear("tools/call").await;
    request.begin_events().await;
    while !call.is_finished() && request.write(b": still here\n\n").await {
        tokio::time::sleep(ms(50)).await;
    }
    let timed_out = timed_out(call.await.unwrap());
    assert_eq!((timed_out.limit, timed_out.notes), (Limit::Idle, 0));
}

#[tokio::test]
async fn d11_in_the_stateless_era_the_stream_is_closed_instead() {
    let (client, mut web) = greeted(Era::Stateless).await;
    let call = calling(&client, CallOptions::default().timeout(ms(300)));
    let mut request = web.hear("tools/call").await;
    request.begin_events().await;
    assert!(timed_out(call.await.unwrap()).told);
    tokio::time::timeout(LIMIT, request.hung_up()).await.expect("the stream is closed");

    // The same if no byte of an answer has arrived yet; and nothing else was sent in between.
    let call = calling(&client, CallOptions::default().timeout(ms(300)));
    let request = web.hear("tools/call").await;
    assert!(timed_out(call.await.unwrap()).told);
    tokio::time::timeout(LIMIT, request.hung_up()).await.expect("the stream is closed");
}

#[tokio::test]
async fn d11_in_the_initialize_era_the_cancellation_is_posted_before_the_error() {
    let (client, mut web) = greeted(Era::Initialize).await;
    let call = calling(&client, CallOptions::default().max_total_timeout(ms(300)));
    let mut request = web.hear("tools/call").await;
    request.begin_events().await;
    let cancelled = web.hear("notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], request.body["id"]);
    assert!(!call.is_finished(), "the error waits for it");
    cancelled.reply("202 Accepted", "text/plain", "").await;
    assert!(timed_out(call.await.unwrap()).told);
}

/// D11: a server that does not even accept the cancellation.
#[tokio::test]
async fn d11_a_post_without_an_answer_delays_the_error_by_at_most_a_second() {
    let (client, mut web) = greeted(Era::Initialize).await;
    let began = Instant::now();
    let call = calling(&client, CallOptions::default().timeout(ms(300)));
    let _request = web.hear("tools/call").await;
    let _cancelled = web.hear("notifications/cancelled").await;
    let timed_out = timed_out(call.await.unwrap());
    let delay = began.elapsed() - timed_out.elapsed;
    assert!(!timed_out.told, "{timed_out}");
    assert!(delay >= ms(900) && delay < Duration::from_secs(5), "{delay:?}");
}

#[tokio::test]
async fn a_stream_that_breaks_ends_the_call_and_not_the_client() {
    let (client, mut web) = greeted(Era::Stateless).await;
    let call = calling(&client, CallOptions::default().timeout(LIMIT));
    let mut request = web.hear("tools/call").await;
    request.begin_events().await;
    let body = request.body.clone();
    request.event(&note(&body, 1.0)).await;
    drop(request);
    let called = call.await.unwrap();
    assert!(matches!(called, Err(ClientError::Gone { .. })), "{called:?}");

    let call = calling(&client, CallOptions::default().timeout(LIMIT));
    let request = web.hear("tools/call").await;
    let body = answer(&request.body["id"], result("here again"));
    request.reply_json(&body).await;
    assert_eq!(call.await.unwrap().unwrap().text, "here again");
}

/// A hundred megabytes, as one event and as one body.
#[tokio::test]
async fn an_answer_without_bounds_ends_in_an_error() {
    for kind in ["text/event-stream", "application/json"] {
        let (client, mut web) = greeted(Era::Stateless).await;
        let call = calling(&client, CallOptions::default().timeout(LIMIT));
        let mut request = web.hear("tools/call").await;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
        request.write(head.as_bytes()).await;
        request.write(b"data: {").await;
        let piece = vec![b' '; 1 << 20];
        let mut written = 0;
        while written < 100 && request.write(&piece).await {
            written += 1;
        }
        assert!(written < 40, "the client closed the connection long before: {written} MiB");
        let called = call.await.unwrap();
        assert!(matches!(called, Err(ClientError::TooLong { .. })), "{kind}: {called:?}");
    }
}

#[tokio::test]
async fn a_missing_token_an_absent_server_and_a_wrong_page_are_distinguished() {
    let connect = async |url: &str| {
        let client = Client::http(Endpoint::new(url).unwrap(), ConnectOptions::default()).await;
        client.err().unwrap()
    };
    let mut web = Web::start().await;
    let url = web.url();
    let refusing = async {
        web.hear("server/discover").await.reply("401 Unauthorized", "text/plain", "").await;
    };
    let (error, ()) = tokio::join!(connect(&url), refusing);
    assert!(matches!(error, ClientError::Unauthorized), "{error:?}");

    let mut web = Web::start().await;
    let url = web.url();
    let serving = async {
        let page = "<html>a shop</html>";
        web.hear("server/discover").await.reply("200 OK", "text/html", page).await;
        web.hear("initialize").await.reply("200 OK", "text/html", page).await;
    };
    let error = tokio::select! {
        error = connect(&url) => error,
        () = async { serving.await; std::future::pending().await } => unreachable!(),
    };
    assert!(error.to_string().contains("not MCP"), "{error}");

    drop(web);
    let error = connect(&url).await;
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}

/// The client asks for the newest era first, and falls back to `initialize` for a server that does not know it.
#[tokio::test]
async fn an_old_server_gets_initialize() {
    let mut web = Web::start().await;
    let url = web.url();
    let greeting = async {
        let asked = web.hear("server/discover").await;
        asked.reply("400 Bad Request", "text/plain", "no session").await;
        web.greet().await;
    };
    let connecting = Client::http(Endpoint::new(&url).unwrap(), ConnectOptions::default());
    let (client, ()) = tokio::join!(connecting, greeting);
    assert_eq!(client.unwrap().protocol().as_deref(), Some("2025-06-18"));
}
