//! A look at the service that costs nothing: does it answer, and does it take the key?

use std::time::Duration;

use outlast_core::ProviderErrorKind;
use outlast_provider::perplexity::{Agent, Sonar};
use outlast_provider::vendor::KeyState;
use tokio::net::TcpListener;

use crate::bench::{Bench, KEY, PATIENCE, options, patiently};
use crate::canned::{Canned, Then, raw, reply};

#[tokio::test]
async fn an_accepted_key_is_reported_and_nothing_is_bought() {
    let bench = Bench::new().await;
    let checked = patiently(bench.agent.check(PATIENCE)).await.unwrap();
    assert_eq!(checked.key, KeyState::Taken);
    let sonar = Sonar::new(options(bench.sim.url(), KEY, PATIENCE, &bench.clock)).unwrap();
    assert_eq!(patiently(sonar.check(PATIENCE)).await.unwrap().key, KeyState::Taken);
    assert_eq!(bench.sim.stats().submits, 0);
}

#[tokio::test]
async fn a_wrong_key_is_refused_by_name() {
    let bench = Bench::new().await;
    let agent =
        Agent::new(options(bench.sim.url(), "the-wrong-key", PATIENCE, &bench.clock)).unwrap();
    let error = patiently(agent.check(PATIENCE)).await.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Unauthorized);
    assert!(error.sentence.contains("PERPLEXITY_API_KEY"), "{error:?}");
}

#[tokio::test]
async fn a_service_without_a_model_list_shows_its_time_but_not_the_key_state() {
    for status in [404, 405, 501] {
        let server = Canned::serve(move |line, _| {
            assert_eq!(line, "GET /v1/models");
            raw(
                status,
                "date: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 0",
                b"",
                Then::Close,
            )
        })
        .await;
        let checked = patiently(server.agent(PATIENCE).check(PATIENCE)).await.unwrap();
        assert_eq!(checked.key, KeyState::Unknown, "{status}");
        assert_eq!(checked.server_time.map(|time| time.as_millis()), Some(784_111_777_000));
    }
}

#[tokio::test]
async fn every_other_answer_is_an_error_that_never_shows_the_key() {
    for (status, kind) in [
        (402, ProviderErrorKind::QuotaExhausted),
        (429, ProviderErrorKind::RateLimited { retry_after: None }),
        (503, ProviderErrorKind::Unavailable { retry_after: None }),
    ] {
        let server = Canned::serve(move |_, _| reply(status, KEY)).await;
        let error = patiently(server.agent(PATIENCE).check(PATIENCE)).await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    }
}

#[tokio::test]
async fn silence_ends_at_the_limit() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let bench = Bench::new().await;
    let agent = Agent::new(options(&url, KEY, PATIENCE, &bench.clock)).unwrap();
    let error = patiently(agent.check(Duration::from_millis(50))).await.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::TimedOut);
}
