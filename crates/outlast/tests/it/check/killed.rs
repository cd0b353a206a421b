//! J1: a check survives kill -9, and fetches no source again whose step was recorded.

use std::process::Stdio;

use serde_json::Value;

use super::web::Web;
use crate::support::{World, binary};

pub(super) const SOURCES: usize = 12;
pub(super) const ANSWERED: usize = 5;

pub(super) fn report(web: &Web) -> String {
    let claims = (1..=SOURCES).map(|n| format!("Lake Vostok is 250 km long [{n}].\n\n"));
    let sources =
        (1..=SOURCES).map(|n| format!("{n}. Lake <{}>\n", web.url(n as u8, &n.to_string())));
    format!("{}## Sources\n\n{}", claims.collect::<String>(), sources.collect::<String>())
}

pub(super) async fn until_listed(world: &World, words: &str) {
    let shown = async {
        while !world.run(&["jobs", "list", "--json"]).await.stdout.contains(words) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), shown).await.expect(words);
}

/// Runs a check to its end, and compares what was fetched with what was recorded before.
pub(super) async fn finish(world: &World, web: &Web, subject: &str, recorded: &[String]) {
    let ran = world.run(&["check", subject, "--json"]).await;
    let check: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(check["totals"]["supported"], SOURCES, "{check:#}");
    assert_eq!(check["complete"], true);
    let asked = web.asked();
    for path in recorded {
        assert_eq!(asked.iter().filter(|it| *it == path).count(), 1, "{path}: {asked:?}");
    }
}

/// J1: killed in the middle and begun again, by the same command.
#[tokio::test]
async fn j1_a_killed_check_goes_on_and_fetches_no_recorded_source_again() {
    survive_kill_9(World::new().await).await;
}

/// J1: the same on PostgreSQL.
#[tokio::test]
async fn j1_a_killed_check_goes_on_in_postgres() {
    survive_kill_9(World::on_postgres().await).await;
}

async fn survive_kill_9(mut world: World) {
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    let web = Web::holding_after(ANSWERED);
    std::fs::create_dir_all(world.data_dir()).unwrap();
    let file = world.data_dir().join("report.md");
    std::fs::write(&file, report(&web)).unwrap();
    let file = file.to_str().unwrap();
    let mut doomed = tokio::process::Command::new(binary())
        .args(["check", file, "--json"])
        .env_clear()
        .envs(world.environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until_listed(&world, &format!("{ANSWERED} of {SOURCES} sources")).await;
    doomed.kill().await.unwrap();
    let recorded = web.asked()[..ANSWERED].to_vec();
    web.release();
    finish(&world, &web, file, &recorded).await;
    let listed = world.run(&["jobs", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 1, "the same job went on: {listed}");
}

/// J1: a background worker goes on with a check that was left, after it was killed too.
#[tokio::test]
async fn j1_a_detached_check_survives_its_worker() {
    let mut world = World::new().await;
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    let web = Web::holding_after(ANSWERED);
    std::fs::create_dir_all(world.data_dir()).unwrap();
    let file = world.data_dir().join("report.md");
    std::fs::write(&file, report(&web)).unwrap();
    let left = world.run(&["check", file.to_str().unwrap(), "--detach"]).await;
    assert_eq!(left.code, Some(0), "{left:?}");
    let id = left.stdout.trim().to_owned();
    until_listed(&world, &format!("{ANSWERED} of {SOURCES} sources")).await;
    for pid in world.detached_workers() {
        outlast_testkit::mcp_process::signal(pid, outlast_testkit::mcp_process::Signal::KILL);
    }
    let recorded = web.asked()[..ANSWERED].to_vec();
    web.release();
    finish(&world, &web, &id, &recorded).await;
}
