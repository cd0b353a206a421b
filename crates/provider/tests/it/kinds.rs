//! Each kind of ask, as the provider takes it and answers it.

use outlast_core::{Cost, NanoUsd, Provider};
use serde_json::json;

use crate::bench::{Bench, follow};

/// The simulator refuses fields it does not know, as the provider does.
#[tokio::test]
async fn every_kind_of_ask_is_answered() {
    let bench = Bench::new().await;
    let filters = json!({"recency": "week", "domains": ["-example.com"], "after": "01/31/2026",
        "academic": true, "context_size": "high", "related_questions": true, "country": "DE",
        "max_results": 5, "max_tokens_per_page": 100});
    for (kind, effort, tools) in
        [("research", "high", 2), ("search", "low", 2), ("ask", "fast", 1), ("reason", "medium", 2)]
    {
        for filters in [json!({}), filters.clone()] {
            let narrowed = filters != json!({});
            let ask = json!({"kind": kind, "filters": filters,
                "messages": [{"role": "user", "content": "q [[sim:ok;words=50;delay_ms=0]]"}]})
            .into();
            let mut run = bench.agent.begin(&ask, "key").await.unwrap();
            assert!(!follow(&mut *run).await.text().is_empty(), "{kind}");
            let body = bench.sim.requests().pop().unwrap().body;
            let sent = body.get("effort").or(body.get("preset")).unwrap();
            assert_eq!(sent, effort, "{kind}");
            let listed = body.get("tools").map_or(0, |tools| tools.as_array().unwrap().len());
            assert_eq!(listed, if narrowed { tools } else { 0 }, "{kind}: {body}");
            assert_eq!(body.get("instructions").is_some(), narrowed, "{kind}: {body}");
        }
    }
}

/// C10: known before anything is sent.
#[tokio::test]
async fn c10_an_ask_has_a_typical_cost_before_it_is_made() {
    let bench = Bench::new().await;
    let cost = |ask: serde_json::Value| bench.agent.typical_cost(&ask.into());
    let messages = json!([{"role": "user", "content": "q"}]);
    let deep = json!({"messages": messages});
    assert_eq!(cost(deep), Cost::Estimate(NanoUsd(780_000_000)));
    let reason = json!({"messages": messages, "kind": "reason"});
    assert_eq!(cost(reason), Cost::Estimate(NanoUsd(50_000_000)));
    assert_eq!(cost(json!({"prompt": "q"})), Cost::Unknown);
    assert!(bench.sim.requests().is_empty());
}

/// The expected model until a model has answered: the effort, or the preset, that is sent.
#[tokio::test]
async fn an_ask_names_its_model_before_it_is_made() {
    let bench = Bench::new().await;
    let model = |rest: serde_json::Value| {
        let mut ask = json!({"messages": [{"role": "user", "content": "q"}]});
        ask.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        bench.agent.expected_model(&ask.into())
    };
    let cases = [
        (json!({}), Some("perplexity agent (high)")),
        (json!({"effort": "minimal"}), Some("perplexity agent (low)")),
        (json!({"effort": "medium"}), Some("perplexity agent (medium)")),
        (json!({"kind": "ask"}), Some("perplexity agent (fast)")),
        (json!({"kind": "reason", "effort": "high"}), Some("perplexity agent (high)")),
        (json!({"kind": "results"}), None),
        (json!({"messages": "?"}), None),
    ];
    for (ask, expected) in cases {
        assert_eq!(model(ask.clone()).as_deref(), expected, "{ask}");
    }
}
