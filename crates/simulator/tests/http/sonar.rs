//! Sonar before its retirement: jobs, chat answers and their streams; and its response since then.

use outlast_simulator::{Options, SonarMode};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::client::{Bench, PATIENCE, refusal};

pub(crate) async fn live() -> Bench {
    let options = Options { speed: 1_000.0, sonar: SonarMode::Live, ..Options::default() };
    Bench::with(options).await
}

fn request(model: &str, question: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": question}]})
}

async fn submit(bench: &Bench, question: &str, key: Option<&str>) -> Response {
    let mut body = json!({"request": request("sonar-deep-research", question)});
    if let Some(key) = key {
        body["idempotency_key"] = key.into();
    }
    bench.post("/v1/async/sonar", &body).await.unwrap()
}

async fn submitted(bench: &Bench, question: &str) -> String {
    let job: Value = submit(bench, question, None).await.json().await.unwrap();
    job["id"].as_str().unwrap().to_owned()
}

async fn job(bench: &Bench, id: &str) -> Value {
    let response = bench.get(&format!("/v1/async/sonar/{id}")).await;
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

async fn chat(bench: &Bench, body: &Value) -> Value {
    let response = bench.post("/chat/completions", body).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

/// Returns the JSON of each frame, and true if `[DONE]` came last.
fn chunks(text: &str) -> (Vec<Value>, bool) {
    let mut frames: Vec<&str> =
        text.split("\n\n").filter_map(|frame| frame.strip_prefix("data: ")).collect();
    let done = frames.pop_if(|last| *last == "[DONE]").is_some();
    (frames.into_iter().map(|frame| serde_json::from_str(frame).unwrap()).collect(), done)
}

fn content(completion: &Value) -> &str {
    completion["choices"][0]["message"]["content"].as_str().unwrap()
}

fn report(content: &str) -> &str {
    content.split_once("</think>\n\n").unwrap().1
}

#[tokio::test]
async fn a_job_is_created_works_and_completes_with_its_answer() {
    let bench = live().await;
    let created = submit(&bench, "wind [[sim:ok;hold;delay_ms=0]]", None).await;
    assert_eq!(created.status(), StatusCode::OK);
    let created: Value = created.json().await.unwrap();
    assert_eq!(created["status"], "CREATED");
    assert_eq!(created["model"], "sonar-deep-research");
    assert!(created["created_at"].is_u64());
    for field in ["started_at", "completed_at", "failed_at", "error_message", "response"] {
        assert!(created[field].is_null(), "{field}");
    }
    let id = created["id"].as_str().unwrap();
    let working = job(&bench, id).await;
    assert_eq!(working["status"], "IN_PROGRESS");
    assert!(working["started_at"].is_u64() && working["response"].is_null());
    bench.sim.release();
    let done = job(&bench, id).await;
    assert_eq!(done["status"], "COMPLETED");
    assert!(done["completed_at"].is_u64() && done["failed_at"].is_null());
    let answer = &done["response"];
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert!(content(answer).starts_with("<think>\n"));
    assert_eq!(report(content(answer)).split_whitespace().count(), 1_500);
    let old = bench.get(&format!("/async/chat/completions/{id}")).await;
    assert_eq!(old.json::<Value>().await.unwrap(), done);
}

#[tokio::test]
async fn markers_count_the_citations_and_the_parts_of_the_cost_add_up() {
    let bench = live().await;
    let id = submitted(&bench, "wind [[sim:ok;words=200;sources=5;delay_ms=0]]").await;
    let done = job(&bench, &id).await;
    let answer = &done["response"];
    let citations = answer["citations"].as_array().unwrap();
    let results = answer["search_results"].as_array().unwrap();
    assert_eq!((citations.len(), results.len()), (5, 5));
    for (place, (url, result)) in citations.iter().zip(results).enumerate() {
        assert_eq!(url, &result["url"]);
        assert!(content(answer).contains(&format!("[{}]", place + 1)), "{place}");
        assert!(result["title"].is_string() && result["snippet"].is_string());
    }
    let usage = &answer["usage"];
    assert_eq!(usage["num_search_queries"], 4);
    assert!(usage["reasoning_tokens"].as_u64().unwrap() > 0);
    let total = usage["cost"]["total_cost"].as_f64().unwrap();
    assert_eq!(bench.sim.stats().spent_nanos, (total * 1e9).round() as u64);
}

#[tokio::test]
async fn the_same_key_returns_the_same_job_and_conflicts_with_another_request() {
    let bench = live().await;
    let question = "wind [[sim:ok;delay_ms=0]]";
    let first: Value = submit(&bench, question, Some("k1")).await.json().await.unwrap();
    let again: Value = submit(&bench, question, Some("k1")).await.json().await.unwrap();
    assert_eq!(again["id"], first["id"]);
    assert_eq!(again["status"], "COMPLETED");
    let conflict = refusal(submit(&bench, "sun", Some("k1")).await).await;
    assert_eq!((conflict.0, conflict.1.as_str()), (409, "idempotency_conflict"));
    let other: Value = submit(&bench, question, Some("k2")).await.json().await.unwrap();
    assert_ne!(other["id"], first["id"]);
    let stats = bench.sim.stats();
    assert_eq!((stats.submits, stats.duplicate_submits, stats.replayed_submits), (2, 1, 1));
}

#[tokio::test]
async fn a_failed_job_says_why() {
    let bench = live().await;
    let id = submitted(&bench, "wind [[sim:fail;code=overloaded;delay_ms=0]]").await;
    let failed = job(&bench, &id).await;
    assert_eq!(failed["status"], "FAILED");
    assert!(failed["error_message"].as_str().unwrap().contains("overloaded"));
    assert!(failed["failed_at"].is_u64() && failed["response"].is_null());
}

#[tokio::test]
async fn a_chat_answer_waits_for_its_end() {
    let bench = live().await;
    for (path, model, thinks) in [
        ("/chat/completions", "sonar", false),
        ("/v1/sonar", "sonar-pro", false),
        ("/chat/completions", "sonar-reasoning-pro", true),
    ] {
        let response = bench.post(path, &request(model, "How far?")).await.unwrap();
        let answer: Value = response.json().await.unwrap();
        assert_eq!(
            (&answer["object"], &answer["model"]),
            (&json!("chat.completion"), &json!(model))
        );
        assert_eq!(content(&answer).starts_with("<think>"), thinks, "{model}");
        assert!(answer["usage"]["cost"]["request_cost"].as_f64().unwrap() > 0.0);
        assert!(answer["usage"].get("citation_tokens").is_none());
    }
    assert_eq!(bench.sim.stats().submits, 3);
}

#[tokio::test]
async fn a_full_stream_repeats_everything_and_ends_with_the_bill() {
    let bench = live().await;
    let mut body = request("sonar-reasoning-pro", "wind [[sim:ok;words=60]]");
    body["stream"] = true.into();
    let response = bench.post("/chat/completions", &body).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (chunks, done) = chunks(&response.text().await.unwrap());
    assert!(done && chunks.len() > 3);
    let mut text = String::new();
    for chunk in &chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        text.push_str(chunk["choices"][0]["delta"]["content"].as_str().unwrap());
        assert_eq!(content(chunk), text, "the text so far");
        assert!(!chunk["citations"].as_array().unwrap().is_empty());
    }
    assert_eq!(chunks[0]["usage"]["cost"]["total_cost"], 0.0);
    let (last, before) = chunks.split_last().unwrap();
    assert!(before.iter().all(|chunk| chunk["choices"][0]["finish_reason"].is_null()));
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert!(last["usage"]["cost"]["total_cost"].as_f64().unwrap() > 0.0);
    assert_eq!(report(&text).split_whitespace().count(), 60);
}

#[tokio::test]
async fn a_failing_chat_is_an_error_and_a_truncated_one_says_so() {
    let bench = live().await;
    let failing = request("sonar", "wind [[sim:fail;delay_ms=0]]");
    let response = bench.post("/chat/completions", &failing).await.unwrap();
    assert_eq!(refusal(response).await.0, 500);
    let cut = chat(&bench, &request("sonar", "wind [[sim:incomplete;delay_ms=0]]")).await;
    assert_eq!(cut["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn invalid_requests_are_refused_with_all_their_faults() {
    let bench = live().await;
    let body = json!({"request": {"model": "sonar", "mesages": [], "temperature": 9}});
    let response = bench.post("/v1/async/sonar", &body).await.unwrap();
    assert_eq!(response.status(), 422);
    let body: Value = response.json().await.unwrap();
    let places: Vec<String> =
        body["detail"].as_array().unwrap().iter().map(|f| f["loc"].to_string()).collect();
    for place in ["mesages", "messages", "temperature"] {
        let place = format!(r#"["body","request","{place}"]"#);
        assert!(places.contains(&place), "{places:?}");
    }
    let model = bench.post("/chat/completions", &request("gpt-9", "q")).await.unwrap();
    assert_eq!(refusal(model).await.1, "invalid_model");
    assert_eq!((bench.sim.stats().submits, bench.sim.stats().refused), (0, 2));
}

#[tokio::test]
async fn jobs_cannot_be_cancelled_and_ids_belong_to_one_api() {
    let bench = live().await;
    let job = submitted(&bench, "wind [[sim:stuck]]").await;
    let cancel = format!("/v1/async/sonar/{job}/cancel");
    assert_eq!(bench.post(&cancel, &json!({})).await.unwrap().status(), 404);
    let run = bench.submitted("wind [[sim:stuck]]").await;
    assert_eq!(bench.get(&format!("/v1/async/sonar/{run}")).await.status(), 404);
    assert_eq!(bench.get(&format!("/v1/agent/resp_{job}")).await.status(), 404);
}

#[tokio::test]
async fn a_job_whose_answer_was_lost_is_found_by_its_key() {
    let bench = live().await;
    let question = "wind [[sim:drop_submit;delay_ms=0]]";
    let body = json!({"request": request("sonar", question), "idempotency_key": "k"});
    assert!(bench.post("/v1/async/sonar", &body).await.is_err());
    let again: Value = submit_again(&bench, &body).await;
    assert_eq!(again["id"], json!(bench.sim.stats().runs[0].id));
    assert_eq!(bench.sim.stats().submits, 1);
}

async fn submit_again(bench: &Bench, body: &Value) -> Value {
    let again = tokio::time::timeout(PATIENCE, bench.post("/v1/async/sonar", body)).await.unwrap();
    again.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn retired_endpoints_refuse_every_valid_key() {
    let mut bench = Bench::new().await;
    for path in ["/chat/completions", "/v1/sonar", "/async/chat/completions", "/v1/async/sonar"] {
        let (status, kind, message) =
            refusal(bench.post(path, &request("sonar", "q")).await.unwrap()).await;
        assert_eq!((status, kind.as_str()), (403, "chat_completions_not_available"), "{path}");
        assert!(message.contains("/v1/responses"));
    }
    assert_eq!(refusal(bench.get("/v1/async/sonar/some-id").await).await.0, 403);
    bench.key = "pplx-wrong";
    assert_eq!(refusal(bench.get("/v1/async/sonar").await).await.0, 401);
}
