//! Every fault at every call of every dialect: what B9a and A5 demand, and never a second submit. The table is that
//! of the Agent dialect; the others list their differences.

use crate::bench::ask;
use crate::canned::{Reply, Then, raw, reply, stream};
use crate::fault_table::{
    Call, Dialect, Make, Row, check, envelope, half_a_body, hang_up, html, raw_bytes, silence,
};
use crate::sonar::bench::{ask as kind, sonar};

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"r"}}"#;
const DONE: &str =
    r#"{"id":"r","status":"completed","output":[{"type":"message","content":[{"text":"t"}]}]}"#;

pub(crate) fn call(line: &str) -> Call {
    match line {
        line if line.contains("/cancel") => Call::Cancel,
        line if line.starts_with("POST") => Call::Submit,
        line if line.contains("stream=true") => Call::Stream,
        _ => Call::Poll,
    }
}

fn healthy(call: Call, before: usize) -> Reply {
    match call {
        Call::Submit => stream(&[CREATED], Then::Close),
        Call::Stream => {
            let completed = format!(r#"{{"type":"response.completed","response":{DONE}}}"#);
            stream(&[&completed], Then::Close)
        }
        Call::Poll if before < 2 => reply(200, r#"{"id":"r","status":"in_progress"}"#),
        Call::Poll => reply(200, DONE),
        Call::Cancel => reply(200, r#"{"response_id":"r","status":"cancelling"}"#),
    }
}

/// Deeper than any parser should follow.
fn abyss() -> Reply {
    reply(200, &format!("{{\"id\":{}", "[".repeat(100_000)))
}

/// No run goes by such a name.
fn long_id() -> Reply {
    reply(200, &format!(r#"{{"id":"{}","status":"queued"}}"#, "r".repeat(2_000_000)))
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    //                     the answer                            submit                  stream    poll              cancel
    ("hangs up",           hang_up,                             ["Unknown Unreachable", "report", "report",         "Unreachable, then Completed"]),
    ("half a head",        || raw_bytes(b"HTTP/1.1 20"),        ["Unknown Unreachable", "report", "report",         "Unreachable, then Completed"]),
    ("no HTTP",            || raw_bytes(b"SSH-2.0-x\r\n\r\n"),  ["Unknown Unreachable", "report", "report",         "Unreachable, then Completed"]),
    ("half a body",        half_a_body,                         ["Unknown Unreachable", "report", "report",         "Unreachable, then Completed"]),
    ("silence",            silence,                             ["Unknown TimedOut",    "report", "report",         "TimedOut, then Completed"]),
    ("302",                || moved(),                          ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("400",                || envelope(400, "invalid_request"), ["Refused Rejected",    "report", "Rejected",       "StillRunning"]),
    ("401",                || envelope(401, "invalid_api_key"), ["Refused Unauthorized", "report", "Unauthorized",  "StillRunning"]),
    ("401 HTML",           || html(401),                        ["Refused Unauthorized", "report", "Unauthorized",  "StillRunning"]),
    ("401 no credit",      || envelope(401, "insufficient_quota"), ["Refused QuotaExhausted", "report", "QuotaExhausted", "StillRunning"]),
    ("402",                || html(402),                        ["Refused QuotaExhausted", "report", "QuotaExhausted", "StillRunning"]),
    ("403",                || html(403),                        ["Refused Unauthorized", "report", "Unauthorized",  "StillRunning"]),
    ("403 retired",        || envelope(403, "chat_completions_not_available"), ["Refused Retired", "report", "Retired", "StillRunning"]),
    ("404",                || envelope(404, "not_found"),       ["Refused Rejected",    "report", "report",         "StillRunning"]),
    ("405",                || html(405),                        ["Refused Rejected",    "report", "Rejected",       "StillRunning"]),
    ("407",                || html(407),                        ["Unknown Rejected",    "report", "Rejected",       "StillRunning"]),
    ("408",                || html(408),                        ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("408 envelope",       || envelope(408, "timeout"),         ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("409",                || envelope(409, "conflict"),        ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("410",                || html(410),                        ["Refused Retired",     "report", "Retired",        "StillRunning"]),
    ("413",                || html(413),                        ["Refused Rejected",    "report", "Rejected",       "StillRunning"]),
    ("422 detail",         || reply(422, r#"{"detail":[{"loc":["body"],"msg":"m","type":"t"}]}"#), ["Refused Rejected", "report", "Rejected", "StillRunning"]),
    ("425",                || html(425),                        ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("429",                || envelope(429, "rate_limit"),      ["Refused RateLimited", "report", "report",         "StillRunning"]),
    ("429 HTML",           || html(429),                        ["Refused RateLimited", "report", "report",         "StillRunning"]),
    ("500",                || envelope(500, "server_error"),    ["Refused Unavailable", "report", "report",         "StillRunning"]),
    ("500 HTML",           || html(500),                        ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("501 envelope",       || envelope(501, "server_error"),    ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("502 envelope",       || envelope(502, "bad_gateway"),     ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("504 envelope",       || envelope(504, "gateway_timeout"), ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("520 envelope",       || envelope(520, "unknown_error"),   ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("521 envelope",       || envelope(521, "down"),            ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("522 envelope",       || envelope(522, "timeout"),         ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("523 envelope",       || envelope(523, "unreachable"),     ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("524 envelope",       || envelope(524, "timeout"),         ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("429 empty",          || reply(429, ""),                   ["Refused RateLimited", "report", "report",         "StillRunning"]),
    ("502 HTML",           || html(502),                        ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("503",                || envelope(503, "overloaded"),      ["Refused Unavailable", "report", "report",         "StillRunning"]),
    ("503 empty",          || reply(503, ""),                   ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("524 HTML",           || html(524),                        ["Unknown Unavailable", "report", "report",         "StillRunning"]),
    ("200 HTML",           || html(200),                        ["Unknown Malformed",   "report", "report",         "Completed"]),
    ("200 empty",          || reply(200, ""),                   ["Unknown Malformed",   "report", "report",         "Completed"]),
    ("204",                || reply(204, ""),                   ["Unknown Malformed",   "report", "report",         "Completed"]),
    ("200 an array",       || reply(200, "[]"),                 ["Unknown Malformed",   "report", "report",         "Completed"]),
    ("200 null",           || reply(200, "null"),               ["Unknown Malformed",   "report", "report",         "Completed"]),
    ("200 other types",    || reply(200, r#"{"id":{},"status":[],"output":1}"#), ["Unknown Malformed", "report", "report", "Completed"]),
    ("200 bad UTF-8",      || raw(200, "content-type: application/json", b"{\"id\":\"\xff\xfe\"}", Then::Close), ["Unknown Malformed", "report", "report", "Completed"]),
    ("200 the abyss",      abyss,                               ["Unknown Malformed",   "report", "report",         "Completed"]),
    ("200 unknown status", || reply(200, r#"{"id":"r","status":"meditating"}"#), ["report", "report", "report", "Completed"]),
    ("200 cancelled",      || reply(200, r#"{"id":"r","status":"cancelled"}"#), ["report", "report", "RunStopped", "Ended"]),
    ("200 requires action", || reply(200, r#"{"id":"r","status":"requires_action"}"#), ["report", "report", "Rejected", "Completed"]),
    ("200 failed",         || reply(200, r#"{"id":"r","status":"failed","error":null}"#), ["report", "report", "RunFailed", "Ended"]),
    ("200 FAILED",         || reply(200, r#"{"id":"r","status":"FAILED"}"#), ["report", "report", "report", "Completed"]),
    ("200 a long id",      long_id,                             ["Unknown Malformed",   "report", "report",         "Completed"]),
    ("200 another object", || reply(200, r#"{"hello":1}"#),     ["Unknown Malformed",   "report", "report",         "Completed"]),
    ("an empty stream",    || stream(&[""; 0], Then::Close),       ["Unknown Unreachable", "report", "report",         "Completed"]),
    ("only [DONE]",        || stream(&["[DONE]"], Then::Hold),  ["Unknown Unreachable", "report", "report",         "TimedOut, then Completed"]),
    ("an error event",     || stream(&[r#"{"type":"error","error":{"message":"m"}}"#], Then::Hold), ["Unknown Malformed", "report", "report", "TimedOut, then Completed"]),
];

fn moved() -> Reply {
    raw(302, "location: http://127.0.0.1:9/stolen\r\ncontent-length: 0", b"", Then::Close)
}

/// B9a, A5: the whole table.
#[tokio::test]
async fn b9a_every_fault_at_every_call_has_its_outcome_and_buys_nothing_twice() {
    let dialect = Dialect {
        name: "agent",
        make: |server, limit| Box::new(server.agent(limit)),
        ask: ask("q"),
        call,
        healthy,
        calls: &[Call::Submit, Call::Stream, Call::Poll, Call::Cancel],
        otherwise: &[],
    };
    check(dialect, ROWS).await;
}

/// Unusable successes.
const NONSENSE: &[&str] = &[
    "200 HTML",
    "200 empty",
    "204",
    "200 an array",
    "200 null",
    "200 other types",
    "200 bad UTF-8",
    "200 the abyss",
    "200 a long id",
    "200 another object",
    "an empty stream",
];

/// Objects that name a run.
const NAMED: &[&str] =
    &["200 unknown status", "200 cancelled", "200 requires action", "200 failed", "200 FAILED"];

/// Streams that do not end.
pub(crate) const OPEN: &[&str] = &["only [DONE]", "an error event"];

/// B9a, A5, A10: deep research has no stream, and a key under which it may be sent again.
#[tokio::test]
async fn b9a_every_fault_at_every_call_of_sonar_research_has_its_outcome() {
    let dialect = Dialect {
        name: "sonar research",
        make: |server, limit| Box::new(sonar(&server.url, limit)),
        ask: kind("research"),
        call,
        healthy: |call, before| match call {
            Call::Submit => reply(200, r#"{"id":"r","status":"CREATED"}"#),
            Call::Poll if before < 2 => reply(200, r#"{"id":"r","status":"IN_PROGRESS"}"#),
            _ => reply(200, &format!(r#"{{"id":"r","status":"COMPLETED","response":{ANSWER}}}"#)),
        },
        calls: &[Call::Submit, Call::Poll],
        otherwise: &[
            // Under its key it would be answered the same way again.
            (Call::Submit, NONSENSE, "Unknown Rejected"),
            (Call::Submit, OPEN, "Unknown TimedOut"),
            // Words of the other dialect.
            (Call::Poll, &["200 cancelled", "200 requires action", "200 failed"], "report"),
            (Call::Poll, &["200 FAILED"], "RunFailed"),
        ],
    };
    check(dialect, ROWS).await;
}

const ANSWER: &str = r#"{"choices":[{"finish_reason":"stop","message":{"content":"t"}}]}"#;

/// B9a: an answer comes with the submit, or not at all.
#[tokio::test]
async fn b9a_every_fault_of_a_sonar_answer_has_its_outcome() {
    for name in ["search", "ask", "reason"] {
        let dialect = Dialect {
            name,
            make: |server, limit| Box::new(sonar(&server.url, limit)),
            ask: kind(name),
            call,
            healthy: |_, _| reply(200, ANSWER),
            calls: &[Call::Submit],
            otherwise: &[(Call::Submit, NAMED, "Unknown Malformed")],
        };
        check(dialect, ROWS).await;
    }
}

/// B9a: a search of either dialect.
#[tokio::test]
async fn b9a_every_fault_of_a_search_has_its_outcome() {
    let makes: [(&str, Make); 2] = [
        ("search by the agent", |server, limit| Box::new(server.agent(limit))),
        ("search by sonar", |server, limit| Box::new(sonar(&server.url, limit))),
    ];
    for (name, make) in makes {
        let dialect = Dialect {
            name,
            make,
            ask: kind("results"),
            call,
            healthy: |_, _| reply(200, r#"{"results":[]}"#),
            calls: &[Call::Submit],
            otherwise: &[
                (Call::Submit, NAMED, "Unknown Malformed"),
                (Call::Submit, &["an empty stream"], "Unknown Malformed"),
                (Call::Submit, OPEN, "Unknown TimedOut"),
            ],
        };
        check(dialect, ROWS).await;
    }
}
