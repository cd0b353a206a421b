//! `outlast worker`, `outlast store`, `outlast jobs prune`, and the upkeep that keeps a store small.

use serde_json::{Value, json};

use crate::support::{POLL, START, World, eventually, finished, question, running, start};

async fn listed(world: &World) -> usize {
    let list = world.run(&["jobs", "list", "--all", "--json"]).await;
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    list["jobs"].as_array().unwrap().len()
}

/// A server without a worker hands its jobs to a worker without a server.
#[tokio::test]
async fn a_worker_does_what_others_started_and_leaves_when_idle() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "1");
    let mut server = world.serve_with(&["--no-worker"]).await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    let waiting = server.structured(POLL, json!({ "jobId": id })).await;
    assert_eq!(waiting["status"], "CREATED");
    assert!(
        waiting["message"].as_str().unwrap().contains("outlast worker"),
        "says why it waits: {waiting}"
    );
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!(worker.code, Some(0), "{worker:?}");
    assert_eq!(worker.stdout, "");
    let ended = server.structured(POLL, json!({ "jobId": id })).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
}

/// A worker never runs a job that was started with another key.
#[tokio::test]
async fn a_worker_with_another_key_leaves_the_job_alone() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "1");
    let mut server = world.serve_with(&["--no-worker"]).await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    world.set("PERPLEXITY_API_KEY", "pplx-other");
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!(worker.code, Some(0), "{worker:?}");
    let waiting = server.structured(POLL, json!({ "jobId": id })).await;
    assert_eq!(waiting["status"], "CREATED", "{waiting}");
    assert_eq!(world.submits(), 0);
}

#[tokio::test]
async fn a_backup_made_while_the_store_is_in_use_has_everything() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    let ended = finished(&mut server, &id).await;
    let stuck = start(&mut server, "stuck").await;
    running(&world, &stuck).await;
    let file = world.data_dir().join("copy.db");
    let path = file.to_str().unwrap();
    let backup = world.run(&["store", "backup", path]).await;
    assert_eq!((backup.code, backup.stdout.trim()), (Some(0), path), "{backup:?}");
    let again = world.run(&["store", "backup", path]).await;
    assert_eq!(again.code, Some(1), "an existing file is not overwritten: {again:?}");
    let url = format!("sqlite:{path}");
    let sound = world.run(&["store", "check", "--store", &url]).await;
    assert_eq!(sound.code, Some(0), "{sound:?}");
    let shown = world.run(&["jobs", "show", &id, "--json", "--store", &url]).await;
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let text = shown["output"]["body"]["text"].as_str().unwrap();
    assert!(ended["response"].as_str().unwrap().starts_with(text), "the report is in the copy");
    let shown = world.run(&["jobs", "show", &stuck, "--json", "--store", &url]).await;
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["state"], "running", "{shown}");
}

#[tokio::test]
async fn a_damaged_store_is_distinguished_from_a_sound_one() {
    let world = World::new().await;
    let mut server = world.serve().await;
    for _ in 0..20 {
        start(&mut server, "stuck").await;
    }
    server.close_input();
    server.ended().await;
    let sound = world.run(&["store", "check"]).await;
    assert_eq!(sound.code, Some(0), "{sound:?}");
    assert!(sound.stderr.contains("sound"), "{sound:?}");
    let file = world.data_dir().join("outlast.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let page = 4096;
    for byte in &mut bytes[2 * page + 8..3 * page] {
        *byte ^= 0x5a;
    }
    std::fs::write(&file, bytes).unwrap();
    let damaged = world.run(&["store", "check"]).await;
    assert!(matches!(damaged.code, Some(1 | 2)), "{damaged:?}");
}

/// A6, A8: a finished job is removed after its retention, automatically; an unfinished one is not.
#[tokio::test]
async fn a6_expired_jobs_cannot_be_polled_and_are_swept() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_JOB_TTL_MS", "50");
    world.set("PERPLEXITY_RESEARCH_SWEEP_INTERVAL_MS", "50");
    let mut server = world.serve().await;
    let unfinished = start(&mut server, "stuck").await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    let not_found = async {
        loop {
            let poll = server.structured(POLL, json!({ "jobId": id })).await;
            if poll["status"] == "NOT_FOUND" {
                return poll;
            }
        }
    };
    let gone = tokio::time::timeout(std::time::Duration::from_secs(60), not_found).await.unwrap();
    assert!(gone["message"].as_str().unwrap().contains("minutes"), "{gone}");
    assert_eq!(listed(&world).await, 1);
    running(&world, &unfinished).await;
}

/// E9: a key still names its job after the job was forgotten; nothing is bought a second time.
#[tokio::test]
async fn e9_a_key_outlives_the_retention_of_its_job() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_JOB_TTL_MS", "1");
    world.set("PERPLEXITY_RESEARCH_SWEEP_INTERVAL_MS", "1");
    let mut server = world.serve().await;
    let mut arguments = question("ok;words=60;delay_ms=0");
    arguments["idempotency_key"] = json!("k");
    let first = server.structured(START, arguments.clone()).await;
    // The job remains for a moment after its end.
    while finished(&mut server, first["jobId"].as_str().unwrap()).await["status"] != "NOT_FOUND" {}
    let again = server.structured(START, arguments).await;
    assert_eq!(
        (&again["jobId"], &again["status"]),
        (&first["jobId"], &json!("NOT_FOUND")),
        "{again}"
    );
    assert_eq!(world.submits(), 1);
}

/// A8: on request, by age; never an unfinished one.
#[tokio::test]
async fn a8_finished_jobs_are_removed_on_request() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let done = start(&mut server, "ok;words=60;delay_ms=0").await;
    finished(&mut server, &done).await;
    let unfinished = start(&mut server, "stuck").await;
    running(&world, &unfinished).await;
    let none = world.run(&["jobs", "prune"]).await;
    assert_eq!(
        (none.code, none.stdout.trim()),
        (Some(0), "0"),
        "its retention is not over: {none:?}"
    );
    let none = world.run(&["jobs", "prune", "--older-than", "1h"]).await;
    assert_eq!(none.stdout.trim(), "0");
    let one = world.run(&["jobs", "prune", "--older-than", "0s"]).await;
    assert_eq!((one.code, one.stdout.trim()), (Some(0), "1"), "{one:?}");
    assert_eq!(listed(&world).await, 1);
    let wrong = world.run(&["jobs", "prune", "--older-than", "soon"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("7d"), "{wrong:?}");
}

/// The next process that looks removes the lock files of killed workers, regardless of their work.
#[tokio::test]
async fn the_lock_files_of_dead_workers_are_removed() {
    let world = World::new().await;
    let locks = || {
        let files = std::fs::read_dir(world.data_dir().join("workers")).unwrap();
        let mut names: Vec<_> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    // One that held calls and claimed nothing from the queue, so that it is on no list.
    let mut held = world.serve_with(&["--tools", "research"]).await;
    let query = json!({ "query": "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]" });
    let answer = held.call("perplexity_deep_research", query).await;
    assert_ne!(answer["isError"], true, "{answer}");
    held.kill().await;
    // One that did, and was removed from the list by a process that only checked if it is running.
    let mut queued = world.serve().await;
    let id = start(&mut queued, "ok;words=60;delay_ms=0").await;
    finished(&mut queued, &id).await;
    queued.kill().await;
    let dead = locks();
    assert!(!dead.is_empty(), "a killed worker cannot remove its own file");
    let left = world.run(&["research", "Why? [[sim:ok;words=60;delay_ms=0]]", "--detach"]).await;
    assert_eq!(left.code, Some(0), "{left:?}");
    let waited = world.run(&["jobs", "wait", left.stdout.trim()]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");

    eventually("the worker left behind is gone", || world.beside_sockets().is_empty()).await;

    let mut busy = world.serve().await;
    let stuck = start(&mut busy, "stuck").await;
    running(&world, &stuck).await;
    eventually("the dead have no files", || locks().iter().all(|name| !dead.contains(name))).await;
    assert!(!locks().is_empty(), "running workers have theirs");
    let mut beside = world.serve().await;
    let id = start(&mut beside, "ok;words=60;delay_ms=0").await;
    finished(&mut beside, &id).await;
    assert_eq!(world.submits(), 5, "no live worker was taken for a dead one");
    for mut server in [busy, beside] {
        server.close_input();
        server.ended().await;
    }
    eventually("every worker has left", || locks().is_empty()).await;
}

/// tools.md: a command that only reads never creates a store.
#[tokio::test]
async fn a_command_that_only_reads_makes_nothing() {
    let world = World::new().await;
    const NONE: &str = "0123456789abcdef0123456789abcdef";
    for (arguments, code, stdout) in [
        (["jobs", "list"].as_slice(), 0, ""),
        (&["jobs", "list", "--json"], 0, "\"jobs\": []"),
        (&["jobs", "show", NONE], 1, ""),
        (&["jobs", "watch"], 0, ""),
        (&["jobs", "wait", NONE], 1, ""),
        (&["jobs", "cancel", NONE], 1, ""),
        (&["jobs", "prune"], 0, "0"),
        (&["conversations", "list"], 0, ""),
        (&["conversations", "show", NONE], 1, ""),
        (&["conversations", "export", NONE], 1, ""),
        (&["conversations", "prune", "--older-than", "1d"], 0, ""),
        (&["store", "check"], 1, ""),
        (&["store", "backup", "/tmp/never-made.db"], 1, ""),
    ] {
        let ran = world.run(arguments).await;
        assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
        assert!(ran.stdout.contains(stdout), "{arguments:?}: {ran:?}");
        assert!(!world.data_dir().exists(), "{arguments:?} made the data directory");
    }
}
