//! Streams cut at every byte: the text is the same as a poll's, byte for byte, and nothing is bought again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_core::{BeginError, Provider};

use crate::bench::{PATIENCE, ask, follow, patiently};
use crate::canned::{Canned, Reply, Then, raw, reply};

const TEXT: &str = r"# \u00dcber W\u00e4rme \ud83d\ude00\n\nSo it is[web:0], \u2014 and so[2].";
const READ: &str = "# \u{dc}ber W\u{e4}rme \u{1f600}\n\nSo it is[1], \u{2014} and so[2].";

fn object() -> String {
    // Half of the text is plain, half is escaped: both must come through.
    let text = TEXT.replace(r"\u00e4", "\u{e4}").replace(r"\ud83d\ude00", "\u{1f600}");
    format!(
        r#"{{"id":"r","status":"completed","output":[{{"type":"search_results","results":[{{"id":1,"url":"u"}},{{"id":2,"url":"v"}}]}},{{"type":"message","content":[{{"type":"output_text","text":"{text}"}}]}}]}}"#
    )
}

/// A stream with every kind of line end, keep-alives, and repeated events.
fn wire() -> Vec<u8> {
    let object = object();
    format!(
        "event: response.created\ndata: {{\"type\":\"response.created\",\"sequence_number\":0,\"response\":{{\"id\":\"r\"}}}}\n\n\
         : ping\n\n\
         event: ping\r\ndata: ping\r\n\r\n\
         data: {{\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"delta\":\"\u{dc}\"}}\r\n\r\n\
         data: {{\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"delta\":\"\u{dc}\"}}\r\r\
         event: response.completed\ndata: {{\"type\":\"response.completed\",\"sequence_number\":9,\r\ndata: \"response\":{object}}}\r\n\r\n\
         data: [DONE]\n\n"
    )
    .into_bytes()
}

fn events(body: &[u8], then: Then) -> Reply {
    raw(200, "content-type: text/event-stream", body, then)
}

/// 5.7: text from the stream equals text from the poll.
#[tokio::test]
async fn a_stream_cut_at_any_byte_gives_the_text_a_poll_gives() {
    let length = wire().len();
    let at = Arc::new(AtomicUsize::new(0));
    let cut_at = at.clone();
    let server = Canned::serve(move |line, _| match line.starts_with("POST") {
        true => events(&wire(), Then::Hold).cut(&[cut_at.load(Ordering::Relaxed)]),
        false => reply(200, &object()),
    })
    .await;
    let agent = server.agent(PATIENCE);
    for position in 0..=length {
        at.store(position, Ordering::Relaxed);
        let mut run = patiently(agent.begin(&ask("q"), "key")).await.unwrap();
        let streamed = follow(&mut *run).await;
        assert_eq!(streamed.text(), READ, "cut at {position}");
    }
    assert_eq!(server.lines().len(), length + 1, "the stream sufficed each time");
    let begun = patiently(agent.begin(&ask("q"), "key")).await.unwrap().remote();
    let polled = follow(
        &mut *agent
            .resume(&outlast_core::Request::from(serde_json::Value::Null), &begun)
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(polled.text(), READ);
}

/// B9a: before the run is named its outcome is unknown; after it, a check has the last word.
#[tokio::test]
async fn a_stream_that_breaks_at_any_byte_loses_nothing_and_buys_nothing_again() {
    let wire = wire();
    let named = wire.windows(2).position(|bytes| bytes == b"\n\n").unwrap() + 2;
    let at = Arc::new(AtomicUsize::new(0));
    let (cut_at, bytes) = (at.clone(), wire.clone());
    let server = Canned::serve(move |line, _| match line.starts_with("POST") {
        true => events(&bytes[..cut_at.load(Ordering::Relaxed)], Then::Close),
        false => reply(200, &object()),
    })
    .await;
    let agent = server.agent(PATIENCE);
    for position in 0..=wire.len() {
        at.store(position, Ordering::Relaxed);
        let begun = patiently(agent.begin(&ask("q"), "key")).await;
        match begun {
            Ok(mut run) => {
                assert!(position >= named, "no name yet at {position}");
                assert_eq!(follow(&mut *run).await.text(), READ, "broken at {position}");
            }
            Err(BeginError::Unknown(_)) => assert!(position < named, "named at {position}"),
            Err(error) => panic!("{position}: {error:?}"),
        }
    }
    let submits = server.submits();
    assert_eq!(submits, wire.len() + 1, "one each");
}
