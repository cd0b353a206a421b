//! The provider that answers (P1, P2): a conversation stays with the one that began it, and every text names the one
//! that is really asked.

use std::path::PathBuf;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::World;

/// A sentence that only the documents contain; the simulated vendor must never see it.
const SECRET: &str = "The vault code of the boiler room is heliotrope-93";

/// The model that answers from a library.
const LIBRARY: &str = "library (extractive)";

/// Creates a folder of documents, in the world's own folder.
fn library(world: &World) -> PathBuf {
    let folder = world.data_dir().parent().unwrap().join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("notes.md"), format!("# Boiler room\n\n{SECRET}.\n")).unwrap();
    folder
}

/// Creates a world whose only provider is a library.
async fn with_library() -> World {
    let mut world = World::new().await;
    let folder = library(&world);
    world.set("OUTLAST_LIBRARY", folder.to_str().unwrap());
    world.unset("PERPLEXITY_API_KEY");
    // Not the default if a library is first: these tests look at the tools with Perplexity's name.
    world.set("OUTLAST_TOOLS", "research,research-jobs");
    world
}

async fn search(server: &mut McpProcess) -> String {
    let query = json!({ "query": "boiler room vault code?" });
    let answer = answered(server, "perplexity_search", query).await;
    assert!(answer["rawResultText"].as_str().unwrap().contains("heliotrope-93"), "{answer}");
    answer["conversationId"].as_str().unwrap().to_owned()
}

/// Returns the answer of a call that is not refused.
async fn answered(server: &mut McpProcess, tool: &str, arguments: Value) -> Value {
    let result = server.call(tool, arguments).await;
    assert_ne!(result["isError"], true, "{tool}: {result}");
    result["structuredContent"].clone()
}

fn refused(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// P1: a conversation that was answered from local documents stays on this machine, whichever key is set later.
#[tokio::test]
async fn p1_a_library_conversation_is_continued_by_the_library_after_a_key_was_set() {
    let mut world = with_library().await;
    let mut server = world.serve().await;
    let id = search(&mut server).await;
    drop(server);

    world.set("PERPLEXITY_API_KEY", "pplx-test");
    let mut server = world.serve().await;
    for tool in ["perplexity_search_followup", "perplexity_deep_research_followup"] {
        let followup = json!({ "conversationId": id, "query": "and who knows the vault code?" });
        let answer = answered(&mut server, tool, followup).await;
        assert_eq!(answer["modelUsed"], LIBRARY, "{tool}: {answer}");
    }
    let ran = world.run(&["research", "and the boiler room?", "--follow-up", &id, "--json"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(job["output"]["model"], LIBRARY, "{job}");
    assert_eq!(world.submits(), 0, "the vendor has seen nothing");

    // A new question goes to the first in line, as before.
    let new = json!({ "query": "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]" });
    answered(&mut server, "perplexity_search", new).await;
    assert_eq!(world.submits(), 1);
    assert!(!world.simulator.stats().runs[0].submitted_input.contains("heliotrope"));
}

/// P1: if its provider is no longer configured, the refusal names it and the way to configure it.
#[tokio::test]
async fn p1_a_conversation_whose_provider_is_gone_is_refused_by_name() {
    let mut world = with_library().await;
    let mut server = world.serve().await;
    let local = search(&mut server).await;
    drop(server);
    world.unset("OUTLAST_LIBRARY");
    world.set("PERPLEXITY_API_KEY", "pplx-test");
    let mut server = world.serve().await;
    for tool in ["perplexity_search_followup", "perplexity_deep_research_followup"] {
        let followup = json!({ "conversationId": local, "query": "and who knows?" });
        let text = refused(&server.call(tool, followup).await);
        assert!(text.starts_with("CONFIGURATION_ERROR: "), "{text}");
        assert!(text.contains("library") && text.contains("OUTLAST_LIBRARY"), "{text}");
    }
    let ran = world.run(&["research", "and who knows?", "--follow-up", &local]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("library") && ran.stderr.contains("OUTLAST_LIBRARY"), "{ran:?}");
    assert_eq!(world.submits(), 0, "the vendor has seen nothing");

    let new = json!({ "query": "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]" });
    let remote = answered(&mut server, "perplexity_search", new).await;
    let remote = remote["conversationId"].as_str().unwrap().to_owned();
    drop(server);
    world.unset("PERPLEXITY_API_KEY");
    world.set("OUTLAST_LIBRARY", library(&world).to_str().unwrap());
    let mut server = world.serve().await;
    let followup = json!({ "conversationId": remote, "query": "and at night?" });
    let text = refused(&server.call("perplexity_search_followup", followup).await);
    assert!(
        text.starts_with("CONFIGURATION_ERROR: ") && text.contains("PERPLEXITY_API_KEY"),
        "{text}"
    );
}

/// P1: moving a conversation requires the user's explicit consent, and the answer names what was sent.
#[tokio::test]
async fn p1_moving_a_conversation_takes_a_word_and_says_what_was_sent() {
    let mut world = with_library().await;
    let ran = world.run(&["research", "boiler room vault code?", "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = job["conversation"].as_str().unwrap().to_owned();
    world.set("PERPLEXITY_API_KEY", "pplx-test");
    let question = "and elsewhere? [[sim:ok;words=60;delay_ms=0]]";
    let moved = ["research", question, "--follow-up", &id, "--provider", "perplexity"];
    let ran = world.run(&moved).await;
    assert_eq!((ran.code, world.submits()), (Some(0), 1), "{ran:?}");
    assert!(ran.stderr.contains("earlier") && ran.stderr.contains("sent to perplexity"), "{ran:?}");

    // Without that flag the next follow-up stays here again.
    let ran = world.run(&["research", "and the boiler room?", "--follow-up", &id, "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&job["output"]["model"], world.submits()), (&json!(LIBRARY), 1), "{ran:?}");
}

/// P1: a conversation that was moved to the library contains the library's text, and stays with it.
#[tokio::test]
async fn p1_a_conversation_that_the_library_has_answered_in_stays_here() {
    let mut world = World::new().await;
    let question = "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]";
    let ran = world.run(&["research", question, "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = job["conversation"].as_str().unwrap().to_owned();
    assert_eq!(world.submits(), 1);
    let folder = library(&world);
    let folder = folder.to_str().unwrap();
    let moved = ["research", "boiler room vault code?", "--follow-up", &id, "--library", folder];
    let ran = world.run(&moved).await;
    assert!(ran.code == Some(0) && ran.stdout.contains("heliotrope-93"), "{ran:?}");
    world.set("OUTLAST_LIBRARY", folder);
    let mut server = world.serve().await;
    let followup = json!({ "conversationId": id, "query": "and who knows the vault code?" });
    let answer = answered(&mut server, "perplexity_search_followup", followup).await;
    assert_eq!((&answer["modelUsed"], world.submits()), (&json!(LIBRARY), 1), "{answer}");
}

/// P1: `--provider` chooses for a new question too, and is refused if that provider is not configured.
#[tokio::test]
async fn p1_a_provider_can_be_chosen_and_must_be_configured() {
    let mut world = with_library().await;
    let ran = world.run(&["research", "boiler room?", "--provider", "perplexity"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("PERPLEXITY_API_KEY"), "{ran:?}");
    world.set("PERPLEXITY_API_KEY", "pplx-test");
    let ran = world.run(&["research", "boiler room?", "--provider", "library", "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&job["output"]["model"], world.submits()), (&json!(LIBRARY), 0), "{ran:?}");
    let folder = library(&world);
    let both =
        ["research", "x?", "--provider", "perplexity", "--library", folder.to_str().unwrap()];
    let ran = world.run(&both).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

/// P2: a placeholder that a client did not replace is not a key, and the next provider in order is used.
#[tokio::test]
async fn p2_a_placeholder_is_no_key_and_the_next_in_line_is_used() {
    let placeholders = [
        "$PERPLEXITY_API_KEY",
        "${PERPLEXITY_API_KEY}",
        "${PERPLEXITY_API_KEY:-}",
        "${env:PERPLEXITY_API_KEY}",
        "%PERPLEXITY_API_KEY%",
    ];
    let mut world = with_library().await;
    let file = world.data_dir().parent().unwrap().join("outlast.toml");
    for placeholder in placeholders {
        world.set("PERPLEXITY_API_KEY", placeholder);
        let mut server = world.serve().await;
        search(&mut server).await;
        let log = server.log();
        let warned =
            log.lines().filter(|line| line.contains("WARN") && line.contains("placeholder"));
        assert_eq!(warned.count(), 1, "one warning: {log}");
        assert!(log.contains("PERPLEXITY_API_KEY"), "{log}");
        drop(server);
        // In the file as well: the library is next.
        std::fs::write(&file, format!("[perplexity]\napi_key = \"{placeholder}\"\n")).unwrap();
        let config = ["--config", file.to_str().unwrap()];
        let ran = world.run(&[&["research", "boiler room?", "--json"][..], &config].concat()).await;
        let job: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        assert_eq!(job["output"]["model"], LIBRARY, "{ran:?}");
        // A key in the file comes before the library.
        std::fs::write(&file, "[perplexity]\napi_key = \"pplx-test\"\n").unwrap();
        let ran = world.run(&[&["doctor", "--json"][..], &config].concat()).await;
        assert!(ran.stdout.contains("takes the key"), "{ran:?}");
        assert!(ran.stdout.contains("placeholder"), "doctor says so too: {ran:?}");
    }
    assert_eq!(world.submits(), 0);
    world.unset("OUTLAST_LIBRARY");
    let log = world.serve().await.log();
    assert!(log.contains("placeholder") && log.contains("no research provider"), "{log}");
}

/// P2: with both a key and a library set, doctor and the log report which one answers.
#[tokio::test]
async fn p2_with_a_key_and_a_library_doctor_and_the_log_say_who_answers() {
    let mut world = with_library().await;
    world.set("PERPLEXITY_API_KEY", "pplx-test");
    let ran = world.run(&["doctor"]).await;
    let said = ran.stdout.lines().find(|line| line.contains(" provider ")).unwrap();
    assert!(said.contains("perplexity answers") && said.contains("library"), "{said}");
    let server = world.serve().await;
    server.logged("provider=\"perplexity\" beside=\"library\"").await;
    world.unset("PERPLEXITY_API_KEY");
    let server = world.serve().await;
    server.logged("provider=\"library\"").await;
}

/// P2: every text for clients and models names the provider that is really asked.
#[tokio::test]
async fn p2_no_text_calls_a_library_the_web_or_perplexity() {
    let mut world = with_library().await;
    world.set("OUTLAST_TOOLS", "perplexity,research,research-jobs,jobs");
    world.set("PERPLEXITY_ENABLE_SECURITY_DISCLAIMER", "true");
    let mut server = world.spawn(&["serve"]);
    let greeting = server.greet().await;
    let listed = server.request("tools/list", json!({})).await;
    let mut reported = vec![greeting["instructions"].as_str().unwrap().to_owned()];
    for tool in listed["result"]["tools"].as_array().unwrap() {
        reported.push(tool["title"].as_str().unwrap().to_owned());
        reported.push(tool["description"].as_str().unwrap().to_owned());
    }
    let reported = reported.join("\n");
    let lower = reported.replace("perplexity_", "").to_lowercase();
    for untrue in [" web", "perplexity", "third party"] {
        assert!(!lower.contains(untrue), "{untrue}: {reported}");
    }
    assert!(lower.contains("documents"), "{reported}");
}

/// P2: `init` passes the library on, by its flag or from the environment, and a client that does not replace the
/// reference to the key that `init` writes gets answers all the same.
#[tokio::test]
async fn p2_init_passes_the_library_on_and_a_client_that_replaces_nothing_works() {
    let mut world = with_library().await;
    let folder = library(&world);
    let folder = folder.to_str().unwrap().to_owned();
    let clients = [
        "claude-code",
        "claude-desktop",
        "cursor",
        "vscode",
        "codex",
        "windsurf",
        "zed",
        "gemini-cli",
    ];
    for client in clients {
        world.set("OUTLAST_LIBRARY", &folder);
        let from_environment = world.run(&["init", client, "--print"]).await;
        world.unset("OUTLAST_LIBRARY");
        let from_flag = world.run(&["init", client, "--print", "--library", &folder]).await;
        assert!(from_flag.stdout.contains(&folder), "{client}: {from_flag:?}");
        assert_eq!(from_environment.stdout, from_flag.stdout, "{client}");
        let without = world.run(&["init", client, "--print"]).await;
        assert!(!without.stdout.contains("OUTLAST_LIBRARY"), "{client}: {without:?}");
    }
    let ran = world.run(&["init", "cursor", "--library", "/nowhere"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");

    for client in ["claude-code", "cursor", "gemini-cli"] {
        let printed = world.run(&["init", client, "--print", "--library", &folder]).await;
        let entry: Value =
            serde_json::from_str(&printed.stdout).unwrap_or_else(|_| panic!("{printed:?}"));
        let entry = entry.pointer("/mcpServers/outlast").unwrap();
        for (name, value) in entry["env"].as_object().unwrap() {
            world.set(name, value.as_str().unwrap());
        }
        let mut server = world.serve().await;
        search(&mut server).await;
        for name in entry["env"].as_object().unwrap().keys() {
            world.unset(name);
        }
    }
    assert_eq!(world.submits(), 0);
}

/// G1: no command uses a vendor's key from the environment unless the vendor is named.
#[tokio::test]
async fn g1_a_key_in_the_environment_is_not_used_unless_its_vendor_is_named() {
    let mut world = with_library().await;
    world.unset("OUTLAST_TOOLS");
    for vendor in ["OPENAI", "ANTHROPIC", "GEMINI", "PERPLEXITY"] {
        let url = world.simulator.url().to_owned();
        world.set(&format!("{vendor}_BASE_URL"), &url);
        world.set(&format!("{vendor}_API_KEY"), "sk-test");
    }
    world.set("OUTLAST_PROVIDERS", "library");
    let ran = world.run(&["doctor", "--json"]).await;
    assert!(ran.stdout.contains("the library: one folder"), "{ran:?}");
    let ran = world.run(&["research", "boiler room?", "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(job["output"]["model"], LIBRARY, "{ran:?}");
    let mut server = world.serve().await;
    let query = json!({ "query": "boiler room vault code?" });
    let answer = answered(&mut server, "deep_research", query.clone()).await;
    assert_eq!(answer["provider"], "library", "{answer}");
    for vendor in ["openai", "anthropic", "gemini", "perplexity"] {
        let mut query = query.clone();
        query["provider"] = json!(vendor);
        let text = refused(&server.call("deep_research", query).await);
        assert!(text.starts_with("VALIDATION_ERROR: provider must be one of"), "{text}");
        let ran = world.run(&["research", "x?", "--provider", vendor]).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let key = format!("{}_API_KEY", vendor.to_uppercase());
        assert!(ran.stderr.contains("not configured") && ran.stderr.contains(&key), "{ran:?}");
    }
    // Unnamed, the other vendors' keys have no effect either.
    world.unset("OUTLAST_PROVIDERS");
    world.unset("PERPLEXITY_API_KEY");
    let ran = world.run(&["research", "boiler room?", "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(job["output"]["model"], LIBRARY, "{ran:?}");
    world.unset("OUTLAST_LIBRARY");
    let log = world.serve().await.log();
    assert!(log.contains("no research provider is configured"), "{log}");
    let ran = world.run(&["research", "boiler room?"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(world.simulator.requests().len(), 0, "not one request was made");
}

/// G1: a named provider that cannot be asked, an unknown name and a duplicate end the command with 2 and the necessary
/// setting.
#[tokio::test]
async fn g1_a_named_provider_must_have_what_it_needs() {
    let mut world = World::new().await;
    for name in ["PERPLEXITY_API_KEY", "OUTLAST_LIBRARY"] {
        world.unset(name);
    }
    world.set("GEMINI_API_KEY", "${GEMINI_API_KEY}");
    let cases = [
        ("perplexity", "names perplexity, which has no key", "PERPLEXITY_API_KEY"),
        ("openai", "names openai, which has no key", "OPENAI_API_KEY"),
        ("anthropic", "names anthropic, which has no key", "[anthropic]"),
        ("gemini", "names gemini, which has no key", "GEMINI_API_KEY"),
        ("library", "names library, which has no folders", "OUTLAST_LIBRARY"),
        ("openai,bard", "OUTLAST_PROVIDERS = `bard`", "anthropic, gemini, researcher, library"),
        (
            "openai,library,openai",
            "OUTLAST_PROVIDERS = `openai,library,openai`",
            "each of them once",
        ),
    ];
    for (names, error, hint) in cases {
        world.set("OUTLAST_PROVIDERS", names);
        for command in [&["research", "why?"][..], &["worker", "--until-idle"]] {
            let ran = world.run(command).await;
            assert_eq!(ran.code, Some(2), "{names} {command:?}: {ran:?}");
            assert!(ran.stderr.contains(error) && ran.stderr.contains(hint), "{names}: {ran:?}");
        }
        let ran = world.run(&["doctor", "--json"]).await;
        assert_eq!(ran.code, Some(1), "{names}: {ran:?}");
    }
    world.set("OUTLAST_PROVIDERS", "openai,bard");
    assert_eq!(world.run(&["serve"]).await.code, Some(2));
    world.set("OUTLAST_PROVIDERS", "gemini");
    let log = world.serve().await.log();
    assert!(log.contains("placeholder") && log.contains("GEMINI_API_KEY"), "P2: {log}");
    // Questions would go to the second, which the user may not expect.
    world.set("OUTLAST_PROVIDERS", "gemini,openai");
    world.set("OPENAI_API_KEY", "sk-test");
    let ran = world.run(&["serve"]).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("gemini, which has no key"), "{ran:?}");
    world.set("OUTLAST_PROVIDERS", "gemini");
    // Lists need no provider.
    let ran = world.run(&["jobs", "list"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// N3: a server without a provider lists its tools, refuses what would need one, and reads stored conversations.
#[tokio::test]
async fn n3_a_server_without_a_provider_lists_its_tools_and_reads_conversations() {
    let mut world = with_library().await;
    let mut server = world.serve().await;
    let asked = json!({ "query": "boiler room vault code?" });
    let answer = answered(&mut server, "perplexity_deep_research", asked.clone()).await;
    let id = answer["conversationId"].as_str().unwrap().to_owned();
    drop(server);

    for name in ["OUTLAST_LIBRARY", "PERPLEXITY_API_KEY"] {
        world.unset(name);
    }
    let messages = json!({ "messages": [{ "role": "user", "content": "why?" }] });
    let follow_up = json!({ "query": "why?", "conversationId": id });
    let calls = [
        ("perplexity_deep_research", &asked),
        ("perplexity_deep_research_followup", &follow_up),
        ("perplexity_search", &asked),
        ("perplexity_search_followup", &follow_up),
        ("perplexity_research_start", &messages),
        ("perplexity_ask", &messages),
        ("perplexity_research", &messages),
        ("deep_research", &asked),
        ("deep_research_followup", &follow_up),
    ];
    for sets in ["", "deep-research,perplexity"] {
        world.set("OUTLAST_TOOLS", sets);
        let mut server = world.serve().await;
        let listed = server.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        let properties = |tool: &Value| tool["inputSchema"]["properties"].clone();
        assert!(tools.iter().all(|tool| properties(tool)["provider"].is_null()), "{listed}");
        let is_listed = |name: &str| tools.iter().any(|tool| tool["name"] == name);
        let mut refusals = 0;
        for (tool, arguments) in calls.iter().filter(|(tool, _)| is_listed(tool)) {
            if *tool == "perplexity_search" && !sets.is_empty() {
                continue;
            }
            let text = refused(&server.call(tool, (*arguments).clone()).await);
            assert!(text.starts_with("CONFIGURATION_ERROR: "), "{tool}: {text}");
            assert!(text.contains("OUTLAST_LIBRARY"), "{tool}: {text}");
            refusals += 1;
        }
        assert!(refusals >= 4, "{listed}");
        let read = server.call("get_conversation_history", json!({ "conversationId": id })).await;
        assert!(read.to_string().contains("boiler room vault code?"), "{read}");
        assert!(server.log().contains("research is refused until one is"), "{}", server.log());
    }

    let ran = world.run(&["doctor"]).await;
    assert!(ran.stdout.contains("research is refused until one is"), "{ran:?}");
    let ran = world.run(&["init", "zed"]).await;
    assert!(ran.stderr.contains("research is refused until one is"), "{ran:?}");
}

/// G2: the command line chooses among the named providers, keeps a conversation's own, and accepts a budget.
#[tokio::test]
async fn g2_the_command_line_chooses_a_provider_and_takes_a_budget() {
    let mut world = with_library().await;
    world.set("PERPLEXITY_API_KEY", "pplx-test");
    world.set("OUTLAST_PROVIDERS", "library,perplexity");
    let run = async |arguments: &[&str]| -> Value {
        let ran = world.run(&[&["research", "--json"][..], arguments].concat()).await;
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
    };
    let first = run(&["boiler room?", "--budget", "2.50"]).await;
    assert_eq!((&first["output"]["model"], world.submits()), (&json!(LIBRARY), 0), "{first}");
    let question = "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]";
    let chosen = run(&[question, "--provider", "perplexity", "--budget", "$30"]).await;
    assert_eq!((&chosen["state"], world.submits()), (&json!("succeeded"), 1), "{chosen}");
    let id = chosen["conversation"].as_str().unwrap();
    run(&["and at dusk? [[sim:ok;words=60;delay_ms=0]]", "--follow-up", id]).await;
    assert_eq!(world.submits(), 2, "the conversation is Perplexity's, though the library is first");
    for bad in ["0", "-1", "x", "1e9", "$", ""] {
        let ran = world.run(&["research", "why?", "--budget", bad]).await;
        assert_eq!(ran.code, Some(2), "{bad}: {ran:?}");
        assert!(ran.stderr.contains("dollars above 0"), "{bad}: {ran:?}");
    }
    assert_eq!(world.submits(), 2);
}

/// G1, P2: doctor asks every named provider, by a call that costs nothing, and reports which one gets new questions.
#[tokio::test]
async fn g1_doctor_checks_every_provider_that_is_named() {
    let mut world = with_library().await;
    world.set("PERPLEXITY_API_KEY", "pplx-test");
    world.set("OPENAI_API_KEY", "sk-test");
    world.set("OPENAI_BASE_URL", "http://127.0.0.1:1");
    world.set("OUTLAST_PROVIDERS", "openai,perplexity,library");
    let ran = world.run(&["doctor", "--json"]).await;
    assert_eq!(ran.code, Some(1), "one cannot be reached: {ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let found: Vec<_> = checks.iter().filter(|check| check["name"] == "provider").collect();
    let [openai, perplexity, library] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(openai["status"], "fail", "{openai}");
    assert!(openai["message"].as_str().unwrap().starts_with("openai "), "{openai}");
    assert!(openai["message"].as_str().unwrap().contains("new questions go to it"), "{openai}");
    assert!(openai["fix"].as_str().unwrap().contains("OPENAI_BASE_URL"), "{openai}");
    assert_eq!(perplexity["status"], "pass", "{perplexity}");
    assert!(perplexity["message"].as_str().unwrap().contains("takes the key"), "{perplexity}");
    assert_eq!(library["status"], "pass", "{library}");
    assert_eq!(world.submits(), 0, "nothing was bought");
}

/// G1: `init` passes the names of the providers on, and the names of the keys that they need, but no key.
#[tokio::test]
async fn g1_init_passes_the_providers_and_the_names_of_their_keys_on() {
    let mut world = with_library().await;
    world.set("OUTLAST_PROVIDERS", "openai, library,anthropic");
    world.set("OPENAI_API_KEY", "sk-hunter2");
    for (client, passed) in [
        ("claude-code", "${OPENAI_API_KEY:-}"),
        ("cursor", "${env:ANTHROPIC_API_KEY}"),
        ("gemini-cli", "$OPENAI_API_KEY"),
        ("codex", "OPENAI_API_KEY"),
        ("zed", "openai,library,anthropic"),
    ] {
        let ran = world.run(&["init", client, "--print"]).await;
        assert!(ran.stdout.contains(passed), "{client}: {ran:?}");
        assert!(ran.stdout.contains("openai,library,anthropic"), "{client}: {ran:?}");
        assert!(!ran.stdout.contains("PERPLEXITY_API_KEY"), "{client}: {ran:?}");
        assert!(!ran.stdout.contains("hunter2"), "{client}: {ran:?}");
    }
    // A key in the file is not requested.
    let file = world.data_dir().parent().unwrap().join("outlast.toml");
    std::fs::write(&file, "[server]\nproviders = [\"openai\"]\n[openai]\napi_key = \"sk-file\"\n")
        .unwrap();
    world.unset("OUTLAST_PROVIDERS");
    world.unset("OPENAI_API_KEY");
    let config = ["--config", file.to_str().unwrap()];
    let ran = world.run(&[&["init", "cursor", "--print"][..], &config].concat()).await;
    assert!(
        !ran.stdout.contains("API_KEY") && !ran.stdout.contains("OUTLAST_PROVIDERS"),
        "{ran:?}"
    );
}
