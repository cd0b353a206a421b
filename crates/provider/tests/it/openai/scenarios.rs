//! The simulator's scenarios by name: what they come to here, and never more than one purchase.

use outlast_provider::openai::OpenAi;

use crate::scenarios::{ROWS, Simulated, outcome};

const OPENAI: Simulated = Simulated {
    make: |options| Box::new(OpenAi::new(options).unwrap()),
    base: "/openai/v1",
    runs: "/openai/v1/responses",
};

/// The scenarios whose result differs from the Agent API's.
const OTHERWISE: &[(&str, &str)] = &[
    // The submit is not a stream: faults that cut answers spare its receipt, and faults of receipts spoil it.
    ("answers break off", "report"),
    ("a receipt without sense", "Unknown Malformed"),
    // Another vendor's word for an endpoint that is gone.
    ("retired", "Refused Unauthorized"),
];

/// G3, G5, B9a, A5, A10: every scenario by its name.
#[tokio::test]
async fn g5_every_scenario_comes_to_its_end_and_is_bought_once() {
    for (name, _) in OTHERWISE {
        assert!(ROWS.iter().any(|(row, _, _)| row == name), "there is no row {name}");
    }
    let (mut table, mut wrong) = (String::new(), 0);
    for (name, scenario, [as_agent, _]) in ROWS {
        let differs = OTHERWISE.iter().find(|(row, _)| row == name);
        let expected = differs.map_or(*as_agent, |(_, here)| here);
        let (outcome, bought) = outcome(&OPENAI, scenario).await;
        table.push_str(&format!("{name:<26}| {outcome} "));
        if outcome != expected || bought > 1 {
            wrong += 1;
            table.push_str(&format!("<- expected {expected}; bought {bought} times "));
        }
        table.push('\n');
    }
    assert_eq!(wrong, 0, "{wrong} cells differ\n{table}");
}
