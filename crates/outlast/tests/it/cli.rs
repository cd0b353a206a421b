//! The command line: exit codes, the use of the two streams, and errors with a next step.

mod pty;
mod left_behind;
mod snapshot;
mod snapshots;
mod wrong;
mod research;
mod jobs;
mod conversations;
mod terminal;
mod docs;
mod everyday;
mod bench;

use serde_json::{Value, json};

use crate::support::{CANCEL, Ran, World, finished, running, start};

/// Checks the form of an error.
pub(crate) fn assert_usage_error(ran: &Ran, error: &str, hint: &str) {
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.stdout, "", "standard output is data");
    let (said, next) =
        ran.stderr.split_once("\n\nhint: ").unwrap_or_else(|| panic!("no hint: {ran:?}"));
    assert!(said.starts_with("error: ") && said.contains(error), "{ran:?}");
    assert!(next.contains(hint), "{ran:?}");
}

#[tokio::test]
async fn research_without_a_provider_names_the_three_ways_to_get_one() {
    let mut world = World::new().await;
    world.unset("PERPLEXITY_API_KEY");
    let ran = world.run(&["research", "why?"]).await;
    assert_usage_error(&ran, "no research provider", "PERPLEXITY_API_KEY");
    assert!(ran.stderr.contains("library") && ran.stderr.contains("outlast demo"), "{ran:?}");
    assert!(!world.data_dir().exists(), "nothing is made by a command that cannot work");
}

#[tokio::test]
async fn a_bad_setting_names_itself_its_source_and_what_is_allowed() {
    let mut world = World::new().await;
    let ran = world.run(&["serve", "--tools", "research-jobs,dance"]).await;
    assert_usage_error(&ran, "--tools = `dance` (from the flag --tools)", "research-jobs");
    let ran = world.run(&["serve", "--concurrency", "0"]).await;
    assert_usage_error(&ran, "--concurrency = `0`", "a whole number from 1");
    let ran = world.run(&["jobs", "list", "--store", "redis://x"]).await;
    assert_usage_error(&ran, "--store = `redis://x`", "sqlite:FILE");
    world.set("OUTLAST_CONCURRENCY", "lots");
    let ran = world.run(&["serve"]).await;
    assert_usage_error(&ran, "OUTLAST_CONCURRENCY = `lots` (from the environment", "whole number");
}

/// A tool set that does not exist yet is refused if it is named.
#[tokio::test]
async fn a_tool_set_of_a_later_version_is_refused_when_named() {
    let world = World::new().await;
    for set in ["dashboard", "everything"] {
        let ran = world.run(&["serve", "--tools", set]).await;
        assert_usage_error(&ran, &format!("`{set}`"), "research-jobs");
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_is_named_with_its_path() {
    let world = World::new().await;
    std::fs::create_dir_all(world.data_dir()).unwrap();
    let garbage = world.data_dir().join("garbage.db");
    std::fs::write(&garbage, "this is not a database, and it is longer than a header".repeat(100))
        .unwrap();
    let url = format!("sqlite:{}", garbage.display());
    let ran = world.run(&["jobs", "list", "--store", &url]).await;
    assert_usage_error(&ran, "garbage.db", "OUTLAST_STORE");
    let url = format!("sqlite:{}", world.data_dir().display());
    let ran = world.run(&["jobs", "list", "--store", &url]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("is a directory"), "{ran:?}");
}

#[tokio::test]
async fn wrong_uses_are_refused_by_the_parser() {
    let world = World::new().await;
    let wrong: [&[&str]; 7] = [
        &[],
        &["sevre"],
        &["serve", "--concurrency", "x"],
        &["jobs"],
        &["jobs", "list", "--state", "asleep"],
        &["jobs", "list", "--limit", "0"],
        &["jobs", "show"],
    ];
    for arguments in wrong {
        let ran = world.run(arguments).await;
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{arguments:?}");
        assert!(
            ran.stderr.contains("--help") || ran.stderr.contains("Usage: "),
            "{arguments:?}: {ran:?}"
        );
    }
}

/// E5: jobs are visible with list and show; a unique prefix is enough.
#[tokio::test]
async fn e5_jobs_can_be_listed_and_looked_into() {
    let mut world = World::new().await;
    let empty = world.run(&["jobs", "list"]).await;
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""), "{empty:?}");
    assert!(empty.stderr.contains("No jobs"), "{empty:?}");

    let mut server = world.serve().await;
    let done = start(&mut server, "ok;words=60;sources=2;delay_ms=0").await;
    finished(&mut server, &done).await;
    let failed = start(&mut server, "http;status=400").await;
    finished(&mut server, &failed).await;
    let stopped = start(&mut server, "stuck").await;
    running(&world, &stopped).await;
    server.structured(CANCEL, json!({ "jobId": stopped })).await;

    let list = world.run(&["jobs", "list"]).await;
    let lines: Vec<_> = list.stdout.lines().collect();
    assert!(lines[0].starts_with("ID ") && lines[0].ends_with("QUESTION"), "{list:?}");
    let ids: Vec<_> =
        lines[1..].iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(ids, [&stopped, &failed, &done], "newest first, the id first and alone");

    let list = world.run(&["jobs", "list", "--json", "--state", "succeeded"]).await;
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(list["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(list["jobs"][0]["id"], done);
    assert_eq!(list["more"], false);

    let show = world.run(&["jobs", "show", &done[..8]]).await;
    assert_eq!(show.code, Some(0), "{show:?}");
    assert_eq!(show.stdout.lines().next(), Some(done.as_str()));
    for part in ["succeeded", "remote run", "cost", "\nSources\n[1] http", "Executive summary"] {
        assert!(show.stdout.contains(part), "{part}: {}", show.stdout);
    }
    let show = world.run(&["jobs", "show", &failed]).await;
    assert!(
        show.stdout.contains("failure 1") && show.stdout.contains("HTTP 400"),
        "{}",
        show.stdout
    );

    world.set("OUTLAST_OWNER", "another-owner");
    let foreign = world.run(&["jobs", "show", &done]).await;
    assert_eq!(foreign.code, Some(1), "{foreign:?}");
    assert!(foreign.stderr.contains("there is no job"), "{foreign:?}");
    let all = world.run(&["jobs", "list", "--all"]).await;
    assert!(all.stdout.contains("OWNER") && all.stdout.contains(&done), "{all:?}");
}

#[tokio::test]
async fn e5_an_id_that_is_none_is_refused_with_the_way_to_find_one() {
    let world = World::new().await;
    for id in ["abc", "not-a-job", "../../x", "ABCDEF0123456789"] {
        let ran = world.run(&["jobs", "show", id]).await;
        assert_usage_error(&ran, "is not the id of a job", "outlast jobs list");
    }
    let ran = world.run(&["jobs", "show", "0123456789abcdef0123456789abcdef"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("hint: `outlast jobs list`"), "{ran:?}");
}
