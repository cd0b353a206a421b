//! The researcher as a configured provider: what it needs, what it costs, and what leaves this machine.

use serde_json::{Value, json};

use crate::http::client::{ANN, Served};
use crate::page::browser::Browser;
use crate::support::World;

const ASK: &str = "deep_research";

/// Creates a world with a folder of documents and a researcher that has these variables too.
async fn world(variables: &[(&str, &str)]) -> World {
    let mut world = World::new().await;
    let folder = world.data_dir().parent().unwrap().join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("notes.md"), "# Boiler\n\nThe vault code is 93.\n").unwrap();
    world.set("OUTLAST_LIBRARY", folder.to_str().unwrap());
    world.set("OUTLAST_PROVIDERS", "researcher,library");
    world.set("OUTLAST_MODEL", "m");
    for (name, value) in variables {
        world.set(name, value);
    }
    world
}

/// Creates a world whose model, search engine and web are the simulator's.
pub(crate) async fn simulated(model_switches: &str) -> World {
    let mut world = World::new().await;
    let url = world.simulator.url().to_owned();
    world.set("OUTLAST_MODEL_URL", &format!("{url}/llm/{model_switches}/v1"));
    world.set("OUTLAST_MODEL", "scripted");
    world.set("OUTLAST_SEARCH_URL", &format!("{url}/searxng/-"));
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    world
}

/// K1, K7, K10: with a model and a search service, `--provider researcher` is enough. The steps are shown as they are
/// taken, and a check of the report finds every cited fact.
#[tokio::test]
async fn k1_the_researcher_answers_by_its_name_alone() {
    let world = simulated("-").await;
    let asked = ["research", "How efficient are heat pumps?", "--provider", "researcher", "--json"];
    let ran = world.run(&asked).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    let body = &job["output"]["body"];
    let text = body["text"].as_str().unwrap();
    assert!(text.contains("## Summary") && text.contains("[1]"), "{text}");
    assert!(!body["sources"].as_array().unwrap().is_empty(), "{body}");
    let checked = world.run(&["check", job["id"].as_str().unwrap(), "--json"]).await;
    let check: Value = serde_json::from_str(&checked.stdout).unwrap();
    let totals = &check["totals"];
    assert_eq!((&totals["differs"], &totals["not_found"]), (&json!(0), &json!(0)), "{check}");
    assert!(totals["supported"].as_u64().unwrap() > 3, "{check}");
}

/// J4: a check compares a report of the researcher with the pages that its run has kept. Only a fresh check fetches them.
#[tokio::test]
async fn j4_a_report_of_the_researcher_is_checked_against_its_kept_pages() {
    let world = simulated("-").await;
    let asked = ["research", "How efficient are heat pumps?", "--provider", "researcher", "--json"];
    let ran = world.run(&asked).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = job["id"].as_str().unwrap();
    let fetched = world.simulator.calls().pages;
    let checked = world.run(&["check", id, "--json"]).await;
    assert_eq!(world.simulator.calls().pages, fetched, "{checked:?}");
    let kept: Value = serde_json::from_str(&checked.stdout).unwrap();
    let sources = kept["sources"].as_array().unwrap();
    assert!(sources.iter().all(|source| source["verdict"] == "ok" && source["httpStatus"] == 200));
    let checked = world.run(&["check", id, "--fresh", "--json"]).await;
    assert_ne!(world.simulator.calls().pages, fetched, "{checked:?}");
    let fresh: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(kept["totals"], fresh["totals"], "the same pages");
}

/// K10: the progress names the steps of the run.
#[tokio::test]
async fn k10_the_progress_names_the_steps_of_the_run() {
    let world = simulated("-").await;
    let asked = ["research", "How efficient are heat pumps?", "--provider", "researcher"];
    let ran = world.run(&asked).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for step in
        ["Planning the research", "Reading ", " pages", "Taking notes", "Writing section 1 of "]
    {
        assert!(ran.stderr.contains(step), "{step}: {}", ran.stderr);
    }
}

/// K10: the page and `jobs show` list the steps of a run with their time.
#[tokio::test]
async fn k10_the_page_and_jobs_show_list_the_steps() {
    let mut world = simulated("-").await;
    world.set("OUTLAST_PROVIDERS", "researcher");
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let job = browser.ask("How efficient are heat pumps?").await;
    browser.until(&job, "state succeeded").await;
    let body = browser.get(&job).await.body;
    for part in ["Each step", "1 plan, ", " searches, ", " pages, ", "section 1, ", "tokens read"] {
        assert!(body.contains(part), "{part}: {body}");
    }
    let id = job.rsplit('/').next().unwrap();
    world.set("OUTLAST_OWNER", "ann");
    let shown = world.run(&["jobs", "show", id]).await;
    assert!(shown.stdout.contains("1 plan, ") && shown.stdout.contains(" pages, "), "{shown:?}");
    let shown = world.run(&["jobs", "show", id, "--json"]).await;
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let steps = shown["steps"].as_array().unwrap();
    let read = steps.iter().find(|totals| totals["kind"] == "read").unwrap();
    assert!(read["done"].as_u64().unwrap() > 1 && read["failed"] == 0, "{shown}");
}

/// K10: the page and `jobs show` list the questions, the searches, the pages and the notes of a run.
#[tokio::test]
async fn k10_the_page_and_jobs_show_list_searches_pages_and_notes() {
    let mut world = simulated("-").await;
    world.set("OUTLAST_PROVIDERS", "researcher");
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let job = browser.ask("How efficient are heat pumps?").await;
    browser.until(&job, "state succeeded").await;
    let body = browser.get(&job).await.body;
    world.set("OUTLAST_OWNER", "ann");
    let id = job.rsplit('/').next().unwrap();
    let shown = world.run(&["jobs", "show", id, "--json"]).await;
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let found = &shown["research"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (query, url) = (text(&found["searches"][0]["query"]), text(&found["pages"][0]["url"]));
    let (question, claim) = (text(&found["questions"][0]), text(&found["notes"][0]["claim"]));
    assert!(!query.is_empty() && url.starts_with("http://127.0.0."), "{found}");
    assert!(text(&found["searches"][0]["result"]).ends_with(" results"), "{found}");
    let printed = world.run(&["jobs", "show", id]).await.stdout;
    for part in [&query, &url, &question] {
        assert!(printed.contains(&part[..part.len().min(60)]), "{part}: {printed}");
        assert!(body.contains(&**part), "{part}: {body}");
    }
    assert!(body.contains("Notes (") && body.contains(&claim), "{claim}: {body}");
    assert!(body.contains(&format!("<a href=\"{url}\" rel=\"noopener noreferrer\">")), "{body}");
    world.set("OUTLAST_OWNER", "bob");
    let foreign = world.run(&["jobs", "show", id, "--json"]).await;
    assert!(foreign.code != Some(0) && !foreign.stdout.contains(&query), "{foreign:?}");
}

/// K10: a follow-up starts from the pages of its conversation, in MCP as well, and `keep_pages` removes them: the report
/// stays.
#[tokio::test]
async fn k10_pages_are_kept_for_follow_ups_and_no_longer() {
    let mut world = simulated("-").await;
    world.set("OUTLAST_PROVIDERS", "researcher");
    let file = world.data_dir().with_file_name("outlast.toml");
    let asked = ["research", "How efficient are heat pumps?", "--json", "--effort", "low"];
    let first: Value = serde_json::from_str(&world.run(&asked).await.stdout).unwrap();
    let fetched = world.simulator.calls().pages;
    let conversation = first["conversation"].as_str().unwrap();
    let asked =
        ["research", "And what do they cost?", "--follow-up", conversation, "--effort", "low"];
    let ran = world.run(&asked).await;
    assert!(ran.code == Some(0) && ran.stderr.contains("Looking at "), "{ran:?}");
    let pages = world.simulator.calls().pages;
    let cited = first["output"]["body"]["sources"].as_array().unwrap();
    for source in cited {
        let url = source["url"].as_str().unwrap();
        let page = fetched.iter().find(|(page, _)| url.ends_with(&***page)).unwrap();
        assert_eq!(pages[page.0], *page.1, "{url} was fetched again");
    }
    let id = first["id"].as_str().unwrap();
    let count = async |world: &World| {
        let shown = world.run(&["jobs", "show", id, "--json"]).await;
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert!(shown["output"]["body"]["text"].as_str().unwrap().contains("## Summary"));
        shown["research"]["pages"].as_array().unwrap().len()
    };
    assert!(count(&world).await > 1);
    std::fs::write(&file, "[researcher]\nkeep_pages = \"0s\"\n").unwrap();
    let server = world.serve_with(&["--config", file.to_str().unwrap()]).await;
    let limit = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while count(&world).await > 0 {
        assert!(tokio::time::Instant::now() < limit, "the pages are still there: {}", server.log());
    }
}

/// G2, K1: as the first provider, the researcher answers the quick tools too: `perplexity_search` of the vendor's set is
/// one search without a model, the others are short runs.
#[tokio::test]
async fn g2_the_quick_tools_are_answered_by_the_researcher() {
    let mut world = simulated("-").await;
    world.set("OUTLAST_PROVIDERS", "researcher");
    world.set("OUTLAST_TOOLS", "perplexity");
    let mut server = world.serve().await;
    let asked = json!({ "query": "heat pumps", "max_results": 3 });
    let found = server.call("perplexity_search", asked).await;
    let text = found["structuredContent"]["results"].as_str().unwrap_or_else(|| panic!("{found}"));
    assert!(text.starts_with("Found 3 search results:\n\n1. **"), "{text}");
    assert_eq!(text.matches("\n   URL: http://127.0.0.").count(), 3, "{text}");
    let calls = world.simulator.calls();
    let lane = &calls.lanes["-"];
    assert_eq!((lane.model.len(), lane.search.len()), (0, 1), "no model is asked");
    for tool in ["perplexity_ask", "perplexity_reason", "perplexity_research"] {
        let message =
            json!({ "role": "user", "content": format!("{tool}: how efficient are heat pumps?") });
        let answer = server.call(tool, json!({ "messages": [message] })).await;
        let text =
            answer["structuredContent"]["response"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(text.contains("## Summary") && text.contains("[1]"), "{tool}: {text}");
    }
    drop(server);
    world.set("OUTLAST_TOOLS", "research");
    let mut server = world.serve().await;
    server.logged("deep-research").await;
    let answer = server.call("perplexity_search", json!({ "query": "heat pumps of Arlen" })).await;
    let text =
        answer["structuredContent"]["rawResultText"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(text.contains("[1]") && text.contains("## Summary"), "{text}");
}

/// G2, K11: a search service that refuses is a clear refusal of the quick tools.
#[tokio::test]
async fn g2_a_quick_search_that_cannot_be_made_is_refused_with_the_setting() {
    let mut world = simulated("-").await;
    let url = world.simulator.url().to_owned();
    world.set("OUTLAST_PROVIDERS", "researcher");
    world.set("OUTLAST_TOOLS", "perplexity");
    world.set("OUTLAST_SEARCH_URL", &format!("{url}/searxng/json=off"));
    let mut server = world.serve().await;
    let refused = server.call("perplexity_search", json!({ "query": "heat pumps" })).await;
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(refused["isError"] == true && text.starts_with("CONFIGURATION_ERROR: "), "{text}");
    assert!(text.contains("formats: [html, json]"), "{text}");
}

/// C10, P7: a run of the researcher that is likely to cost over a dollar is logged before it, and one that did cost that
/// is reported in the log and in the answer.
#[tokio::test]
async fn c10_p7_a_costly_run_of_the_researcher_is_warned_of() {
    let mut world = simulated("-").await;
    world.set("OUTLAST_PROVIDERS", "researcher");
    let file = world.data_dir().with_file_name("outlast.toml");
    let mut asked = json!({ "query": "How efficient are heat pumps?", "effort": "low" });
    for (price, is_costly) in [("500", true), ("0.01", false)] {
        std::fs::write(&file, format!("[researcher]\nprice_in = {price}\nprice_out = {price}\n"))
            .unwrap();
        let mut server = world.serve_with(&["--config", file.to_str().unwrap()]).await;
        asked["idempotency_key"] = json!(price);
        let answer = server.call(ASK, asked.clone()).await;
        let text = answer["content"].to_string();
        let over = "(by the price table), which is over $1.";
        assert_eq!(text.contains(over), is_costly, "{text}");
        if is_costly {
            server.logged("likely to cost over $1").await;
            server.logged(over).await;
        }
    }
}

/// C11: the tools warn against sensitive information, unless nothing leaves this machine.
#[tokio::test]
async fn c11_the_tools_warn_unless_the_researcher_keeps_everything_here() {
    let mut world = world(&[
        ("OUTLAST_MODEL_URL", "http://127.0.0.1:9/v1"),
        ("OUTLAST_SEARCH_URL", "http://127.0.0.1:9"),
        ("PERPLEXITY_ENABLE_SECURITY_DISCLAIMER", "true"),
        ("OUTLAST_TOOLS", "deep-research,perplexity"),
    ])
    .await;
    for (search, warns) in [("searxng", true), ("library", false)] {
        world.set("OUTLAST_SEARCH", search);
        let mut server = world.serve().await;
        let listed = server.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        for name in [ASK, "perplexity_ask", "perplexity_search"] {
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            let description = tool["description"].as_str().unwrap();
            assert_eq!(description.contains("Security: "), warns, "{search} {name}: {description}");
            // P2: the description names the place that is really searched.
            let is_library = description.contains("own documents");
            assert_eq!(is_library, !warns, "{search} {name}: {description}");
        }
    }
}

/// K10: `--plan` shows the plan and what a run would cost after one question to the model, and starts nothing.
#[tokio::test]
async fn k10_a_plan_is_shown_without_a_run() {
    let world = simulated("-").await;
    let asked = ["research", "How efficient are heat pumps?", "--provider", "researcher", "--plan"];
    let ran = world.run(&asked).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for shown in ["1. ", "heading: ", "search:  ", "30 pages", "nothing: all prices are 0"] {
        assert!(ran.stdout.contains(shown), "{shown}: {ran:?}");
    }
    let ran = world.run(&[&asked[..], &["--json"]].concat()).await;
    let plan: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(!plan["questions"][0]["queries"].as_array().unwrap().is_empty(), "{plan}");
    assert_eq!((&plan["usable"], &plan["highest_nano_usd"]), (&json!(true), &json!(0)), "{plan}");
    assert!(plan["planning"]["tokens_read"].as_u64().unwrap() > 100, "{plan}");
    let calls = world.simulator.calls();
    let asked: u64 = calls.lanes["-"].model.values().map(|asked| asked.requests).sum();
    assert_eq!((asked, calls.lanes["-"].search.len()), (2, 0), "one question each");
    assert!(!world.database().exists(), "nothing is stored");
}

/// K10, G6: the cost of a plan is shown, and a limit that it may exceed refuses it.
#[tokio::test]
async fn k10_a_plan_says_its_cost_and_keeps_to_the_limits() {
    let mut world = simulated("-").await;
    let file = world.data_dir().with_file_name("outlast.toml");
    std::fs::write(&file, "[researcher]\nprice_in = 1\nprice_out = 2\n").unwrap();
    let file = file.to_str().unwrap().to_owned();
    let asked = ["research", "Why?", "--provider", "researcher", "--plan", "--config", &file];
    let ran = world.run(&asked).await;
    assert!(ran.stdout.contains("this plan cost  $0.00"), "{ran:?}");
    assert!(ran.stdout.contains(" at most\n") && ran.stdout.contains("about $0."), "{ran:?}");
    let ran = world.run(&[&asked[..], &["--budget", "0.0001"]].concat()).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("planning may cost $0.00"), "{ran:?}");
    world.set("OUTLAST_MAX_USD_PER_DAY", "5");
    let ran = world.run(&asked).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("OUTLAST_MAX_USD_PER_DAY"), "{ran:?}");
    let calls = world.simulator.calls();
    let asked: u64 = calls.lanes["-"].model.values().map(|asked| asked.requests).sum();
    assert_eq!(asked, 1, "a refused plan asks nothing");
}

/// K10: no other provider has a plan to show.
#[tokio::test]
async fn k10_a_plan_of_another_provider_is_refused() {
    let world = World::new().await;
    let ran = world.run(&["research", "Why?", "--plan"]).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("`perplexity` does not show"), "{ran:?}");
    assert!(ran.stderr.contains("--provider researcher"), "{ran:?}");
    assert_eq!(world.submits(), 0);
}

/// Returns the check of `doctor --json` with this name, as its state and one text.
async fn doctor(world: &World, name: &str) -> (String, String) {
    let ran = world.run(&["doctor", "--json"]).await;
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let found = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name);
    let check = found.unwrap_or_else(|| panic!("no {name}: {report}"));
    let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
    (text("status"), format!("{} {}", text("message"), text("fix")))
}

/// K11: the doctor checks the model, its window and its JSON mode, the search service, and states where data goes.
#[tokio::test]
async fn k11_the_doctor_checks_the_researcher() {
    let mut world = simulated("-").await;
    world.set("OUTLAST_PROVIDERS", "researcher");
    let url = world.simulator.url().to_owned();
    let cases: [(&str, &str, &str, &str, &str, &str); 9] = [
        ("-", "scripted", "-", "model", "pass", "window 8192; keeps to JSON schemas"),
        ("-", "scripted", "-", "search", "warn", "SearXNG answers, and finds nothing"),
        ("-", "scripted", "-", "data flow", "pass", "drafts go to scripted at"),
        ("-", "scripted", "-", "data flow", "pass", "(on this machine)"),
        ("json=object", "scripted", "-", "model", "pass", "without schemas"),
        ("json=plain", "scripted", "-", "model", "pass", "asked in words"),
        ("window=2048", "scripted", "-", "model", "warn", "OLLAMA_CONTEXT_LENGTH"),
        ("server=plain", "other", "-", "model", "fail", "no model other; it has scripted"),
        ("-", "scripted", "json=off", "search", "fail", "`search: formats: [html, json]`"),
    ];
    for (lane, model, search, name, status, expected) in cases {
        world.set("OUTLAST_MODEL_URL", &format!("{url}/llm/{lane}/v1"));
        world.set("OUTLAST_MODEL", model);
        world.set("OUTLAST_SEARCH_URL", &format!("{url}/searxng/{search}"));
        let (mut found, mut text) = doctor(&world, name).await;
        // The doctor waits for a second, which is short on a machine that is busy with other tests.
        for _ in 0..10 {
            if text.contains(expected) {
                break;
            }
            (found, text) = doctor(&world, name).await;
        }
        assert!(
            found == status && text.contains(expected),
            "{lane} {search} {name}: {found} {text}"
        );
    }
    world.set("OUTLAST_MODEL_URL", "http://127.0.0.1:9/v1");
    let (status, text) = doctor(&world, "model").await;
    let expected = "http://127.0.0.1:9/v1 does not answer (connection refused)";
    assert!(status == "fail" && text.contains(expected), "{status} {text}");
    let ran = world.run(&["doctor"]).await;
    assert!(ran.code == Some(1) && ran.stdout.contains("data flow"), "{ran:?}");
    assert!(!world.data_dir().exists(), "nothing is made");
}

/// K9, K11: with a library and a model here nothing leaves this machine, and a model elsewhere is named.
#[tokio::test]
async fn k11_the_doctor_states_where_documents_go() {
    let here = ("OUTLAST_MODEL_URL", "http://127.0.0.1:9/v1");
    let mut world = world(&[here, ("OUTLAST_SEARCH", "library")]).await;
    let (_, text) = doctor(&world, "data flow").await;
    assert!(text.contains("nothing leaves this machine"), "{text}");
    let (status, text) = doctor(&world, "search").await;
    assert!(status == "pass" && text.contains("one folder of documents"), "{status} {text}");
    world.set("OUTLAST_MODEL", "gpt-oss:120b-cloud");
    let (_, text) = doctor(&world, "data flow").await;
    assert!(text.contains("runs elsewhere") && text.contains("goes to the model"), "{text}");
}

/// K1: `init` passes on the researcher's variables: addresses and names as they are, keys by reference.
#[tokio::test]
async fn k1_init_passes_on_the_variables_of_the_researcher() {
    let world = world(&[
        ("OUTLAST_MODEL_URL", "http://127.0.0.1:9/v1"),
        ("OUTLAST_SEARCH_URL", "http://ann:heliotrope@127.0.0.1:9"),
        ("OUTLAST_MODEL_API_KEY", "sk-heliotrope"),
    ])
    .await;
    let ran = world.run(&["init", "claude-code", "--print"]).await;
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let environment = &printed["mcpServers"]["outlast"]["env"];
    assert_eq!(environment["OUTLAST_PROVIDERS"], "researcher,library");
    assert_eq!(environment["OUTLAST_MODEL_URL"], "http://127.0.0.1:9/v1");
    assert_eq!(environment["OUTLAST_MODEL"], "m");
    assert_eq!(environment["OUTLAST_MODEL_API_KEY"], "${OUTLAST_MODEL_API_KEY:-}");
    // An address with a password is a key too.
    assert_eq!(environment["OUTLAST_SEARCH_URL"], "${OUTLAST_SEARCH_URL:-}");
    assert_eq!(environment["OUTLAST_SEARCH_API_KEY"], Value::Null, "it is not set");
    assert!(!ran.stdout.contains("heliotrope"), "{ran:?}");
}

/// P2: keys and passwords of the researcher are in no output, log, error or record.
#[tokio::test]
async fn p2_the_keys_of_the_researcher_are_nowhere() {
    let mut world = simulated("key").await;
    let url = world.simulator.url().replace("http://", "http://ann:heliotrope@");
    world.set("OUTLAST_PROVIDERS", "researcher");
    world.set("OUTLAST_MODEL_URL", &format!("{url}/llm/key/v1"));
    world.set("OUTLAST_SEARCH_URL", &format!("{url}/searxng/json=off"));
    world.set("OUTLAST_MODEL_API_KEY", "sk-heliotrope-1");
    world.set("OUTLAST_SEARCH_API_KEY", "sk-heliotrope-2");
    world.set("OUTLAST_LOG", "debug");
    let mut seen = String::new();
    for command in [
        &["doctor", "--json"][..],
        &["config", "show", "--json"],
        &["research", "Why?", "--plan", "-v"],
        &["research", "Why?", "-v", "-v"],
        &["jobs", "list", "--all", "--json"],
        &["conversations", "list", "--json"],
    ] {
        let ran = world.run(command).await;
        seen.push_str(&format!("{command:?}\n{}{}", ran.stdout, ran.stderr));
    }
    let listed = world.run(&["jobs", "list", "--all", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let id = listed["jobs"][0]["id"].as_str().unwrap();
    seen.push_str(&world.run(&["jobs", "show", id, "--json"]).await.stdout);
    if let Some(place) = seen.find("heliotrope") {
        let start = seen.floor_char_boundary(place.saturating_sub(200));
        panic!("a key is shown: {}", &seen[start..seen.ceil_char_boundary(place + 50)]);
    }
    let mut folders = vec![world.data_dir().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            let has_key = bytes.windows(10).any(|part| part == b"heliotrope");
            assert!(!has_key, "{} has a key", entry.path().display());
        }
    }
}

/// G1: a model server on another machine without encryption is warned of.
#[tokio::test]
async fn g1_an_open_address_is_warned_of() {
    let mut world =
        world(&[("OUTLAST_MODEL_URL", "http://models.example/v1"), ("OUTLAST_SEARCH", "library")])
            .await;
    let (_, text) = doctor(&world, "configuration").await;
    assert!(text.contains("sent to it unencrypted"), "{text}");
    world.set("OUTLAST_MODEL_URL", "http://127.0.0.1:9/v1");
    let (_, text) = doctor(&world, "configuration").await;
    assert!(!text.contains("unencrypted"), "{text}");
}

/// G1: a setting that is missing is named, with the way to set it.
#[tokio::test]
async fn g1_a_researcher_without_a_model_is_refused_by_name() {
    let mut world = world(&[]).await;
    let ran = world.run(&["research", "why?"]).await;
    assert!(ran.code != Some(0), "{ran:?}");
    assert!(ran.stderr.contains("researcher, which has no model server"), "{ran:?}");
    assert!(ran.stderr.contains("OUTLAST_MODEL_URL"), "{ran:?}");
    world.set("OUTLAST_MODEL_URL", "http://127.0.0.1:9/v1");
    let ran = world.run(&["research", "why?"]).await;
    assert!(ran.stderr.contains("OUTLAST_SEARCH_URL"), "{ran:?}");
}

/// K3: without prices a spending limit refuses the run.
#[tokio::test]
async fn k3_an_unknown_price_under_a_limit_is_refused() {
    let mut world = world(&[
        ("OUTLAST_MODEL_URL", "https://models.example/v1"),
        ("OUTLAST_SEARCH_URL", "http://127.0.0.1:9"),
    ])
    .await;
    world.set("OUTLAST_MAX_USD_PER_JOB", "5");
    let ran = world.run(&["research", "why?", "--provider", "researcher"]).await;
    assert!(ran.code != Some(0) && ran.stderr.contains("is not known beforehand"), "{ran:?}");
}

/// K9: an MCP caller cannot make the researcher send text of documents to a model on another machine.
#[tokio::test]
async fn k9_an_mcp_caller_cannot_send_documents_to_a_remote_model() {
    let mut world = world(&[
        ("OUTLAST_MODEL_URL", "https://models.example/v1"),
        ("OUTLAST_SEARCH", "library"),
        ("OUTLAST_TOOLS", "deep-research"),
    ])
    .await;
    let asked = json!({ "query": "What is the vault code?" });
    let mut server = world.serve().await;
    let refused = server.call(ASK, asked.clone()).await;
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("VALIDATION_ERROR: provider must not be `researcher`"), "{text}");
    assert!(text.contains("`outlast research --provider researcher \"...\"`"), "{text}");
    drop(server);

    // A conversation of the library is not sent to a model that also asks the web.
    world.set("OUTLAST_SEARCH", "searxng");
    world.set("OUTLAST_SEARCH_URL", "http://127.0.0.1:9");
    let mut server = world.serve().await;
    let library = json!({ "query": "What is the vault code?", "provider": "library" });
    let first = server.call(ASK, library).await;
    let id = first["structuredContent"]["conversationId"].as_str().unwrap().to_owned();
    let moved = json!({ "conversationId": id, "query": "And now?", "provider": "researcher" });
    let refused = server.call("deep_research_followup", moved).await;
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("VALIDATION_ERROR: provider must not be `researcher`"), "{text}");
    assert!(text.contains(&format!("--follow-up {id} --provider researcher")), "{text}");
}

/// K9: a conversation that read documents stays here when the settings change: the command line asks for the consent, and
/// the answer states what was sent.
#[tokio::test]
async fn k9_a_conversation_with_documents_stays_here_when_the_search_changes() {
    let mut world = simulated("-").await;
    let folder = world.data_dir().parent().unwrap().join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "# Boiler\n\nIn 2023 the town of Arlen counted 1,204 heat pumps.\n";
    std::fs::write(folder.join("notes.md"), text).unwrap();
    world.set("OUTLAST_LIBRARY", folder.to_str().unwrap());
    world.set("OUTLAST_PROVIDERS", "researcher");
    world.set("OUTLAST_SEARCH", "library");
    let asked = ["research", "How many heat pumps has Arlen?", "--json", "--effort", "low"];
    let first: Value = serde_json::from_str(&world.run(&asked).await.stdout).unwrap();
    let conversation = first["conversation"].as_str().unwrap();
    world.set("OUTLAST_SEARCH", "searxng");
    let asked = ["research", "And now?", "--effort", "low", "--follow-up", conversation];
    let refused = world.run(&asked).await;
    assert!(
        refused.code == Some(2) && refused.stderr.contains("holds text of your documents"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("`--provider researcher` sends it"), "{refused:?}");
    let mut server = world.serve().await;
    let moved = json!({ "conversationId": conversation, "query": "And now?" });
    let text = server.call("deep_research_followup", moved).await["content"][0]["text"].to_string();
    assert!(text.contains("VALIDATION_ERROR: provider must not be `researcher`"), "{text}");
    let calls = world.simulator.calls();
    assert!(calls.lanes["-"].search.is_empty(), "nothing was searched");
    let sent = world.run(&[&asked[..], &["--provider", "researcher"]].concat()).await;
    assert!(
        sent.code == Some(0) && sent.stderr.contains("which holds text of local documents"),
        "{sent:?}"
    );
}

/// The keys are never shown.
#[tokio::test]
async fn p2_the_keys_of_the_researcher_are_redacted() {
    let world = world(&[
        ("OUTLAST_MODEL_URL", "https://models.example/v1"),
        ("OUTLAST_MODEL_API_KEY", "sk-heliotrope"),
        ("OUTLAST_SEARCH_API_KEY", "sk-cerulean"),
        ("OUTLAST_SEARCH_URL", "http://127.0.0.1:9"),
    ])
    .await;
    for command in [&["config", "show"][..], &["config", "show", "--json"], &["doctor"]] {
        let ran = world.run(command).await;
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!all.contains("heliotrope") && !all.contains("cerulean"), "{all}");
    }
}
