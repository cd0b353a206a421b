//! Every fault at every call: the table of the Agent dialect, and the differences of this API.

use crate::bench::ask;
use crate::canned::{Reply, Then, reply, stream};
use crate::fault_table::{Call, Dialect, check};
use crate::faults::{OPEN, ROWS, call};

use super::bench::gemini;

const RUNNING: &str = r#"{"id":"r","status":"in_progress"}"#;
const DONE: &str = r#"{"id":"r","status":"completed",
    "steps":[{"type":"model_output","content":[{"type":"text","text":"t"}]}]}"#;
const CREATED: &str =
    r#"{"event_type":"interaction.created","event_id":"0","interaction":{"id":"r"}}"#;

fn healthy(call: Call, before: usize) -> Reply {
    match call {
        Call::Submit | Call::Cancel => reply(200, RUNNING),
        Call::Stream => stream(&[CREATED], Then::Close),
        Call::Poll if before < 2 => reply(200, RUNNING),
        Call::Poll => reply(200, DONE),
    }
}

/// B9a, A5, G5: the whole table. A fault of the stream never matters: checks decide.
#[tokio::test]
async fn g5_b9a_every_fault_at_every_call_has_its_outcome_and_buys_nothing_twice() {
    let dialect = Dialect {
        name: "gemini",
        make: |server, limit| Box::new(gemini(&server.url, limit, &server.clock)),
        ask: ask("q"),
        call,
        healthy,
        calls: &[Call::Submit, Call::Stream, Call::Poll, Call::Cancel],
        otherwise: &[
            // The answer to a submit is one object, never a stream.
            (Call::Submit, &["an empty stream"], "Unknown Malformed"),
            (Call::Submit, OPEN, "Unknown TimedOut"),
        ],
    };
    check(dialect, ROWS).await;
}
