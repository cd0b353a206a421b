//! The real binary against a provider that still speaks Sonar, and against one that no longer does.

use outlast_simulator::{Options, SonarMode};

use crate::support::{World, finished, question, running, start};

async fn world(sonar: SonarMode) -> World {
    let mut world = World::with(Options { sonar, ..Options::default() }).await;
    world.set("PERPLEXITY_API", "sonar");
    world
}

#[tokio::test]
async fn sonar_research_completes_with_its_citations() {
    let world = world(SonarMode::Live).await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=80;delay_ms=0").await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert!(ended["response"].as_str().unwrap().contains("Citations:\n["), "{ended}");
    assert_eq!(world.submits(), 1);
    let profile = world.shown(&id).await["profile"].as_str().unwrap().to_owned();
    let expected = format!("perplexity/sonar {} ", world.simulator.url());
    assert!(profile.starts_with(&expected), "{profile}");
}

/// A10 in this dialect, whose key would allow a second submit.
#[tokio::test]
async fn a10_sonar_an_answer_without_an_id_fails_the_job_and_is_not_retried() {
    crate::research_jobs::assert_no_id_fails(&world(SonarMode::Live).await).await;
}

/// B9a: if the provider honours a key, a submit whose answer was lost is sent again and paid once.
#[tokio::test]
async fn b9a_sonar_a_lost_answer_is_found_again_under_its_key() {
    let world = world(SonarMode::Live).await;
    let mut server = world.serve().await;
    let id = start(&mut server, "drop_submit;words=80;delay_ms=0").await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    let stats = world.simulator.stats();
    assert_eq!((stats.submits, stats.replayed_submits), (1, 1));
}

/// B9a, A11: killed when the run was bought and its name not yet recorded.
#[tokio::test]
async fn b9a_sonar_killed_after_the_answer_the_run_is_found_again_under_its_key() {
    let world = world(SonarMode::Live).await;
    let mut doomed = world.serve_with(&["--kill-at", "after-answer"]).await;
    let started =
        doomed.structured(crate::support::START, question("ok;words=80;delay_ms=0")).await;
    doomed.ended().await;
    let mut server = world.serve().await;
    let ended = finished(&mut server, started["jobId"].as_str().unwrap()).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    let stats = world.simulator.stats();
    assert_eq!((stats.submits, stats.replayed_submits), (1, 1));
}

/// A11: the first check after a restart is made at once, the run is not bought again.
#[tokio::test]
async fn a11_sonar_killed_in_the_middle_of_a_run_the_report_arrives() {
    let world = world(SonarMode::Live).await;
    let mut doomed = world.serve().await;
    let id = start(&mut doomed, "ok;words=80;hold;delay_ms=0").await;
    running(&world, &id).await;
    doomed.kill().await;
    world.simulator.release();
    let mut server = world.serve().await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(world.simulator.stats().submits, 1);
    assert_eq!(world.simulator.stats().replayed_submits, 0);
}

#[tokio::test]
async fn a_retired_sonar_endpoint_says_what_to_set() {
    let world = world(SonarMode::Retired).await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok").await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "FAILED", "{ended}");
    let error = ended["error"].as_str().unwrap();
    assert!(error.starts_with("ENDPOINT_RETIRED: "), "{error}");
    assert!(error.contains("PERPLEXITY_API=agent"), "{error}");
}

#[tokio::test]
async fn an_unknown_dialect_ends_the_command_with_its_name() {
    let mut world = world(SonarMode::Live).await;
    world.set("PERPLEXITY_API", "soap");
    let ran = world.run(&["serve"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("PERPLEXITY_API") && ran.stderr.contains("soap"), "{ran:?}");
    assert!(ran.stderr.contains("agent, sonar"), "{ran:?}");
}
