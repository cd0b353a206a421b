//! The requests: the body of a submit, the header of the key, and the calls that cost nothing.

use outlast_core::{
    BeginError, Provider, ProviderErrorKind, RecoverySemantics, ResendPolicy, ResumePolicy,
};
use outlast_provider::gemini::Gemini;
use outlast_provider::vendor::{KeyState, VendorOptions};
use serde_json::json;

use super::bench::{Bench, gemini};
use crate::bench::{KEY, PATIENCE, ask, follow, options, patiently};
use crate::canned::{Canned, reply};

fn with_model(
    url: &str,
    model: &str,
    clock: &std::sync::Arc<outlast_testkit::clock::ManualClock>,
) -> Gemini {
    let options = options(url, KEY, PATIENCE, clock);
    Gemini::new(VendorOptions { model: Some(model.to_owned()), ..options }).unwrap()
}

/// G3: the key in its header and nowhere else; the base URL with or without the version.
#[tokio::test]
async fn g3_every_call_has_the_key_in_its_header_alone() {
    for suffix in ["", "/", "/v1beta", "/gemini"] {
        let server = Canned::serve(|_, nth| match nth {
            0 | 1 => reply(200, r#"{"id":"r","status":"in_progress"}"#),
            _ => reply(
                200,
                r#"{"id":"r","status":"completed","outputs":[{"type":"text","text":"t"}]}"#,
            ),
        })
        .await;
        let provider = gemini(&format!("{}{suffix}", server.url), PATIENCE, &server.clock);
        let mut run = patiently(provider.begin(&ask("q"), "key")).await.unwrap();
        assert_eq!(follow(&mut *run).await.text(), "t");
        patiently(provider.check(PATIENCE)).await.unwrap();
        patiently(provider.stop(&run.remote())).await.unwrap();
        let base = if suffix == "/gemini" { "/gemini/v1beta" } else { "/v1beta" };
        for seen in server.seen() {
            assert!(
                !seen.line.contains(KEY) && seen.line.contains(&format!(" {base}/")),
                "{seen:?}"
            );
            assert!(seen.head.contains(&format!("x-goog-api-key: {KEY}")), "{seen:?}");
            assert!(!seen.head.to_lowercase().contains("authorization"), "{seen:?}");
        }
        assert_eq!(server.lines()[0], format!("POST {base}/interactions"));
    }
}

/// G3, G4: one request that runs in the background, with the id of our job in its labels.
#[tokio::test]
async fn g3_a_submit_names_the_agent_of_its_effort_and_our_job() {
    let bench = Bench::new().await;
    let key = "0123456789abcdef0123456789abcdef-0";
    for (effort, agent) in [
        (json!(null), "deep-research-preview-04-2026"),
        (json!("medium"), "deep-research-preview-04-2026"),
        (json!("high"), "deep-research-max-preview-04-2026"),
    ] {
        let question = json!({"messages": [{"role": "user", "content": format!("q {effort}")}], "effort": effort}).into();
        patiently(bench.gemini.begin(&question, key)).await.unwrap();
        let requests = bench.sim.requests();
        let sent = &requests.last().unwrap().body;
        assert_eq!(sent["agent"], agent);
        assert_eq!((&sent["background"], &sent["store"]), (&json!(true), &json!(true)));
        assert_eq!(sent["labels"], json!({"outlast_job": "0123456789abcdef0123456789abcdef"}));
    }
    let configured = with_model(bench.sim.url(), "deep-research-pro-preview-12-2025", &bench.clock);
    let question = json!({"messages": [{"role": "user", "content": "q"}], "effort": "high"}).into();
    patiently(configured.begin(&question, key)).await.unwrap();
    let sent = bench.sim.requests().pop().unwrap().body;
    assert_eq!(
        sent["agent"], "deep-research-pro-preview-12-2025",
        "the configuration's word counts"
    );
    let semantics = RecoverySemantics {
        resend: ResendPolicy::Never,
        resume: ResumePolicy::Always,
        can_stop: true,
    };
    assert_eq!(bench.gemini.recovery_semantics(&question), semantics);
}

/// G3: a model that does not exist is named, with those that do; nothing was bought.
#[tokio::test]
async fn g3_an_unknown_agent_is_refused_with_those_there_are() {
    let bench = Bench::new().await;
    let provider = with_model(bench.sim.url(), "deep-thought", &bench.clock);
    let Err(BeginError::Refused(error)) = patiently(provider.begin(&ask("q"), "key")).await else {
        panic!("not refused")
    };
    assert_eq!(error.kind, ProviderErrorKind::Misconfigured);
    for word in ["deep-thought", "deep-research-max-preview-04-2026", "[gemini]"] {
        assert!(error.sentence.contains(word), "{error:?}");
    }
    assert_eq!(bench.sim.stats().submits, 0);
    let checked = patiently(provider.check(PATIENCE)).await.unwrap();
    assert_eq!(checked.warnings.len(), 1, "{checked:?}");
    assert!(checked.warnings[0].contains("deep-thought"), "{checked:?}");
}

/// G3: a look at the service that costs nothing.
#[tokio::test]
async fn g3_a_check_reports_the_key_state_and_buys_nothing() {
    let bench = Bench::new().await;
    let checked = patiently(bench.gemini.check(PATIENCE)).await.unwrap();
    assert_eq!((checked.key, checked.warnings.len()), (KeyState::Taken, 0));
    let wrong = options(bench.sim.url(), "the-wrong-key", PATIENCE, &bench.clock);
    let wrong = Gemini::new(wrong).unwrap();
    let error = patiently(wrong.check(PATIENCE)).await.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Unauthorized);
    assert!(error.sentence.contains("GEMINI_API_KEY"), "{error:?}");
    let Err(BeginError::Refused(error)) = patiently(wrong.begin(&ask("q"), "key")).await else {
        panic!("not refused")
    };
    assert_eq!(error.kind, ProviderErrorKind::Unauthorized);
    assert_eq!(bench.sim.stats().submits, 0);
    // A list of models without agents proves nothing.
    let server = Canned::always(reply(200, r#"{"models":[{"name":"models/gemini-9"}]}"#)).await;
    let checked = patiently(gemini(&server.url, PATIENCE, &server.clock).check(PATIENCE)).await;
    assert_eq!(checked.unwrap().warnings, Vec::<String>::new());
}

/// G3: what the agents cannot do is refused before anything is sent.
#[tokio::test]
async fn g3_other_kinds_of_asks_are_refused_before_anything_is_sent() {
    let bench = Bench::new().await;
    for kind in ["search", "ask", "reason", "results"] {
        let ask = json!({"kind": kind, "messages": [{"role": "user", "content": "q"}]}).into();
        let Err(BeginError::NotSent(error)) = patiently(bench.gemini.begin(&ask, "key")).await
        else {
            panic!("{kind} was sent")
        };
        assert_eq!(error.kind, ProviderErrorKind::Rejected);
    }
    assert!(bench.sim.requests().is_empty());
}
