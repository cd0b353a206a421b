//! Odd responses: malformed, slow, cut, strange streams, hostile text.

use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};

use crate::client::{Bench, read_all, refusal};
use crate::sonar::live;

const KINDS: [&str; 8] = [
    "truncated",
    "not_json",
    "wrong_type",
    "bad_utf8",
    "huge;bytes=100000",
    "null_fields",
    "unknown_item",
    "unknown_status",
];

/// Returns true if the response of this kind is still JSON.
fn is_json(kind: &str) -> bool {
    !matches!(kind, "truncated" | "not_json" | "bad_utf8")
}

async fn check(kind: &str, response: Response, good: &Value) {
    assert_eq!(response.status(), 200, "{kind}");
    let bytes = response.bytes().await.unwrap();
    let Ok(body) = serde_json::from_slice::<Value>(&bytes) else {
        return assert!(!is_json(kind), "{kind}");
    };
    assert!(is_json(kind), "{kind}: {body}");
    assert_ne!(&body, good, "{kind} changed nothing");
    assert!(!kind.starts_with("huge") || bytes.len() > 100_000);
}

fn request(question: &str) -> Value {
    json!({"model": "sonar", "messages": [{"role": "user", "content": question}]})
}

#[tokio::test]
async fn every_kind_of_malformed_answer_reaches_every_api() {
    let bench = live().await;
    for kind in KINDS {
        let question = format!("wind [[sim:malformed;kind={kind};times=1;words=40;delay_ms=0]]");
        let id = bench.submitted(&question).await;
        let path = format!("/v1/agent/{id}");
        let (bad, good) = (bench.get(&path).await, bench.poll(&id).await);
        check(kind, bad, &good).await;

        let job = bench.post("/v1/async/sonar", &json!({"request": request(&question)})).await;
        let job: Value = job.unwrap().json().await.unwrap();
        let path = format!("/v1/async/sonar/{}", job["id"].as_str().unwrap());
        let (bad, good) = (bench.get(&path).await, bench.get(&path).await.json().await.unwrap());
        check(kind, bad, &good).await;

        let chat = bench.post("/chat/completions", &request(&question)).await.unwrap();
        check(kind, chat, &Value::Null).await;

        let body = json!({"query": question, "max_results": 2});
        let bad = bench.post("/search", &body).await.unwrap();
        let good: Value = bench.post("/search", &body).await.unwrap().json().await.unwrap();
        assert_eq!(good["results"].as_array().unwrap().len(), 2);
        check(kind, bad, &good).await;
    }
}

#[tokio::test]
async fn a_malformed_stream_is_wrong_in_its_last_event() {
    let bench = Bench::new().await;
    for kind in KINDS {
        let question = format!("wind [[sim:malformed;kind={kind};words=40;delay_ms=0]]");
        let bytes = bench.submit_stream(&question).await.bytes().await.unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("response.output_text.done"), "{kind}");
        let mut lines =
            bytes.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
        let last = lines.next_back().unwrap();
        assert_eq!(serde_json::from_slice::<Value>(last).is_ok(), is_json(kind), "{kind}");
        assert_eq!(text.ends_with("\n\n"), kind != "truncated", "{kind}");
        assert_eq!(text.contains("response.mystery"), kind == "unknown_item");
    }
}

#[tokio::test]
async fn a_malformed_receipt_must_be_requested() {
    let bench = Bench::new().await;
    let question = "wind [[sim:malformed;kind=not_json;on=submit;delay_ms=0]]";
    let answer = bench.submit(question).await.text().await.unwrap();
    assert!(serde_json::from_str::<Value>(&answer).is_err(), "{answer}");
    assert_eq!(bench.sim.stats().submits, 1);
}

#[tokio::test]
async fn slow_answers_are_complete_but_split_frames_and_characters() {
    let bench = Bench::new().await;
    let question =
        "Wärmepumpen [[sim:slow;chunk_bytes=1;chunk_ms=1;words=60;searches=0;sources=0]]";
    let mut stream = bench.submit_stream(question).await;
    let mut bytes = Vec::new();
    let mut smallest = usize::MAX;
    while let Some(chunk) = stream.chunk().await.unwrap() {
        smallest = smallest.min(chunk.len());
        bytes.extend_from_slice(&chunk);
    }
    assert_eq!(smallest, 1);
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("response.completed") && text.contains("ärmepumpen"), "{text}");
    let found = bench.post("/search", &json!({"query": "a [[sim:slow;chunk_bytes=7]]"})).await;
    let found: Value = found.unwrap().json().await.unwrap();
    assert_eq!(found["results"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn a_slow_answer_delays_the_first_byte() {
    let bench = Bench::new().await;
    let begun = tokio::time::Instant::now();
    let question = "wind [[sim:slow;first_byte_ms=200000;chunk_bytes=9999;delay_ms=0]]";
    bench.submit(question).await.bytes().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_answer_is_cut_after_a_number_of_bytes_a_number_of_times() {
    let bench = live().await;
    for reset in ["", ";rst"] {
        let question = format!("wind [[sim:drop;after_bytes=100{reset};delay_ms=0]]");
        let id = bench.submitted(&question).await;
        let mut cut = bench.get(&format!("/v1/agent/{id}")).await;
        let mut bytes = 0;
        let error = loop {
            match cut.chunk().await {
                Ok(chunk) => bytes += chunk.expect("the body must not end well").len(),
                Err(error) => break format!("{error:?}"),
            }
        };
        assert!(bytes <= 100, "{bytes}");
        assert!(reset.is_empty() || error.contains("reset"), "{error}");
        assert_eq!(bench.poll(&id).await["status"], "completed");
        let search = json!({"query": question});
        assert!(bench.post("/search", &search).await.unwrap().bytes().await.is_err());
        assert!(bench.post("/search", &search).await.unwrap().bytes().await.is_ok());
        let chat = bench.post("/chat/completions", &request(&question)).await.unwrap();
        assert!(chat.bytes().await.is_err());
    }
}

#[tokio::test]
async fn a_stream_may_be_reset_after_some_events() {
    let bench = Bench::new().await;
    let question = "wind [[sim:drop;after_events=3;rst;delay_ms=0]]";
    let followed = read_all(bench.submit_stream(question).await).await;
    assert!(followed.broken);
    assert!(followed.events.len() <= 3, "{}", followed.events.len());
}

#[tokio::test]
async fn strange_streams_still_contain_the_whole_run() {
    let bench = Bench::new().await;
    let text = async |oddity: &str| {
        let question = format!("wind [[sim:sse;{oddity};words=40;delay_ms=0]]");
        bench.submit_stream(&question).await.text().await.unwrap()
    };
    let crlf = text("crlf").await;
    assert!(crlf.contains("\r\n\r\n") && !crlf.replace("\r\n", "").contains('\n'));
    let pings = text("pings").await;
    assert!(
        pings.starts_with(": ping\n\nevent: ping\ndata: still here\n\nevent: response.created")
    );
    let dup = text("dup").await;
    assert_eq!(dup.matches("\"sequence_number\":3,").count(), 2);
    assert_eq!(dup.matches("event: response.completed\n").count(), 2);
    let gap = text("gap").await;
    assert!(!gap.contains("\"sequence_number\":3,") && !gap.contains("\"sequence_number\":7,"));
    assert!(gap.contains("\"sequence_number\":4,") && gap.contains("event: response.completed\n"));
    assert!(text("done").await.ends_with("data: [DONE]\n\n"));
    assert!(!text("no_terminal").await.contains("response.completed"));
    assert!(text("unknown").await.contains("event: response.mystery\n"));
}

#[tokio::test]
async fn a_chat_may_end_without_its_done_marker() {
    let bench = live().await;
    let mut body = request("wind [[sim:sse;done=false;pings;delay_ms=0]]");
    body["stream"] = true.into();
    let text = bench.post("/chat/completions", &body).await.unwrap().text().await.unwrap();
    assert!(!text.contains("[DONE]") && text.contains(": ping\n\n"));
    assert!(text.contains("\"finish_reason\":\"stop\""));
}

#[tokio::test]
async fn hostile_text_reaches_the_report_and_the_sources() {
    let bench = live().await;
    let question = "wind [[sim:inject;words=40;delay_ms=0]]";
    let id = bench.submitted(question).await;
    let run = bench.poll(&id).await;
    let report = run["output"].as_array().unwrap().last().unwrap()["content"][0]["text"].clone();
    let body = json!({"query": question, "max_tokens_per_page": 1_000_000});
    let found = bench.post("/search", &body).await.unwrap();
    let found: Value = found.json().await.unwrap();
    let chat = bench.post("/chat/completions", &request(question)).await.unwrap();
    let chat: Value = chat.json().await.unwrap();
    for text in [
        &report,
        &run["output"][0]["results"][0]["snippet"],
        &found["results"][0]["snippet"],
        &chat["choices"][0]["message"]["content"],
    ] {
        let text = text.as_str().unwrap();
        for bad in ["Ignore all previous instructions", "\u{1b}[", "\0", "\u{202e}"] {
            assert!(text.contains(bad), "{bad:?}");
        }
        assert!(text.lines().any(|line| line.len() >= 1_000_000));
    }
}

#[tokio::test]
async fn citations_and_dates_may_take_other_forms() {
    let bench = Bench::new().await;
    let run = async |keys: &str| {
        let id = bench.submitted(&format!("wind [[sim:ok;{keys};sources=6;delay_ms=0]]")).await;
        bench.poll(&id).await
    };
    let text = |run: &Value| {
        run["output"].as_array().unwrap().last().unwrap()["content"][0]["text"].to_string()
    };
    let web = text(&run("markers=web").await);
    assert!(web.contains("[web:0]") && !web.contains("[1]"), "{web}");
    assert!(text(&run("markers=link").await).contains("[1](https://src1.example/"));
    let first = |run: &Value| run["output"][0]["results"][0].clone();
    assert_eq!(first(&run("dates=null").await)["date"], Value::Null);
    assert!(first(&run("dates=null").await).get("date").is_some());
    assert!(first(&run("dates=absent").await).get("date").is_none());
    let found = bench.post("/search", &json!({"query": "a [[sim:ok;dates=mixed]]"})).await.unwrap();
    let found: Value = found.json().await.unwrap();
    let dates: Vec<_> =
        found["results"].as_array().unwrap().iter().map(|r| r.get("date").cloned()).collect();
    assert_eq!(dates[0], Some(Value::Null));
    assert_eq!(dates[1], None);
    assert!(dates[2].as_ref().unwrap().is_string());
}

#[tokio::test]
async fn a_run_may_wait_for_its_client() {
    let bench = Bench::new().await;
    let id = bench.submitted("wind [[sim:requires_action;delay_ms=0]]").await;
    let run = bench.poll(&id).await;
    assert_eq!(run["status"], "requires_action");
    assert_eq!(run["output"].as_array().unwrap().last().unwrap()["type"], "function_call");
    assert_eq!(bench.cancel(&id).await.status(), 200);
    assert_eq!(bench.poll_while(&id, "requires_action").await["status"], "cancelled");
}

#[tokio::test]
async fn the_cost_may_be_forced_or_missing() {
    let bench = live().await;
    for (clause, total) in [("cost;total=1.25", Some(1.25)), ("cost;none", None)] {
        let question = format!("wind [[sim:{clause};delay_ms=0]]");
        let id = bench.submitted(&question).await;
        let run = bench.poll(&id).await;
        let chat = bench.post("/chat/completions", &request(&question)).await.unwrap();
        let chat: Value = chat.json().await.unwrap();
        for usage in [&run["usage"], &chat["usage"]] {
            assert_eq!(usage["cost"]["total_cost"].as_f64(), total, "{usage}");
            assert!(usage["total_tokens"].is_u64());
        }
    }
    let cheap = bench.submitted("sun [[sim:cost;total=0.5;delay_ms=0]]").await;
    assert_eq!(bench.poll(&cheap).await["usage"]["cost"]["total_cost"], 0.5);
    assert!(bench.sim.stats().spent_nanos >= 3_000_000_000);
}

#[tokio::test]
async fn an_odd_scenario_is_refused_by_every_api() {
    let bench = live().await;
    let question = "wind [[sim:malformed;kind=odd]]";
    let search = bench.post("/search", &json!({"query": question})).await.unwrap();
    assert_eq!(refusal(search).await.0, 400);
    let chat = bench.post("/chat/completions", &request(question)).await.unwrap();
    assert_eq!(refusal(chat).await.0, 400);
}
