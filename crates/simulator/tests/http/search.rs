//! The Search API and local pages.

use serde_json::{Value, json};

use crate::client::Bench;

async fn search(bench: &Bench, body: &Value) -> Value {
    let response = bench.post("/search", body).await.unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_search_returns_the_requested_number_of_stable_results() {
    let bench = Bench::new().await;
    let body = json!({"query": "heat pumps in winter", "max_results": 7});
    let found = search(&bench, &body).await;
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 7);
    for result in results {
        for field in ["title", "url", "snippet", "date"] {
            assert!(result[field].is_string(), "{field} of {result}");
        }
    }
    let again = search(&bench, &body).await;
    assert_eq!(again["results"], found["results"]);
    assert_ne!(again["id"], found["id"]);
    let default = search(&bench, &json!({"query": "sun"})).await;
    assert_eq!(default["results"].as_array().unwrap().len(), 10);
    let stats = bench.sim.stats();
    assert_eq!((stats.searches, stats.spent_nanos, stats.submits), (3, 15_000_000, 0));
}

#[tokio::test]
async fn several_queries_are_answered_together() {
    let bench = Bench::new().await;
    let found = search(&bench, &json!({"query": ["wind", "sun"], "max_results": 3})).await;
    assert_eq!(found["results"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn snippets_respect_the_token_limit() {
    let bench = Bench::new().await;
    let found = search(&bench, &json!({"query": "wind", "max_tokens_per_page": 5})).await;
    for result in found["results"].as_array().unwrap() {
        assert!(result["snippet"].as_str().unwrap().len() <= 20);
    }
}

#[tokio::test]
async fn invalid_searches_are_refused() {
    let bench = Bench::new().await;
    let response = bench.post("/search", &json!({"query": "q", "max_results": 21})).await.unwrap();
    assert_eq!(response.status(), 422);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["detail"][0]["loc"], json!(["body", "max_results"]));
    let url = format!("{}/search", bench.sim.url());
    let keyless = bench.http.post(url).json(&json!({"query": "q"})).send().await.unwrap();
    assert_eq!(keyless.status(), 401);
    assert_eq!(bench.sim.stats().searches, 0);
}

#[tokio::test]
async fn a_search_returns_the_errors_of_its_scenario() {
    let bench = Bench::new().await;
    let body = json!({"query": "wind [[sim:http;status=503;times=1]]"});
    assert_eq!(bench.post("/search", &body).await.unwrap().status(), 503);
    assert_eq!(search(&bench, &body).await["results"].as_array().unwrap().len(), 10);
}
