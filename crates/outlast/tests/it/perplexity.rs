//! Tool set `perplexity`: the vendor's four tools on the real binary.

use serde_json::{Value, json};

use crate::support::{World, eventually};

const QUICK: &str = "[[sim:ok;words=60;sources=3;delay_ms=0]]";

async fn world() -> World {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "perplexity,research-jobs");
    world
}

fn ask(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": format!("{text} {QUICK}") }] })
}

/// A9: exactly seven tools, the vendor's four as the vendor lists them.
#[tokio::test]
async fn a9_with_research_jobs_there_are_exactly_seven_tools() {
    let world = world().await;
    let mut server = world.serve().await;
    let listed = server.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "perplexity_ask",
            "perplexity_reason",
            "perplexity_research",
            "perplexity_search",
            "perplexity_research_start",
            "perplexity_research_poll",
            "perplexity_research_cancel",
        ]
    );
    let keys = |tool: usize| {
        let properties = tools[tool]["inputSchema"]["properties"].as_object().unwrap();
        properties.keys().cloned().collect::<std::collections::BTreeSet<_>>()
    };
    let asking =
        ["messages", "search_context_size", "search_domain_filter", "search_recency_filter"];
    assert_eq!(keys(0), asking.map(str::to_owned).into());
    assert_eq!(keys(1), asking.map(str::to_owned).into());
    assert_eq!(keys(2), ["messages".to_owned()].into());
    let searching = [
        "country",
        "max_results",
        "max_tokens_per_page",
        "query",
        "search_domain_filter",
        "search_recency_filter",
    ];
    assert_eq!(keys(3), searching.map(str::to_owned).into());
    for tool in &tools[..4] {
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
    }
}

/// Scenarios 18, 19, 25: the right effort, messages verbatim, citations by number.
#[tokio::test]
async fn each_tool_answers_with_citations() {
    let world = world().await;
    let mut server = world.serve().await;
    for (tool, effort) in [
        ("perplexity_ask", "fast"),
        ("perplexity_reason", "medium"),
        ("perplexity_research", "high"),
    ] {
        let result = server.call(tool, ask(" Why? \n")).await;
        let response =
            result["structuredContent"]["response"].as_str().unwrap_or_else(|| panic!("{result}"));
        assert_eq!(result["content"][0]["text"].as_str(), Some(response));
        assert!(response.contains("\n\nCitations:\n[1] http"), "{tool}: {response}");
        let requests = world.simulator.requests();
        let submit = requests.iter().rfind(|request| request.method == "POST").unwrap();
        let sent = submit.body["effort"].as_str().or(submit.body["preset"].as_str());
        assert_eq!(sent, Some(effort), "{tool}");
        assert!(submit.body["input"].to_string().contains(" Why? \\n"), "{}", submit.body["input"]);
    }
}

/// Scenarios 29, 31: ranked results with the vendor's defaults; bad bounds name their field and are not sent.
#[tokio::test]
async fn search_gives_ranked_results_and_checks_its_bounds() {
    let world = world().await;
    let mut server = world.serve().await;
    let result = server.call("perplexity_search", json!({ "query": "heat pumps" })).await;
    let text =
        result["structuredContent"]["results"].as_str().unwrap_or_else(|| panic!("{result}"));
    assert!(text.starts_with("Found ") && text.contains("search results"), "{text}");
    let requests = world.simulator.requests();
    let asked = requests.iter().rfind(|request| request.path.ends_with("/search")).unwrap();
    assert_eq!(asked.body["max_results"], 10);
    assert_eq!(asked.body["max_tokens_per_page"], 1024);
    let before = requests.len();
    for (field, value) in [
        ("max_results", 0),
        ("max_results", 21),
        ("max_tokens_per_page", 255),
        ("max_tokens_per_page", 2049),
    ] {
        let result = server.call("perplexity_search", json!({ "query": "x", field: value })).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("VALIDATION_ERROR: {field}")), "{text}");
    }
    assert_eq!(world.simulator.requests().len(), before, "nothing was asked");
}

/// Scenario 17: arguments of the vendor's older versions do no harm.
#[tokio::test]
async fn arguments_of_older_versions_are_set_aside() {
    let world = world().await;
    let mut server = world.serve().await;
    let mut arguments = ask("Why?");
    arguments["strip_thinking"] = json!(true);
    arguments["reasoning_effort"] = json!("high");
    let result = server.call("perplexity_research", arguments).await;
    assert!(result["structuredContent"]["response"].is_string(), "{result}");
}

/// design.md: a name two sets share belongs to the set listed first.
#[tokio::test]
async fn the_first_set_listed_owns_a_shared_name() {
    for (sets, ranked) in [("perplexity,research", true), ("research,perplexity", false)] {
        let mut world = World::new().await;
        world.set("OUTLAST_TOOLS", sets);
        let mut server = world.serve().await;
        let result =
            server.call("perplexity_search", json!({ "query": format!("why? {QUICK}") })).await;
        assert_eq!(
            result["structuredContent"].get("results").is_some(),
            ranked,
            "{sets}: {result}"
        );
    }
}

/// A9: progress for who gave a token, none otherwise; and promise 2 for who gives up.
#[tokio::test]
async fn a9_a_client_that_gives_up_picks_its_call_up_again() {
    let world = world().await;
    let mut server = world.serve().await;
    let arguments = json!({ "messages": [{ "role": "user", "content": "why? [[sim:ok;words=60;delay_ms=0;hold=true]]" }] });
    let call = json!({
        "name": "perplexity_research", "arguments": arguments, "_meta": { "progressToken": "p" }
    });
    let first = server.send("tools/call", call).await;
    loop {
        let message = server.message().await.unwrap();
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "p");
            break;
        }
    }
    server.notify("notifications/cancelled", json!({ "requestId": first })).await;
    server.request("ping", json!({})).await;
    let plain = json!({ "name": "perplexity_research", "arguments": arguments });
    let second = server.send("tools/call", plain).await;
    server.request("ping", json!({})).await;
    server.seen.clear();
    eventually("the run is under way", || world.submits() == 1).await;
    world.simulator.release();
    let answer = server.answer(second).await.unwrap();
    assert!(answer["result"]["structuredContent"]["response"].is_string(), "{answer}");
    assert_eq!(world.submits(), 1, "paid for once");
    let progress = server.seen.iter().filter(|seen| seen["method"] == "notifications/progress");
    assert_eq!(progress.count(), 0, "no token, no progress");
}

/// Promise 2: each of the four tools repeats its answer, says so and how to ask anew without a key.
#[tokio::test]
async fn a_call_made_again_is_answered_with_the_same_and_says_so() {
    let world = world().await;
    let mut server = world.serve().await;
    let search = json!({ "query": format!("Sky {QUICK}") });
    let calls = [
        ("perplexity_ask", ask("Why?")),
        ("perplexity_reason", ask("Why?")),
        ("perplexity_research", ask("Why?")),
        ("perplexity_search", search),
    ];
    for (tool, arguments) in calls {
        let first = server.call(tool, arguments.clone()).await;
        assert_eq!(first["_meta"]["outlast/replayed"], Value::Null, "{tool}: {first}");
        let asked = world.simulator.requests().len();
        let again = server.call(tool, arguments).await;
        assert_eq!(again["_meta"]["outlast/replayed"], true, "{tool}: {again}");
        assert_eq!(again["structuredContent"], first["structuredContent"]);
        assert_eq!(again["content"][0], first["content"][0]);
        let sentence = again["content"][1]["text"].as_str().unwrap();
        assert!(sentence.contains("ask again after 20"), "{sentence}");
        assert!(sentence.contains("or change the wording"), "{sentence}");
        assert_eq!(world.simulator.requests().len(), asked, "{tool}: nothing was asked");
    }
}
