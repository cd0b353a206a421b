//! A successful run, and invalid requests.

use outlast_simulator::Options;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::client::{Bench, read_all, refusal};

fn text(object: &Value) -> &str {
    let items = object["output"].as_array().unwrap();
    let message = items.iter().find(|item| item["type"] == "message").unwrap();
    message["content"][0]["text"].as_str().unwrap()
}

fn kinds(object: &Value) -> Vec<&str> {
    let items = object["output"].as_array().unwrap();
    items.iter().map(|item| item["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_background_submit_is_queued_with_an_id_and_no_usage() {
    let bench = Bench::new().await;
    let response = bench.submit("How do heat pumps age? [[sim:ok;delay_ms=0]]").await;
    assert_eq!(response.status(), StatusCode::OK);
    let request_id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    assert_eq!(response.headers()["server"], "drsim");
    for header in ["limit", "remaining", "used", "reset"] {
        let value = response.headers()[&format!("x-ratelimit-{header}")].to_str().unwrap();
        assert!(value.parse::<u64>().is_ok(), "{header}: {value}");
    }
    let object: Value = response.json().await.unwrap();
    assert_eq!(object["status"], "queued");
    assert_eq!(object["id"], format!("resp_{request_id}"));
    assert_eq!(object["model"], "medium");
    assert_eq!(object["output"], json!([]));
    assert!(object["usage"].is_null() && object["completed_at"].is_null());
    assert_eq!(object.as_object().unwrap().len(), 32);
}

#[tokio::test]
async fn a_completed_run_shows_its_report_its_sources_and_its_cost() {
    let bench = Bench::new().await;
    let id = bench
        .submitted("How do heat pumps age? [[sim:ok;words=80;sources=5;searches=2;delay_ms=0]]")
        .await;
    let object = bench.poll(&id).await;
    assert_eq!(object["status"], "completed");
    assert_eq!(object["model"], "openai/gpt-6-luna");
    assert!(object["created_at"].is_u64() && object["completed_at"].is_u64());
    assert_eq!(
        kinds(&object),
        ["search_results", "search_results", "fetch_url_results", "fetch_url_results", "message"]
    );
    let text = text(&object);
    assert_eq!(text.split_whitespace().count(), 80);
    let results = |item: usize| object["output"][item]["results"].as_array().unwrap().clone();
    let ids: Vec<u64> =
        results(0).iter().chain(&results(1)).map(|result| result["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), 5);
    assert_eq!(ids[..3], [1, 2, 3]);
    assert!(ids[3] > 4, "ids have a gap between searches: {ids:?}");
    for id in &ids {
        assert!(text.contains(&format!("[{id}]")), "{id} is not cited in {text}");
    }
    assert_eq!(object["output"][4]["content"][0]["annotations"], json!([]));
    assert!(object["usage"]["cost"]["total_cost"].as_f64().unwrap() > 0.0);
    assert_eq!(object["usage"]["tool_calls_details"]["search_web"]["invocation"], 2);
    let nanos = (object["usage"]["cost"]["total_cost"].as_f64().unwrap() * 1e9).round() as u64;
    assert_eq!(bench.sim.stats().spent_nanos, nanos);
}

#[tokio::test]
async fn a_poll_of_a_running_run_shows_the_searches_finished_so_far() {
    let bench = Bench::new().await;
    let id = bench.submitted("wind [[sim:ok;hold;delay_ms=0]]").await;
    let object = bench.poll(&id).await;
    assert_eq!(object["status"], "in_progress");
    assert_eq!(kinds(&object), ["search_results"]);
    assert_eq!(object["model"], "medium");
    assert!(object["usage"].is_null());
}

#[tokio::test]
async fn release_affects_the_runs_that_are_held_now_and_no_later_ones() {
    let bench = Bench::new().await;
    let early = bench.submitted("early [[sim:ok;hold;delay_ms=0]]").await;
    assert_eq!(bench.poll(&early).await["status"], "in_progress");
    bench.sim.release();
    let late = bench.submitted("late [[sim:ok;hold;delay_ms=0]]").await;
    assert_eq!(bench.poll(&early).await["status"], "completed");
    assert_eq!(bench.poll(&late).await["status"], "in_progress");
}

#[tokio::test]
async fn the_length_of_a_report_follows_from_the_effort() {
    let bench = Bench::new().await;
    for (effort, words) in [("low", 150), ("medium", 600), ("high", 1_500)] {
        let body = json!({"input": "wind [[sim:ok;delay_ms=0]]", "effort": effort});
        let object: Value = bench.post("/v1/responses", &body).await.unwrap().json().await.unwrap();
        assert_eq!(object["status"], "completed", "a plain submit waits for the end");
        assert_eq!(text(&object).split_whitespace().count(), words, "{effort}");
    }
}

#[tokio::test]
async fn the_same_question_and_seed_give_the_same_report_and_another_id() {
    let (one, two) = (Bench::new().await, Bench::new().await);
    let other = Bench::with(Options { seed: 9, ..Options::default() }).await;
    let input = "wind [[sim:ok;delay_ms=0]]";
    let first = one.submitted(input).await;
    let second = one.submitted(input).await;
    assert_ne!(first, second);
    let report = text(&one.poll(&first).await).to_owned();
    assert_eq!(text(&one.poll(&second).await), report);
    assert_eq!(text(&two.poll(&two.submitted(input).await).await), report);
    assert_ne!(text(&other.poll(&other.submitted(input).await).await), report);
}

#[tokio::test]
async fn both_paths_reach_the_same_run() {
    let bench = Bench::new().await;
    let id = bench.submitted("wind [[sim:stuck]]").await;
    assert_eq!(bench.get(&format!("/v1/responses/{id}")).await.status(), StatusCode::OK);
    let cancelled = bench.post(&format!("/v1/responses/{id}/cancel"), &json!({})).await.unwrap();
    let answer: Value = cancelled.json().await.unwrap();
    assert_eq!(answer, json!({"response_id": id, "status": "cancelling"}));
}

#[tokio::test]
async fn a_cancelled_run_keeps_its_searches_and_hides_its_cost() {
    let bench = Bench::new().await;
    let id = bench.submitted("wind [[sim:ok;hold;delay_ms=0]]").await;
    assert_eq!(bench.cancel(&id).await.status(), StatusCode::OK);
    let object = bench.poll_while(&id, "in_progress").await;
    assert_eq!(object["status"], "cancelled");
    assert_eq!(object["error"]["code"], "cancelled");
    assert_eq!(object["incomplete_details"]["reason"], "cancelled");
    assert_eq!(kinds(&object), ["search_results"]);
    assert_eq!(object["model"], "medium");
    assert!(object["usage"].is_null() && object["completed_at"].is_null());
    bench.sim.release();
    assert_eq!(bench.poll(&id).await["status"], "cancelled", "a release revives nothing");
}

#[tokio::test]
async fn invalid_requests_are_refused_in_the_vendors_format() {
    let bench = Bench::new().await;
    let invalid = "invalid_request";
    for (body, kind, message) in [
        (json!({"input": ""}), invalid, "validation failed: input cannot be empty"),
        (json!({"effort": "high"}), invalid, "validation failed: input cannot be empty"),
        (
            json!({"input": "q", "messages": []}),
            invalid,
            "validation failed: unknown field `messages`",
        ),
        (
            json!({"input": "q", "tools": [{"type": "web_search", "filters": {"search_recency_filter": "now"}}]}),
            invalid,
            "validation failed: tools[0]: search recency filter must be one of: hour day week month year",
        ),
        (
            json!({"input": "q", "model": "acme/one"}),
            "invalid_model",
            "model \"acme/one\" is not supported",
        ),
        (json!({"input": "q", "previous_response_id": "resp_x"}), invalid, "invalid request"),
        (json!({"input": "q [[sim:stukc]]"}), invalid, "simulator: unknown scenario `stukc`"),
    ] {
        let answer = refusal(bench.post("/v1/agent", &body).await.unwrap()).await;
        assert_eq!(answer, (400, kind.to_owned(), message.to_owned()), "{body}");
    }
    assert_eq!(bench.sim.stats().refused, 7);
    assert_eq!(bench.sim.stats().submits, 0);
}

#[tokio::test]
async fn a_missing_or_wrong_key_is_refused_everywhere() {
    let mut bench = Bench::new().await;
    let id = bench.submitted("wind [[sim:stuck]]").await;
    bench.key = "pplx-wrong";
    let body = json!({"input": "q", "background": true});
    for response in [
        bench.post("/v1/agent", &body).await.unwrap(),
        bench.get(&format!("/v1/agent/{id}")).await,
        bench.cancel(&id).await,
        bench.get("/v1/models").await,
        bench.http.post(format!("{}/v1/agent", bench.sim.url())).json(&body).send().await.unwrap(),
    ] {
        let (status, kind, _) = refusal(response).await;
        assert_eq!((status, kind.as_str()), (401, "invalid_api_key"));
    }
    let stats = bench.sim.stats();
    assert_eq!((stats.submits, stats.refused, stats.polls, stats.cancels), (1, 2, 0, 0));
}

#[tokio::test]
async fn unknown_ids_differ_from_malformed_ones_except_for_cancel() {
    let bench = Bench::new().await;
    let unknown = "resp_00000000-0000-4000-8000-000000000000";
    let (status, kind, _) = refusal(bench.get(&format!("/v1/agent/{unknown}")).await).await;
    assert_eq!((status, kind.as_str()), (404, "not_found"));
    let (status, _, message) = refusal(bench.get("/v1/agent/nonsense").await).await;
    assert_eq!((status, message.as_str()), (400, "invalid response id"));
    let ended = bench.submitted("wind [[sim:ok;delay_ms=0]]").await;
    let of_unknown = refusal(bench.cancel(unknown).await).await;
    assert_eq!(of_unknown.2, "the run is already terminal and cannot be cancelled");
    assert_eq!(refusal(bench.cancel(&ended).await).await, of_unknown);
}

#[tokio::test]
async fn every_other_path_is_answered_with_the_envelope() {
    let bench = Bench::new().await;
    assert_eq!(refusal(bench.get("/v2/nothing").await).await.0, 404);
    assert_eq!(refusal(bench.get("/v1/agent").await).await.0, 405);
    let retired = refusal(bench.post("/chat/completions", &json!({})).await.unwrap()).await;
    assert_eq!((retired.0, retired.1.as_str()), (403, "chat_completions_not_available"));
}

#[tokio::test]
async fn models_are_listed() {
    let bench = Bench::new().await;
    let models: Value = bench.get("/v1/models").await.json().await.unwrap();
    assert_eq!(models["data"].as_array().unwrap()[1]["id"], "openai/gpt-6-luna");
}

#[tokio::test]
async fn a_run_that_is_not_stored_cannot_be_read() {
    let bench = Bench::new().await;
    let body = json!({"input": "wind [[sim:ok;delay_ms=0]]", "store": false, "stream": true});
    let followed = read_all(bench.post("/v1/agent", &body).await.unwrap()).await;
    let id = followed.events[0]["response"]["id"].as_str().unwrap().to_owned();
    assert_eq!(refusal(bench.get(&format!("/v1/agent/{id}")).await).await.0, 404);
}
