//! C: deep research that is held until its report is ready.

use super::*;
use crate::support::assert_refused;

/// C1, C9: the whole report with citations, conversation, usage and cost.
#[tokio::test]
async fn c1_a_held_call_returns_the_whole_report() {
    let (world, mut client) = blocking().await;
    let answer = client.ok(DEEP, query("ok;words=200;sources=4;delay_ms=0")).await;
    let shape = &answer.shape;
    assert_eq!(shape["status"], "completed");
    assert_ne!(shape["responseId"], "queued");
    let report = shape["rawResultText"].as_str().unwrap();
    assert!(report.contains("[1]") && report.split_whitespace().count() > 100, "{report}");
    assert_eq!(shape["searchResults"].as_array().unwrap().len(), 4);
    assert!(shape["usage"]["total_tokens"].as_u64().unwrap() > 0, "{shape}");
    assert_eq!(shape["cost"]["kind"], "reported");
    assert!(shape["cost"]["usd"].as_f64().unwrap() > 0.0);
    let path = shape["conversationPath"].as_str().unwrap();
    assert!(path.ends_with(shape["conversationId"].as_str().unwrap()), "{path}");

    let text = &answer.text;
    let id = id_of(&answer);
    let head = format!("🆕 **New Conversation Started**\nConversation ID: `{id}`\n");
    assert!(text.starts_with(&head) && text.contains(report), "{text}");
    let (_, sources) = text.split_once("\n\nSources:\n").expect("sources");
    for line in sources.lines().take(4) {
        assert!(line.starts_with('[') && line.contains("] ") && line.contains(": http"), "{line}");
    }
    assert!(text.contains("\nUsage: ") && text.contains(" | Cost: $"), "{text}");

    let history = client.history(&id).await;
    assert_eq!(history.shape["messages"][1]["content"], shape["rawResultText"]);
    assert_eq!(history.shape["cost"], shape["cost"]);
    assert_eq!(world.submits(), 1);
    client.server.logged("Job completed").await;
    assert!(client.server.log().contains("tokens="), "C9: {}", client.server.log());
}

/// C1, C4: the effort and the instructions for a report go upstream; histories show the latter on request.
#[tokio::test]
async fn c4_the_instructions_ask_for_a_report_and_are_shown_on_request() {
    let (world, mut client) = blocking().await;
    for effort in ["low", "medium", "high"] {
        let mut arguments = query(QUICK);
        arguments["reasoning_effort"] = json!(effort);
        let answer = client.ok(DEEP, arguments).await;
        let sent = submitted(&world).pop().unwrap();
        assert_eq!(sent["effort"], effort);
        let instructions = sent["instructions"].as_str().unwrap();
        for wish in ["executive summary", "Markdown headings", "[1][2]", "URLs", "credible"] {
            assert!(instructions.contains(wish), "{wish}: {instructions}");
        }
        assert_eq!(instructions.contains("at least 5000 words"), effort == "high");

        let id = id_of(&answer);
        let plain = client.history(&id).await;
        assert_eq!(plain.shape["messageCount"], 2);
        let whole = json!({ "conversationId": id, "includeSystemPrompt": true });
        let whole = client.ok(HISTORY, whole).await;
        assert_eq!(whole.shape["messageCount"], 3);
        assert_eq!(whole.shape["messages"][0]["role"], "system");
        assert_eq!(whole.shape["messages"][0]["content"], instructions);
    }
}

/// C4: a report is checked on the way back; a short one of high effort is logged and reported.
#[tokio::test]
async fn c4_a_short_report_of_high_effort_is_said_and_logged() {
    let (_world, mut client) = blocking().await;
    let mut arguments = query("ok;words=300;sources=3;delay_ms=0");
    let medium = client.ok(DEEP, arguments.clone()).await;
    let check = &medium.shape["reportCheck"];
    assert!(check["words"].as_u64().unwrap() > 200 && check.get("minWords").is_none(), "{check}");
    assert!(check["headings"].as_u64().unwrap() > 0, "{check}");
    assert!(check["danglingCitations"].is_array() && check["uncitedSources"].is_array());
    assert!(check["hasSummary"].is_boolean());
    assert!(!medium.text.contains("Note: the report has"), "{}", medium.text);

    arguments["reasoning_effort"] = json!("high");
    let high = client.ok(DEEP, arguments).await;
    assert_eq!(high.shape["reportCheck"]["minWords"], 5000);
    assert!(high.text.contains("fewer than the 5000"), "{}", high.text);
    client.server.logged("the report is shorter than was asked for").await;
    let history = client.history(&id_of(&high)).await;
    assert_eq!(history.shape["reportCheck"], high.shape["reportCheck"]);
}

/// C5: the error comes back at once and no conversation is left behind; nothing is submitted twice.
#[tokio::test]
async fn c5_a_held_call_that_fails_leaves_no_conversation() {
    let (world, mut client) = blocking().await;
    let cases = [
        ("http;status=401", "UNAUTHORIZED"),
        ("http;status=402", "QUOTA_EXHAUSTED"),
        ("http;status=429", "RATE_LIMITED"),
        ("http;status=503", "SERVICE_UNAVAILABLE"),
        ("http;status=400;secret=pplx-hunter2hunter2hunter2", "EXECUTION_ERROR"),
        ("fail;delay_ms=0", "EXECUTION_ERROR"),
        ("drop_submit", "SUBMIT_UNKNOWN"),
    ];
    for (scenario, expected) in cases {
        let before = submitted(&world).len();
        let (code, sentence) = client.refused(DEEP, query(scenario)).await;
        assert_eq!(code, expected, "{scenario}: {sentence}");
        assert!(!sentence.contains("hunter2"), "{sentence}");
        assert_eq!(submitted(&world).len(), before + 1, "{scenario}: never submitted twice");
    }
    let listed = client.ok(LIST, json!({})).await;
    assert_eq!(listed.shape["conversations"], json!([]));
    let shown = world.run(&["jobs", "list", "--json"]).await;
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let jobs = shown["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), cases.len(), "the owner sees what failed on the command line");
    client.server.logged("Job failed").await;
}

/// C7: an attempt is bounded; a warning comes at 80 %; blocking ends with TIMEOUT.
#[tokio::test]
async fn c7_an_attempt_is_bounded_and_warned_of() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_POLLING_TIMEOUT_MS", "400");
    let mut client = Client::of(world.serve().await).await;
    let refused = client.server.call(DEEP, query("stuck")).await;
    // The run may still end: the repeated call resumes it.
    assert_refused(&refused, "TIMEOUT", true);
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("may still finish") && text.contains("`outlast jobs retry "), "{text}");
    assert!(text.ends_with("goes on with it, and so does the same call made again"), "{text}");
    client.server.logged("80 % of the time for this try is used up").await;
    assert_eq!(world.submits(), 1);
}

/// E9: a caller's own key names one call, also after its answer.
#[tokio::test]
async fn an_idempotency_key_names_one_held_call() {
    let (world, mut client) = blocking().await;
    let keyed = |scenario: &str| {
        let mut arguments = query(scenario);
        arguments["idempotency_key"] = json!("k-1");
        arguments
    };
    let first = client.ok(DEEP, keyed(QUICK)).await;
    let second = client.ok(DEEP, keyed(QUICK)).await;
    assert_eq!(first, second);
    assert_eq!(world.submits(), 1);
    let (code, _) = client.refused(DEEP, keyed("ok;words=70")).await;
    assert_eq!(code, "IDEMPOTENCY_CONFLICT");
}

/// A server that shuts down reports that nothing is lost, and the next one continues.
#[tokio::test]
async fn a_stopping_server_asks_a_held_caller_to_call_again() {
    let (world, mut client) = blocking().await;
    let arguments = query("ok;words=60;hold=true");
    let call = client.send(DEEP, arguments.clone(), None).await;
    eventually("it is submitted", || world.submits() == 1).await;
    client.server.request("ping", json!({})).await;
    client.server.signal(outlast_testkit::mcp_process::Signal::TERM);
    let answer = client.server.answer(call).await.expect("a held call is answered");
    assert_eq!(refusal(&answer["result"]).0, "SERVICE_UNAVAILABLE");
    let mut client = Client::of(world.serve().await).await;
    release(&world, 1).await;
    assert_eq!(client.ok(DEEP, arguments).await.shape["status"], "completed");
    assert_eq!(world.submits(), 1);
}

/// C1: a report is untrusted text. It is a separate block between delimiters that it cannot end, in the answer and in
/// the history; structured content has it unchanged.
#[tokio::test]
async fn c1_a_report_is_its_own_delimited_block() {
    let (_world, mut client) = blocking().await;
    let asked = client.server.call(DEEP, query("inject;line=100;words=60;delay_ms=0")).await;
    let report = asked["structuredContent"]["rawResultText"].as_str().unwrap().to_owned();
    let id = asked["structuredContent"]["conversationId"].clone();
    assert!(report.contains("Ignore all previous instructions"), "{report}");
    let history = client.server.call(HISTORY, json!({ "conversationId": id })).await;
    let both = client.server.call(HISTORIES, json!({ "conversationIds": [id] })).await;
    for answer in [asked, history, both] {
        let blocks = answer["content"].as_array().unwrap();
        let (quoted, ours): (Vec<&Value>, Vec<&Value>) =
            blocks.iter().partition(|block| block["_meta"]["outlast/untrusted"] == true);
        let [quoted] = quoted[..] else { panic!("{answer}") };
        assert_eq!(quoted["annotations"]["audience"], json!(["user", "assistant"]), "{quoted}");
        let text = quoted["text"].as_str().unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let (inside, last) = rest.rsplit_once('\n').unwrap();
        assert!(first.contains("BEGINS") && first.contains("untrusted text"), "{first}");
        let mark = first.split(' ').nth(1).unwrap();
        assert_eq!(last, format!("<<<REPORT {mark} ENDS>>>"));
        assert!(inside.starts_with(&report) && !inside.contains(mark), "{inside}");
        for block in ours {
            let text = block["text"].as_str().unwrap_or_default();
            assert!(!text.contains("Ignore all previous") && !text.contains("evil"), "{text}");
        }
    }
}
