//! Deep research: submitted under a key, looked at until it is done (A1, A5, A10).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_core::{
    BeginError, Clock, Cost, NanoUsd, Provider, ProviderErrorKind, RecoverySemantics, RemoteRun,
    ResendPolicy, ResumePolicy, Step, StopOutcome,
};
use outlast_provider::perplexity::Sonar;
use outlast_provider::vendor::VendorOptions;
use outlast_testkit::clock::ManualClock;
use serde_json::json;

use super::bench::{SOON, answered, ask, begin, not_begun, sonar, sonar_by};
use crate::bench::{KEY, LOST_AFTER, PATIENCE, follow, options, with};
use crate::canned::{Canned, Reply, Then, raw, reply};

const CREATED: &str = r#"{"id":"job-1","model":"sonar-deep-research","status":"CREATED"}"#;
const RUNNING: &str = r#"{"id":"job-1","status":"IN_PROGRESS","response":null}"#;
const DONE: &str = r##"{"id":"job-1","status":"COMPLETED","response":{"id":"c-1","model":"sonar-deep-research",
    "choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"<think>hm</think># Report [1]"}}],
    "citations":["https://a.example"],"search_results":[{"title":"A","url":"https://a.example","date":null}],
    "usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"cost":{"total_cost":0.795}}}}"##;

/// A server that takes a submit and then shows these states, the last one for ever.
async fn showing(states: &'static [&'static str]) -> Canned {
    Canned::serve(move |line, nth| match line.starts_with("POST") {
        true => reply(200, CREATED),
        false => reply(200, states[(nth - 1).min(states.len() - 1)]),
    })
    .await
}

/// A1, A5, B6: the whole path, and what goes over the wire on it.
#[tokio::test]
async fn a1_research_is_submitted_under_its_key_and_checked_until_it_is_done() {
    let server = showing(&[CREATED, RUNNING, RUNNING, DONE]).await;
    let sonar = sonar(&server.url, PATIENCE);
    let ask = with(&ask("research"), "effort", "minimal");
    let mut run = begin(&sonar, &ask).await;
    assert_eq!((run.remote().id.as_str(), run.remote().provider.as_str()), ("job-1", Sonar::NAME));
    assert_eq!(server.lines().len(), 1, "an id is enough to begin with");
    let followed = follow(&mut *run).await;
    assert_eq!(followed.text(), "# Report [1]");
    assert_eq!(followed.sources()[0].title.as_deref(), Some("A"));
    assert_eq!(followed.output().cost, Cost::Reported(NanoUsd(795_000_000)));
    assert_eq!(followed.end.as_ref().unwrap().1, DONE.as_bytes());
    assert_eq!(
        followed.reported(),
        [
            (25, "Querying Perplexity API..."),
            (50, "Processing response..."),
            (75, "Finalizing research report...")
        ]
    );
    let seen = server.seen();
    assert_eq!(seen[0].line, "POST /v1/async/sonar");
    let sent = json!({
        "request": {
            "model": "sonar-deep-research",
            "messages": [{"role": "user", "content": "why?"}],
            "reasoning_effort": "minimal",
        },
        "idempotency_key": "key-1",
    });
    assert_eq!(seen[0].body, sent);
    assert!(seen.iter().all(|seen| seen.head.contains(&format!("authorization: Bearer {KEY}"))));
    assert_eq!(server.lines()[1..], ["GET /v1/async/sonar/job-1"; 4]);
}

#[tokio::test]
async fn recovery_depends_on_the_kind_of_request() {
    let sonar = sonar("http://127.0.0.1:1", PATIENCE);
    let research = RecoverySemantics {
        resend: ResendPolicy::WithKey,
        resume: ResumePolicy::Always,
        can_stop: false,
    };
    let quick = RecoverySemantics {
        resend: ResendPolicy::Never,
        resume: ResumePolicy::Never,
        can_stop: false,
    };
    let old = json!({"messages": []}).into();
    assert_eq!(sonar.recovery_semantics(&old), research, "asks had no kind once");
    for (kind, semantics) in [
        ("research", research),
        ("search", quick),
        ("ask", quick),
        ("reason", quick),
        ("results", quick),
    ] {
        assert_eq!(sonar.recovery_semantics(&ask(kind)), semantics, "{kind}");
    }
    let unknown = json!({"kind": "dance", "messages": []}).into();
    let BeginError::NotSent(error) = not_begun(&sonar, &unknown).await else { panic!("sent") };
    assert!(error.kind.is_permanent());
}

/// A10: no id, no run; and nothing that would be tried again.
#[tokio::test]
async fn a10_an_answer_without_an_id_is_unknown_and_permanent() {
    for body in ["{}", r#"{"id":""}"#, r#"{"id":7,"status":"CREATED"}"#, "<html>welcome</html>", ""]
    {
        let server = Canned::always(reply(200, body)).await;
        let error = not_begun(&sonar(&server.url, PATIENCE), &ask("research")).await;
        let BeginError::Unknown(error) = error else { panic!("{body}: {error:?}") };
        assert!(error.sentence.contains("no job id"), "{body}: {error}");
        assert!(error.kind.is_permanent(), "{body}: {error:?}");
        assert_eq!(server.submits(), 1);
    }
}

/// B9a: a conflict may mean that the first submit under this key was accepted; no other status that is not named is a
/// refusal either.
#[tokio::test]
async fn b9a_a_conflict_is_unknown_even_in_the_providers_words() {
    let envelope = r#"{"error":{"message":"key in use","type":"conflict","code":409}}"#;
    let server = Canned::always(reply(409, envelope)).await;
    let sonar = sonar(&server.url, PATIENCE);
    assert!(matches!(not_begun(&sonar, &ask("research")).await, BeginError::Unknown(_)));
    assert!(matches!(not_begun(&sonar, &ask("ask")).await, BeginError::Unknown(_)));
}

/// The first check after a restart is made at once: the waits here would outlast the test.
#[tokio::test]
async fn a_resumed_run_is_checked_at_once() {
    let server = Canned::always(reply(200, DONE)).await;
    let clock: Arc<ManualClock> = Arc::default();
    let sonar = Sonar::new(options(&server.url, KEY, PATIENCE, &clock)).unwrap();
    for id in ["job-1", "job/1?x", "../cancel", "..", "."] {
        let provider = Sonar::NAME.to_owned();
        let remote = RemoteRun { provider, id: id.to_owned(), cursor: None, begun_at: clock.now() };
        let followed = follow(
            &mut *sonar
                .resume(&outlast_core::Request::from(serde_json::Value::Null), &remote)
                .await
                .unwrap(),
        )
        .await;
        assert_eq!(followed.text(), "# Report [1]");
    }
    let ids = ["job-1", "job%2F1%3Fx", "..%2Fcancel", "%252E%252E", "%252E"];
    let expected = ids.map(|id| format!("GET /v1/async/sonar/{id}"));
    assert_eq!(server.lines(), expected, "an id stays one segment");
}

/// A5: a check 1 s after the submit, by the waits people have.
#[tokio::test]
async fn a5_a_begun_run_is_first_checked_after_a_second() {
    let server = showing(&[DONE]).await;
    let options = options(&server.url, KEY, PATIENCE, &Arc::default());
    let sonar = Sonar::new(VendorOptions { waits: None, ..options }).unwrap();
    let mut run = begin(&sonar, &ask("research")).await;
    let begun = tokio::time::Instant::now();
    follow(&mut *run).await.output();
    assert!((900..2_500).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn only_the_operator_sees_why_a_run_failed() {
    let failed = r#"{"id":"job-1","status":"FAILED","error_message":"model fell over pplx-abc"}"#;
    let server = Canned::always(reply(200, failed)).await;
    let followed = answered(&sonar(&server.url, PATIENCE), &ask("research")).await;
    let error = followed.error();
    assert_eq!(error.kind, ProviderErrorKind::RunFailed);
    assert!(!error.sentence.contains("fell over"), "{error}");
    assert_eq!(error.detail.as_deref(), Some("model fell over [redacted]"));
}

#[tokio::test]
async fn a_completed_run_whose_report_is_late_is_looked_at_three_more_times() {
    const LATE: &str =
        r#"{"id":"job-1","status":"COMPLETED","response":null,"note":"a part of the report"}"#;
    let odd = r#"{"id":"job-1","status":"COMPLETED","response":{"choices":"none"}}"#;
    let server = Canned::serve(move |line, nth| match nth {
        0 => reply(200, CREATED),
        1 | 3 => reply(200, LATE),
        2 => reply(200, odd),
        _ if line.starts_with("GET") => reply(200, DONE),
        _ => panic!("a second submit"),
    })
    .await;
    let followed = answered(&sonar(&server.url, PATIENCE), &ask("research")).await;
    assert_eq!(followed.text(), "# Report [1]");
    assert_eq!(followed.reported().last(), Some(&(75, "Finalizing research report...")));
    let server = showing(&[LATE]).await;
    let followed = answered(&sonar(&server.url, PATIENCE), &ask("research")).await;
    let error = followed.error();
    assert_eq!(error.kind, ProviderErrorKind::Malformed);
    assert!(!error.kind.ends_the_run(), "it was paid for: nothing new may be bought");
    let detail = error.detail.as_deref().unwrap();
    assert!(detail.ends_with("note string, response null, status string"), "{detail}");
    assert_eq!(server.lines().len(), 1 + 4);
}

#[tokio::test]
async fn stopping_an_unstoppable_run_reports_that() {
    let server = showing(&[RUNNING]).await;
    let sonar = sonar(&server.url, PATIENCE);
    let run = begin(&sonar, &ask("research")).await;
    assert_eq!(sonar.stop(&run.remote()).await.unwrap(), StopOutcome::CannotStop);
    assert_eq!(server.lines().len(), 1, "nothing is sent for it");
}

/// A5, B9a: lost only after a time of nothing but 404; any other answer restarts it.
#[tokio::test]
async fn a5_a_missing_run_is_lost_only_after_a_time_of_nothing_but_404() {
    let server = Canned::serve(|_, nth| match nth {
        0 => reply(200, CREATED),
        _ => reply(404, ""),
    })
    .await;
    let sonar = sonar(&server.url, PATIENCE);
    let mut run = begin(&sonar, &ask("research")).await;
    let begun = tokio::time::Instant::now();
    let followed = follow(&mut *run).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::RunLost);
    assert!(begun.elapsed() >= LOST_AFTER, "{:?}", begun.elapsed());
    assert_eq!(server.submits(), 1);
    let once = Canned::serve(|_, nth| match nth {
        0 => reply(200, CREATED),
        1 | 3 => reply(404, ""),
        2 => reply(200, RUNNING),
        _ => reply(200, DONE),
    })
    .await;
    let clock: Arc<ManualClock> = Arc::default();
    let sonar = sonar_by(&once.url, PATIENCE, &clock);
    let mut run = begin(&sonar, &ask("research")).await;
    clock.advance(Duration::from_secs(3600));
    assert_eq!(follow(&mut *run).await.text(), "# Report [1]");
}

/// A dropped wait loses neither time nor events.
#[tokio::test]
async fn a_dropped_next_loses_nothing() {
    // Done only once it was reported to be in progress: a check that was dropped may have been answered.
    let heard = Arc::new(AtomicBool::new(false));
    let is_heard = heard.clone();
    let server = Canned::serve(move |line, _| match line.starts_with("POST") {
        true => reply(200, CREATED),
        false if is_heard.load(Ordering::SeqCst) => reply(200, DONE),
        false => reply(200, RUNNING),
    })
    .await;
    let mut run = begin(&sonar(&server.url, PATIENCE), &ask("research")).await;
    let mut told = Vec::new();
    let mut drops = 0;
    let done = loop {
        // Dropped at its first wait, then left a little longer each time.
        let limit = Duration::from_micros(drops * 100);
        match tokio::time::timeout(limit, run.next()).await {
            Err(_) => drops += 1,
            Ok(Ok(Step::Progress(step))) => {
                heard.store(step.percent >= Some(50), Ordering::SeqCst);
                told.push(step.percent);
            }
            Ok(other) => break other,
        }
        assert!(drops < 1_000, "it never comes to an end");
    };
    assert!(matches!(done, Ok(Step::Done { .. })), "{done:?}");
    assert_eq!(told, [Some(25), Some(50), Some(75)]);
}

/// Bodies without measure are not memory, and are not asked for again.
#[tokio::test]
async fn a_check_that_is_too_large_ends_the_run_here_and_is_not_repeated() {
    let endless = || raw(200, "content-type: application/json", &vec![b' '; 33 << 20], Then::Hold);
    let server = Canned::serve(move |_, nth| -> Reply {
        match nth {
            0 => reply(200, CREATED),
            _ => endless(),
        }
    })
    .await;
    let followed = answered(&sonar(&server.url, PATIENCE), &ask("research")).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::TooLarge);
    assert_eq!(server.lines().len(), 2);
    let endless_submit = Canned::serve(move |_, _| endless()).await;
    let error = not_begun(&sonar(&endless_submit.url, SOON * 20), &ask("research")).await;
    assert!(matches!(error, BeginError::Unknown(_)), "{error:?}");
}
