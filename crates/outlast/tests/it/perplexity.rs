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

/// The tools that the vendor's server of version 1.2.1 lists, without the texts for models.
const VENDOR: &str = include_str!("perplexity/vendor-1.2.1.json");

/// Returns a schema without the parts that only a reader sees.
fn without_texts(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let texts = ["description", "title", "$schema"];
            let kept = members.iter().filter(|(name, _)| !texts.contains(&name.as_str()));
            kept.map(|(name, member)| (name.clone(), without_texts(member))).collect()
        }
        Value::Array(items) => items.iter().map(without_texts).collect(),
        other => other.clone(),
    }
}

/// A9: parameters, enums, required fields, bounds, outputs and annotations are the vendor's, with guidance on the
/// choice of a tool.
#[tokio::test]
async fn a9_the_schemas_are_those_of_the_vendor_s_server() {
    let world = world().await;
    let mut server = world.serve().await;
    let listed = server.request("tools/list", json!({})).await;
    let vendor: Value = serde_json::from_str(VENDOR).unwrap();
    for (name, theirs) in vendor.as_object().unwrap() {
        let tools = listed["result"]["tools"].as_array().unwrap();
        let ours = tools.iter().find(|tool| tool["name"] == **name).unwrap();
        for part in ["inputSchema", "outputSchema", "annotations"] {
            assert_eq!(without_texts(&ours[part]), theirs[part], "{name}: {part}");
        }
        let properties = ours["inputSchema"]["properties"].as_object().unwrap();
        for (property, schema) in properties {
            assert!(schema["description"].is_string(), "{name}: {property} is not described");
        }
        let described = ours["description"].as_str().unwrap();
        let others = vendor.as_object().unwrap().keys().filter(|other| *other != name);
        let names_another = others.into_iter().any(|other| described.contains(other.as_str()));
        assert!(described.contains("Best for") && names_another, "{name}: {described}");
    }
}

/// A9: everything that the vendor's server accepts is accepted.
#[tokio::test]
async fn a9_what_the_vendor_s_server_accepts_is_accepted() {
    let world = world().await;
    let mut server = world.serve().await;
    let message = |role: &str, text: &str| {
        let content = if text.is_empty() { String::new() } else { format!("{text} {QUICK}") };
        json!({ "role": role, "content": content })
    };
    let mut named = message("user", "named?");
    named["name"] = json!("ann");
    let domains: Vec<String> = (0..25).map(|number| format!("a{number}.example")).collect();
    let accepted = [
        ("perplexity_ask", json!({ "messages": [message("user", "a?")], "what": 1, "mode": null })),
        ("perplexity_ask", json!({ "messages": [named] })),
        ("perplexity_ask", json!({ "messages": [message("system", "b?")] })),
        ("perplexity_ask", json!({ "messages": [message("user", "c?"), message("user", "")] })),
        ("perplexity_ask", json!({ "messages": vec![message("user", "d?"); 120] })),
        (
            "perplexity_reason",
            json!({
                "messages": [message("user", "e?")],
                "search_domain_filter": ["a.example", "-b.example"],
                "search_context_size": "high",
                "search_recency_filter": "day"
            }),
        ),
        ("perplexity_research", json!({ "messages": [message("user", "f?")], "max_results": "x" })),
        ("perplexity_search", json!({ "query": "g", "max_results": 2.5, "unknown": {} })),
        ("perplexity_search", json!({ "query": "h", "max_tokens_per_page": 256.5 })),
        (
            "perplexity_search",
            json!({ "query": "i", "search_domain_filter": ["a.example", "-b.example"] }),
        ),
        ("perplexity_search", json!({ "query": "j".repeat(12_000) })),
    ];
    for (tool, arguments) in accepted {
        let result = server.call(tool, arguments.clone()).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_ne!(result["isError"], true, "{tool} {arguments:.200}: {text}");
    }
    // Only the provider refuses these.
    for arguments in [
        json!({ "query": "k", "country": "Germany" }),
        json!({ "query": "l", "search_domain_filter": domains }),
    ] {
        let before = world.simulator.requests().len();
        let result = server.call("perplexity_search", arguments).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(result["isError"] == true && !text.starts_with("VALIDATION_ERROR"), "{text}");
        assert!(world.simulator.requests().len() > before, "it was sent");
    }
    let requests = world.simulator.requests();
    let searches = requests.iter().filter(|request| request.path.ends_with("/search"));
    let counts: Vec<&Value> = searches.map(|request| &request.body["max_results"]).collect();
    assert_eq!(counts[0], &json!(2), "the whole part");
}

/// A9: texts to the letter: citations end with a line break, results are a list, thinking stays unless it is to be left
/// out.
#[tokio::test]
async fn a9_the_result_texts_are_those_of_the_vendor_s_server() {
    let world = world().await;
    let mut server = world.serve().await;
    let result = server.call("perplexity_ask", ask("Why?")).await;
    let text = result["structuredContent"]["response"].as_str().unwrap();
    let (_, citations) = text.split_once("\n\nCitations:\n").unwrap();
    assert!(citations.ends_with('\n') && !citations.ends_with("\n\n"), "{citations:?}");
    assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");

    let search = json!({ "query": "heat pumps", "max_results": 2 });
    let result = server.call("perplexity_search", search).await;
    let text = result["structuredContent"]["results"].as_str().unwrap();
    let mut items = text.split("\n\n");
    assert_eq!(items.next(), Some("Found 2 search results:"));
    for number in 1..=2 {
        let lines: Vec<&str> = items.next().unwrap().split('\n').collect();
        assert!(lines[0].starts_with(&format!("{number}. **")) && lines[0].ends_with("**"));
        assert!(lines[1].starts_with("   URL: https://"), "{lines:?}");
        assert!(lines[2].starts_with("   ") && lines[3].starts_with("   Date: "), "{lines:?}");
    }
    assert_eq!((items.next(), items.next()), (Some(""), None), "{text:?}");

    let thoughtful = |question: &str, strip: Value| {
        let content = format!("{question} [[sim:ok;words=60;delay_ms=0;thinks]]");
        json!({ "messages": [{ "role": "user", "content": content }], "strip_thinking": strip })
    };
    for (question, strip, is_kept) in
        [("One?", json!(false), true), ("Two?", json!("yes"), true), ("Three?", json!(true), false)]
    {
        let result = server.call("perplexity_reason", thoughtful(question, strip)).await;
        let text = result["structuredContent"]["response"].as_str().unwrap();
        assert_eq!(text.starts_with("<think>\n"), is_kept, "{question}: {text}");
        assert_eq!(text.contains("</think>\n\n#"), is_kept, "{question}: {text}");
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

/// A9: progress for a caller with a token, none otherwise; and promise 2 for a caller that gives up.
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

/// Promise 2: each of the four tools repeats its answer, marks it as repeated, and explains how to ask again without a
/// key.
#[tokio::test]
async fn a_repeated_call_is_answered_with_the_same_and_says_so() {
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
