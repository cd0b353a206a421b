//! Budgets and the ledger, with the real binary: the recorded spending equals the provider's charges, and a limit is
//! kept (G6).

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::{
    CANCEL, START, ShiftedClock, World, assert_refused, eventually, finished, question, running,
    start,
};

const DAY_MS: i64 = 86_400_000;

/// Returns the output of `outlast spend` as JSON.
async fn spend(world: &World, flags: &[&str]) -> Value {
    let ran = world.run(&[&["spend", "--json"], flags].concat()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Returns dollars as exact billionths.
fn nanos(usd: &Value) -> u64 {
    (usd.as_f64().unwrap() * 1e9).round() as u64
}

/// Asks a unique question, which identifies its run.
async fn ask(server: &mut McpProcess, name: &str, scenario: &str) -> String {
    let content = format!("{name} question? [[sim:{scenario}]]");
    let asked = json!({ "messages": [{ "role": "user", "content": content }] });
    server.structured(START, asked).await["jobId"].as_str().unwrap().to_owned()
}

/// G6: exact to the nano-dollar for every run whose end was seen; the others may have been spent.
#[tokio::test]
async fn g6_the_ledger_is_the_providers_own_bill() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let held = ask(&mut server, "Held", "ok;words=60;hold").await;
    running(&world, &held).await;
    let typical = nanos(&spend(&world, &[]).await["reserved_usd"]);
    world.simulator.release();
    assert_eq!(finished(&mut server, &held).await["status"], "COMPLETED");
    let table = [
        ("First", "ok;words=61;delay_ms=0", "COMPLETED"),
        ("Second", "ok;words=197;sources=7;delay_ms=0", "COMPLETED"),
        ("Third", "cost;total=1.234567891|ok;words=60;delay_ms=0", "COMPLETED"),
        ("Fourth", "fail;times=1|ok;words=60;delay_ms=0", "COMPLETED"),
        ("Fifth", "fail|ok;words=60;delay_ms=0", "FAILED"),
        ("Sixth", "drop_submit|ok;words=60;delay_ms=0", "FAILED"),
        ("Seventh", "http;status=401", "FAILED"),
        ("Eighth", "503x1|ok;words=60;delay_ms=0", "COMPLETED"),
    ];
    for (name, scenario, expected) in table {
        let id = ask(&mut server, name, scenario).await;
        let ended = finished(&mut server, &id).await;
        assert_eq!(ended["status"], expected, "{name}: {ended}");
    }
    let id = ask(&mut server, "Ninth", "stuck").await;
    running(&world, &id).await;
    server.structured(CANCEL, json!({ "jobId": id })).await;

    let stats = world.simulator.stats();
    let seen = |name: &str| !["Sixth", "Ninth"].contains(&name);
    let bill: u64 = stats
        .runs
        .iter()
        .filter(|run| seen(run.submitted_input.split(' ').next().unwrap()))
        .filter_map(|run| run.billed_nanos)
        .sum();
    let found = spend(&world, &["--by", "provider"]).await;
    assert_eq!(nanos(&found["total_usd"]), bill, "{found} {stats:?}");
    assert_eq!(nanos(&found["reserved_usd"]), 0, "{found}");
    // Fourth's first run, Fifth's three, Sixth's and Ninth's; Seventh was refused.
    assert_eq!(nanos(&found["maybe_spent_usd"]), 6 * typical, "{found}");
    assert_eq!(found["rows"][0]["key"], "perplexity", "{found}");
    assert_eq!(found["rows"][0]["runs"], 12, "{found}");
    assert_eq!(stats.submits, 12, "a row for each run that was paid for");

    // Jobs are removed, the ledger stays.
    let pruned = world.run(&["jobs", "prune", "--older-than", "0s"]).await;
    assert!(pruned.stdout.trim().parse::<u32>().unwrap() > 0, "{pruned:?}");
    assert_eq!(spend(&world, &["--by", "provider"]).await["rows"], found["rows"]);
}

/// G6: the output for a person, and that for a script.
#[tokio::test]
async fn g6_spend_is_shown_by_day_model_and_owner_and_makes_no_store() {
    let mut world = World::new().await;
    let nothing = world.run(&["spend"]).await;
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""), "{nothing:?}");
    assert!(nothing.stderr.contains("Nothing was spent"), "{nothing:?}");
    if !outlast_testkit::postgres::everywhere() {
        assert!(!world.database().exists(), "a command that reads makes no store");
    }
    let mut server = world.serve().await;
    let id = ask(&mut server, "One", "cost;total=0.5|ok;words=60;delay_ms=0").await;
    finished(&mut server, &id).await;
    let found = spend(&world, &[]).await;
    let keys: Vec<&String> = found.as_object().unwrap().keys().collect();
    let expected = ["since", "until", "total_usd", "reserved_usd", "maybe_spent_usd", "rows"];
    assert_eq!(keys.len(), expected.len());
    assert!(expected.iter().all(|key| found.get(key).is_some()), "{found}");
    let day = found["rows"][0]["key"].as_str().unwrap();
    assert!(outlast_core::Day::parse(day).is_some(), "{found}");
    let row = json!({
        "key": day, "usd": 0.5, "reserved_usd": 0.0, "maybe_spent_usd": 0.0, "runs": 1
    });
    assert_eq!(found["rows"], json!([row]));
    let future = spend(&world, &["--since", "2999-01-01"]).await;
    assert_eq!((&future["since"], &future["rows"]), (&json!("2999-01-01"), &json!([])));
    let bad = world.run(&["spend", "--since", "yesterday"]).await;
    assert_eq!(bad.code, Some(2), "{bad:?}");

    let owner = world.environment.iter().find(|(name, _)| name == "OUTLAST_OWNER");
    let owner = owner.map_or("local".to_owned(), |(_, name)| name.clone());
    world.set("OUTLAST_OWNER", "another");
    assert_eq!(spend(&world, &[]).await["rows"], json!([]), "E7: not one's own");
    let all = spend(&world, &["--by", "owner"]).await;
    assert_eq!((&all["rows"][0]["key"], &all["total_usd"]), (&json!(owner), &json!(0.5)));
    world.set("OUTLAST_OWNER", &owner);
    let table = world.run(&["spend", "--by", "model"]).await;
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert!(lines[0].starts_with("MODEL"), "{table:?}");
    assert!(lines[2].starts_with("total") && lines[2].contains("$0.5000"), "{table:?}");
}

/// G6: refused before anything is sent, in every interface; free work continues.
#[tokio::test]
async fn g6_a_limit_of_nothing_refuses_what_is_paid_and_the_library_answers() {
    let mut world = World::new().await;
    world.set("OUTLAST_MAX_USD_PER_DAY", "0");
    let mut server = world.serve().await;
    let refused = server.call(START, question("ok")).await;
    assert_refused(&refused, "BUDGET_EXCEEDED", false);
    let refused =
        server.call("perplexity_deep_research", json!({ "query": "Why is the sky blue?" })).await;
    assert_refused(&refused, "BUDGET_EXCEEDED", false);
    let refused =
        server.call("perplexity_search", json!({ "query": "Why is the sky blue?" })).await;
    assert_refused(&refused, "BUDGET_EXCEEDED", false);
    let ran = world.run(&["research", "Why is the sky blue?"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("OUTLAST_MAX_USD_PER_DAY is 0"), "{ran:?}");
    assert!(ran.stderr.contains("hint: ") && ran.stderr.contains("outlast spend"), "{ran:?}");
    let requests = world.simulator.requests();
    assert!(requests.iter().all(|seen| seen.method != "POST"), "nothing was sent: {requests:?}");

    let notes = world.data_dir().join("notes");
    std::fs::create_dir_all(&notes).unwrap();
    std::fs::write(notes.join("sky.md"), "# Sky\n\nThe sky is blue by Rayleigh scattering.\n")
        .unwrap();
    let ran = world
        .run(&["research", "--library", notes.to_str().unwrap(), "Why is the sky blue?"])
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(spend(&world, &["--by", "owner"]).await["rows"], json!([]), "free: no row");
    let explained = world.run(&["explain", "BUDGET_EXCEEDED"]).await;
    assert!(explained.stdout.contains("outlast spend"), "{explained:?}");
}

/// G6: the day's limit counts reservations; the next UTC day begins at zero.
#[tokio::test]
async fn g6_the_limit_of_a_day_counts_reservations_and_ends_with_the_day() {
    let mut world = World::new().await;
    let clock = ShiftedClock::new(&world);
    // Noon of the next day, so that no midnight falls into this test by chance.
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as i64;
    let noon = DAY_MS - now.rem_euclid(DAY_MS) + DAY_MS / 2;
    clock.set(noon);
    let mut unlimited = clock.serve(&world, &[]).await;
    start(&mut unlimited, "ok;words=60;hold").await;
    let typical = nanos(&spend(&world, &[]).await["reserved_usd"]);
    drop(unlimited);

    // Room for one more, to the nano-dollar.
    let allowed = typical * 2;
    let written = format!("{}.{:09}", allowed / 1_000_000_000, allowed % 1_000_000_000);
    world.set("OUTLAST_MAX_USD_PER_DAY", &written);
    let mut server = clock.serve(&world, &[]).await;
    start(&mut server, "ok;words=60;hold").await;
    let refused = server.call(START, question("ok")).await;
    assert_refused(&refused, "BUDGET_EXCEEDED", true);
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("usually costs $") && text.contains("next day"), "{text}");
    let rest = refused["_meta"]["outlast/error"]["retry_after_seconds"].as_u64().unwrap();
    assert!((1..=43_201).contains(&rest), "{rest}");
    clock.set(noon + i64::try_from(rest).unwrap() * 1000);
    let accepted = async {
        while server.call(START, question("ok;words=60;hold")).await["isError"] == true {}
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), accepted).await.expect("a new day");
    world.simulator.release();
}

/// G6: a kill -9 between the insert and the end loses no reservation, and the run is counted once.
#[tokio::test]
async fn g6_a_killed_server_keeps_what_is_reserved() {
    let world = World::new().await;
    let mut doomed = world.serve().await;
    let id = start(&mut doomed, "ok;words=60;hold").await;
    running(&world, &id).await;
    doomed.kill().await;
    let reserved = spend(&world, &["--by", "provider"]).await;
    assert!(nanos(&reserved["reserved_usd"]) > 0, "{reserved}");
    assert_eq!((nanos(&reserved["total_usd"]), &reserved["rows"][0]["runs"]), (0, &json!(1)));
    world.simulator.release();
    let mut server = world.serve().await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    let spent = spend(&world, &["--by", "provider"]).await;
    assert_eq!(nanos(&spent["total_usd"]), world.simulator.stats().spent_nanos, "{spent}");
    assert_eq!((nanos(&spent["reserved_usd"]), &spent["rows"][0]["runs"]), (0, &json!(1)));
}

/// G6: killed while the request is on its way, the money may have been spent; cancelled then, too.
#[tokio::test]
async fn g6_what_may_have_been_spent_is_shown_apart() {
    let world = World::new().await;
    let mut doomed = world.serve().await;
    let id = start(&mut doomed, "late_submit;ms=1200000|stuck").await;
    eventually("the run is bought", || world.submits() == 1).await;
    doomed.kill().await;
    let mut server = world.serve().await;
    let ended = finished(&mut server, &id).await;
    assert!(ended["error"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN"), "{ended}");
    let found = spend(&world, &[]).await;
    assert_eq!((nanos(&found["reserved_usd"]), nanos(&found["total_usd"])), (0, 0), "{found}");
    let once = nanos(&found["maybe_spent_usd"]);
    assert!(once > 0, "{found}");
    let id = start(&mut server, "stuck").await;
    running(&world, &id).await;
    server.structured(CANCEL, json!({ "jobId": id })).await;
    let found = spend(&world, &[]).await;
    assert_eq!(nanos(&found["maybe_spent_usd"]), 2 * once, "{found}");
}

/// G6: a limit that is not an amount ends the command with exit code 2.
#[tokio::test]
async fn g6_a_limit_that_is_not_an_amount_is_a_usage_error() {
    let mut world = World::new().await;
    for bad in ["five", "-1", "1e3", "0.0000000001", "NaN"] {
        world.set("OUTLAST_MAX_USD_PER_JOB", bad);
        let ran = world.run(&["spend"]).await;
        crate::cli::assert_usage_error(&ran, "OUTLAST_MAX_USD_PER_JOB", "US dollars");
    }
}
