//! The words that stores hold and that processes of other versions read. Renaming a type must not change them.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Body, ChargeState, Checkpoint, Code, ContextSize, Cost, Effort, HeldAnswer, Key, NanoUsd,
    Recency, RemoteRun, RequestNote, ResearchKind, Role, RunStatus, StateKind, Timestamp,
    Visibility,
};

fn words<T: Serialize>(values: &[T]) -> Value {
    json!(values)
}

#[test]
fn states_and_charges_keep_their_words() {
    let states: Vec<_> = StateKind::ALL.iter().map(|state| state.as_str()).collect();
    assert_eq!(states, ["queued", "running", "waiting", "succeeded", "failed", "cancelled"]);
    use ChargeState::{Maybe, Released, Reserved, Spent};
    let charges = [Reserved, Spent, Maybe, Released].map(ChargeState::as_str);
    assert_eq!(charges, ["reserved", "spent", "maybe", "released"]);
    use Visibility::{Promised, Task, Unpromised};
    assert_eq!(words(&[Promised, Task, Unpromised]), json!(["promised", "task", "unpromised"]));
}

#[test]
fn checkpoints_and_costs_keep_their_form() {
    let run = RemoteRun {
        provider: "p".to_owned(),
        id: "i".to_owned(),
        cursor: Some("c".to_owned()),
        begun_at: Timestamp::from_millis(7),
    };
    let beginning = Checkpoint::Beginning { key: "k".to_owned() };
    assert_eq!(
        words(&[Checkpoint::NotBegun, beginning, Checkpoint::Running(run)]),
        json!([
            { "at": "not_begun" },
            { "at": "beginning", "key": "k" },
            { "at": "running", "provider": "p", "id": "i", "cursor": "c", "begun_at": 7 },
        ])
    );
    let costs = [Cost::Reported, Cost::Computed, Cost::Estimate].map(|cost| cost(NanoUsd(1)));
    assert_eq!(
        words(&[costs[0], costs[1], costs[2], Cost::Unknown]),
        json!([
            { "kind": "reported", "nano_usd": 1 },
            { "kind": "computed", "nano_usd": 1 },
            { "kind": "estimate", "nano_usd": 1 },
            { "kind": "unknown" },
        ])
    );
    let tool = Body::Tool { content: Vec::new(), structured: None, is_error: false };
    assert_eq!(
        words(&[Body::report("t", Vec::new()), tool]),
        json!([
            { "kind": "report", "text": "t", "sources": [] },
            { "kind": "tool", "content": [], "structured": null, "is_error": false },
        ])
    );
}

#[test]
fn failures_keep_their_codes() {
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(words(Code::ALL), json!(codes), "serde and `as_str` agree");
    let expected = [
        "EXECUTION_ERROR",
        "TIMEOUT",
        "SUBMIT_UNKNOWN",
        "RUN_LOST",
        "UNAUTHORIZED",
        "QUOTA_EXHAUSTED",
        "CONFIGURATION_ERROR",
        "ENDPOINT_RETIRED",
        "RATE_LIMITED",
        "SERVICE_UNAVAILABLE",
        "NOT_ANSWERED",
        "INTERNAL_ERROR",
    ];
    assert_eq!(codes, expected);
    assert_eq!(
        words(&[RunStatus::Unknown, RunStatus::NotCharged, RunStatus::Ended(Cost::Unknown)]),
        json!(["unknown", "not_charged", { "ended": { "kind": "unknown" } }])
    );
}

#[test]
fn requests_keep_their_fields() {
    use ResearchKind::{Ask, Reason, Research, Results, Search};
    assert_eq!(
        words(&[Research, Search, Ask, Reason, Results]),
        json!(["research", "search", "ask", "reason", "results"])
    );
    use Effort::{High, Low, Medium, Minimal};
    assert_eq!(words(&[Minimal, Low, Medium, High]), json!(["minimal", "low", "medium", "high"]));
    assert_eq!(
        words(&[Recency::Hour, Recency::Day, Recency::Week, Recency::Month, Recency::Year]),
        json!(["hour", "day", "week", "month", "year"])
    );
    let sizes = [ContextSize::Low, ContextSize::Medium, ContextSize::High];
    assert_eq!(words(&sizes), json!(["low", "medium", "high"]));
    let roles = [Role::System, Role::User, Role::Assistant];
    assert_eq!(words(&roles), json!(["system", "user", "assistant"]));
    use RequestNote::{MovedFrom, RetryKey, RetryOf, SessionId, Tool, Traceparent};
    let notes = [Tool, MovedFrom, RetryOf, RetryKey, SessionId, Traceparent];
    assert_eq!(
        notes.map(RequestNote::field),
        ["tool", "moved_from", "retry_of", "retry_key", "session_id", "traceparent"]
    );
}

#[test]
fn keys_keep_their_prefixes() {
    let zeros = "0".repeat(64);
    assert_eq!(Key::from_caller("x", [0; 32]).text, "given:x");
    assert_eq!(Key::for_held_call("t", [0; 32]).text, format!("held:t:{zeros}"));
    let research = Key::research("t", [0; 32], HeldAnswer::Report);
    assert_eq!(research.text, format!("held:t:{zeros}"));
}
