//! The speed of parsing an event stream, from bytes to the report at its end.

use outlast_provider::fuzzing::follow;
use serde_json::json;
use tokio::time::Instant;

/// The usual size of one read from a socket.
const PIECE: usize = 16 * 1024;

/// The number of words of the report.
const WORDS: usize = 200_000;

/// Parses the same stream repeatedly.
pub(crate) fn measure(rounds: usize) {
    let (stream, text) = stream();
    let megabytes = stream.len() as f64 / 1e6;
    let mut speeds: Vec<f64> = (0..rounds.max(1))
        .map(|_| {
            let started = Instant::now();
            let read = follow(&stream, PIECE);
            let speed = megabytes / started.elapsed().as_secs_f64();
            assert_eq!(read.as_deref(), Some(text.as_str()));
            speed
        })
        .collect();
    speeds.sort_by(f64::total_cmp);
    let at = |share: usize| speeds[(speeds.len() - 1) * share / 100];
    println!("a stream of {megabytes:.1} MB, a report of {WORDS} words in pieces of {PIECE} bytes");
    println!("p50 {:.0} MB/s, slowest {:.0} MB/s, fastest {:.0} MB/s", at(50), at(0), at(100));
}

/// Returns the stream of a whole run: a delta for every eight words, then the object with all of them.
fn stream() -> (Vec<u8>, String) {
    let words: Vec<String> = (0..WORDS)
        .map(|word| {
            if word % 40 == 39 {
                format!("[{}]", word % 20 + 1)
            } else {
                format!("w\u{e9}rd{word}")
            }
        })
        .collect();
    let created = json!({"type": "response.created", "response": {"id": "resp_1"}});
    let mut events = vec![created];
    for (number, words) in words.chunks(8).enumerate() {
        events.push(json!({"type": "response.output_text.delta", "sequence_number": number + 1,
            "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": words.join(" ") + " "}));
    }
    let text = words.join(" ");
    let results: Vec<_> = (1..=20)
        .map(|id| json!({"id": id, "url": format!("https://src{id}.example"), "title": "t", "snippet": "s".repeat(500)}))
        .collect();
    events.push(
        json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed",
        "output": [{"type": "search_results", "queries": ["q"], "results": results},
            {"type": "message", "content": [{"type": "output_text", "text": text}]}]}}),
    );
    let frame = |event: &serde_json::Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
    };
    (events.iter().map(frame).collect::<String>().into_bytes(), text)
}
