//! A store that an earlier version wrote, with jobs in every state, under the present program.
//!
//! `schema_10.sql` is the dump of a store of version 10 whose processes were killed. It holds `{URL}` for the provider,
//! `{FOLDER}` for the folder of the configuration file, and `{-5}` for a time five milliseconds before the kill.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{START, ShiftedClock, World, finished, raw_database};

const DUMP: &str = include_str!("old_store/schema_10.sql");

const SUCCEEDED: &str = "f107401f2f9b48dca04e217b2d2ee0d1";
const FAILED: &str = "d07b380bc11d42ab99f6efc87481fa45";
const CANCELLED: &str = "16b6dd5975fe4dfd93390b5e7ca5159f";
const RUNNING: [&str; 2] = ["1ffa54e1ec4c47379944a6b16b36e6f1", "253ec43fb8174ce0810887b53e1a54bc"];
const COMMAND: &str = "51e417dc64cb4861933843b9906909bb";
const BEGINNING: &str = "23598bd4be604cd0a4946d1fa160d4bb";
const QUEUED: [&str; 2] = ["76a493d01a844a22978a4d7732dbf65e", "80bb8e03ffd24b7fa9cdf99c2e1843e2"];
const CONVERSATION: &str = "3950f48ce86a4e0f9fa373b85dc5bb05";

/// Longer than any of the jobs may run.
const LATER: i64 = 3 * 60 * 60 * 1_000;

/// Replaces `{-5}` by the time five milliseconds before now.
#[expect(clippy::disallowed_methods, reason = "the store of the test has the time of the machine")]
fn at_present(dump: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let mut parts = dump.split('{');
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        match part
            .split_once('}')
            .and_then(|(offset, rest)| Some((offset.parse::<i64>().ok()?, rest)))
        {
            Some((offset, rest)) => text.push_str(&format!("{}{rest}", now + offset)),
            None => text.push_str(&format!("{{{part}")),
        }
    }
    text
}

/// Creates a world whose store is the dump, and returns the path of its configuration file.
async fn old_world() -> (World, String) {
    let mut world = World::new().await;
    world.unset("OUTLAST_STORE");
    world.unset("OUTLAST_OWNER");
    world.set("PATH", "/usr/bin:/bin");
    let folder = world.data_dir().parent().unwrap().to_owned();
    let config = folder.join("outlast.toml");
    std::fs::write(&config, "[[workflow]]\nname = \"nap\"\ncommand = [\"sleep\", \"1000\"]\n")
        .unwrap();
    restore(&world, &folder);
    (world, config.to_str().unwrap().to_owned())
}

fn restore(world: &World, folder: &Path) {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(world.data_dir()).unwrap();
    let dump = DUMP.replace("{URL}", world.simulator.url());
    let dump = at_present(&dump.replace("{FOLDER}", folder.to_str().unwrap()));
    raw_database(&world.database()).execute_batch(&dump).unwrap();
}

async fn failure(world: &World, id: &str) -> Value {
    let shown = world.shown(id).await;
    shown["failures"].as_array().and_then(|failures| failures.last()).unwrap_or(&shown)["code"]
        .clone()
}

/// B9a, promise 4: what was waiting is submitted, once; nothing that may have been paid for is submitted again.
#[tokio::test]
async fn b9a_a_store_of_schema_10_continues_without_a_second_submit() {
    let (world, config) = old_world().await;
    let clock = ShiftedClock::new(&world);
    clock.set(0);
    let flags = ["--config", &config, "--tools", "jobs,research,research-jobs"];
    let mut server = clock.serve(&world, &flags).await;

    for id in QUEUED {
        let ended = finished(&mut server, id).await;
        assert_eq!(ended["status"], "COMPLETED", "{ended}");
    }
    assert_eq!(finished(&mut server, BEGINNING).await["status"], "FAILED");
    assert_eq!(failure(&world, BEGINNING).await, "SUBMIT_UNKNOWN");
    let command =
        server.structured("get_job", json!({ "job_id": COMMAND, "wait_seconds": 50 })).await;
    assert_eq!(command["status"], "failed", "a command is not run again: {command}");

    // Everything that had ended is as it was.
    for (id, status) in [(SUCCEEDED, "COMPLETED"), (FAILED, "FAILED"), (CANCELLED, "CANCELLED")] {
        assert_eq!(finished(&mut server, id).await["status"], status);
    }
    let history =
        server.call("get_conversation_history", json!({ "conversationId": CONVERSATION })).await;
    assert_eq!(history["structuredContent"]["messageCount"], 4, "{history}");

    // The keys still find their jobs.
    let keys = [
        ("k-1", "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]", SUCCEEDED),
        ("k-2", "Why is ice slippery? [[sim:ok;words=60;hold=true]]", RUNNING[1]),
        ("k-3", "Why do birds sing? [[sim:ok;words=60;delay_ms=0]]", QUEUED[1]),
    ];
    for (key, question, id) in keys {
        let messages = json!([{ "role": "user", "content": question }]);
        let arguments = json!({ "messages": messages, "idempotency_key": key });
        assert_eq!(server.structured(START, arguments).await["jobId"], id, "{key}");
    }

    // The provider of this test does not know the two runs; they are looked for and never sent again.
    for id in RUNNING {
        assert_eq!(world.shown(id).await["state"], "running");
    }
    drop(server);
    clock.set(LATER);
    let mut server = clock.serve(&world, &flags).await;
    for id in RUNNING {
        assert_eq!(finished(&mut server, id).await["status"], "FAILED");
    }
    assert_eq!(world.submits(), QUEUED.len() as u64, "only what was waiting was sent");

    drop(server);
    let checked = world.run(&["store", "check"]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
}
