//! Faults that the table of all dialects cannot show.

use std::time::Duration;

use outlast_core::{BeginError, Provider, ProviderErrorKind};
use tokio::net::TcpListener;

use super::bench::{SOON, ask, begin, not_begun, sonar};
use crate::bench::{PATIENCE, follow};
use crate::canned::{Canned, Then, raw, reply};

/// B9: waits honour Retry-After.
#[tokio::test]
async fn a_refusal_of_any_kind_keeps_the_wait_the_provider_asks_for() {
    let envelope = br#"{"error":{"message":"m","type":"t","code":0}}"#;
    for status in [429, 503] {
        let server = Canned::always(raw(status, "retry-after: 7", envelope, Then::Close)).await;
        for kind in ["research", "ask", "results"] {
            let error = not_begun(&sonar(&server.url, PATIENCE), &ask(kind)).await;
            let BeginError::Refused(error) = error else { panic!("{status} {kind}: {error:?}") };
            assert_eq!(error.kind.retry_after(), Some(Duration::from_secs(7)), "{kind}");
        }
    }
}

/// B9a: what never left may be sent again.
#[tokio::test]
async fn b9a_a_refused_connection_means_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let sonar = sonar(&url, PATIENCE);
    for kind in ["research", "ask", "results"] {
        let error = not_begun(&sonar, &ask(kind)).await;
        let BeginError::NotSent(error) = error else { panic!("{kind}: {error:?}") };
        assert_eq!(error.kind, ProviderErrorKind::Unreachable);
    }
}

const CREATED: &str = r#"{"id":"job-1","status":"CREATED"}"#;

/// A5: a server that cannot be reached for a while.
#[tokio::test]
async fn a5_a_check_without_a_connection_is_repeated() {
    let server = Canned::always(reply(200, CREATED)).await;
    let run = begin(&sonar(&server.url, PATIENCE), &ask("research")).await.remote();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut run = sonar(&url, PATIENCE)
        .resume(&outlast_core::Request::from(serde_json::Value::Null), &run)
        .await
        .unwrap();
    run.next().await.unwrap();
    let checks = tokio::time::timeout(SOON, run.next()).await;
    assert!(checks.is_err(), "no answer, and the run goes on asking: {checks:?}");
}

/// The vendor's word for it, in each of the ways it may come.
#[tokio::test]
async fn a_retired_endpoint_error_names_the_setting() {
    let error = |kind: &str, code: &str| {
        format!(r#"{{"error":{{"message":"gone","type":"{kind}","code":{code}}}}}"#)
    };
    let answers = [
        (403, error("chat_completions_not_available", "403")),
        (410, error("chat_completions_not_available", "410")),
        (410, String::new()),
        (404, error("model_not_found", "404")),
        (400, error("invalid_request_error", "\"model_not_found\"")),
        (400, error("invalid_model", "400")),
    ];
    let kinds = ["research", "search", "ask", "reason"];
    let said = answers.clone();
    let server = Canned::serve(move |_, nth| {
        let (status, body) = &said[nth / kinds.len()];
        reply(*status, body)
    })
    .await;
    let retired = sonar(&server.url, PATIENCE);
    for (status, body) in answers {
        for kind in kinds {
            let error = not_begun(&retired, &ask(kind)).await;
            let BeginError::Refused(error) = error else { panic!("{status} {body}: {error:?}") };
            assert_eq!(error.kind, ProviderErrorKind::Retired, "{status} {body}");
            assert!(error.sentence.contains("PERPLEXITY_API=agent"), "{error}");
            assert!(!error.sentence.contains("gone"), "{error}");
        }
    }
    let server = Canned::serve(move |_, nth| match nth {
        0 => reply(200, CREATED),
        _ => reply(403, r#"{"error":{"type":"chat_completions_not_available"}}"#),
    })
    .await;
    let mut run = begin(&sonar(&server.url, PATIENCE), &ask("research")).await;
    assert_eq!(follow(&mut *run).await.error().kind, ProviderErrorKind::Retired);
}
