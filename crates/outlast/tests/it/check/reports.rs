//! J1, J3, J4: checks of stored reports.

use std::time::Duration;

use serde_json::Value;

use crate::support::World;

async fn check(world: &World, arguments: &[&str]) -> Value {
    let ran = world.run(&[&["check", "--json"], arguments].concat()).await;
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

async fn jobs(world: &World) -> Vec<Value> {
    let listed = world.run(&["jobs", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    listed["jobs"].as_array().unwrap().clone()
}

async fn research(world: &World) -> (String, String) {
    let ran = world.run(&["research", "Why is the sky blue? [[sim:ok;words=80]]", "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let text = |name: &str| job[name].as_str().unwrap().to_owned();
    (text("id"), text("conversation"))
}

/// J1, J3: the result of a check is kept with the report, by job and by conversation, until somebody wants a fresh one.
#[tokio::test]
async fn j1_the_check_of_a_report_is_kept_with_it() {
    let world = World::new().await;
    let (id, conversation) = research(&world).await;
    let first = check(&world, &[&id]).await;
    assert!(!first["sources"].as_array().unwrap().is_empty(), "{first:#}");
    assert_eq!(first["totals"]["supported"], 0, "there is no such web: {first:#}");
    assert_eq!(check(&world, &[&conversation]).await, first, "nothing is fetched again");
    let fresh = check(&world, &[&id, "--fresh"]).await;
    assert_ne!(fresh["checkedAt"], first["checkedAt"]);
    assert_eq!(check(&world, &[&id]).await, fresh, "the newest one counts");
    let checks: Vec<_> =
        jobs(&world).await.into_iter().filter(|job| job["workflow"] == "check_citations").collect();
    assert_eq!(checks.len(), 2, "{checks:#?}");
    assert!(checks.iter().all(|check| check["conversation"].is_null()), "{checks:#?}");
    let of_check = check(&world, &[checks[0]["id"].as_str().unwrap()]).await;
    assert_eq!(of_check, fresh, "a check is found by its own id too");
    let deleted = world.run(&["conversations", "delete", &conversation, "--yes"]).await;
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    assert_eq!(jobs(&world).await, Vec::<Value>::new(), "checks are deleted with their report");
}

/// J1: a job without a report has nothing to check, and a wrong id is named.
#[tokio::test]
async fn j1_what_has_no_report_is_refused() {
    let world = World::new().await;
    let ran = world.run(&["research", "--detach", "Why? [[sim:ok;hold=true]]"]).await;
    let id = ran.stdout.trim();
    let refused = world.run(&["check", id]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("no report"), "{refused:?}");
    let unknown = world.run(&["check", "0123456789abcdef"]).await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.stderr.contains("no job"), "{unknown:?}");
    for (word, code) in [("nosuch", 2), ("nosuchreport", 1)] {
        let unknown = world.run(&["check", word]).await;
        assert_eq!(unknown.code, Some(code), "{unknown:?}");
        let sentence = format!("there is no job `{word}`, and no file of that name");
        assert!(unknown.stderr.contains(&sentence), "{unknown:?}");
    }
}

async fn checks(world: &World) -> Vec<Value> {
    jobs(world).await.into_iter().filter(|job| job["workflow"] == "check_citations").collect()
}

/// J4: research that succeeds is checked at once if the setting says so.
#[tokio::test]
async fn j4_always_checks_each_report_once() {
    let mut world = World::new().await;
    world.set("OUTLAST_CHECK_CITATIONS", "always");
    let (id, _) = research(&world).await;
    let begun = async {
        while checks(&world).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), begun).await.expect("the check begins by itself");
    let check = check(&world, &[&id]).await;
    assert_eq!(check["totals"]["supported"], 0);
    // The command attaches to a check that runs. It may begin another one if the first ends at the same moment.
    let checks = checks(&world).await;
    match checks.as_slice() {
        [_] => {}
        [later, first] => {
            assert!(first["ended_at"].as_str() <= later["created_at"].as_str(), "{checks:#?}");
        }
        _ => panic!("more than one check began by itself: {checks:#?}"),
    }
}
