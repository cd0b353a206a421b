//! Streams cut at every byte: the report is the same, and nothing is bought again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_core::Provider;

use super::bench::gemini;
use crate::bench::{PATIENCE, ask, follow, patiently};
use crate::canned::{Canned, Then, raw, reply};

const READ: &str = "# \u{dc}ber W\u{e4}rme[1].";
const RUNNING: &str = r#"{"id":"r","status":"in_progress"}"#;
const DONE: &str = r##"{"id":"r","status":"completed","steps":[{"type":"model_output","content":[{"type":"text",
    "text":"# \u00dcber W\u00e4rme.","annotations":[{"type":"url_citation","url":"u","start_index":0,"end_index":14}]}]}]}"##;

/// A stream with every kind of line end, keep-alives, and repeated events.
fn wire() -> Vec<u8> {
    "event: interaction.created\ndata: {\"event_type\":\"interaction.created\",\"event_id\":\"0\"}\n\n\
     : ping\n\n\
     data: {\"event_type\":\"step.start\",\"event_id\":\"1\",\"index\":0,\"step\":{\"type\":\"thought\"}}\r\n\r\n\
     data: {\"event_type\":\"step.delta\",\"event_id\":\"2\",\"index\":1,\"delta\":{\"type\":\"text\",\"text\":\"\u{dc}ber\"}}\r\r\
     data: {\"event_type\":\"step.delta\",\"event_id\":\"2\",\"index\":1,\"delta\":{\"type\":\"text\",\"text\":\"\u{dc}ber\"}}\n\n\
     data: {\"event_type\":\"interaction.completed\",\"event_id\":\"3\",\ndata: \"interaction\":{\"id\":\"r\"}}\n\n\
     data: [DONE]\n\n"
        .as_bytes()
        .to_vec()
}

/// G3, G5: a stream that breaks at any byte, cleanly or not, changes nothing.
#[tokio::test]
async fn g5_a_stream_that_breaks_at_any_byte_loses_nothing_and_buys_nothing_again() {
    let wire = wire();
    let at = Arc::new(AtomicUsize::new(0));
    let polls = Arc::new(AtomicUsize::new(0));
    let (cut_at, counted, bytes) = (at.clone(), polls.clone(), wire.clone());
    let server = Canned::serve(move |line, _| match line {
        line if line.starts_with("POST") => reply(200, RUNNING),
        line if line.contains("stream=true") => {
            let position = cut_at.load(Ordering::Relaxed);
            // Without a measure it ends cleanly wherever it ends; with one it breaks off.
            let head = match position % 2 {
                0 => "content-type: text/event-stream".to_owned(),
                _ => format!(
                    "content-type: text/event-stream\r\ncontent-length: {}",
                    bytes.len() + 1
                ),
            };
            raw(200, &head, &bytes[..position], Then::Close).cut(&[position / 2])
        }
        _ if counted.fetch_add(1, Ordering::Relaxed) == 0 => reply(200, RUNNING),
        _ => reply(200, DONE),
    })
    .await;
    let provider = gemini(&server.url, PATIENCE, &server.clock);
    for position in 0..=wire.len() {
        at.store(position, Ordering::Relaxed);
        polls.store(0, Ordering::Relaxed);
        let mut run = patiently(provider.begin(&ask("q"), "key")).await.unwrap();
        assert_eq!(follow(&mut *run).await.text(), READ, "broken at {position}");
    }
    assert_eq!(server.submits(), wire.len() + 1, "one each");
}
