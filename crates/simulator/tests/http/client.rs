//! A small client of the Agent API that keeps the data it read before a connection broke.

use std::time::Duration;

use outlast_simulator::{Options, Simulator};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

/// Far longer than any response takes, so that a hang becomes a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    pub(crate) sim: Simulator,
    pub(crate) http: reqwest::Client,
    pub(crate) key: &'static str,
}

/// The events of a stream, and the way it ended.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) events: Vec<Value>,
    pub(crate) broken: bool,
}

impl Followed {
    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.events.iter().map(|event| event["type"].as_str().unwrap()).collect()
    }

    pub(crate) fn last(&self) -> &Value {
        self.events.last().unwrap()
    }

    pub(crate) fn text(&self) -> String {
        let deltas = self.events.iter().filter(|e| e["type"] == "response.output_text.delta");
        deltas.map(|event| event["delta"].as_str().unwrap()).collect()
    }
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(Options { speed: 1_000.0, ..Options::default() }).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        // reqwest needs a provider even for plain HTTP; another test of this process may have installed it.
        _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .timeout(PATIENCE)
            .build()
            .unwrap();
        Self { sim: Simulator::start(options).await.unwrap(), http, key: "pplx-test" }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> reqwest::Result<Response> {
        let url = format!("{}{path}", self.sim.url());
        self.http.post(url).bearer_auth(self.key).json(body).send().await
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        let url = format!("{}{path}", self.sim.url());
        self.http.get(url).bearer_auth(self.key).send().await.unwrap()
    }

    /// Submits in the background and returns the response.
    pub(crate) async fn submit(&self, input: &str) -> Response {
        self.post("/v1/agent", &json!({"input": input, "background": true})).await.unwrap()
    }

    /// Submits in the background and returns the id.
    pub(crate) async fn submitted(&self, input: &str) -> String {
        let object: Value = self.submit(input).await.json().await.unwrap();
        object["id"].as_str().unwrap().to_owned()
    }

    /// Submits in the background with a stream.
    pub(crate) async fn submit_stream(&self, input: &str) -> Response {
        let body = json!({"input": input, "background": true, "stream": true});
        self.post("/v1/agent", &body).await.unwrap()
    }

    pub(crate) async fn attach(&self, id: &str, after: i64) -> Response {
        self.get(&format!("/v1/agent/{id}?stream=true&starting_after={after}")).await
    }

    pub(crate) async fn poll(&self, id: &str) -> Value {
        let response = self.get(&format!("/v1/agent/{id}")).await;
        assert_eq!(response.status(), StatusCode::OK);
        response.json().await.unwrap()
    }

    pub(crate) async fn cancel(&self, id: &str) -> Response {
        self.post(&format!("/v1/agent/{id}/cancel"), &json!({})).await.unwrap()
    }

    /// Waits until this number of requests has arrived.
    pub(crate) async fn seen(&self, requests: usize) {
        let arriving = async {
            while self.sim.requests().len() < requests {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, arriving).await.unwrap();
    }

    /// Polls until the status changes.
    pub(crate) async fn poll_while(&self, id: &str, status: &str) -> Value {
        let polling = async {
            loop {
                let object = self.poll(id).await;
                if object["status"] != status {
                    return object;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, polling).await.unwrap()
    }
}

/// Reads a stream to its end, or until `enough` events have arrived.
pub(crate) async fn read(response: &mut Response, enough: usize) -> Followed {
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut buffer = Vec::new();
    loop {
        let chunk = response.chunk().await;
        match &chunk {
            Ok(Some(bytes)) => buffer.extend_from_slice(bytes),
            Ok(None) | Err(_) => {
                return Followed { events: events(&buffer), broken: chunk.is_err() };
            }
        }
        let events = events(&buffer);
        if events.len() >= enough {
            return Followed { events, broken: false };
        }
    }
}

pub(crate) async fn read_all(mut response: Response) -> Followed {
    read(&mut response, usize::MAX).await
}

/// Returns the error of a refused request and checks its envelope.
pub(crate) async fn refusal(response: Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], status, "{body}");
    let field = |name: &str| body["error"][name].as_str().unwrap().to_owned();
    (status, field("type"), field("message"))
}

fn events(buffer: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(buffer).unwrap();
    let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
    let frames = whole.split("\n\n").filter(|frame| frame.starts_with("event: "));
    frames
        .map(|frame| {
            let (name, data) = frame.split_once("\ndata: ").unwrap();
            let event: Value = serde_json::from_str(data).unwrap();
            assert_eq!(event["type"], name.strip_prefix("event: ").unwrap());
            event
        })
        .collect()
}
