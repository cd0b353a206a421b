//! Whole runs: windows, faults of models, limits, money.

use outlast_core::{Cost, NanoUsd, ProviderErrorKind};
use outlast_researcher::Prices;

use crate::bench::Bench;

/// K1: a question becomes a report with a summary, sections and numbered sources, and its progress names real steps.
#[tokio::test(flavor = "multi_thread")]
async fn k1_a_question_becomes_a_report_with_sources() {
    let bench = Bench::new("-", "-").await;
    let (output, messages) = bench.try_finish().await;
    let output = output.unwrap();
    let outlast_core::Body::Report { text, sources, .. } = &output.body else { panic!("a report") };
    assert!(text.contains("## Summary") && text.contains("[1]"), "{text}");
    assert!(text.matches("\n## ").count() >= 2 && sources.len() >= 2, "{text}\n{sources:?}");
    let numbers: Vec<_> = sources.iter().map(|source| source.number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
    assert!(text.find("[1]") < text.find("[2]"), "sources are numbered by first mention: {text}");
    assert_eq!(output.cost, Cost::Computed(NanoUsd(0)));
    assert!(output.usage.input_tokens > 0 && output.usage.searches > 0);
    for expected in
        ["Planning", "Searching: ", "Reading 2 of ", "Taking notes: 1 of ", "Writing section 1 of "]
    {
        assert!(
            messages.iter().any(|message| message.starts_with(expected)),
            "{expected} {messages:?}"
        );
    }
    let calls = bench.simulator.calls();
    assert_eq!(
        calls.lanes["-"].most_at_once, 1,
        "K5: one request at a time to a server on this machine"
    );
    assert!(calls.strays.is_empty(), "{:?}", calls.strays);
}

/// K5: no prompt exceeds the window, whatever server states it and however it is counted.
#[tokio::test(flavor = "multi_thread")]
async fn k5_no_prompt_exceeds_the_window() {
    let servers =
        [("llama", 4_096), ("llama", 8_192), ("llama", 32_768), ("vllm", 4_096), ("ollama", 4_096)];
    for (server, window) in servers {
        let lane = format!("server={server},window={window}");
        let bench = Bench::new(&lane, "-").await;
        let (text, _) = bench.finish().await;
        assert!(text.contains("## Summary"), "{lane}: {text}");
        let calls = bench.simulator.calls();
        let longest = calls.lanes[&lane].longest_prompt;
        assert_eq!(calls.lanes[&lane].over_window, 0, "{lane} {longest}");
    }
}

/// K6: servers without JSON schemas or JSON mode are asked in words.
#[tokio::test(flavor = "multi_thread")]
async fn k6_servers_without_structured_answers_work() {
    for json in ["object", "plain", "none"] {
        let bench = Bench::new(&format!("json={json}"), "-").await;
        let (text, sources) = bench.finish().await;
        assert!(text.contains("## Summary") && !sources.is_empty(), "{json}: {text}");
    }
}

/// K6: a server that refuses every request is an error, not a report without findings.
#[tokio::test(flavor = "multi_thread")]
async fn k6_a_server_that_refuses_every_request_is_an_error() {
    let bench = Bench::new("closed", "-").await;
    let error = bench.try_finish().await.0.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Rejected);
    assert!(error.detail.unwrap().contains("this server is closed"));
}

/// K6: runs end well although a third of the answers is broken, and thinking, fences, refusals, endless and cut answers
/// are handled.
#[tokio::test(flavor = "multi_thread")]
async fn k6_runs_end_well_with_broken_answers() {
    let faults = [
        "broken=30",
        "refuse=30",
        "empty=30",
        "loop=30",
        "length=30",
        "think=100",
        "fence=100",
        "busy=1",
        "drop_before=30",
        "drop_after=30",
    ];
    for lane in faults {
        let bench = Bench::new(lane, "-").await;
        let (output, messages) = bench.try_finish().await;
        assert!(output.is_ok(), "{lane}: {output:?} {messages:?}");
    }
}

/// K4: no search results make an honest report.
#[tokio::test(flavor = "multi_thread")]
async fn k4_a_run_without_results_states_so() {
    let bench = Bench::new("-", "none").await;
    let (text, sources) = bench.finish().await;
    assert!(text.contains("The searches returned no results.") && sources.is_empty(), "{text}");
    assert!(text.contains("## What could not be established"), "{text}");
}

/// K11: SearXNG's 403 names the line to add; nothing was bought, and the run is kept.
#[tokio::test(flavor = "multi_thread")]
async fn k11_a_search_service_without_json_names_the_setting() {
    let bench = Bench::new("-", "json=off").await;
    let error = bench.try_finish().await.0.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Misconfigured);
    assert!(error.sentence.contains("search.formats"), "{error:?}");
    assert!(!error.kind.ends_the_run());
}

/// K3, K4: a budget is never exceeded, and what was found within it is written up.
#[tokio::test(flavor = "multi_thread")]
async fn k3_a_budget_is_not_exceeded() {
    let prices = Prices {
        input: Some(NanoUsd(1_000_000_000)),
        output: Some(NanoUsd(4_000_000_000)),
        search: Some(NanoUsd(5_000_000_000)),
    };
    for budget in [0, 5_000_000, 20_000_000, 60_000_000, 200_000_000] {
        let mut bench = Bench::new("-", "-").await;
        bench.prices = prices;
        bench.request["budget"] = budget.into();
        let output = bench.try_finish().await.0.unwrap();
        let Cost::Computed(NanoUsd(spent)) = output.cost else { panic!("{:?}", output.cost) };
        let recorded: u64 = bench.steps().await.iter().map(|step| step.spent.0).sum();
        assert_eq!(recorded, spent);
        assert!(spent <= budget, "{spent} of {budget}");
        if budget >= 200_000_000 {
            assert!(spent > 0);
        }
    }
}

/// K9: with a model on this machine and the library, nothing but the model is asked, and files are the sources.
#[tokio::test(flavor = "multi_thread")]
async fn k9_a_run_over_the_library_asks_only_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let page = "# Heat pumps developed in Arlen\n\nIn 2023 the town of Arlen counted 1,204 heat pumps. \
        Each of them saves 3,100 kilowatt hours a year. The costs fell by 12 percent between 2020 and 2023.\n";
    std::fs::write(folder.path().join("arlen.md"), page).unwrap();
    std::fs::write(folder.path().join("other.md"), "# Bread\n\nBread is baked daily.\n").unwrap();
    let mut bench = Bench::new("-", "-").await;
    bench.library = Some(folder.path().to_owned());
    let (text, sources) = bench.finish().await;
    let urls: Vec<_> = sources.iter().map(|source| source.url.as_str()).collect();
    assert_eq!(urls, ["arlen.md"], "{text}");
    assert!(text.contains("1,204 heat pumps [1]"), "{text}");
    let calls = bench.simulator.calls();
    assert!(calls.pages.is_empty(), "{:?}", calls.pages);
    assert!(calls.lanes.values().all(|lane| lane.search.is_empty()));
}
