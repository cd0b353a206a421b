//! The requests of the adapter, and the profiles of its jobs.

use std::time::Duration;

use outlast_core::Provider;
use outlast_provider::perplexity::Agent;
use serde_json::{Value, json};

use crate::bench::{self, Bench, KEY, PATIENCE, follow, patiently};
use crate::canned::{Canned, reply};

/// A1: effort unset is not sent, and minimal means low.
#[tokio::test]
async fn a_submit_is_streamed_stored_in_the_background_and_states_the_effort() {
    let bench = Bench::new().await;
    let cases = [
        (json!(null), json!(null)),
        (json!("minimal"), json!("low")),
        (json!("low"), json!("low")),
        (json!("medium"), json!("medium")),
        (json!("high"), json!("high")),
    ];
    for (effort, sent) in cases {
        let mut ask = json!({"messages": [
            {"role": "system", "content": "be brief"}, {"role": "user", "content": "why?"},
        ]});
        if !effort.is_null() {
            ask["effort"] = effort.clone();
        }
        bench.agent.begin(&ask.into(), "key").await.unwrap();
        let request = bench.sim.requests().pop().unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/agent"));
        let body = request.body;
        for field in ["background", "stream", "store"] {
            assert_eq!(body[field], true, "{field}");
        }
        assert_eq!(body.get("effort").unwrap_or(&Value::Null), &sent, "{effort}");
        assert_eq!((&body["instructions"], &body["input"]), (&json!("be brief"), &json!("why?")));
    }
}

#[tokio::test]
async fn every_request_names_the_program() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:drop;after_events=2|ok;hold]]").await;
    let remote = run.remote();
    let stopping = async {
        bench.until(|stats| stats.attaches == 1).await;
        bench.agent.stop(&remote).await.unwrap();
    };
    tokio::join!(follow(&mut *run), stopping);
    let requests = bench.sim.requests();
    assert!(requests.len() >= 5, "a submit, a check, a stream, a check, a stop");
    for request in requests {
        let ours = concat!("outlast/", env!("CARGO_PKG_VERSION"));
        assert_eq!(request.headers["user-agent"], ours, "{}", request.path);
    }
}

#[tokio::test]
async fn every_request_has_the_key_as_a_bearer() {
    let server = Canned::serve(|line, nth| match (line.split(' ').next(), nth) {
        (Some("POST"), 0) => reply(200, r#"{"id":"resp_1","status":"queued"}"#),
        (Some("POST"), _) => reply(200, "{}"),
        _ if line.contains("stream=true") => reply(400, "{}"),
        (_, 1 | 2) => reply(200, r#"{"id":"resp_1","status":"in_progress"}"#),
        (_, 3) => reply(200, r#"{"id":"resp_1","status":"cancelled"}"#),
        (_, 4) => reply(200, r#"{"id":"resp_1","status":"in_progress"}"#),
        _ => reply(200, r#"{"id":"resp_1","status":"cancelled"}"#),
    })
    .await;
    let agent = server.agent(Duration::from_secs(5));
    let mut run = agent.begin(&bench::ask("q"), "key").await.unwrap();
    follow(&mut *run).await.error();
    patiently(agent.stop(&run.remote())).await.unwrap();
    let seen: Vec<String> = server.seen().into_iter().map(|seen| seen.head).collect();
    assert!(seen.iter().any(|head| head.contains("stream=true")));
    assert!(seen.iter().any(|head| head.starts_with("POST /v1/agent/resp_1/cancel")));
    for head in seen {
        assert!(head.contains(&format!("authorization: Bearer {KEY}\r\n")), "{head}");
    }
}

#[tokio::test]
async fn a_wrong_key_is_refused() {
    let bench = Bench::new().await;
    let options = bench::options(bench.sim.url(), "a-wrong-key", PATIENCE, &bench.clock);
    let Err(error) = Agent::new(options).unwrap().begin(&bench::ask("q"), "key").await else {
        panic!("it was taken")
    };
    assert!(matches!(error, outlast_core::BeginError::Refused(_)), "{error:?}");
}

#[test]
fn profiles_distinguish_keys_and_services_and_contain_no_key() {
    let profile = |base_url: &str, key: &str| {
        let options = bench::options(base_url, key, PATIENCE, &Default::default());
        Agent::new(options).unwrap().profile().to_string()
    };
    let one = profile("https://api.example", KEY);
    assert_eq!(one, profile("https://api.example/", KEY));
    assert_ne!(one, profile("https://api.example", "another"));
    assert_ne!(one, profile("https://api.example/v2", KEY));
    assert!(!one.contains(KEY) && one.contains("perplexity/agent https://api.example "), "{one}");
}

#[test]
fn a_base_url_that_no_request_could_go_to_is_refused_at_once() {
    for base_url in ["", "api.example", "localhost:8080", "ftp://api.example", "http://"] {
        let options = bench::options(base_url, KEY, PATIENCE, &Default::default());
        assert!(Agent::new(options).is_err(), "{base_url}");
    }
}

/// A base URL may have its own path, as gateways do.
#[tokio::test]
async fn requests_go_below_the_path_of_the_base_url() {
    let server = Canned::serve(|_, _| reply(401, "{}")).await;
    for path in ["/gateway", "/gateway/"] {
        let base_url = format!("{}{path}", server.url);
        let options = bench::options(&base_url, KEY, PATIENCE, &server.clock);
        assert!(Agent::new(options).unwrap().begin(&bench::ask("q"), "key").await.is_err());
    }
    assert_eq!(server.lines(), ["POST /gateway/v1/agent", "POST /gateway/v1/agent"]);
}
