//! Tool set `deep-research`: the same code under other names, for any configured provider (G1, G2, P1).

use std::path::PathBuf;

use super::*;
use crate::support::{CANCEL as CANCEL_JOB, POLL, START};

pub(super) const ASK: &str = "deep_research";
const FOLLOWUP: &str = "deep_research_followup";
const MODE: &str = "OUTLAST_ASYNC_RESEARCH";

/// A question that the documents answer.
const NOTES: &str = "boiler room vault code?";

/// Creates a world with the library first and Perplexity second.
pub(super) async fn two_providers() -> World {
    let mut world = World::new().await;
    world.set("OUTLAST_LIBRARY", documents(&world).to_str().unwrap());
    world.set("OUTLAST_PROVIDERS", "library,perplexity");
    world
}

fn documents(world: &World) -> PathBuf {
    let folder = world.data_dir().parent().unwrap().join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("notes.md"), "# Boiler room\n\nThe vault code is heliotrope-93.\n")
        .unwrap();
    folder
}

async fn client(world: &World) -> Client {
    Client::of(world.serve().await).await
}

fn names(client: &Client) -> Vec<&str> {
    client.tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn tool<'a>(client: &'a Client, name: &str) -> &'a Value {
    client.tools.iter().find(|tool| tool["name"] == name).unwrap()
}

/// G2: the set is the default if Perplexity is not first; it names its providers and their costs, and is small.
#[tokio::test]
async fn g2_the_set_is_listed_by_default_names_its_providers_and_is_small() {
    let mut world = two_providers().await;
    let conversations = [HISTORY, HISTORIES];
    let rest = [LIST, SEARCH_RESEARCH, CHECK, CANCEL, START, POLL, CANCEL_JOB];
    let listed = client(&world).await;
    assert_eq!(names(&listed), [&[ASK, FOLLOWUP], &conversations[..], &rest].concat());
    let described = tool(&listed, ASK)["description"].as_str().unwrap();
    assert!(described.contains("library (free"), "{described}");
    assert!(described.contains("perplexity (about $"), "{described}");
    let stops = tool(&listed, CANCEL)["description"].as_str().unwrap();
    assert!(stops.contains("may still finish and be charged"), "{stops}");

    // The largest configuration.
    let all = "perplexity,openai,anthropic,gemini,library";
    world.set("OUTLAST_PROVIDERS", all);
    for vendor in ["OPENAI", "ANTHROPIC", "GEMINI"] {
        world.set(&format!("{vendor}_API_KEY"), "sk-test");
        world.set(&format!("{vendor}_BASE_URL"), "http://127.0.0.1:1");
    }
    world.set("PERPLEXITY_ENABLE_SECURITY_DISCLAIMER", "true");
    world.set("OUTLAST_TOOLS", "deep-research");
    for mode in ["false", "true", "auto"] {
        world.set(MODE, mode);
        let mut server = world.spawn(&["serve"]);
        let greeting = server.greet().await;
        let instructions = greeting["instructions"].as_str().unwrap();
        let listed = Client::of(server).await;
        let asking = names(&listed);
        assert_eq!(asking.contains(&AWAIT), mode != "false");
        for name in [ASK, FOLLOWUP, HISTORY, HISTORIES, LIST, CANCEL] {
            assert!(
                instructions.contains(name) && asking.contains(&name),
                "{name}: {instructions}"
            );
        }
        assert!(!instructions.contains("perplexity_"), "{instructions}");
        for name in [ASK, FOLLOWUP] {
            let tool = tool(&listed, name);
            let input = &tool["inputSchema"];
            let providers: Vec<&str> = all.split(',').collect();
            assert_eq!(input["properties"]["provider"]["enum"], json!(providers), "{input}");
            assert_eq!(input["properties"]["budget_usd"]["exclusiveMinimum"], 0, "{input}");
            assert_eq!(input["properties"]["effort"]["default"], "medium", "{input}");
            assert_eq!(input["properties"]["query"]["maxLength"], 10_000, "{input}");
            let described = tool["description"].as_str().unwrap();
            assert!(described.contains("third party") && described.contains("special care"));
        }
        let described = tool(&listed, ASK)["description"].as_str().unwrap();
        assert!(described.contains("180 s or more"), "C8: {described}");
        let bytes = crate::support::bytes_for_a_model(&json!(listed.tools));
        eprintln!("deep-research, mode {mode}: {bytes} bytes");
        assert!(bytes < 11_300, "tools/list is sent with every conversation: {bytes} bytes");
    }
}

/// G2: the first provider answers, or the one that a call names; results name the provider.
#[tokio::test]
async fn g2_a_call_may_choose_its_provider_and_the_answer_names_it() {
    let world = two_providers().await;
    let mut client = client(&world).await;
    let local = client.ok(ASK, json!({ "query": NOTES, "budget_usd": 0.5 })).await;
    assert_eq!(local.shape["provider"], "library", "{}", local.shape);
    assert!(
        local.text.contains("heliotrope-93") && local.text.contains(FOLLOWUP),
        "{}",
        local.text
    );
    assert_eq!(world.submits(), 0);
    let mut elsewhere = query(QUICK);
    elsewhere["provider"] = json!("perplexity");
    elsewhere["effort"] = json!("high");
    elsewhere["budget_usd"] = json!(30);
    let remote = client.ok(ASK, elsewhere).await;
    // G6: Perplexity has no limit for a run.
    assert!(remote.text.contains("but it cannot be stopped there"), "{}", remote.text);
    assert!(!local.text.contains("cannot be stopped"), "{}", local.text);
    assert_eq!((&remote.shape["provider"], world.submits()), (&json!("perplexity"), 1));
    let history = client.history(&id_of(&remote)).await;
    assert_eq!(history.shape["provider"], "perplexity", "{}", history.shape);
    let history = client.history(&id_of(&local)).await;
    assert_eq!(history.shape["provider"], "library", "{}", history.shape);

    let bad = [
        (
            json!({ "provider": "openai" }),
            "provider must be one of those configured: library, perplexity",
        ),
        (json!({ "provider": 7 }), "provider"),
        (json!({ "budget_usd": 0 }), "budget_usd must be a number above 0"),
        (json!({ "budget_usd": -1 }), "budget_usd must be"),
        (json!({ "budget_usd": 1e12 }), "budget_usd must be"),
        (json!({ "budget_usd": "1" }), "budget_usd"),
        (json!({ "effort": "max" }), "effort"),
        (json!({ "reasoning_effort": "low" }), "reasoning_effort"),
        (json!({ "query": "" }), "query must not be empty"),
        (json!({ "priority": 101 }), "priority must be"),
    ];
    for (wrong, sentence) in bad {
        let mut arguments = json!({ "query": "x" });
        for (name, value) in wrong.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        let (code, said) = client.refused(ASK, arguments).await;
        assert_eq!(code, "VALIDATION_ERROR", "{said}");
        assert!(said.starts_with(sentence), "{said}");
    }
    assert_eq!(world.submits(), 1);
}

/// P1, G2: a follow-up stays with the conversation's provider; only a provider that it names gets the earlier turns,
/// and the answer states this.
#[tokio::test]
async fn p1_a_follow_up_stays_and_moves_only_where_the_call_says_so() {
    let mut world = two_providers().await;
    let mut first = client(&world).await;
    let id = id_of(&first.ok(ASK, json!({ "query": NOTES })).await);
    drop(first);

    // Perplexity is first now, but the conversation is still the library's.
    world.set("OUTLAST_PROVIDERS", "perplexity,library");
    world.set("OUTLAST_TOOLS", "deep-research");
    world.set("OUTLAST_AGENTS_MAY_SHARE", "true");
    let mut client = client(&world).await;
    let stays = client.ok(FOLLOWUP, json!({ "conversationId": id, "query": NOTES })).await;
    assert_eq!((&stays.shape["provider"], world.submits()), (&json!("library"), 0));
    assert!(!stays.text.contains("sent to"), "{}", stays.text);
    let mut moving = followup(&id, QUICK);
    moving["provider"] = json!("perplexity");
    let moved = client.ok(FOLLOWUP, moving.clone()).await;
    assert_eq!((&moved.shape["provider"], world.submits()), (&json!("perplexity"), 1));
    let told =
        "4 earlier messages of this conversation, which belongs to library: sent to perplexity";
    assert!(moved.text.contains(told), "{}", moved.text);
    let requests = world.simulator.requests();
    let sent = requests.iter().rfind(|request| request.method == "POST").unwrap();
    assert!(sent.body.to_string().contains("heliotrope-93"), "{}", sent.body);
    // The same call again gets the same answer, and the next one without that argument stays here.
    let again = client.server.call(FOLLOWUP, moving).await;
    assert_eq!(again["_meta"]["outlast/replayed"], true, "{again}");
    assert!(again["content"].to_string().contains(told), "{again}");
    let stays = json!({ "conversationId": id, "query": "and the vault code?" });
    let stays = client.ok(FOLLOWUP, stays).await;
    assert_eq!((&stays.shape["provider"], world.submits()), (&json!("library"), 1));
    drop(client);

    // Its provider is gone: refused by name, with both ways out.
    world.set("OUTLAST_PROVIDERS", "perplexity");
    let mut client = Client::of(world.serve().await).await;
    let (code, said) = client.refused(FOLLOWUP, followup(&id, QUICK)).await;
    assert_eq!(code, "CONFIGURATION_ERROR", "{said}");
    assert!(said.contains("`library`") && said.contains("OUTLAST_LIBRARY"), "{said}");
    assert!(said.contains("give `provider: \"perplexity\"`"), "{said}");
    assert_eq!(world.submits(), 1);
}

/// G2: every mode works under these names: held and repeated, queued, and whichever comes first.
#[tokio::test]
async fn g2_the_modes_are_those_of_the_research_set() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "deep-research");
    let mut blocking = client(&world).await;
    let held = blocking.ok(ASK, query(QUICK)).await;
    assert_eq!(held.shape["status"], "completed", "{}", held.shape);
    let again = blocking.server.call(ASK, query(QUICK)).await;
    assert_eq!(again["_meta"]["outlast/replayed"], true, "{again}");
    assert_eq!(world.submits(), 1);
    blocking.server.logged("Async deep research: disabled").await;
    drop(blocking);

    world.set(MODE, "true");
    let mut queueing = client(&world).await;
    queueing.server.logged("Async deep research: enabled").await;
    queueing.server.logged("Background worker started").await;
    let mut keyed = query(QUICK);
    keyed["idempotency_key"] = json!("k");
    let queued = queueing.ok(ASK, keyed.clone()).await;
    assert_eq!(
        (&queued.shape["responseId"], &queued.shape["provider"]),
        (&json!("queued"), &json!("perplexity"))
    );
    let id = id_of(&queued);
    let expected = format!("🆕 **New Conversation Started**\nConversation ID: `{id}`\n");
    assert!(queued.text.starts_with(&expected), "{}", queued.text);
    assert_eq!(id_of(&queueing.ok(ASK, keyed).await), id, "the same key is the same job");
    queueing.ended(&id).await;
    let file = world.data_dir().join("conversation-logs").join(&id).join("status.json");
    if file.parent().unwrap().exists() {
        let tool = || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            serde_json::from_str::<Value>(&text).unwrap_or_default()["toolName"].clone()
        };
        eventually("B4: the file names the tool", || tool() == ASK).await;
    }
    let continued = queueing.ok(FOLLOWUP, followup(&id, QUICK)).await;
    assert!(continued.text.starts_with("🔁 **Conversation Continued**"), "{}", continued.text);
    let held_off = queueing.server.call(FOLLOWUP, followup(&id, "ok;words=60;hold=true")).await;
    drop((held_off, queueing));

    world.set(MODE, "auto");
    let mut auto = client(&world).await;
    auto.server.logged("Async deep research: enabled (auto)").await;
    let soon = json!({ "query": format!("Why is grass green? [[sim:{QUICK}]]") });
    assert_eq!(auto.ok(ASK, soon).await.shape["status"], "completed");
}

/// G2: a cancel ends the running jobs of a conversation, in both sets, and answers with the conversation in its state
/// at that time.
#[tokio::test]
async fn g2_cancel_research_ends_what_runs_and_shows_the_conversation() {
    let mut world = World::new().await;
    world.set(MODE, "true");
    for (set, ask, followup_tool) in
        [("deep-research", ASK, FOLLOWUP), ("research", DEEP, DEEP_FOLLOWUP)]
    {
        world.set("OUTLAST_TOOLS", set);
        let mut client = client(&world).await;
        let before = world.simulator.stats().cancels;
        let question = json!({ "query": format!("Why, {set}? [[sim:ok;words=60;hold=true]]") });
        let id = id_of(&client.ok(ask, question).await);
        client.until(&id, |history| history["status"] == "in_progress").await;
        let cancelled = client.ok(CANCEL, json!({ "conversationId": id })).await;
        assert_eq!(cancelled.shape["status"], "cancelled", "{}", cancelled.shape);
        assert_eq!(cancelled.shape["conversationId"], json!(id));
        assert!(cancelled.text.starts_with("**Status: Cancelled**"), "{}", cancelled.text);
        eventually("the provider is notified", || world.simulator.stats().cancels > before).await;
        // An ended job keeps its end.
        let again = client.ok(CANCEL, json!({ "conversationId": id })).await;
        assert_eq!(again.shape["status"], "cancelled");
        let other = client.ok(followup_tool, followup(&id, QUICK)).await;
        assert_eq!(id_of(&other), id, "a follow-up may be asked");
        client.ended(&id).await;
        let done = client.ok(CANCEL, json!({ "conversationId": id })).await;
        assert_eq!(done.shape["status"], "completed", "{}", done.shape);

        for unknown in ["0".repeat(32), "no".to_owned(), String::new()] {
            let (code, _) = client.refused(CANCEL, json!({ "conversationId": unknown })).await;
            assert_eq!(code, "CONVERSATION_NOT_FOUND", "{unknown}");
        }
        let (code, said) = client.refused(CANCEL, json!({})).await;
        assert_eq!((code.as_str(), said.starts_with("conversationId")), ("VALIDATION_ERROR", true));
        drop(client);

        // For another owner the conversation does not exist.
        let own = world.environment.clone();
        world.set("OUTLAST_OWNER", "stranger");
        let mut stranger = Client::of(world.serve().await).await;
        let (code, _) = stranger.refused(CANCEL, json!({ "conversationId": id })).await;
        assert_eq!(code, "CONVERSATION_NOT_FOUND");
        world.environment = own;
    }
}

/// G2: the first provider serves requested tools with Perplexity's name, with one warning.
#[tokio::test]
async fn g2_a_set_that_was_named_is_served_by_the_first_provider_with_one_warning() {
    let mut world = two_providers().await;
    let warnings = |log: &str| log.lines().filter(|line| line.contains("`deep-research`")).count();
    for (set, warned) in [("research,perplexity", 1), ("deep-research", 0), ("research-jobs", 0)] {
        world.set("OUTLAST_TOOLS", set);
        let client = client(&world).await;
        client.server.logged("research provider").await;
        let log = client.server.log();
        assert_eq!(warnings(&log), warned, "{set}: {log}");
    }
    world.set("OUTLAST_TOOLS", "research");
    let mut client = client(&world).await;
    let answer = client.ok(SEARCH, json!({ "query": NOTES })).await;
    assert_eq!((&answer.shape["provider"], world.submits()), (&json!("library"), 0));
    world.set("OUTLAST_PROVIDERS", "perplexity,library");
    let client = Client::of(world.serve().await).await;
    client.server.logged("research provider").await;
    assert_eq!(warnings(&client.server.log()), 0);
}

/// E12, G2: the built-in workflow is sent to the first provider.
#[tokio::test]
async fn g2_the_built_in_workflow_is_answered_by_the_first_provider() {
    let mut world = two_providers().await;
    world.set("OUTLAST_TOOLS", "jobs");
    let mut server = world.serve().await;
    let start = json!({ "workflow": "deep_research", "message": NOTES });
    let started = server.structured("start_job", start).await;
    let got = server.structured("get_job", json!({ "job_id": started["job_id"] })).await;
    assert_eq!((&got["status"], world.submits()), (&json!("completed"), 0), "{got}");
    assert!(got.to_string().contains("heliotrope-93"), "{got}");
}
