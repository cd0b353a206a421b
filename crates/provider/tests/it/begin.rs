//! Submitting: when it returns, and what a submit that went wrong is called (B9a).

use std::time::Duration;

use outlast_core::{BeginError, Clock, Provider, ProviderErrorKind};
use outlast_provider::perplexity::Agent;
use tokio::net::TcpListener;

use crate::bench::{self, Bench, KEY, ask, patiently};

/// A1: the id is there long before the report.
#[tokio::test]
async fn begin_returns_once_the_run_has_an_id_and_before_it_ends() {
    let bench = Bench::new().await;
    let run = bench.begin("q [[sim:ok;hold]]").await;
    let stats = bench.sim.stats();
    assert_eq!(run.remote().id, stats.runs[0].id);
    assert_eq!(run.remote().provider, "perplexity/agent");
    assert_eq!(run.remote().begun_at, bench.clock.now());
    assert_ne!(stats.runs[0].status, "completed");
    assert_eq!((stats.submits, stats.polls, stats.attaches), (1, 0, 0));
}

/// B9a: status first, whatever the body.
#[tokio::test]
async fn a_client_error_with_any_body_is_a_refusal() {
    let bench = Bench::new().await;
    for status in [400, 401, 402, 403, 404, 405, 410, 413, 422, 429] {
        for body in ["json", "html", "empty"] {
            let question = format!("q [[sim:http;status={status};body={body}]]");
            let error = bench.not_begun(&question).await;
            let BeginError::Refused(error) = error else { panic!("{question}: {error:?}") };
            let expected = match status {
                401 => ProviderErrorKind::Unauthorized,
                403 if body == "json" => ProviderErrorKind::Retired,
                403 => ProviderErrorKind::Unauthorized,
                402 => ProviderErrorKind::QuotaExhausted,
                410 => ProviderErrorKind::Retired,
                429 => ProviderErrorKind::RateLimited { retry_after: error.kind.retry_after() },
                _ => ProviderErrorKind::Rejected,
            };
            assert_eq!(error.kind, expected, "{question}");
        }
    }
    let stats = bench.sim.stats();
    assert_eq!((stats.submits, stats.refused), (0, 30));
}

/// B9a: 500 and 503 are refusals in the provider's own words; what a gateway says never is.
#[tokio::test]
async fn a_server_error_is_a_refusal_only_with_the_providers_envelope() {
    let bench = Bench::new().await;
    for status in [408, 500, 502, 503, 504, 520, 521, 522, 523, 524] {
        for body in ["json", "html", "empty"] {
            let question = format!("q [[sim:http;status={status};body={body}]]");
            let (refused, error) = match bench.not_begun(&question).await {
                BeginError::Refused(error) => (true, error),
                BeginError::Unknown(error) => (false, error),
                BeginError::NotSent(error) => panic!("{question}: {error:?}"),
            };
            let provider_speaks = [500, 503].contains(&status) && body == "json";
            assert_eq!(refused, provider_speaks, "{question}");
            assert!(
                matches!(error.kind, ProviderErrorKind::Unavailable { .. }),
                "{question}: {error:?}"
            );
        }
    }
    let stats = bench.sim.stats();
    assert_eq!((stats.submits, stats.refused), (0, 30), "each was sent once");
}

/// B9: waits honour Retry-After.
#[tokio::test]
async fn a_refusal_keeps_the_wait_the_provider_asks_for() {
    let bench = Bench::new().await;
    for (status, body) in [(429, "json"), (429, "html"), (503, "json")] {
        let question = format!("q [[sim:http;status={status};body={body};retry_after=7]]");
        let BeginError::Refused(error) = bench.not_begun(&question).await else {
            panic!("{question}")
        };
        assert_eq!(error.kind.retry_after(), Some(Duration::from_secs(7)), "{question}");
    }
}

/// B9a: what never left may be sent again.
#[tokio::test]
async fn a_refused_connection_means_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let agent = Agent::new(bench::options(&url, KEY, bench::PATIENCE, &Default::default()));
    let Err(error) = patiently(agent.unwrap().begin(&ask("q"), "key")).await else {
        panic!("no connection")
    };
    let BeginError::NotSent(error) = error else { panic!("{error:?}") };
    assert_eq!(error.kind, ProviderErrorKind::Unreachable);
}

/// B9a: silence after the bytes were sent is unknown.
#[tokio::test]
async fn a_server_that_never_answers_leaves_the_outcome_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let timeout = Duration::from_millis(100);
    let agent = Agent::new(bench::options(&url, KEY, timeout, &Default::default())).unwrap();
    let Err(error) = patiently(agent.begin(&ask("q"), "key")).await else { panic!("no answer") };
    let BeginError::Unknown(error) = error else { panic!("{error:?}") };
    assert_eq!(error.kind, ProviderErrorKind::TimedOut);
}

/// B9a: the run exists, and the provider did not say so.
#[tokio::test]
async fn a_connection_dropped_before_the_answer_leaves_the_outcome_unknown() {
    let bench = Bench::new().await;
    let error = bench.not_begun("q [[sim:drop_submit]]").await;
    let BeginError::Unknown(error) = error else { panic!("{error:?}") };
    assert_eq!(error.kind, ProviderErrorKind::Unreachable);
    assert_eq!(bench.sim.stats().submits, 1);
}

/// A10: an answer without an id.
#[tokio::test]
async fn an_answer_without_an_id_is_reported_as_unknown() {
    let bench = Bench::new().await;
    let error = bench.not_begun("q [[sim:no_id]]").await;
    let BeginError::Unknown(error) = error else { panic!("{error:?}") };
    assert!(error.sentence.contains("no job id"), "{error}");
    assert_eq!(bench.sim.stats().submits, 1);
}

#[tokio::test]
async fn an_ask_of_another_shape_is_never_sent() {
    let bench = Bench::new().await;
    let ask = serde_json::json!({"prompt": "q"}).into();
    let Err(error) = bench.agent.begin(&ask, "key").await else { panic!("it was sent") };
    let BeginError::NotSent(error) = error else { panic!("{error:?}") };
    assert!(error.kind.is_permanent());
    assert!(bench.sim.requests().is_empty());
}
