//! A client that starts, polls and cancels at random.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::ledger::Ledger;

/// Scenarios, each with the maximum number of submits (B9a).
const SCENARIOS: [(&str, u64); 7] = [
    ("ok;words=40;sources=2;delay_ms=0", 1),
    ("ok;words=40;sources=2;delay_ms=1000", 1),
    ("ok;words=40;sources=2;delay_ms=4000", 1),
    ("drop;after_events=2;times=2|ok;words=40;delay_ms=1000", 1),
    ("http;status=503;times=1;retry_after=0|ok;words=40;delay_ms=0", 1),
    ("fail;times=1;delay_ms=500", 2),
    ("no_stream|ok;words=40;delay_ms=500", 1),
];

/// While there are more unfinished jobs than this, no client starts another.
const MOST_UNFINISHED: usize = 40;

pub(crate) async fn torment(
    fleet: Arc<Fleet>,
    ledger: Arc<Ledger>,
    slot: usize,
    seed: u64,
    done: Arc<AtomicBool>,
) {
    let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(31).wrapping_add(slot as u64));
    let mut asked = 0;
    while !done.load(Ordering::SeqCst) {
        let may_start = ledger.unfinished() < MOST_UNFINISHED;
        match random.u8(..20) {
            0..8 if may_start => {
                asked += 1;
                start(&fleet, &ledger, slot, asked, &mut random).await;
            }
            19 => about(&fleet, &ledger, slot, "perplexity_research_cancel", &mut random).await,
            _ => about(&fleet, &ledger, slot, "perplexity_research_poll", &mut random).await,
        }
    }
}

async fn start(
    fleet: &Fleet,
    ledger: &Ledger,
    slot: usize,
    number: u64,
    random: &mut fastrand::Rng,
) {
    let (scenario, allowed) = SCENARIOS[random.usize(..SCENARIOS.len())];
    let question = format!("Question {number} of client {slot}");
    ledger.ask(&question, allowed);
    let content = format!("{question} [[sim:{scenario}]]");
    let arguments = json!({ "messages": [{ "role": "user", "content": content }] });
    let result = fleet.call(slot, "perplexity_research_start", arguments).await;
    let refusal = result.as_ref().map(|result| &result["_meta"]["outlast/error"]);
    if refusal.is_some_and(|refusal| refusal["retryable"] == true) {
        // A repeated call must not pay for this one too.
        ledger.ask(&question, 0);
    }
    if let Some(answer) = shape(fleet, result) {
        ledger.acknowledge(answer["jobId"].as_str().unwrap(), &question);
    }
}

async fn about(
    fleet: &Fleet,
    ledger: &Ledger,
    slot: usize,
    tool: &str,
    random: &mut fastrand::Rng,
) {
    let Some(id) = ledger.some_job(random) else { return };
    // Another client may see the end while this call is on its way with an older reading.
    let ended_before = ledger.has_ended(&id);
    if let Some(answer) = shape(fleet, fleet.call(slot, tool, json!({ "jobId": id })).await) {
        ledger.see(&answer, ended_before);
    }
}

/// Returns the tool's own result; a refusal is a broken promise, unless the database is unreachable.
fn shape(fleet: &Fleet, result: Option<Value>) -> Option<Value> {
    let result = result?;
    let code = &result["_meta"]["outlast/error"]["code"];
    if let (Some(database), Some("SERVICE_UNAVAILABLE")) = (&fleet.database, code.as_str()) {
        database.refused();
        return None;
    }
    assert_ne!(result["isError"], true, "refused: {result}");
    Some(result["structuredContent"].clone())
}
