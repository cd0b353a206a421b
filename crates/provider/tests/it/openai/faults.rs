//! Every fault at every call: the table of the Agent dialect, and the differences of a plain submit from a streamed one.

use super::bench::openai;
use crate::bench::ask;
use crate::canned::{Reply, Then, reply, stream};
use crate::fault_table::{Call, Dialect, check};
use crate::faults::{ROWS, call};

const DONE: &str =
    r#"{"id":"r","status":"completed","output":[{"type":"message","content":[{"text":"t"}]}]}"#;

fn healthy(call: Call, before: usize) -> Reply {
    match call {
        Call::Submit => reply(200, r#"{"id":"r","status":"queued"}"#),
        Call::Stream => {
            let completed = format!(r#"{{"type":"response.completed","response":{DONE}}}"#);
            stream(&[&completed], Then::Close)
        }
        Call::Poll if before < 2 => reply(200, r#"{"id":"r","status":"in_progress"}"#),
        Call::Poll => reply(200, DONE),
        Call::Cancel => reply(200, r#"{"id":"r","status":"in_progress"}"#),
    }
}

/// G3, G5, B9a, A5: the whole table.
#[tokio::test]
async fn g5_every_fault_at_every_call_of_openai_has_its_outcome_and_buys_nothing_twice() {
    let dialect = Dialect {
        name: "openai",
        make: |server, limit| Box::new(openai(server, limit)),
        ask: ask("q"),
        call,
        healthy,
        calls: &[Call::Submit, Call::Stream, Call::Poll, Call::Cancel],
        otherwise: &[
            // A submit is answered with an object; a stream is not one, and one that stays open is silence.
            (Call::Submit, &["an empty stream"], "Unknown Malformed"),
            (Call::Submit, &["only [DONE]", "an error event"], "Unknown TimedOut"),
        ],
    };
    check(dialect, ROWS).await;
}
