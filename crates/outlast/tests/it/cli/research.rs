//! `outlast research`: followed, left, detached, continued.

use outlast_testkit::mcp_process::{Signal, signal};
use serde_json::Value;

use super::left_behind::LeftBehind;
use super::pty::Terminal;
use super::snapshots::{asked, text};
use crate::support::{World, binary, eventually};

const QUICK: &str = "Why is the sky blue? [[sim:ok;words=60;sources=2;delay_ms=0]]";
/// Continues until it is released or cancelled.
const HELD: &str = "Why is the sky blue? [[sim:ok;words=60;sources=2;hold]]";

async fn listed(world: &World) -> Vec<Value> {
    let ran = world.run(&["jobs", "list", "--json"]).await;
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    list["jobs"].as_array().unwrap().clone()
}

#[tokio::test]
async fn detached_research_is_done_by_a_worker_left_behind_in_its_own_session() {
    let world = World::new().await;
    let ran = world.run(&["research", HELD, "--detach"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let id = ran.stdout.trim().to_owned();
    assert_eq!(id.len(), 32, "the id alone is data: {ran:?}");
    let worker = LeftBehind::of(&ran.stderr);
    assert_eq!(worker.session(), worker.pid, "the terminal's end is not its end");
    assert!(ran.stderr.contains("worker.log"), "{ran:?}");
    crate::support::running(&world, &id).await;

    // A second command finds that worker.
    let second = world.run(&["research", QUICK, "--detach"]).await;
    assert!(second.stderr.contains("a running worker goes on with it"), "{second:?}");
    let waited = world.run(&["jobs", "wait", second.stdout.trim()]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    let cancelled = world.run(&["jobs", "cancel", &id]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    worker.leaves().await;
    assert_eq!(world.submits(), 2);
}

#[tokio::test]
async fn ctrl_c_leaves_and_the_job_goes_on_without_a_second_submit() {
    let world = World::new().await;
    let terminal = Terminal::run(&world, 100, &["research", HELD]);
    terminal.shows("%").await;
    let id = text(&listed(&world).await[0]["id"]);
    crate::support::running(&world, &id).await;
    terminal.interrupt();
    let (code, screen) = terminal.ended().await;
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains(&format!("the job goes on: {id}")), "{screen}");
    assert!(screen.contains(&format!("outlast jobs watch {}", &id[..8])), "{screen}");
    let worker = LeftBehind::of(&screen);
    let cancelled = world.run(&["jobs", "cancel", &id]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    worker.leaves().await;
    assert_eq!(world.submits(), 1, "what was paid for is resumed");
}

/// P3: a closed terminal ends neither the job nor its paid run.
#[tokio::test]
async fn p3_a_closed_terminal_leaves_the_job_to_a_worker() {
    let world = World::new().await;
    let terminal = Terminal::leading(&world, 100, &["research", HELD]);
    terminal.shows("%").await;
    let id = text(&listed(&world).await[0]["id"]);
    crate::support::running(&world, &id).await;
    let status = terminal.hang_up().await;
    assert_eq!(status.code(), Some(130), "{status:?}");
    world.simulator.release();
    let waited = world.run(&["jobs", "wait", &id, "--timeout", "30s"]).await;
    assert_eq!(waited.code, Some(0), "a worker was left behind: {waited:?}");
    assert_eq!(world.submits(), 1, "what was paid for is resumed");
}

/// P3: a shell passes the signal on and the kernel sends it again; that is not a second Ctrl-C.
#[tokio::test]
async fn p3_a_hang_up_that_is_signalled_twice_still_leaves_the_job_to_a_worker() {
    let world = World::new().await;
    let terminal = Terminal::run(&world, 100, &["research", HELD]);
    terminal.shows("%").await;
    let id = text(&listed(&world).await[0]["id"]);
    crate::support::running(&world, &id).await;
    terminal.signal(Signal::HUP);
    terminal.signal(Signal::HUP);
    // A log shows that its worker is being started.
    eventually("a worker", || world.data_dir().join("worker.log").exists()).await;
    terminal.signal(Signal::HUP);
    let (code, screen) = terminal.ended().await;
    assert_eq!(code, Some(130), "{screen}");
    let worker = LeftBehind::of(&screen);
    world.simulator.release();
    let waited = world.run(&["jobs", "wait", &id, "--timeout", "30s"]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    worker.leaves().await;
    assert_eq!(world.submits(), 1);
}

/// `nohup outlast research`: a command with the signal ignored continues.
#[tokio::test]
async fn a_hang_up_that_is_ignored_stays_ignored() {
    let world = World::new().await;
    let script = format!("trap '' HUP; exec {} research '{HELD}'", binary().display());
    let child = tokio::process::Command::new("/bin/sh")
        .args(["-c", &script])
        .env_clear()
        .envs(world.environment.iter().cloned())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    eventually("the provider was asked", || world.submits() == 1).await;
    signal(child.id().unwrap(), Signal::HUP);
    world.simulator.release();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("Sources"));
}

/// The worker left behind for a library knows its folders, regardless of any key.
#[tokio::test]
async fn detached_research_in_a_library_is_done_by_a_worker_with_that_library() {
    let world = World::new().await;
    let folder = world.data_dir().join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("sky.md"), "# The sky\n\nThe sky is blue because of scattering.\n")
        .unwrap();
    let library = folder.to_str().unwrap();
    let ran =
        world.run(&["research", "Why is the sky blue?", "--library", library, "--detach"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let worker = LeftBehind::of(&ran.stderr);
    let waited = world.run(&["jobs", "wait", ran.stdout.trim(), "--timeout", "30s"]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    let job = world.shown(ran.stdout.trim()).await;
    assert!(text(&job["output"]["body"]["text"]).contains("scattering"), "{job}");
    worker.leaves().await;
    assert_eq!(world.submits(), 0);
}

/// A failed attempt is followed by another, in the same process.
#[tokio::test]
async fn research_goes_on_after_a_failed_attempt() {
    let world = World::new().await;
    let ran = world.run(&["research", "Why? [[sim:503x2|ok;words=60;delay_ms=0]]"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let job = &listed(&world).await[0];
    assert_eq!(job["state"], "succeeded", "{job}");
}

/// C4: the instructions of deep research are the same from the command line.
#[tokio::test]
async fn c4_research_sends_the_instructions_that_the_tools_send() {
    let world = World::new().await;
    let (_, conversation) = asked(&world, QUICK).await;
    let folder = world.data_dir().join("conversation-logs").join(&conversation);
    let file = std::fs::read_to_string(folder.join("conversation.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["messages"][0]["role"], "system", "{file}");
    let sent = text(&file["messages"][0]["content"]);
    assert!(sent.contains("executive summary") && sent.contains("inline citations"), "{sent}");
    let status = std::fs::read_to_string(folder.join("status.json")).unwrap();
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["status"], "completed", "the files follow to the end: {status}");
}

#[tokio::test]
async fn a_follow_up_is_the_next_turn_of_its_conversation() {
    let world = World::new().await;
    let (_, conversation) = asked(&world, QUICK).await;
    let ran = world.run(&["research", QUICK, "--follow-up", &conversation[..8], "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&job["conversation"], &job["turn"]), (&conversation.into(), &2.into()), "{job}");
}

#[tokio::test]
async fn a_report_in_a_file_says_where_it_comes_from() {
    let world = World::new().await;
    let file = world.data_dir().parent().unwrap().join("report.md");
    let ran = world.run(&["research", QUICK, "-o", file.to_str().unwrap()]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    let report = std::fs::read_to_string(file).unwrap();
    for part in [
        "---\nquestion: \"Why",
        "\nmodel: ",
        "\ncost: ",
        "\nduration_seconds: ",
        "\ndate: \"20",
        "\nsources:\n  - \"http",
        "\n## Sources\n\n1. ",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
}

#[tokio::test]
async fn failed_research_says_why_and_what_to_do() {
    let world = World::new().await;
    let ran = world.run(&["research", "Why? [[sim:http;status=400]]"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("error: the research failed: EXECUTION_ERROR"), "{ran:?}");
    assert!(ran.stderr.contains("hint: `outlast jobs show "), "{ran:?}");
}

#[tokio::test]
async fn a_worker_that_cannot_be_left_behind_is_an_error_and_the_job_is_kept() {
    let world = World::new().await;
    std::fs::create_dir_all(world.data_dir().join("worker.log")).unwrap();
    let ran = world.run(&["research", QUICK, "--detach"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("leave a worker behind") && ran.stderr.contains("the job is kept"),
        "{ran:?}"
    );
    assert_eq!(world.shown(ran.stdout.trim()).await["state"], "queued");
}

/// A second Ctrl-C exits without waiting.
#[tokio::test]
async fn a_terminate_signal_leaves_like_ctrl_c() {
    let world = World::new().await;
    let mut command = tokio::process::Command::new(crate::support::binary());
    command.args(["research", HELD]).env_clear().envs(world.environment.iter().cloned());
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let pid = child.id().unwrap();
    let mut jobs = listed(&world).await;
    while jobs.is_empty() || jobs[0]["state"] != "running" {
        tokio::task::yield_now().await;
        jobs = listed(&world).await;
    }
    signal(pid, Signal::TERM);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8(output.stderr).unwrap();
    let worker = LeftBehind::of(&said);
    let cancelled = world.run(&["jobs", "cancel", jobs[0]["id"].as_str().unwrap()]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    worker.leaves().await;
}

/// A report counts the files that a library leaves out, and `-v` names them.
#[tokio::test]
async fn research_with_v_names_each_file_that_is_left_out_and_why() {
    let world = World::new().await;
    let folder = world.data_dir().join("notes");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("plum.md"), "The plum tree wants chalky soil.\n").unwrap();
    std::fs::write(folder.join("plum.png"), "no text").unwrap();
    std::fs::write(folder.join("blob.txt"), b"plum\0soil").unwrap();
    std::os::unix::fs::symlink("/etc/hosts", folder.join("hosts.txt")).unwrap();
    let library = folder.to_str().unwrap();
    let arguments = ["research", "Which soil does a plum tree want?", "--library", library];
    let ran = world.run(&arguments).await;
    assert!(ran.stdout.contains("3 files were left out"), "{ran:?}");
    assert!(!ran.stderr.contains("plum.png"), "{ran:?}");
    for _cold_then_warm in 0..2 {
        let ran = world.run(&[&["-v"][..], &arguments].concat()).await;
        for (file, reason) in [
            ("plum.png", "of a kind that is not readable text"),
            ("blob.txt", "binary"),
            ("hosts.txt", "link to a target outside the library's folders"),
        ] {
            let mut lines = ran.stderr.lines();
            assert!(
                lines.any(|line| line.contains(file) && line.contains(reason)),
                "{file}: {ran:?}"
            );
        }
    }
}

/// The lines of a phone list stay separate lines on a terminal too.
#[tokio::test]
async fn a_list_of_lines_from_a_library_stays_one_on_a_terminal() {
    let world = World::new().await;
    let folder = world.data_dir().join("notes");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("phones.txt"),
        "Phone numbers\n\nAda 030 1111\nGrace 030 2222\nMary 030 3333\n",
    )
    .unwrap();
    let library = folder.to_str().unwrap();
    let arguments = ["research", "What is the number of Grace?", "--library", library];
    let (code, screen) = Terminal::run(&world, 80, &arguments).ended().await;
    assert_eq!(code, Some(0), "{screen}");
    let lines: Vec<_> = screen.lines().map(str::trim).collect();
    assert!(lines.windows(2).any(|pair| pair == ["Ada 030 1111", "Grace 030 2222"]), "{screen}");
}
