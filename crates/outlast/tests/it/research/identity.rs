//! Promise 2: one question, one call. The same question in another form, after a changed default, through a task or from
//! another version buys nothing; `fresh` starts over.

use super::*;

const ASK: &str = "deep_research";
const HELD: &str = "ok;words=60;hold=true";

fn asked(question: &str, scenario: &str) -> Value {
    json!({ "query": format!("{question} [[sim:{scenario}]]") })
}

fn with(mut arguments: Value, more: Value) -> Value {
    let (Value::Object(given), Value::Object(more)) = (&mut arguments, more) else { panic!() };
    given.extend(more);
    arguments
}

fn is_replay(result: &Value) -> bool {
    result["_meta"]["outlast/replayed"] == true
}

/// Promise 2: encoding, spacing, priority and budget do not make another question; other words and another effort do.
#[tokio::test]
async fn promise_2_the_same_question_in_another_form_pays_once() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "deep-research,research");
    let mut client = Client::of(world.serve().await).await;
    for (tool, more) in [
        (ASK, json!({ "priority": 7, "budget_usd": 4.5 })),
        (DEEP, json!({ "priority": -7 })),
        (SEARCH, json!({ "showThinking": true })),
    ] {
        let before = world.submits();
        let first = client.ok(tool, asked("Caf\u{e9} prices?", QUICK)).await;
        for form in [
            asked("Cafe\u{301} prices?", QUICK),
            asked("  Caf\u{e9}\n\tprices? ", QUICK),
            with(asked("Caf\u{e9} prices?", QUICK), more),
        ] {
            let again = client.server.call(tool, form).await;
            assert!(is_replay(&again), "{tool}: {again}");
            assert_eq!(again["structuredContent"]["conversationId"], first.shape["conversationId"]);
        }
        assert_eq!(world.submits(), before + 1, "{tool}: paid once");
        client.ok(tool, asked("Cafe prices?", QUICK)).await;
        assert_eq!(world.submits(), before + 2, "{tool}: another question");
    }
    let before = world.submits();
    let harder = with(asked("Caf\u{e9} prices?", QUICK), json!({ "effort": "high" }));
    client.ok(ASK, harder).await;
    assert_eq!(world.submits(), before + 1, "another effort");
}

/// Promise 2: concurrent forms of one question share one job; each form of a follow-up is the same in its conversation
/// only.
#[tokio::test]
async fn promise_2_forms_of_one_question_at_once_share_one_job() {
    let (world, mut client) = blocking().await;
    let first = client.send(DEEP, asked("Caf\u{e9} prices?", HELD), None).await;
    let form = with(asked("Cafe\u{301}  prices?", HELD), json!({ "priority": 3 }));
    let second = client.send(DEEP, form, None).await;
    client.server.request("ping", json!({})).await;
    release(&world, 1).await;
    let id = id_of(&client.answer(DEEP, first).await);
    assert_eq!(id_of(&client.answer(DEEP, second).await), id);
    assert_eq!(world.submits(), 1, "paid once");

    let followed = client.ok(DEEP_FOLLOWUP, followup(&id, QUICK)).await;
    let mut form = followup(&id, QUICK);
    form["query"] = json!(form["query"].as_str().unwrap().replace("at dusk", "at  dusk"));
    let again = client.server.call(DEEP_FOLLOWUP, form).await;
    assert!(is_replay(&again), "{again}");
    assert_eq!(again["structuredContent"], followed.shape);
    assert_eq!(world.submits(), 2, "paid once");
    let other = id_of(&client.ok(DEEP, asked("Tea prices?", QUICK)).await);
    client.ok(DEEP_FOLLOWUP, followup(&other, QUICK)).await;
    assert_eq!(world.submits(), 4, "another conversation");
}

/// Promise 2: a call that names no provider attaches to an unfinished job, independent of the present defaults; one
/// that names a provider does not attach to another's.
#[tokio::test]
async fn promise_2_a_changed_default_buys_nothing_while_the_first_job_runs() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "deep-research");
    let folder = world.data_dir().parent().unwrap().join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("prices.md"), "# Prices\n\nCoffee costs 3 francs.\n").unwrap();
    world.set("OUTLAST_LIBRARY", folder.to_str().unwrap());
    world.set("OUTLAST_PROVIDERS", "perplexity,library");
    let mut first = Client::of(world.serve().await).await;
    let running = first.send(ASK, asked("Coffee prices?", HELD), None).await;
    eventually("it is submitted", || world.submits() == 1).await;

    world.set("OUTLAST_PROVIDERS", "library,perplexity");
    let mut second = Client::of(world.serve().await).await;
    let named = || with(asked("Coffee prices?", HELD), json!({ "provider": "library" }));
    assert_eq!(second.ok(ASK, named()).await.shape["provider"], "library");
    let again = second.send(ASK, asked("Coffee  prices?", HELD), None).await;
    // The store has the call before this one is answered.
    assert_eq!(second.server.call(ASK, named()).await["structuredContent"]["provider"], "library");
    release(&world, 1).await;
    let answer = second.answer(ASK, again).await;
    assert_eq!(answer.shape["provider"], "perplexity", "{}", answer.shape);
    assert_eq!(id_of(&first.answer(ASK, running).await), id_of(&answer));
    // Once it has ended, the call is a question for the provider that is now first.
    let later = second.ok(ASK, asked("Coffee prices?", HELD)).await;
    assert_eq!(later.shape["provider"], "library");
    assert_eq!(world.submits(), 1, "paid once");
}

/// tools.md: `fresh` starts over, and a client that repeats it after its timeout pays once.
#[tokio::test]
async fn promise_2_a_fresh_call_starts_over_and_a_repeated_one_pays_once() {
    let (world, mut client) = blocking().await;
    let first = client.ok(DEEP, query(QUICK)).await;
    let fresh = with(query(QUICK), json!({ "fresh": true }));
    let over = client.server.call(DEEP, fresh.clone()).await;
    assert!(!is_replay(&over), "{over}");
    assert_ne!(over["structuredContent"]["conversationId"], first.shape["conversationId"]);
    assert_eq!(world.submits(), 2, "paid again");
    let again = client.server.call(DEEP, query(QUICK)).await;
    assert!(is_replay(&again));
    assert_eq!(again["structuredContent"], over["structuredContent"], "the newest is repeated");
    assert_eq!(world.submits(), 2);
    let text = again["content"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap();
    assert!(text.contains("`idempotency_key`, or `fresh: true`"), "{text}");

    let fresh = with(query(HELD), json!({ "fresh": true }));
    for _ in 0..2 {
        let call = client.send(DEEP, fresh.clone(), None).await;
        eventually("it is submitted", || world.submits() == 3).await;
        client.give_up(call).await;
    }
    release(&world, 3).await;
    let answer = client.server.call(DEEP, fresh.clone()).await;
    assert_eq!(answer["structuredContent"]["status"], "completed", "{answer}");
    assert_eq!(world.submits(), 3, "the repeated fresh call paid once");

    let keyed = with(fresh, json!({ "idempotency_key": "k" }));
    let (code, sentence) = client.refused(DEEP, keyed).await;
    assert_eq!(code, "VALIDATION_ERROR");
    assert!(sentence.contains("fresh") && sentence.contains("idempotency_key"), "{sentence}");
    assert_eq!(world.submits(), 3);
}

/// tools.md: after SUBMIT_UNKNOWN a fresh call starts over, like a new key; no other call does.
#[tokio::test]
async fn promise_2_after_submit_unknown_only_a_fresh_call_starts_over() {
    let (world, mut client) = blocking().await;
    let fresh = || with(query("drop_submit"), json!({ "fresh": true }));
    assert_eq!(client.refused(DEEP, query("drop_submit")).await.0, "SUBMIT_UNKNOWN");
    assert_eq!(client.refused(DEEP, query("drop_submit")).await.0, "SUBMIT_UNKNOWN");
    assert_eq!(submitted(&world).len(), 1, "nothing is sent");
    for sends in 2..4 {
        let (code, sentence) = client.refused(DEEP, fresh()).await;
        assert_eq!(code, "SUBMIT_UNKNOWN");
        assert!(sentence.contains("with `fresh: true` it starts over"), "{sentence}");
        assert_eq!(submitted(&world).len(), sends, "the caller's consent");
    }
    let before = submitted(&world).len();
    assert_eq!(client.refused(DEEP, query("drop_submit")).await.0, "SUBMIT_UNKNOWN");
    assert_eq!(submitted(&world).len(), before, "nothing is sent");
}

/// tools.md: both research sets have `fresh` on their research tools; the drop-in set does not.
#[tokio::test]
async fn promise_2_only_the_research_tools_take_fresh() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "perplexity,research,deep-research,research-jobs");
    let client = Client::of(world.serve().await).await;
    let with_fresh = client.tools.iter().filter(|tool| {
        let fresh = &tool["inputSchema"]["properties"]["fresh"];
        assert!(fresh.is_null() || (fresh["type"] == "boolean" && fresh["default"] == false));
        !fresh.is_null()
    });
    let names: Vec<&str> = with_fresh.map(|tool| tool["name"].as_str().unwrap()).collect();
    // A check fetches again with it; it is free.
    assert_eq!(names, [DEEP, DEEP_FOLLOWUP, CHECK, ASK, "deep_research_followup"]);
}

/// E9: a call with its own key is the key's job; a call without one finds the newest job of the question.
#[tokio::test]
async fn e9_a_call_without_a_key_finds_the_job_that_a_key_began() {
    let (world, mut client) = blocking().await;
    let keyed = with(query(QUICK), json!({ "idempotency_key": "k" }));
    let first = client.ok(DEEP, keyed.clone()).await;
    let again = client.server.call(DEEP, query(QUICK)).await;
    assert!(is_replay(&again), "{again}");
    assert_eq!(again["structuredContent"], first.shape);
    let conflict = with(keyed, json!({ "priority": 9 }));
    assert_eq!(client.refused(DEEP, conflict).await.0, "IDEMPOTENCY_CONFLICT", "as before");
    assert_eq!(world.submits(), 1);
}

/// Promise 2: a held call that the previous version began has no identity; the same call finds it by its previous key.
#[tokio::test]
async fn promise_2_a_call_begun_by_the_previous_version_is_found() {
    let (world, mut client) = blocking().await;
    let running = client.send(DEEP, query(HELD), None).await;
    eventually("it is submitted", || world.submits() == 1).await;
    // The rows as the previous version leaves them.
    let database = crate::support::raw_database(&world.database());
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(database.execute("DELETE FROM call_identities", []).unwrap(), 1);
    drop(database);
    let mut next = Client::of(world.serve().await).await;
    let again = next.send(DEEP, query(HELD), None).await;
    next.server.request("ping", json!({})).await;
    release(&world, 1).await;
    let answer = next.answer(DEEP, again).await;
    assert_eq!(id_of(&client.answer(DEEP, running).await), id_of(&answer));
    assert!(is_replay(&next.server.call(DEEP, query(HELD)).await));
    assert_eq!(world.submits(), 1, "paid once");
}

/// E9: the key of a call, and the digest of a caller's key, are those that the previous version wrote for the same
/// call: its calls are found, and its keys do not conflict. Recorded from rows of that version.
#[tokio::test]
async fn e9_keys_are_those_of_the_previous_version() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "perplexity,research,deep-research");
    let asked = "Caf\u{e9}  prices? [[sim:ok;words=60;delay_ms=0]]";
    let user = json!({ "role": "user", "content": asked });
    let brief = json!({ "role": "system", "content": "brief" });
    let calls = [
        (DEEP, json!({ "query": asked })),
        (
            DEEP,
            json!({ "query": asked, "priority": 3, "reasoning_effort": "high", "idempotency_key": "k1" }),
        ),
        (ASK, json!({ "query": asked, "idempotency_key": "k2", "budget_usd": 2 })),
        (
            ASK,
            json!({ "query": asked, "provider": "perplexity", "effort": "low", "budget_usd": 2.5, "priority": -1 }),
        ),
        ("perplexity_ask", json!({ "messages": [user], "search_domain_filter": ["a.example"] })),
        ("perplexity_research", json!({ "messages": [brief, user] })),
    ];
    let mut client = Client::of(world.serve().await).await;
    for (tool, arguments) in calls {
        let answer = client.server.call(tool, arguments).await;
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
    }
    world.set("OUTLAST_TOOLS", "research");
    let mut client = Client::of(world.serve().await).await;
    let narrowed = json!({
        "query": asked,
        "search_mode": "academic",
        "search_domain_filter": ["-b.example"],
        "showThinking": true,
    });
    client.ok(SEARCH, narrowed).await;
    let database = crate::support::raw_database(&world.database());
    let mut select = database
        .prepare("SELECT text || ' ' || lower(hex(input_hash)) FROM keys ORDER BY job")
        .unwrap();
    let keys: Vec<String> =
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let held = |tool: &str, digest: &str| format!("held:{tool}:{digest} {digest}");
    let expected = [
        held(DEEP, "74085981554c55052744b07975a0e5f55227cf973524fbf2cd23d6e704a45bbf"),
        "given:k1 0b11d6e134d51bf82a24853369f09e077d31942bd7d7ea5f0890be620133a75a".to_owned(),
        "given:k2 8fb788e52d80904ee1a7ad1b3e0bd30bf3b7a66c7552ad053fef2f9b4250baac".to_owned(),
        held(ASK, "4f7ead892f159017954596eca8cef2248c916a43ae2154cd623740dfc4dd3edd"),
        held("perplexity_ask", "66be4d9d933270e72c8728c78dce3dd1eacc6487e1c4d3baefb753a4ec48ff31"),
        held(
            "perplexity_research",
            "e951643ec8324d066976d447ed04b1ba63dd2d523a398925dd3e503debf938a7",
        ),
        held(SEARCH, "208699f84f92ff5626d0bea49532f33eb177b3a2e9b29a64cc1baf4eb431eb30"),
    ];
    assert_eq!(keys, expected);
}
