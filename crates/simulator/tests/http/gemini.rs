//! Gemini's Interactions API as a client sees it.

use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::client::Bench;

const AGENT: &str = "deep-research-preview-04-2026";

struct Client(Bench);

impl Client {
    async fn new() -> Self {
        Self(Bench::new().await)
    }

    async fn post(&self, path: &str, body: &Value) -> reqwest::Result<Response> {
        let url = format!("{}/v1beta/{path}", self.0.sim.url());
        self.0.http.post(url).header("x-goog-api-key", "test").json(body).send().await
    }

    async fn get(&self, path: &str) -> Response {
        let url = format!("{}/v1beta/{path}", self.0.sim.url());
        self.0.http.get(url).header("x-goog-api-key", "test").send().await.unwrap()
    }

    async fn submit(&self, input: &str) -> reqwest::Result<Response> {
        self.post("interactions", &json!({"agent": AGENT, "input": input, "background": true}))
            .await
    }

    async fn submitted(&self, input: &str) -> String {
        let object: Value = self.submit(input).await.unwrap().json().await.unwrap();
        assert_eq!(object["status"], "in_progress");
        object["id"].as_str().unwrap().to_owned()
    }

    async fn object(&self, id: &str) -> Value {
        self.get(&format!("interactions/{id}")).await.json().await.unwrap()
    }

    /// The events of a stream that ends.
    async fn events(&self, path: &str) -> Vec<Value> {
        let text = self.get(path).await.text().await.unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

async fn error(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], status, "{body}");
    (status, body["error"].clone())
}

/// G5: a finished run has steps, citations in bytes and usage; the bill is only in the stats.
#[tokio::test]
async fn g5_a_finished_interaction_has_steps_citations_and_usage() {
    let client = Client::new().await;
    let id = client.submitted("How do heat pumps age? [[sim:ok;delay_ms=0]]").await;
    let object = client.object(&id).await;
    assert_eq!((&object["status"], &object["agent"]), (&json!("completed"), &json!(AGENT)));
    let steps = object["steps"].as_array().unwrap();
    let kinds: Vec<&str> = steps.iter().map(|step| step["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[1]), ("thought", "google_search_call"));
    let output = steps.last().unwrap();
    assert_eq!(output["type"], "model_output");
    let part = &output["content"][0];
    let text = part["text"].as_str().unwrap();
    let annotations = part["annotations"].as_array().unwrap();
    assert!(annotations.len() >= 8);
    for annotation in annotations {
        let at = |name: &str| annotation[name].as_u64().unwrap() as usize;
        let covered = &text[at("start_index")..at("end_index")];
        assert!(covered.starts_with('[') && covered.ends_with(']'), "{covered}");
    }
    let usage = &object["usage"];
    assert_eq!(usage["grounding_tool_count"], json!([{"type": "google_search", "count": 4}]));
    let tokens = |name: &str| usage[name].as_u64().unwrap();
    let fresh = tokens("total_input_tokens") - tokens("total_cached_tokens");
    let bill = (fresh + tokens("total_tool_use_tokens")) * 2_000
        + tokens("total_cached_tokens") * 200
        + (tokens("total_output_tokens") + tokens("total_thought_tokens")) * 12_000
        + 4 * 14_000_000;
    let stats = client.0.sim.stats();
    assert_eq!((stats.spent_nanos, stats.submits), (bill, 1));
    assert_eq!(stats.runs[0].api, "gemini");
}

/// G5: a stream contains the activity, never the complete report, and can be resumed after any of its events.
#[tokio::test]
async fn g5_a_stream_can_be_resumed_after_any_event() {
    let client = Client::new().await;
    let id = client.submitted("q [[sim:ok;delay_ms=0;words=60]]").await;
    let all = client.events(&format!("interactions/{id}?stream=true")).await;
    assert_eq!(all[0]["event_type"], "interaction.created");
    let last = all.last().unwrap();
    assert_eq!(last["event_type"], "interaction.completed");
    assert_eq!(last["interaction"]["status"], "completed");
    assert!(last["interaction"]["steps"].is_null());
    let written: String = all.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    let object = client.object(&id).await;
    let steps = object["steps"].as_array().unwrap();
    assert_eq!(written, steps.last().unwrap()["content"][0]["text"].as_str().unwrap());
    let starts = all.iter().filter(|event| event["event_type"] == "step.start");
    let indexes: Vec<u64> = starts.map(|event| event["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, (0..steps.len() as u64).collect::<Vec<_>>());
    // The events after the last frame of an event.
    let place = all.iter().position(|event| event["event_type"] == "step.stop").unwrap();
    let after = all[place]["event_id"].as_str().unwrap();
    let rest = client.events(&format!("interactions/{id}?stream=true&last_event_id={after}")).await;
    assert_eq!(rest, all[place + 1..]);
    let odd = client.get(&format!("interactions/{id}?stream=true&last_event_id=odd")).await;
    assert_eq!(error(odd).await.0, 400);
}

/// G5: errors have the vendor's format.
#[tokio::test]
async fn g5_refusals_have_the_format_of_this_api() {
    let client = Client::new().await;
    let (status, said) = error(client.submit("q [[sim:429;retry_after=3]]").await.unwrap()).await;
    assert_eq!((status, &said["status"]), (429, &json!("RESOURCE_EXHAUSTED")));
    assert_eq!(said["details"][0]["retryDelay"], "3s");
    assert_eq!(error(client.submit("q [[sim:quota]]").await.unwrap()).await.0, 402);
    assert_eq!(error(client.get("interactions/v1_none").await).await.0, 404);
    let unknown = json!({"agent": "deep-thought", "input": "q", "background": true});
    let (status, said) = error(client.post("interactions", &unknown).await.unwrap()).await;
    assert_eq!(
        (status, said["message"].as_str().unwrap()),
        (404, "Agent 'deep-thought' not found.")
    );
    let odd = json!({"agent": AGENT, "input": "q", "background": true, "wish": 1});
    assert_eq!(error(client.post("interactions", &odd).await.unwrap()).await.0, 400);
    // A key in the URL does not count.
    let url = format!("{}/v1beta/models?key=test", client.0.sim.url());
    let (status, said) = error(client.0.http.get(url).send().await.unwrap()).await;
    assert_eq!((status, &said["details"][0]["reason"]), (400, &json!("API_KEY_INVALID")));
    assert_eq!(client.0.sim.stats().submits, 0);
    assert!(client.submit("q [[sim:drop_submit]]").await.is_err());
    assert_eq!(client.0.sim.stats().submits, 1, "made, and its answer lost");
    let seen = client.0.sim.requests();
    assert!(seen.iter().all(|request| !request.headers.contains_key("x-goog-api-key")));
}

/// G5: cancel and delete.
#[tokio::test]
async fn g5_a_run_can_be_cancelled_once_and_deleted() {
    let client = Client::new().await;
    let id = client.submitted("q [[sim:stuck]]").await;
    let cancel = format!("interactions/{id}/cancel");
    let answer = client.post(&cancel, &json!({})).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let end = client.events(&format!("interactions/{id}?stream=true")).await;
    assert_eq!(end.last().unwrap()["interaction"]["status"], "cancelled");
    assert_eq!(client.object(&id).await["status"], "cancelled");
    assert_eq!(error(client.post(&cancel, &json!({})).await.unwrap()).await.0, 400);
    let unknown = client.post("interactions/v1_none/cancel", &json!({})).await.unwrap();
    assert_eq!(error(unknown).await.0, 404);
    let url = format!("{}/v1beta/interactions/{id}", client.0.sim.url());
    let deleted = client.0.http.delete(url).header("x-goog-api-key", "test").send().await.unwrap();
    assert_eq!(deleted.status(), StatusCode::OK);
    assert_eq!(error(client.get(&format!("interactions/{id}")).await).await.0, 404);
}

/// G5: the names of limits.
#[tokio::test]
async fn g5_a_run_that_reaches_a_limit_ends_with_the_name_of_the_limit() {
    let client = Client::new().await;
    for reason in ["budget_exceeded", "requires_continuation", "incomplete"] {
        let id = client
            .submitted(&format!("{reason} [[sim:incomplete;reason={reason};delay_ms=0]]"))
            .await;
        assert_eq!(client.object(&id).await["status"], reason);
    }
}
