//! One suite over both dialects: the simulator's scenarios by name, what deep research comes to in each, and never
//! more than one purchase.

use std::time::Duration;

use outlast_core::Provider;
use outlast_provider::perplexity::{Agent, Sonar};
use outlast_simulator::{Options, Simulator, SonarMode};

use crate::bench::{KEY, PATIENCE, ask, options, patiently, quick};
use crate::fault_table::{followed, not_begun};

/// A name, the scenario, and what it comes to in the Agent and in the Sonar dialect.
type Row = (&'static str, &'static str, [&'static str; 2]);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("all goes well",            "ok",                                        ["report", "report"]),
    ("all at once",              "ok;delay_ms=0",                             ["report", "report"]),
    ("the run fails",            "fail",                                      ["RunFailed", "RunFailed"]),
    ("cut short",                "incomplete",                                ["report", "report"]),
    ("cut short, empty",         "incomplete;output=empty",                   ["Rejected", "report"]),
    ("bad request",              "http;status=400",                           ["Refused Rejected", "Refused Rejected"]),
    ("bad key",                  "http;status=401",                           ["Refused Unauthorized", "Refused Unauthorized"]),
    ("bad key, by an edge",      "http;status=401;body=html",                 ["Refused Unauthorized", "Refused Unauthorized"]),
    ("no credit",                "quota",                                     ["Refused QuotaExhausted", "Refused QuotaExhausted"]),
    ("no credit, 402",           "quota;status=402",                          ["Refused QuotaExhausted", "Refused QuotaExhausted"]),
    ("too many requests",        "http;status=429;retry_after=1",             ["Refused RateLimited", "Refused RateLimited"]),
    ("trouble, in its words",    "503",                                       ["Refused Unavailable", "Refused Unavailable"]),
    ("trouble, by an edge",      "http;status=502;body=html",                 ["Unknown Unavailable", "Unknown Unavailable"]),
    ("trouble, without a word",  "http;status=500;body=empty",                ["Unknown Unavailable", "Unknown Unavailable"]),
    ("the answer is lost",       "drop_submit",                               ["Unknown Unreachable", "Unknown Unreachable"]),
    ("the answer has no id",     "no_id",                                     ["Unknown Malformed", "Unknown Rejected"]),
    ("checks fail twice",        "http;on=poll;times=2;status=503|no_terminal", ["report", "report"]),
    ("checks are too many",      "http;on=poll;times=2;status=429|no_terminal", ["report", "report"]),
    ("the key is withdrawn",     "http;on=poll;status=401|no_terminal",       ["Unauthorized", "Unauthorized"]),
    ("missing for a moment",     "flap404|no_terminal",                       ["report", "report"]),
    ("missing for good",         "lost|no_terminal",                          ["RunGone", "RunGone"]),
    ("checks lag behind",        "stale;polls=3|no_terminal",                 ["report", "report"]),
    ("checks go back in time",   "stale;polls=2;backwards|no_terminal",       ["report", "report"]),
    ("answers break off",        "drop;after_bytes=40;times=2|no_terminal;delay_ms=0", ["Unknown Unreachable", "report"]),
    ("no JSON for a while",      "malformed;kind=not_json;on=poll;times=2|no_terminal", ["report", "report"]),
    ("half an answer",           "malformed;kind=truncated;on=poll;times=2|no_terminal", ["report", "report"]),
    ("nulls",                    "malformed;kind=null_fields;on=poll;times=1|no_terminal", ["report", "report"]),
    ("another type",             "malformed;kind=wrong_type;on=poll;times=1|no_terminal", ["report", "report"]),
    ("a new status",             "malformed;kind=unknown_status;on=poll;times=1|no_terminal", ["report", "report"]),
    ("byte by byte",             "slow;chunk_bytes=7;chunk_ms=0|ok;words=50;sources=2", ["report", "report"]),
    ("hostile text",             "inject;line=100000",                        ["report", "report"]),
    ("no cost told",             "cost;none",                                 ["report", "report"]),
    ("dates missing",            "ok;dates=mixed",                            ["report", "report"]),
];

/// B9a, A5, A10: every scenario by its name.
#[tokio::test]
async fn b9a_every_scenario_comes_to_its_end_in_both_dialects_and_is_bought_once() {
    let (mut table, mut wrong) = (String::new(), 0);
    for (name, scenario, expected) in ROWS {
        table.push_str(&format!("{name:<26}"));
        for (dialect, expected) in expected.iter().enumerate() {
            let (outcome, bought) = outcome(dialect, scenario).await;
            table.push_str(&format!("| {outcome} "));
            if outcome != *expected || bought > 1 {
                wrong += 1;
                table.push_str(&format!("<- expected {expected}; bought {bought} times "));
            }
        }
        table.push('\n');
    }
    assert_eq!(wrong, 0, "{wrong} cells differ\n{table}");
}

/// What research comes to, and how often it was bought.
async fn outcome(dialect: usize, scenario: &str) -> (String, u64) {
    let simulated = Options { speed: 1_000.0, sonar: SonarMode::Live, ..Options::default() };
    let sim = Simulator::start(simulated).await.unwrap();
    let clock = Default::default();
    let options = options(sim.url(), KEY, PATIENCE, &clock);
    let provider: Box<dyn Provider> = match dialect {
        0 => Box::new(Agent::new(options).unwrap().with_waits(quick())),
        _ => Box::new(Sonar::new(options).unwrap().with_waits(quick())),
    };
    let begun = patiently(provider.begin(&ask(&format!("q [[sim:{scenario}]]")), "key")).await;
    let outcome = match begun {
        Err(error) => not_begun(&error),
        Ok(mut run) => {
            // Old enough that a run which cannot be found is gone.
            clock.advance(Duration::from_secs(31));
            followed(&mut *run).await
        }
    };
    (outcome, sim.stats().submits)
}
