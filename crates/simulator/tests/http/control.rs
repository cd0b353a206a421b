//! The handle and the control endpoints.

use std::time::Duration;

use outlast_simulator::{Options, Simulator, SonarMode};
use serde_json::{Value, json};

use crate::client::{Bench, read};

#[tokio::test]
async fn each_run_is_counted_once_and_a_repeated_input_as_paid_twice() {
    let bench = Bench::new().await;
    for input in ["wind [[sim:ok;delay_ms=0]]", "sun [[sim:stuck]]", "wind [[sim:ok;delay_ms=0]]"] {
        let id = bench.submitted(input).await;
        bench.poll(&id).await;
    }
    let stats = bench.sim.stats();
    assert_eq!((stats.submits, stats.duplicate_submits, stats.polls), (3, 1, 3));
    let runs: Vec<(&str, u64)> =
        stats.runs.iter().map(|run| (run.submitted_input.as_str(), run.polls)).collect();
    assert_eq!(runs, [("wind", 1), ("sun", 1), ("wind", 1)]);
    let served: Value = bench.get("/__sim/stats").await.json().await.unwrap();
    assert_eq!(served["duplicate_submits"], 1);
    assert_eq!(served["runs"][0]["status"], "completed");
}

#[tokio::test]
async fn requests_are_kept_in_order_without_the_key() {
    let bench = Bench::new().await;
    let id = bench.submitted("wind").await;
    bench.poll(&id).await;
    bench.post("/v1/agent", &json!({"input": ""})).await.unwrap();
    let requests = bench.sim.requests();
    let lines: Vec<String> =
        requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    assert_eq!(lines, ["POST /v1/agent", &format!("GET /v1/agent/{id}"), "POST /v1/agent"]);
    assert_eq!(requests[0].body, json!({"input": "wind", "background": true}));
    assert_eq!(requests[1].body, Value::Null);
    let served = bench.get("/__sim/requests").await.text().await.unwrap();
    assert!(served.contains("content-type") && !served.contains(bench.key), "{served}");
}

#[tokio::test]
async fn the_control_plane_releases_and_resets() {
    let bench = Bench::new().await;
    let id = bench.submitted("wind [[sim:ok;hold;delay_ms=0]]").await;
    bench.post("/__sim/release", &json!({})).await.unwrap();
    assert_eq!(bench.poll(&id).await["status"], "completed");
    let mut stream = bench.submit_stream("sun [[sim:stuck;delay_ms=0]]").await;
    read(&mut stream, 5).await;
    bench.post("/__sim/reset", &json!({})).await.unwrap();
    assert_eq!(stream.chunk().await.unwrap(), None, "the streams of forgotten runs end");
    assert_eq!(bench.sim.stats(), outlast_simulator::Stats::default());
    assert!(bench.sim.requests().is_empty());
    assert_eq!(bench.get(&format!("/v1/agent/{id}")).await.status(), 404);
    assert_ne!(bench.submitted("wind [[sim:ok;hold;delay_ms=0]]").await, id, "ids never come back");
}

#[tokio::test]
async fn stop_breaks_open_answers_and_frees_the_port() {
    let bench = Bench::new().await;
    let mut stream = bench.submit_stream("wind [[sim:stuck;delay_ms=0]]").await;
    read(&mut stream, 5).await;
    let url = bench.sim.url().to_owned();
    let body = json!({"input": "sun [[sim:stuck]]"});
    let waiting = bench.http.post(format!("{url}/v1/agent")).bearer_auth("k").json(&body).send();
    let waiting = tokio::spawn(waiting);
    bench.seen(2).await;
    tokio::time::timeout(Duration::from_secs(10), bench.sim.stop()).await.unwrap();
    assert!(stream.chunk().await.is_err());
    assert!(waiting.await.unwrap().is_err());
    let error = bench.http.get(&url).send().await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    let port = url.rsplit_once(':').unwrap().1.parse().unwrap();
    let again = Simulator::start(Options { port, ..Options::default() }).await.unwrap();
    assert_eq!(again.url(), url);
}

#[tokio::test]
async fn a_dropped_simulator_stops() {
    let bench = Bench::new().await;
    let mut stream = bench.submit_stream("wind [[sim:stuck;delay_ms=0]]").await;
    read(&mut stream, 5).await;
    drop(bench.sim);
    assert!(stream.chunk().await.is_err());
}

#[tokio::test]
async fn an_invalid_speed_is_refused() {
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(
            Simulator::start(Options { speed, ..Options::default() }).await.is_err(),
            "{speed}"
        );
    }
}

#[tokio::test]
async fn submits_without_a_scenario_take_one_from_the_queue() {
    let bench = Bench::new().await;
    let queued = json!({"scenarios": ["503", "ok;words=7;delay_ms=0"]});
    assert_eq!(bench.post("/__sim/script", &queued).await.unwrap().status(), 204);
    bench.sim.script(&["stuck"]).unwrap();
    assert_eq!(bench.submit("own [[sim:ok]]").await.status(), 200, "it brings its own");
    assert_eq!(bench.submit("wind").await.status(), 503);
    let id = bench.submitted("wind").await;
    let run = bench.poll(&id).await;
    let text = &run["output"].as_array().unwrap().last().unwrap()["content"][0]["text"];
    assert_eq!(text.as_str().unwrap().split_whitespace().count(), 7);
    assert!(bench.sim.script(&["ok", "stukc"]).is_err());
    let odd = bench.post("/__sim/script", &json!({"scenarios": ["stukc"]})).await.unwrap();
    assert_eq!(odd.status(), 400);
}

#[tokio::test]
async fn jobs_are_listed_with_their_api() {
    let options = Options { sonar: SonarMode::Live, ..Options::default() };
    let bench = Bench::with(options).await;
    bench.submitted("wind [[sim:stuck]]").await;
    let messages = json!([{"role": "user", "content": "sun [[sim:ok;delay_ms=0]]"}]);
    let request = json!({"model": "sonar", "messages": messages});
    bench.post("/v1/async/sonar", &json!({"request": request})).await.unwrap();
    bench.post("/chat/completions", &request).await.unwrap();
    let stats: Value = bench.get("/__sim/stats").await.json().await.unwrap();
    let runs = stats["runs"].as_array().unwrap();
    let apis: Vec<&str> = runs.iter().map(|run| run["api"].as_str().unwrap()).collect();
    assert_eq!(apis, ["agent", "sonar-async", "sonar-chat"]);
}
