//! B9a, G5: every fault of the table at the question, at its checks and at its stream. A refused question is not sent
//! twice by the same try; one with an unknown outcome is looked for, and in doubt if it is not shown.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_core::{Clock, Provider, Timestamp};
use outlast_provider::anthropic::Anthropic;
use outlast_provider::http::HttpOptions;
use outlast_provider::vendor::VendorOptions;

use crate::bench::{KEY, PATIENCE, ask, patiently, quick};
use crate::canned::{Canned, Reply, Then, reply, stream};
use crate::fault_table::followed;
use crate::faults::ROWS;

/// A clock on which a minute passes in a dozen looks.
struct HastyClock(AtomicI64);

impl Clock for HastyClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(5_000, Ordering::SeqCst))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Question,
    Check,
    Stream,
}

/// The place of the fault, and the requests since.
struct Cell {
    at: At,
    fault: fn() -> Reply,
    /// True if a question that met the fault is shown all the same.
    shown: bool,
    struck: bool,
    accepted: bool,
    questions: usize,
    checks: usize,
}

const EVENTS: &str = r#"{"data":[{"id":"e0","type":"user.message"},{"id":"e1","type":"session.status_running"},
    {"id":"e2","type":"agent.message","content":[{"type":"text","text":"t"}]},
    {"id":"e3","type":"session.status_idle","stop_reason":{"type":"end_turn"}}],"next_page":null}"#;
const RUNNING: &str =
    r#"{"data":[{"id":"e0","type":"user.message"},{"id":"e1","type":"session.status_running"}]}"#;
const IDLE: &str = r#"{"id":"e3","type":"session.status_idle","stop_reason":{"type":"end_turn"}}"#;

impl Cell {
    fn new(at: At, fault: fn() -> Reply, shown: bool) -> Self {
        Self { at, fault, shown, struck: false, accepted: false, questions: 0, checks: 0 }
    }

    /// The fault, if this is the first call of its kind.
    fn strike(&mut self, at: At) -> Option<Reply> {
        if self.at != at || std::mem::replace(&mut self.struck, true) {
            return None;
        }
        Some((self.fault)())
    }

    fn answer(&mut self, line: &str) -> Reply {
        match line {
            line if line.starts_with("POST /v1/sessions/s/events") => {
                self.questions += 1;
                if let Some(fault) = self.strike(At::Question) {
                    self.accepted = self.shown;
                    return fault;
                }
                self.accepted = true;
                reply(200, r#"{"data":[{"id":"e0","type":"user.message"}]}"#)
            }
            line if line.contains("/events/stream") => {
                self.strike(At::Stream).unwrap_or_else(|| stream(&[IDLE], Then::Close))
            }
            line if line.starts_with("GET /v1/sessions/s/events") => match self.accepted {
                false => reply(200, r#"{"data":[]}"#),
                true => match self.strike(At::Check) {
                    Some(fault) => fault,
                    None => {
                        self.checks += 1;
                        reply(200, if self.checks == 1 { RUNNING } else { EVENTS })
                    }
                },
            },
            // Everything else fits every other call.
            _ => reply(200, r#"{"id":"s","status":"idle","data":[],"usage":{}}"#),
        }
    }
}

/// B9a: refusals are refusals, silence and what may come from a gateway are unknown, and never is there a second send.
#[tokio::test]
async fn b9a_every_fault_at_every_call() {
    let cell = Arc::new(Mutex::new(Cell::new(At::Question, || reply(200, ""), true)));
    let shared = cell.clone();
    let server = Canned::serve(move |line, _| shared.lock().unwrap().answer(line)).await;
    let make = |timeout| {
        let options = VendorOptions {
            base_url: server.url.clone(),
            api_key: KEY.to_owned(),
            model: None,
            http: HttpOptions { timeout, proxy: None },
            clock: Arc::new(HastyClock(AtomicI64::new(1_794_709_260_000))),
            waits: Some(quick()),
        };
        Anthropic::new(options).unwrap()
    };
    let (patient, impatient) = (make(PATIENCE), make(Duration::from_millis(400)));
    let mut wrong = String::new();
    for (name, fault, [submit, _, poll, _]) in ROWS {
        let provider = if fault().then == Then::Hold { &impatient } else { &patient };
        let refused = submit.strip_prefix("Refused ");
        // The session was made a moment ago, so it may only be hidden.
        let refused = if *name == "404" { Some("Unavailable") } else { refused };
        // An answer that is not a list is checked again; statuses are those of another dialect.
        let check = if name.starts_with("200") { "report" } else { poll };
        let cells = [
            (At::Question, true, refused.unwrap_or("report")),
            (At::Question, false, refused.unwrap_or("StepUnknown")),
            (At::Check, true, check),
            (At::Stream, true, "report"),
        ];
        for (at, shown, expected) in cells {
            *cell.lock().unwrap() =
                Cell::new(at, *fault, shown && refused.is_none() || at != At::Question);
            let mut run = patiently(provider.begin(&ask("q"), "key")).await.unwrap();
            let outcome = followed(&mut *run).await;
            let questions = cell.lock().unwrap().questions;
            if outcome != expected || questions != 1 {
                wrong.push_str(&format!("{name} at {at:?}, shown {shown}: {outcome}, expected {expected}; {questions} sent\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
