//! A stream cut at every byte, and one that breaks there: the text is the same as a check's, byte for byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bench::{begun, openai};
use crate::bench::{PATIENCE, follow};
use crate::canned::{Canned, Reply, Then, raw, reply};

const READ: &str = "# \u{dc}ber \u{1f600}\n\nSo it is [1], \u{2014} and so.[2]";

fn object() -> String {
    let text = r"# \u00dcber 😀\n\nSo it is ([a](https://a)), — and so.";
    let citation = |url: &str, start: usize, end: usize| {
        format!(
            r#"{{"type":"url_citation","url":"{url}","title":"t","start_index":{start},"end_index":{end}}}"#
        )
    };
    let cited = [citation("https://a", 19, 35), citation("https://b", 39, 46)].join(",");
    format!(
        r#"{{"id":"r","status":"completed","output":[{{"type":"message","content":[{{"type":"output_text","text":"{text}","annotations":[{cited}]}}]}}]}}"#
    )
}

fn wire() -> Vec<u8> {
    let object = object();
    format!(
        ": ping\n\nevent: response.in_progress\ndata: {{\"type\":\"response.in_progress\",\"sequence_number\":1}}\n\n\
         data: {{\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"delta\":\"\u{dc}\"}}\r\n\r\n\
         event: response.completed\ndata: {{\"type\":\"response.completed\",\"sequence_number\":9,\r\ndata: \"response\":{object}}}\r\n\r\n"
    )
    .into_bytes()
}

async fn at_every_byte(answer: fn(usize) -> Reply) {
    let at = Arc::new(AtomicUsize::new(0));
    let (cut_at, polls) = (at.clone(), Arc::new(AtomicUsize::new(0)));
    let polled = polls.clone();
    let server = Canned::serve(move |line, _| match line {
        line if line.starts_with("POST") => {
            polled.store(0, Ordering::Relaxed);
            reply(200, r#"{"id":"r","status":"queued"}"#)
        }
        line if line.contains("stream=true") => answer(cut_at.load(Ordering::Relaxed)),
        _ if polled.fetch_add(1, Ordering::Relaxed) == 0 => {
            reply(200, r#"{"id":"r","status":"in_progress"}"#)
        }
        _ => reply(200, &object()),
    })
    .await;
    let adapter = openai(&server, PATIENCE);
    for position in 0..=wire().len() {
        at.store(position, Ordering::Relaxed);
        let followed = follow(&mut *begun(&adapter).await).await;
        assert_eq!(followed.text(), READ, "at {position}");
        assert_eq!(followed.sources().len(), 2);
    }
    assert_eq!(server.submits(), wire().len() + 1, "one each");
}

/// G3: text from the stream equals text from a check.
#[tokio::test]
async fn g3_a_stream_in_packets_cut_at_any_byte_gives_the_same_text() {
    at_every_byte(|position| {
        raw(200, "content-type: text/event-stream", &wire(), Then::Hold).cut(&[position])
    })
    .await;
}

/// G3, B9a: a stream that breaks at any byte loses nothing and buys nothing again.
#[tokio::test]
async fn g3_a_stream_that_breaks_at_any_byte_loses_nothing() {
    at_every_byte(|position| {
        raw(200, "content-type: text/event-stream", &wire()[..position], Then::Close)
    })
    .await;
}
