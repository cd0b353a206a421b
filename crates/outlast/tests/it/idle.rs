//! The cost of a waiting server: processes without work sleep.

use std::path::Path;
use std::time::Duration;

use crate::support::{World, finished, start};

/// The time for which switches are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Voluntary context switches of all threads in that time: about one wake-up per 5 s. One timer needs up to four, because
/// Tokio's clock approaches it in steps; one look at the store takes about as many again.
const MAX_SWITCHES: u64 = 8;
const MAX_SWITCHES_ON_POSTGRES: u64 = 8;
/// Earlier work may still end in the first windows: the mark next to the store, a connection that is given up.
const MAX_WINDOWS: u32 = 5;

/// Returns the number of voluntary context switches of a process's threads.
fn switches(pid: u32) -> u64 {
    let count = |thread: &Path| {
        let status = std::fs::read_to_string(thread.join("status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    threads.filter_map(|thread| count(&thread.path())).sum()
}

/// Waits until each of these processes has slept through a window.
async fn assert_sleep(most: u64, processes: &[(&str, u32)]) {
    let mut last = Vec::new();
    for _ in 0..MAX_WINDOWS {
        let before: Vec<u64> = processes.iter().map(|(_, pid)| switches(*pid)).collect();
        // The measured time.
        tokio::time::sleep(WINDOW).await;
        let after = processes.iter().zip(before);
        last = after
            .map(|((name, pid), before)| (*name, switches(*pid).saturating_sub(before)))
            .collect();
        if last.iter().all(|(_, switches)| *switches <= most) {
            return;
        }
    }
    panic!("switches in {WINDOW:?}: {last:?}");
}

async fn servers_sleep(world: &World, most: u64) {
    let mut had_a_job = world.serve().await;
    let id = start(&mut had_a_job, "ok;words=60;delay_ms=0").await;
    finished(&mut had_a_job, &id).await;
    let [worker] = world.detached_workers()[..] else { panic!("one detached worker") };
    let other = world.serve().await;
    let alone = world.serve_with(&["--no-detach"]).await;
    let web = world.spawn(&["serve", "--http", "127.0.0.1:0", "--no-auth"]);
    web.logged("listening on").await;
    let processes = [
        ("a stdio server that had a job", had_a_job.pid()),
        ("its detached worker", worker),
        ("a second stdio server", other.pid()),
        ("a stdio server that runs its jobs itself", alone.pid()),
        ("an HTTP server", web.pid()),
    ];
    assert_sleep(most, &processes).await;
}

fn world_with_patient_workers(mut world: World) -> World {
    world.set("OUTLAST_DETACH", "auto");
    world.set("OUTLAST_TEST_WORKER_IDLE_MS", "600000");
    world
}

/// Only Linux reports writes to a file without polling.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn servers_and_workers_without_work_sleep() {
    servers_sleep(&world_with_patient_workers(World::new().await), MAX_SWITCHES).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn servers_and_workers_without_work_sleep_on_postgres() {
    let world = world_with_patient_workers(World::on_postgres().await);
    servers_sleep(&world, MAX_SWITCHES_ON_POSTGRES).await;
}
