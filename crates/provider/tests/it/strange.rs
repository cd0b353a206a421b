//! Servers that break rules no simulator should break. Nothing may be lost, bought twice, or held without bound.

use std::time::Duration;

use outlast_core::{BeginError, Clock, Provider, ProviderErrorKind, RemoteRun};
use outlast_provider::perplexity::Agent;
use outlast_provider::vendor::{PollIntervals, VendorOptions};

use crate::bench::{KEY, PATIENCE, ask, follow, options, patiently};
use crate::canned::{Canned, Reply, Then, raw, reply, stream};

const CREATED: &str =
    r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1"}}"#;
const RUNNING: &str = r#"{"id":"resp_1","status":"in_progress","output":[]}"#;
const DONE: &str = r#"{"id":"resp_1","status":"completed","output":[
    {"type":"message","content":[{"type":"output_text","text":"the report"}]}]}"#;

async fn not_begun(agent: &Agent) -> BeginError {
    let Err(error) = patiently(agent.begin(&ask("q"), "key")).await else { panic!("it began") };
    error
}

/// Begins at a server that streams this, and follows the run to its report.
async fn reported(
    begun: impl Fn() -> Reply + Send + Sync + 'static,
    later: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
) -> Canned {
    let server =
        Canned::serve(move |line, nth| if nth == 0 { begun() } else { later(line, nth) }).await;
    let agent = server.agent(PATIENCE);
    let mut run = patiently(agent.begin(&ask("q"), "key")).await.unwrap();
    assert_eq!(run.remote().id, "resp_1");
    assert_eq!(follow(&mut *run).await.text(), "the report");
    let submits = server.submits();
    assert_eq!(submits, 1);
    server
}

/// B9a: status first, with any body, even one without an end.
#[tokio::test]
async fn a_refusal_whose_body_never_ends_is_still_a_refusal() {
    for then in [Then::Close, Then::Hold] {
        for status in [400, 401, 429, 503] {
            let server = Canned::serve(move |_, _| {
                raw(status, "retry-after: 7\r\ncontent-length: 1000", b"{\"error\"", then)
            })
            .await;
            match not_begun(&server.agent(Duration::from_millis(200))).await {
                BeginError::Refused(error) => {
                    assert_ne!(status, 503);
                    let wait = (status == 429).then_some(Duration::from_secs(7));
                    assert_eq!(error.kind.retry_after(), wait);
                }
                BeginError::Unknown(_) => assert_eq!(status, 503),
                BeginError::NotSent(error) => panic!("{error:?}"),
            }
        }
    }
}

/// A5: the same for a check. 401 ends the run at once, also when its body breaks off, never ends, or has no measure.
#[tokio::test]
async fn a5_a_refused_key_ends_the_run_even_if_the_body_breaks() {
    let endless = |then| raw(401, "content-length: 100000000", b"{\"error\"", then);
    for then in [Then::Close, Then::Hold, Then::Repeat(100_000_000)] {
        let server = Canned::serve(move |_, nth| match nth {
            0 => reply(200, RUNNING),
            _ => endless(then),
        })
        .await;
        let agent = server.agent(Duration::from_millis(500));
        let mut run = patiently(agent.begin(&ask("q"), "key")).await.unwrap();
        assert_eq!(follow(&mut *run).await.error().kind, ProviderErrorKind::Unauthorized);
        assert_eq!(server.lines().len(), 2, "{:?}", server.lines());
        assert!(server.sent() < 20 << 20, "{} bytes were taken", server.sent());
    }
}

/// E7: the error in a success is upstream's own text, and kept.
#[tokio::test]
async fn e7_a_success_that_names_no_run_but_its_error_keeps_the_error() {
    let replies: [fn() -> Reply; 4] = [
        || reply(200, r#"{"error":{"message":"overloaded 7"}}"#),
        || stream(&[r#"{"type":"error","error":{"message":"overloaded 7"}}"#], Then::Hold),
        || {
            stream(
                &[r#"{"type":"response.failed","error":{"message":"overloaded 7"}}"#],
                Then::Hold,
            )
        },
        || {
            stream(
                &[r#"{"type":"response.failed","response":{"error":{"message":"overloaded 7"}}}"#],
                Then::Hold,
            )
        },
    ];
    for reply in replies {
        let server = Canned::serve(move |_, _| reply()).await;
        let BeginError::Unknown(error) = not_begun(&server.agent(PATIENCE)).await else {
            panic!("its outcome is known")
        };
        assert!(error.sentence.contains("no job id"), "{error:?}");
        assert!(error.detail.as_ref().unwrap().contains("overloaded 7"), "{error:?}");
    }
}

/// E7: nothing of a long error is lost on its way to the log.
#[tokio::test]
async fn e7_a_long_error_is_kept_whole() {
    let body =
        format!(r#"{{"error":{{"message":"{} the end","type":"t"}}}}"#, "why ".repeat(2_000));
    let said = body.clone();
    let server = Canned::serve(move |_, _| reply(400, &said)).await;
    let BeginError::Refused(error) = not_begun(&server.agent(PATIENCE)).await else {
        panic!("not refused")
    };
    assert_eq!(error.detail, Some(format!("HTTP 400: {body}")));
}

/// B9a: a 2xx that is not the expected answer is unknown.
#[tokio::test]
async fn a_success_that_names_no_run_is_unknown() {
    let error = r#"{"type":"error","error":{"message":"overloaded"}}"#;
    let replies: [fn() -> Reply; 6] = [
        || reply(200, "<html>welcome</html>"),
        || reply(204, ""),
        || reply(200, r#"{"id":""}"#),
        || reply(200, r#"{"id":7}"#),
        || stream(&["[DONE]"], Then::Hold),
        || stream(&[r#"{"type":"response.failed","error":{}}"#], Then::Hold),
    ];
    for reply in replies {
        let server = Canned::serve(move |_, _| reply()).await;
        let error = not_begun(&server.agent(PATIENCE)).await;
        assert!(matches!(error, BeginError::Unknown(_)), "{error:?}");
    }
    let server = Canned::serve(move |_, _| stream(&[error], Then::Hold)).await;
    let error = not_begun(&server.agent(PATIENCE)).await;
    assert!(matches!(error, BeginError::Unknown(_)), "{error:?}");
}

/// The events ended before any of them named the run.
#[tokio::test]
async fn an_accepted_submit_that_falls_silent_is_unknown() {
    let server = Canned::serve(|_, _| stream(&[r#"{"type":"response.queued"}"#], Then::Hold)).await;
    let error = not_begun(&server.agent(Duration::from_millis(200))).await;
    let BeginError::Unknown(error) = error else { panic!("{error:?}") };
    assert!(
        matches!(error.kind, ProviderErrorKind::TimedOut | ProviderErrorKind::Unreachable),
        "{error:?}"
    );
}

/// A10: an id is an id, with anything next to it.
#[tokio::test]
async fn an_odd_field_in_the_first_event_does_not_lose_the_run() {
    let created = r#"{"type":"response.created","sequence_number":"0","queries":{},
        "response":{"id":"resp_1","output":{},"usage":"none","error":[]}}"#;
    let created = created.replace('\n', " ");
    reported(move || stream(&[&created], Then::Close), |_, _| reply(200, DONE)).await;
}

#[tokio::test]
async fn an_unstreamed_answer_with_an_id_is_followed_by_checks() {
    reported(|| reply(200, RUNNING), |_, nth| reply(200, if nth < 4 { RUNNING } else { DONE }))
        .await;
}

/// The connection stays open: only the event, or `[DONE]`, shows that it is time to look.
#[tokio::test]
async fn an_end_that_cannot_be_read_is_found_by_a_check() {
    let ends: [&[&str]; 5] = [
        &[CREATED, r#"{"type":"response.completed","sequence_number":9,"response":5}"#],
        &[CREATED, r#"{"type":"response.completed","sequence_number":9}"#],
        &[CREATED, r#"{"type":"response.completed","response":{"id":"resp_1","output":"odd"}}"#],
        &[CREATED, r#"{"type":"response.completed","type":"twice"}"#, "[DONE]"],
        &[CREATED, "[DONE]"],
    ];
    for events in ends {
        let server = reported(move || stream(events, Then::Hold), |_, _| reply(200, DONE)).await;
        assert_eq!(server.lines(), ["POST /v1/agent", "GET /v1/agent/resp_1"]);
    }
}

/// B9a: a stream's own error does not concern the run, which must not be bought again.
#[tokio::test]
async fn an_error_of_the_stream_is_not_the_end_of_the_run() {
    let error = r#"{"type":"error","sequence_number":1,"error":{"message":"overloaded"}}"#;
    let server = reported(
        move || stream(&[CREATED, error], Then::Hold),
        |line, nth| match (line.contains("stream=true"), nth) {
            (true, _) => reply(503, ""),
            (false, 1..5) => reply(200, RUNNING),
            (false, _) => reply(200, DONE),
        },
    )
    .await;
    assert!(server.lines()[2].ends_with("starting_after=1"), "{:?}", server.lines());
}

/// A stream that only repeats itself brings nothing new: it is no reason to hurry.
#[tokio::test]
async fn a_stream_that_only_repeats_itself_is_reopened_with_a_pause() {
    let server = Canned::serve(|line, _| {
        let is_stream = line.starts_with("POST") || line.contains("stream=true");
        if is_stream { stream(&[CREATED], Then::Close) } else { reply(200, RUNNING) }
    })
    .await;
    let waits = Some(PollIntervals::of(&[Duration::from_secs(3600)]));
    let options = options(&server.url, KEY, PATIENCE, &server.clock);
    let agent = Agent::new(VendorOptions { waits, ..options }).unwrap();
    let mut run = agent.begin(&ask("q"), "key").await.unwrap();
    let followed = async {
        run.next().await.unwrap();
        run.next().await.unwrap();
    };
    let looked = async {
        while server.lines().len() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Long enough for dozens of requests, if they were made.
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    tokio::select! {
        () = followed => panic!("it has nothing new to say"),
        () = looked => {}
    }
    assert_eq!(
        server.lines(),
        [
            "POST /v1/agent",
            "GET /v1/agent/resp_1",
            "GET /v1/agent/resp_1?stream=true&starting_after=0"
        ]
    );
}

#[tokio::test]
async fn an_event_without_end_is_not_held_in_memory() {
    let endless = || {
        let body = [format!("data: {CREATED}\n\ndata: ").into_bytes(), vec![b'x'; 9 << 20]];
        raw(200, "content-type: text/event-stream", &body.concat(), Then::Hold)
    };
    reported(endless, |_, _| reply(200, DONE)).await;
}

#[tokio::test]
async fn a_body_without_measure_ends_the_run_here_and_is_not_asked_for_again() {
    let endless = || raw(200, "content-type: application/json", &vec![b' '; 33 << 20], Then::Hold);
    let server =
        Canned::serve(move |_, nth| if nth == 0 { reply(200, RUNNING) } else { endless() }).await;
    let mut run = server.agent(PATIENCE).begin(&ask("q"), "key").await.unwrap();
    let followed = follow(&mut *run).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::TooLarge);
    assert!(followed.error().sentence.contains("larger than the 32 MiB"), "{:?}", followed.error());
    assert_eq!(server.lines().len(), 2);
}

#[tokio::test]
async fn a_check_that_is_never_answered_is_repeated() {
    let server = Canned::serve(|_, nth| match nth {
        0 => reply(200, RUNNING),
        1 => raw(200, "content-length: 10", b"", Then::Hold),
        2 => raw(200, "content-length: 10", b"{", Then::Close),
        3 => reply(200, "no json"),
        _ => reply(200, DONE),
    })
    .await;
    let agent = server.agent(Duration::from_millis(200));
    let mut run = agent.begin(&ask("q"), "key").await.unwrap();
    assert_eq!(follow(&mut *run).await.text(), "the report");
    assert_eq!(server.lines().len(), 5);
}

/// B9a: it was paid for; asking for it again costs nothing, a new run does.
#[tokio::test]
async fn a_completed_run_without_a_report_is_not_begun_again() {
    let server = Canned::serve(|_, _| reply(200, r#"{"id":"resp_1","status":"completed"}"#)).await;
    let mut run = server.agent(PATIENCE).begin(&ask("q"), "key").await.unwrap();
    let followed = follow(&mut *run).await;
    assert!(!followed.error().kind.ends_the_run(), "{:?}", followed.error());
}

/// A name from the store is not trusted.
#[tokio::test]
async fn an_id_cannot_lead_to_another_path() {
    let server = Canned::serve(|_, _| reply(401, "{}")).await;
    let agent = server.agent(PATIENCE);
    for id in ["resp_1/cancel", "../../admin?x=1#y", "a b", "%2e%2e", ".", ".."] {
        let begun_at = server.clock.now();
        let provider = agent.name().to_owned();
        let remote = RemoteRun { provider, id: id.to_owned(), cursor: None, begun_at };
        let mut run = agent
            .resume(&outlast_core::Request::from(serde_json::Value::Null), &remote)
            .await
            .unwrap();
        follow(&mut *run).await.error();
        agent.stop(&remote).await.unwrap_err();
    }
    let encoded = [
        "resp_1%2Fcancel",
        "..%2F..%2Fadmin%3Fx=1%23y",
        "a%20b",
        "%252e%252e",
        "%252E",
        "%252E%252E",
    ];
    let expected: Vec<String> = encoded
        .iter()
        .flat_map(|id| [format!("GET /v1/agent/{id}"), format!("GET /v1/agent/{id}")])
        .collect();
    assert_eq!(server.lines(), expected);
}

/// A5: two 404s end a run only when nothing between them shows that it is there.
#[tokio::test]
async fn a_run_that_was_seen_again_is_forgiven_again() {
    let server = Canned::serve(|line, nth| match nth {
        1 | 4 => reply(404, ""),
        _ if line.contains("stream=true") => reply(400, ""),
        0 | 2 => reply(200, RUNNING),
        _ => reply(200, DONE),
    })
    .await;
    let mut run = server.agent(PATIENCE).begin(&ask("q"), "key").await.unwrap();
    server.clock.advance(Duration::from_secs(3600));
    assert_eq!(follow(&mut *run).await.text(), "the report");
    assert_eq!(server.lines().len(), 6, "{:?}", server.lines());
}
