//! The simulator's scenarios by name, and what research comes to in each: as in the Agent dialect, but for what is
//! listed here; and never more than one purchase.

use std::time::Duration;

use outlast_core::Provider;
use outlast_simulator::{Options, Simulator};

use super::bench::gemini;
use crate::bench::{PATIENCE, ask, follow, patiently};
use crate::fault_table::{followed, not_begun};
use crate::scenarios::ROWS;

/// The rows that come to something else here.
const OTHERWISE: &[(&str, &str)] = &[
    // 403 is about the key here.
    ("retired", "Refused Unauthorized"),
    // The answer to a submit is not a stream that could break; checks are repeated.
    ("answers break off", "report"),
    ("a receipt without sense", "Unknown Malformed"),
];

/// Streams that are silent for this long are given up.
const SILENCE: Duration = Duration::from_secs(1);

/// B9a, A5, A10, G5: every scenario by its name.
#[tokio::test]
async fn g5_b9a_every_scenario_comes_to_its_end_and_is_bought_once() {
    let (mut table, mut wrong) = (String::new(), 0);
    for (name, scenario, [as_agent, _]) in ROWS {
        let otherwise = OTHERWISE.iter().find(|(row, _)| row == name);
        let expected = otherwise.map_or(*as_agent, |(_, here)| here);
        let (outcome, bought) = outcome(scenario).await;
        table.push_str(&format!("{name:<26}| {outcome} "));
        if outcome != expected || bought > 1 {
            wrong += 1;
            table.push_str(&format!("<- expected {expected}; bought {bought} times"));
        }
        table.push('\n');
    }
    for (name, _) in OTHERWISE {
        assert!(ROWS.iter().any(|(row, _, _)| row == name), "there is no row {name}");
    }
    assert_eq!(wrong, 0, "{wrong} rows differ\n{table}");
}

/// The result of research, and the number of times it was bought.
async fn outcome(scenario: &str) -> (String, u64) {
    let sim = Simulator::start(Options { speed: 1_000.0, ..Options::default() }).await.unwrap();
    let never_ends = scenario.starts_with("stuck");
    let timeout = if never_ends { SILENCE } else { PATIENCE };
    let provider = gemini(sim.url(), timeout, &Default::default());
    let begun = patiently(provider.begin(&ask(&format!("q [[sim:{scenario}]]")), "key")).await;
    let outcome = match begun {
        Err(error) => not_begun(&error),
        Ok(mut run) => tokio::select! {
            outcome = followed(&mut *run) => outcome,
            () = looked_at(&sim), if never_ends => "goes on".to_owned(),
        },
    };
    (outcome, sim.stats().submits)
}

/// Comes back when the run has been looked at three times after the first.
async fn looked_at(sim: &Simulator) {
    let mut look = tokio::time::interval(Duration::from_millis(2));
    while !sim.stats().runs.iter().any(|run| run.polls > 3) {
        look.tick().await;
    }
}

/// G3, G5: the words for limits are this vendor's; what was written is kept, nothing is bought again.
#[tokio::test]
async fn g5_a_run_that_reaches_a_limit_keeps_what_it_wrote() {
    for reason in ["budget_exceeded", "requires_continuation", "incomplete"] {
        let sim = Simulator::start(Options { speed: 1_000.0, ..Options::default() }).await.unwrap();
        let provider = gemini(sim.url(), PATIENCE, &Default::default());
        for (output, expected) in [("partial", "report"), ("empty", "Rejected")] {
            let question =
                format!("{output} [[sim:incomplete;reason={reason};output={output};delay_ms=0]]");
            let mut run = patiently(provider.begin(&ask(&question), "key")).await.unwrap();
            let end = follow(&mut *run).await;
            if expected == "report" {
                let note = format!("*The provider ended this report early ({reason}).*");
                assert!(end.text().ends_with(&note), "{}", end.text());
                continue;
            }
            let error = end.error();
            assert!(error.sentence.contains(reason), "{error:?}");
            assert!(error.kind.is_permanent() && !error.kind.ends_the_run(), "{error:?}");
        }
        assert_eq!(sim.stats().submits, 2);
    }
}
