//! Scripted faults: the responses of the client, and the money spent.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::client::{Bench, PATIENCE, read_all, refusal};

#[tokio::test]
async fn a_dropped_submit_is_paid_for_without_a_response() {
    let bench = Bench::new().await;
    for stream in [false, true] {
        let body = json!({
            "input": format!("wind {stream} [[sim:drop_submit]]"), "background": true, "stream": stream,
        });
        let error = bench.post("/v1/agent", &body).await.unwrap_err();
        assert!(error.status().is_none() && !error.is_connect(), "{error:?}");
        assert!(error.is_request() && !error.is_timeout(), "{error:?}");
    }
    let stats = bench.sim.stats();
    assert_eq!((stats.submits, stats.refused, stats.runs.len()), (2, 0, 2));
}

#[tokio::test]
async fn a_dropped_submit_sends_no_byte() {
    use std::io::{Read, Write};
    let bench = Bench::new().await;
    let address = bench.sim.url().strip_prefix("http://").unwrap().to_owned();
    let heard = tokio::task::spawn_blocking(move || {
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        let body = r#"{"input":"wind [[sim:drop_submit]]","background":true}"#;
        let head = "POST /v1/agent HTTP/1.1\r\nHost: sim\r\nAuthorization: Bearer k";
        write!(socket, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut heard = Vec::new();
        // A reset is as good as an orderly end: only the bytes before it count.
        _ = socket.read_to_end(&mut heard);
        heard
    });
    assert_eq!(heard.await.unwrap(), b"");
    assert_eq!(bench.sim.stats().submits, 1);
}

#[tokio::test]
async fn an_answer_without_an_id_reveals_it_nowhere() {
    let bench = Bench::new().await;
    let input = "wind [[sim:no_id;delay_ms=0]]";
    let queued = bench.submit(input).await;
    let request_id = queued.headers()["x-request-id"].to_str().unwrap().to_owned();
    let object: Value = queued.json().await.unwrap();
    assert_eq!(object["status"], "queued");
    assert_eq!(object.get("id"), None);
    let followed = read_all(bench.submit_stream(input).await).await;
    assert_eq!(followed.events[0]["type"], "response.created");
    let runs = bench.sim.stats().runs;
    assert_eq!(runs.len(), 2);
    assert_ne!(runs[0].id, format!("resp_{request_id}"));
    let heard = followed.events.iter().map(Value::to_string).collect::<String>();
    assert!(!heard.contains(&runs[1].id));
}

#[tokio::test]
async fn submit_errors_occur_the_requested_number_of_times_and_cost_nothing() {
    let bench = Bench::new().await;
    let input =
        "wind [[sim:http;status=503;times=2|http;status=429;times=1;retry_after=7|ok;delay_ms=0]]";
    for _ in 0..2 {
        let (status, kind, _) = refusal(bench.submit(input).await).await;
        assert_eq!((status, kind.as_str()), (503, "server_error"));
    }
    let limited = bench.submit(input).await;
    assert_eq!(limited.headers()["retry-after"], "7");
    assert_eq!(limited.headers()["x-ratelimit-remaining"], "0");
    assert_eq!(refusal(limited).await.1, "rate_limit_exceeded");
    assert_eq!(refusal(bench.submit("sun [[sim:http;status=402;times=1]]").await).await.0, 402);
    assert_eq!(bench.submit(input).await.status(), StatusCode::OK);
    let stats = bench.sim.stats();
    assert_eq!((stats.submits, stats.refused, stats.duplicate_submits), (1, 4, 0));
}

#[tokio::test]
async fn errors_affect_only_the_requested_kind_of_request() {
    let bench = Bench::new().await;
    let submitted = async |fault: &str| {
        let input = format!("wind [[sim:http;on={fault};times=1|stuck;delay_ms=0]]");
        let body = json!({"input": input, "background": true, "stream": true});
        bench.post("/v1/agent", &body).await.unwrap();
        bench.sim.stats().runs.last().unwrap().id.clone()
    };
    let path = |id: &str| format!("/v1/agent/{id}");
    let id = submitted("poll;status=502").await;
    assert_eq!(bench.get(&path(&id)).await.status(), 502);
    assert_eq!(bench.get(&path(&id)).await.status(), 200);
    let id = submitted("attach;status=500").await;
    assert_eq!(bench.get(&path(&id)).await.status(), 200);
    assert_eq!(bench.attach(&id, 0).await.status(), 500);
    assert_eq!(bench.attach(&id, 0).await.status(), 200);
    let id = submitted("cancel;status=504").await;
    assert_eq!(bench.cancel(&id).await.status(), 504);
    assert_eq!(bench.cancel(&id).await.status(), 200);
}

#[tokio::test]
async fn error_bodies_may_be_pages_or_empty_or_contain_a_secret() {
    let bench = Bench::new().await;
    let html = bench.submit("a [[sim:http;status=524;body=html;secret=pplx-hush]]").await;
    assert_eq!(html.headers()["content-type"], "text/html; charset=utf-8");
    let page = html.text().await.unwrap();
    assert!(
        page.starts_with("<html>") && page.contains("524") && page.contains("pplx-hush"),
        "{page}"
    );
    let empty = bench.submit("b [[sim:http;status=500;body=empty]]").await;
    assert_eq!(empty.status(), 500);
    assert_eq!(empty.bytes().await.unwrap().len(), 0);
    let (_, _, message) =
        refusal(bench.submit("c [[sim:http;status=500;secret=pplx-hush]]").await).await;
    assert!(message.contains("pplx-hush"), "{message}");
    let detail: Value = bench.submit("d [[sim:http;status=422]]").await.json().await.unwrap();
    assert!(detail["detail"][0]["msg"].is_string(), "{detail}");
}

#[tokio::test]
async fn a_failing_run_fails_in_the_requested_phase_with_a_reason() {
    let bench = Bench::new().await;
    for (at, before) in
        [("search", "response.reasoning.search_results"), ("write", "response.output_text.delta")]
    {
        let input = format!("wind [[sim:fail;at={at};code=overloaded;delay_ms=0]]");
        let followed = read_all(bench.submit_stream(&input).await).await;
        let last = followed.last();
        assert_eq!(last["type"], "response.failed");
        assert_eq!(last["error"]["code"], "overloaded");
        assert_eq!(last.get("response"), None);
        assert_eq!(followed.kinds()[followed.events.len() - 2], before);
        let object = bench.poll(followed.events[0]["response"]["id"].as_str().unwrap()).await;
        assert_eq!(object["status"], "failed");
        assert_eq!(object["error"], last["error"]);
        assert!(object["usage"].is_null());
    }
}

#[tokio::test]
async fn a_run_that_fails_once_succeeds_when_submitted_again() {
    let bench = Bench::new().await;
    let input = "wind [[sim:fail;times=1;delay_ms=0]]";
    let first = bench.submitted(input).await;
    let second = bench.submitted(input).await;
    assert_eq!(bench.poll(&first).await["status"], "failed");
    assert_eq!(bench.poll(&second).await["status"], "completed");
    assert_eq!(bench.sim.stats().duplicate_submits, 1);
}

#[tokio::test]
async fn an_incomplete_run_shows_half_its_text_or_nothing() {
    let bench = Bench::new().await;
    let followed =
        read_all(bench.submit_stream("wind [[sim:incomplete;words=100;delay_ms=0]]").await).await;
    assert_eq!(followed.last()["type"], "response.incomplete");
    let object = &followed.last()["response"];
    assert_eq!(object["status"], "incomplete");
    assert_eq!(object["incomplete_details"]["reason"], "max_output_tokens");
    let message = object["output"].as_array().unwrap().last().unwrap();
    assert_eq!(message["content"][0]["text"].as_str().unwrap(), followed.text());
    assert_eq!(followed.text().split_whitespace().count(), 50);
    let id = bench.submitted("wind [[sim:incomplete;output=empty;delay_ms=0]]").await;
    assert_eq!(bench.poll(&id).await["output"], json!([]));
}

#[tokio::test]
async fn a_lost_run_is_not_found_by_any_request() {
    let bench = Bench::new().await;
    let input = "wind [[sim:lost|drop;after_events=1;delay_ms=0]]";
    let followed = read_all(bench.submit_stream(input).await).await;
    let id = followed.events[0]["response"]["id"].as_str().unwrap();
    assert_eq!(refusal(bench.get(&format!("/v1/agent/{id}")).await).await.0, 404);
    assert_eq!(refusal(bench.attach(id, 0).await).await.0, 404);
    assert_eq!(refusal(bench.cancel(id).await).await.0, 400);
}
