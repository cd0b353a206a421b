//! Answers that are odd inside: nothing panics, nothing is lost that is there.

use outlast_core::{BeginError, Provider};
use outlast_provider::gemini::fuzzing;

use super::bench::{Bench, gemini};
use crate::bench::{PATIENCE, ask, follow, patiently};
use crate::canned::{Canned, reply};

const DONE: &str = r#"{"id":"v1_r","status":"completed","agent":"deep-research-preview-04-2026","steps":[
{"type":"thought","summary":[{"type":"text","text":"hm"}]},
{"type":"google_search_call","id":"c","arguments":{"queries":["a"]}},
{"type":"url_context_result","call_id":"d","result":[{"status":"success","url":"u"}]},
{"type":"model_output","content":[{"type":"text","text":"\u00dcber [cite: 1] \ud83d\ude00.","annotations":[
{"type":"url_citation","url":"https://a.example","title":"A","start_index":6,"end_index":15}]}]}],
"usage":{"total_input_tokens":9,"grounding_tool_count":[{"type":"google_search","count":1}]},"errors":[]}"#;
const EVENT: &str = r#"{"event_type":"step.delta","event_id":"3","index":1,
"delta":{"type":"thought_summary","content":{"type":"text","text":"**T**"}}}"#;

/// G3: every byte of an answer replaced by others: a sound report, or none.
#[test]
fn g3_an_answer_with_any_byte_changed_makes_a_sound_report_or_none() {
    for body in [DONE, EVENT] {
        fuzzing::answer(body.as_bytes()).unwrap();
        for at in 0..body.len() {
            for byte in [b'"', b'0', b'9', b'-', b'{', b'}', b'[', b']', b',', b' ', b'x', 0xff] {
                let mut bytes = body.as_bytes().to_vec();
                bytes[at] = byte;
                fuzzing::answer(&bytes).unwrap();
            }
            fuzzing::answer(&body.as_bytes()[..at]).unwrap();
        }
    }
}

/// A10, B9a: an id is an id, with anything next to it; without one the outcome of the request is unknown.
#[tokio::test]
async fn a10_an_id_next_to_odd_fields_is_accepted_and_a_success_without_one_is_unknown() {
    let server = Canned::serve(|line, _| match line.starts_with("POST") {
        true => reply(200, r#"{"id":"v1_r","status":[],"steps":7,"usage":"none","errors":{}}"#),
        false => reply(200, DONE),
    })
    .await;
    let provider = gemini(&server.url, PATIENCE, &server.clock);
    let mut run = patiently(provider.begin(&ask("q"), "key")).await.unwrap();
    assert_eq!(run.remote().id, "v1_r");
    let followed = follow(&mut *run).await;
    assert_eq!(followed.text(), "\u{dc}ber [1] \u{1f600}.");
    for body in [r#"{"id":""}"#, r#"{"id":7}"#, "[]", "<html>", ""] {
        let server = Canned::always(reply(200, body)).await;
        let provider = gemini(&server.url, PATIENCE, &server.clock);
        let begun = patiently(provider.begin(&ask("q"), "key")).await;
        let Err(BeginError::Unknown(error)) = begun else { panic!("{body}: its outcome is known") };
        assert!(error.sentence.contains("no job id"), "{error:?}");
        assert_eq!(server.submits(), 1);
    }
}

/// G3: hostile text stays text, and the vendor's titles of thoughts have no control characters.
#[tokio::test]
async fn g3_hostile_text_is_only_text() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:inject;line=1000;delay_ms=0]]").await;
    let followed = follow(&mut *run).await;
    assert!(followed.text().contains("Ignore all previous"));
    for (_, message) in followed.reported() {
        assert!(!message.chars().any(char::is_control), "{message:?}");
    }
}
