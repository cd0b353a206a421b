//! The table as it is, and what bills come to.

use super::*;

fn cost(model: &str, usage: &Usage) -> Cost {
    Prices::current().bill(model, usage, &Extras::default())
}

#[test]
fn the_table_can_be_read_and_is_dated() {
    let prices = Prices::parse(include_str!("../prices.toml")).unwrap();
    let date: Vec<_> = prices.as_of.split('-').map(|part| part.parse::<u32>().unwrap()).collect();
    assert!(matches!(date[..], [2026..=2100, 1..=12, 1..=31]), "{}", prices.as_of);
    assert_eq!(prices.agent.models.len(), 9);
    assert_eq!(prices.sonar.models.len(), 4);
    assert_eq!(prices.openai.models.len(), 4);
    assert!(Prices::parse("as_of = \"2026-10-09\"\nsurprise = 1").is_err());
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: input + output,
        ..Usage::default()
    }
}

/// C9: computed from the table; the vendor's own example comes to $0.795.
#[test]
fn bills_of_known_models_are_computed() {
    let deep = Usage {
        citation_tokens: 8_834,
        reasoning_tokens: 220_303,
        searches: 19,
        ..tokens(1_001, 2_373)
    };
    let searched = |usage: Usage| Usage { searches: 3, ..usage };
    let cases = [
        ("sonar-deep-research", deep, 794_563_000),
        ("sonar", searched(tokens(1_000, 1_000)), 7_000_000),
        ("sonar-pro", tokens(1_000, 1_000), 24_000_000),
        ("sonar-reasoning-pro", tokens(1_000, 1_000), 16_000_000),
        ("openai/gpt-6-sol", searched(tokens(1_000_000, 1_000_000)), 12_007_500_000),
        // Reasoning is part of the output, and paid with it.
        ("openai/gpt-6-luna", Usage { reasoning_tokens: 900, ..tokens(10, 1_000) }, 501_000),
        ("perplexity/sonar", tokens(1, 1), 2_750),
    ];
    for (model, usage, nanos) in cases {
        assert_eq!(cost(model, &usage), Cost::Computed(NanoUsd(nanos)), "{model}");
    }
}

#[test]
fn a_bill_counts_cached_tokens_further_tools_and_the_size_of_the_context() {
    let bill = |model: &str, extras: Extras<'_>| {
        let cost = Prices::current().bill(model, &tokens(1_000_000, 0), &extras);
        let Cost::Computed(nanos) = cost else { panic!("{cost:?}") };
        nanos.0
    };
    let cached = |cached_tokens| Extras { cached_tokens, ..Extras::default() };
    assert_eq!(bill("openai/gpt-6-sol", cached(0)), 2_000_000_000);
    assert_eq!(bill("openai/gpt-6-sol", cached(1_000_000)), 200_000_000);
    assert_eq!(bill("openai/gpt-6-sol", cached(u64::MAX)), 200_000_000);
    let calls = Extras { calls: vec![("fetch_url", 2), ("new_tool", 5)], ..Extras::default() };
    assert_eq!(bill("openai/gpt-6-luna", calls), 101_000_000);
    for (context, nanos) in [
        (None, 1_005_000_000),
        (Some(ContextSize::Low), 1_005_000_000),
        (Some(ContextSize::Medium), 1_008_000_000),
        (Some(ContextSize::High), 1_012_000_000),
    ] {
        assert_eq!(bill("sonar", Extras { context, ..Extras::default() }), nanos, "{context:?}");
    }
}

/// C9: the flat price, marked as an estimate.
#[test]
fn an_unknown_model_costs_five_dollars_a_million_tokens() {
    let usage = tokens(100_000, 100_000);
    assert_eq!(cost("new/model", &usage), Cost::Estimate(NanoUsd(1_000_000_000)));
    let uncounted = Usage { total_tokens: 0, ..usage };
    assert_eq!(cost("", &uncounted), Cost::Estimate(NanoUsd(1_000_000_000)));
    assert_eq!(cost("openai/gpt-6-sol", &Usage::default()), Cost::Unknown);
    assert_eq!(cost("new/model", &Usage::default()), Cost::Unknown);
}

/// C10: what a query is likely to cost, before it is asked.
#[test]
fn every_kind_and_effort_has_a_typical_cost() {
    use outlast_core::Effort::{High, Low, Medium, Minimal};
    use outlast_core::ResearchKind::{Ask, Reason, Research, Results, Search};

    use crate::perplexity::{agent_typical as agent, sonar_typical as sonar};
    let typical: [fn(_, _) -> _; 2] = [agent, sonar];
    let cases = [
        (0, Research, None, 780),
        (0, Research, Some(High), 780),
        (0, Research, Some(Medium), 50),
        (0, Research, Some(Minimal), 4),
        (0, Search, None, 4),
        (0, Reason, None, 50),
        (0, Results, None, 5),
        (1, Research, None, 800),
        (1, Research, Some(Minimal), 300),
        (1, Research, Some(Low), 400),
        (1, Research, Some(Medium), 800),
        (1, Research, Some(High), 1_300),
        (1, Ask, None, 6),
        (1, Search, None, 20),
        (1, Reason, Some(High), 20),
        (1, Results, None, 5),
    ];
    for (dialect, kind, effort, thousandths) in cases {
        let cost = typical[dialect](kind, effort);
        let expected = Cost::Estimate(NanoUsd(thousandths * 1_000_000));
        assert_eq!(cost, expected, "{dialect:?} {kind:?} {effort:?}");
    }
    let ask = agent(Ask, None);
    assert_eq!(ask, Cost::Estimate(NanoUsd(1_500_000)));
}

/// G3, C9: OpenAI's own prices: searches by the call, snapshots by their model, and no certainty where requests may have
/// been dearer.
#[test]
fn g3_bills_of_openai_are_computed_or_called_estimates() {
    let usage = |input| Usage { searches: 3, ..tokens(input, 1_000) };
    let bill = |model: &str, input| cost(model, &usage(input));
    assert_eq!(bill("gpt-6-sol", 100_000), Cost::Computed(NanoUsd(240_000_000)));
    assert_eq!(bill("gpt-6-sol-2026-08-01", 100_000), Cost::Computed(NanoUsd(240_000_000)));
    assert_eq!(bill("gpt-6-sol", 272_001), Cost::Estimate(NanoUsd(584_002_000)));
    assert_eq!(bill("a-deployment", 99_000), Cost::Estimate(NanoUsd(500_000_000)));
    assert_eq!(cost("gpt-6-sol", &Usage::default()), Cost::Unknown);
    for (effort, thousandths) in [("low", 272), ("medium", 622), ("high", 1_720)] {
        let cost = Prices::current().typical_openai("gpt-6-sol", effort);
        assert_eq!(cost, Cost::Estimate(NanoUsd(thousandths * 1_000_000)), "{effort}");
    }
}
