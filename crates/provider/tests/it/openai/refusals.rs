//! Refusals that say what to change: the model, the server, the account; and the check that costs nothing.

use outlast_core::{BeginError, ProviderErrorKind};
use outlast_provider::openai::OpenAi;
use outlast_provider::vendor::{KeyState, VendorOptions};

use super::bench::{Bench, begun, openai, refused};
use crate::bench::{KEY, PATIENCE, follow, options, patiently};
use crate::canned::{Canned, reply};

fn sentence(error: BeginError, kind: ProviderErrorKind) -> String {
    let BeginError::Refused(error) = error else { panic!("{error:?}") };
    assert_eq!(error.kind, kind, "{error:?}");
    error.sentence
}

fn with_model(bench: &Bench, model: &str) -> OpenAi {
    let url = format!("{}/openai/v1", bench.sim.url());
    let options = options(&url, KEY, PATIENCE, &bench.clock);
    OpenAi::new(VendorOptions { model: Some(model.to_owned()), ..options }).unwrap()
}

/// G3: a model that does not exist is named, with those that do.
#[tokio::test]
async fn g3_a_model_that_does_not_exist_is_refused_with_those_that_do() {
    let bench = Bench::new().await;
    let sentence =
        sentence(refused(&with_model(&bench, "gpt-0")).await, ProviderErrorKind::Misconfigured);
    assert!(
        sentence.contains("`gpt-0`") && sentence.contains("gpt-6-sol, gpt-6-luna"),
        "{sentence}"
    );
    assert_eq!(bench.sim.stats().submits, 0);
    // Without a list it is a refusal all the same.
    let server = Canned::serve(|line, _| match line.starts_with("POST") {
        true => reply(404, r#"{"error":{"message":"m","code":"model_not_found"}}"#),
        false => reply(500, ""),
    })
    .await;
    let sentence =
        self::sentence(refused(&openai(&server, PATIENCE)).await, ProviderErrorKind::Misconfigured);
    assert!(sentence.ends_with("to one that it lists"), "{sentence}");
}

/// G3: servers that lack a feature are distinguished from a bad question.
#[tokio::test]
async fn g3_a_server_without_background_or_endpoint_is_reported() {
    let cases = [
        (
            400,
            r#"{"error":{"message":"background is not supported","param":"background","code":400}}"#,
            "in the background",
        ),
        (
            422,
            r#"{"detail":[{"loc":["body","background"],"msg":"m","type":"t"}]}"#,
            "in the background",
        ),
        (404, r#"{"detail":"Not Found"}"#, "OPENAI_BASE_URL"),
        (405, "", "OPENAI_BASE_URL"),
        (400, r#"{"error":{"message":"m","param":"input"}}"#, "change the question"),
    ];
    for (status, body, expected) in cases {
        let server = Canned::always(reply(status, body)).await;
        let sentence =
            sentence(refused(&openai(&server, PATIENCE)).await, ProviderErrorKind::Rejected);
        assert!(sentence.contains(expected), "{sentence}");
        assert_eq!(server.submits(), 1);
    }
}

/// G3: a 429 about money is not one about pace.
#[tokio::test]
async fn g3_no_credit_differs_from_too_many_requests() {
    let server = Canned::always(reply(429, r#"{"error":{"message":"m","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#)).await;
    let sentence =
        sentence(refused(&openai(&server, PATIENCE)).await, ProviderErrorKind::QuotaExhausted);
    assert!(sentence.contains("OPENAI_API_KEY"), "{sentence}");
    let server = Canned::always(reply(
        429,
        r#"{"error":{"message":"m","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ))
    .await;
    self::sentence(
        refused(&openai(&server, PATIENCE)).await,
        ProviderErrorKind::RateLimited { retry_after: None },
    );
}

/// G3: the model refuses in place of a report: paid for, not asked again, and reported.
#[tokio::test]
async fn g3_a_refusal_of_the_model_is_the_end() {
    let server = Canned::serve(|line, _| match line.starts_with("POST") {
        true => reply(200, r#"{"id":"r","status":"queued"}"#),
        false => reply(
            200,
            r#"{"id":"r","status":"completed","output":[
            {"type":"message","content":[{"type":"refusal","refusal":"not this one"}]}]}"#,
        ),
    })
    .await;
    let followed = follow(&mut *begun(&openai(&server, PATIENCE)).await).await;
    let error = followed.error();
    assert_eq!(error.kind, ProviderErrorKind::Rejected);
    assert!(!error.kind.ends_the_run(), "it is not begun again: {error:?}");
    assert!(error.detail.as_ref().unwrap().contains("not this one"), "{error:?}");
}

/// G3: the check costs nothing, and warns of a model that is not listed or will be shut down.
#[tokio::test]
async fn g3_a_check_is_free_and_warns_of_models_that_go() {
    let bench = Bench::new().await;
    let checked = patiently(bench.openai.check(PATIENCE)).await.unwrap();
    assert_eq!((checked.key, checked.warnings), (KeyState::Taken, vec![]));
    for (model, warning) in [
        ("gpt-5.4-pro", "the provider shuts the model gpt-5.4-pro down on 2027-01-31"),
        ("gpt-0", "the provider does not list the model gpt-0"),
    ] {
        let checked = patiently(with_model(&bench, model).check(PATIENCE)).await.unwrap();
        assert_eq!(checked.warnings, [warning]);
    }
    assert_eq!(bench.sim.stats().submits, 0);
    let server = Canned::serve(|line, _| {
        assert_eq!(line, "GET /v1/models");
        reply(401, "")
    })
    .await;
    let error = patiently(openai(&server, PATIENCE).check(PATIENCE)).await.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Unauthorized);
    assert!(error.sentence.contains("OPENAI_API_KEY"), "{error:?}");
    let unlisted = Canned::always(reply(404, "")).await;
    let checked = patiently(openai(&unlisted, PATIENCE).check(PATIENCE)).await.unwrap();
    assert_eq!((checked.key, checked.warnings), (KeyState::Unknown, vec![]));
}
