//! Checks after the storm that every promise was kept.

use std::collections::HashMap;

use outlast_simulator::Simulator;
use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::ledger::{Ledger, is_end};

pub(crate) async fn check(fleet: &Fleet, ledger: &Ledger, simulator: &Simulator) {
    let mut server = fleet.rest().await;
    let jobs = ledger.open().jobs.clone();
    let mut statuses: HashMap<String, u64> = HashMap::new();
    for (id, _) in &jobs {
        let end = loop {
            let poll = server.structured("perplexity_research_poll", json!({ "jobId": id })).await;
            let ended_before = true;
            ledger.see(&poll, ended_before);
            if is_end(&poll) {
                break poll;
            }
        };
        *statuses.entry(kind(&end)).or_default() += 1;
    }
    server.close_input();
    let (status, log) = server.ended().await;
    assert!(status.success(), "the last server: {status}\n{log}");

    // Jobs whose start was never answered are equally durable, and end like the others.
    for state in ["queued", "running"] {
        let (code, list) = fleet
            .command(&["jobs", "list", "--all", "--json", "--limit", "1000", "--state", state])
            .await;
        assert_eq!(code, Some(0), "{list}");
        let list: Value = serde_json::from_str(&list).unwrap();
        let left = list["jobs"].as_array().unwrap();
        let acknowledged = left.iter().any(|job| jobs.iter().any(|(id, _)| job["id"] == *id));
        assert!(!acknowledged, "an acknowledged job is {state} after its end: {list}");
    }

    let mut submits: HashMap<String, u64> = HashMap::new();
    for run in simulator.stats().runs {
        let question = run.submitted_input.split(" [[").next().unwrap().to_owned();
        *submits.entry(question).or_default() += 1;
    }
    let paid: u64 = submits.values().sum();
    let allowed_for = ledger.open().allowed.clone();
    for (question, submits) in submits {
        let allowed = allowed_for[&question];
        assert!(submits <= allowed, "`{question}` was paid for {submits} times, allowed {allowed}");
    }
    let (code, checked) = fleet.command(&["store", "check"]).await;
    assert_eq!(code, Some(0), "the store is damaged: {checked}");

    let mut statuses: Vec<_> = statuses.into_iter().collect();
    statuses.sort();
    println!("{} deaths, {} jobs acknowledged, {paid} submits", fleet.deaths(), jobs.len());
    if let Some(database) = &fleet.database {
        println!("{}", database.told());
    }
    for (status, count) in statuses {
        println!("{count:>7}  {status}");
    }
    println!("no acknowledged job lost, none paid for twice, one end each, the store is sound");
}

fn kind(end: &Value) -> String {
    let code = end["error"].as_str().and_then(|error| error.split(':').next()).unwrap_or_default();
    format!("{} {code}", end["status"].as_str().unwrap()).trim().to_owned()
}
