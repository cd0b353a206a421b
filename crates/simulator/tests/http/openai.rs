//! OpenAI's dialect: the same runs as in the Agent API, in another format.

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::client::{Bench, read_all};

const RUNS: &str = "/openai/v1/responses";

async fn submit(bench: &Bench, input: &str) -> Response {
    let body =
        json!({"model": "gpt-6-sol", "input": input, "background": true, "metadata": {"job": "7"}});
    bench.post(RUNS, &body).await.unwrap()
}

async fn submitted(bench: &Bench, input: &str) -> String {
    let object: Value = submit(bench, input).await.json().await.unwrap();
    object["id"].as_str().unwrap().to_owned()
}

async fn poll(bench: &Bench, id: &str) -> Value {
    bench.get(&format!("{RUNS}/{id}")).await.json().await.unwrap()
}

async fn refusal(response: Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    let field = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
    assert!(body["error"]["param"].is_null() || body["error"]["param"] == "model", "{body}");
    (status, field("type"), field("code"))
}

/// G5: the report cites by positions, counted in characters, and the bill is only in the stats.
#[tokio::test]
async fn g5_a_completed_run_cites_by_positions_and_reports_no_cost() {
    let bench = Bench::new().await;
    let id = submitted(
        &bench,
        "W\u{e4}rme \u{1f600}? [[sim:ok;words=80;sources=5;searches=2;delay_ms=0]]",
    )
    .await;
    let object = poll(&bench, &id).await;
    assert_eq!((&object["status"], &object["model"]), (&json!("completed"), &json!("gpt-6-sol")));
    assert_eq!(object["metadata"], json!({"job": "7"}));
    let items = object["output"].as_array().unwrap();
    let kinds: Vec<&str> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
    let call = "web_search_call";
    assert_eq!(kinds, ["reasoning", call, call, call, call, "message"]);
    assert_eq!(items[1]["action"]["sources"].as_array().unwrap().len(), 3);
    assert_eq!(items[3]["action"]["type"], "open_page");
    let content = &items[5]["content"][0];
    let text: Vec<char> = content["text"].as_str().unwrap().chars().collect();
    let citations = content["annotations"].as_array().unwrap();
    assert!(citations.len() >= 5);
    for citation in citations {
        let place = |name: &str| citation[name].as_u64().unwrap() as usize;
        let shown: String = text[place("start_index")..place("end_index")].iter().collect();
        let url = citation["url"].as_str().unwrap();
        assert!(shown.starts_with("([") && shown.ends_with(&format!("]({url}))")), "{shown}");
    }
    assert!(object["usage"].get("cost").is_none(), "{}", object["usage"]);
    let usage = |name: &str| object["usage"][name].as_u64().unwrap();
    let cached = object["usage"]["input_tokens_details"]["cached_tokens"].as_u64().unwrap();
    let tokens =
        (usage("input_tokens") - cached) * 2_000 + cached * 200 + usage("output_tokens") * 10_000;
    assert_eq!(object["tool_usage"]["web_search"]["num_requests"], 2);
    assert_eq!(bench.sim.stats().spent_nanos, tokens + 2 * 10_000_000);
    assert_eq!(bench.sim.stats().runs[0].api, "openai");
}

/// G5: a run that was submitted without a stream still has one, from its beginning or from any event on.
#[tokio::test]
async fn g5_a_stream_can_be_resumed_from_any_event() {
    let bench = Bench::new().await;
    let id = submitted(&bench, "wind [[sim:ok;words=60;delay_ms=0]]").await;
    let whole = read_all(bench.get(&format!("{RUNS}/{id}?stream=true")).await).await;
    assert_eq!(whole.kinds()[..2], ["response.created", "response.in_progress"]);
    assert_eq!(whole.last()["type"], "response.completed");
    assert_eq!(whole.last()["response"], poll(&bench, &id).await);
    let numbers: Vec<u64> =
        whole.events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
    let part =
        read_all(bench.get(&format!("{RUNS}/{id}?stream=true&starting_after=6")).await).await;
    assert_eq!(part.events, whole.events[7..]);
    let id = submitted(&bench, "wind [[sim:no_stream|ok;delay_ms=0]]").await;
    let refused = bench.get(&format!("{RUNS}/{id}?stream=true&starting_after=0")).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
}

/// G5: the response to a cancel is the run; a cancel may be repeated, and ends a stream without an event.
#[tokio::test]
async fn g5_a_cancel_ends_a_run_and_may_be_repeated() {
    let bench = Bench::new().await;
    let id = submitted(&bench, "wind [[sim:stuck]]").await;
    let cancel = async || bench.post(&format!("{RUNS}/{id}/cancel"), &json!({})).await.unwrap();
    let stream = bench.get(&format!("{RUNS}/{id}?stream=true")).await;
    let first: Value = cancel().await.json().await.unwrap();
    assert_eq!(first["id"], id);
    let followed = read_all(stream).await;
    assert!(!followed.broken && followed.last()["type"] != "response.cancelled", "{followed:?}");
    let object = poll(&bench, &id).await;
    assert_eq!((&object["status"], &object["error"]), (&json!("cancelled"), &Value::Null));
    let again: Value = cancel().await.json().await.unwrap();
    assert_eq!(again["status"], "cancelled");
    let unknown = format!("{RUNS}/resp_00000000-0000-4000-8000-000000000000/cancel");
    assert_eq!(refusal(bench.post(&unknown, &json!({})).await.unwrap()).await.0, 404);
    let done = submitted(&bench, "wind [[sim:ok;delay_ms=0]]").await;
    let refused = bench.post(&format!("{RUNS}/{done}/cancel"), &json!({})).await.unwrap();
    assert_eq!(refusal(refused).await.0, 400);
}

/// G5: a deleted run cannot be found; runs of one API are not runs of the other.
#[tokio::test]
async fn g5_a_deleted_run_cannot_be_found() {
    let bench = Bench::new().await;
    let id = submitted(&bench, "wind [[sim:ok;delay_ms=0]]").await;
    assert_eq!(bench.get(&format!("/v1/agent/{id}")).await.status(), StatusCode::NOT_FOUND);
    let url = format!("{}{RUNS}/{id}", bench.sim.url());
    let delete = async || {
        bench.http.request(Method::DELETE, &url).bearer_auth(bench.key).send().await.unwrap()
    };
    assert_eq!(delete().await.json::<Value>().await.unwrap()["deleted"], true);
    assert_eq!(refusal(bench.get(&format!("{RUNS}/{id}")).await).await.0, 404);
    assert_eq!(delete().await.status(), StatusCode::NOT_FOUND);
}

/// G5: refusals in OpenAI's envelope.
#[tokio::test]
async fn g5_refusals_have_the_envelope_of_the_vendor() {
    let bench = Bench::new().await;
    let invalid = "invalid_request_error";
    for (scenario, expected) in [
        ("400", (400, invalid, "invalid_value")),
        ("401", (401, invalid, "invalid_api_key")),
        ("403", (403, invalid, "unsupported_country_region_territory")),
        ("429", (429, "rate_limit_exceeded", "rate_limit_exceeded")),
        ("quota;status=429", (429, "insufficient_quota", "insufficient_quota")),
        ("503", (503, "server_error", "server_error")),
    ] {
        let (status, kind, code) =
            refusal(submit(&bench, &format!("q [[sim:{scenario}]]")).await).await;
        assert_eq!((status, kind.as_str(), code.as_str()), expected, "{scenario}");
    }
    for (body, code) in [
        (json!({"model": "gpt-0", "input": "q"}), "model_not_found"),
        (json!({"model": "gpt-6-sol", "input": "q", "effort": "low"}), "invalid_value"),
        (
            json!({"model": "gpt-6-sol", "input": "q", "background": true, "store": false}),
            "invalid_value",
        ),
        (
            json!({"model": "gpt-6-sol", "input": "q", "reasoning": {"effort": "heroic"}}),
            "unsupported_value",
        ),
        (json!({"model": "gpt-6-sol", "input": ""}), "invalid_value"),
    ] {
        let refused = refusal(bench.post(RUNS, &body).await.unwrap()).await;
        assert_eq!((refused.0, refused.2.as_str()), (400, code), "{body}");
    }
    let html = submit(&bench, "q [[sim:http;status=502;body=html]]").await;
    assert!(html.text().await.unwrap().starts_with("<html>"));
    assert_eq!(bench.sim.stats().submits, 0);
}

/// G5: the list of models contains the day on which one will be shut down; Azure's key header works too.
#[tokio::test]
async fn g5_models_are_listed_with_their_shutdown_day() {
    let bench = Bench::new().await;
    let models: Value = bench.get("/openai/v1/models").await.json().await.unwrap();
    assert_eq!(models["data"][3]["shutdown_date"], "2027-01-31");
    let url = format!("{}/openai/v1/models", bench.sim.url());
    let with_key = |key: &str| bench.http.get(&url).header("api-key", key).send();
    assert_eq!(with_key("k").await.unwrap().status(), StatusCode::OK);
    assert_eq!(with_key("wrong").await.unwrap().status(), StatusCode::UNAUTHORIZED);
    assert!(bench.sim.requests().iter().all(|request| !request.headers.contains_key("api-key")));
}
