//! A command and the death of its server: it runs only after the guard has it and it is on record, and only with the
//! whole of its message.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{Shop, runs, start};
use crate::support::{binary, eventually};

/// Reports that it runs, and stays.
const STAYS: &str = r#"
[[workflow]]
name = "stays"
command = ["/bin/sh", "-c", "echo $$ >> ran; exec sleep 1000"]
rerun_after_crash = true
"#;

fn lines(shop: &Shop, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(shop.file(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// E6: killed at any moment before the run is on record, the command has not run; the re-run is the only one.
#[tokio::test]
async fn e6_a_command_runs_only_once_it_is_guarded_and_on_record() {
    for point in ["after-beginning", "after-spawn", "after-answer", "after-running"] {
        let shop = Shop::with(STAYS).await;
        let mut server = shop.serve_with(&["--tools", "jobs", "--kill-at", point]).await;
        server
            .send(
                "tools/call",
                json!({ "name": "start_job", "arguments": { "workflow": "stays" } }),
            )
            .await;
        let (status, log) = server.ended().await;
        assert_eq!(status.code(), None, "{point}: killed: {log}");
        let server = shop.serve().await;
        eventually("the command runs", || !lines(&shop, "ran").is_empty()).await;
        let pid: u32 = lines(&shop, "ran")[0].parse().unwrap();
        eventually("it is the one that stays", || runs(pid)).await;
        assert_eq!(lines(&shop, "ran").len(), 1, "{point}: run once");
        drop(server);
        eventually("it ends with its server", || !runs(pid)).await;
    }
}

/// Waits for the end of a launcher that was sent these bytes.
fn launched(shop: &Shop, sent: &[u8], line: &[&str]) -> std::process::Output {
    let mut launcher = Command::new(binary())
        .arg("launch")
        .arg(&shop.folder)
        .args(line)
        .current_dir(&shop.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    launcher.stdin.take().unwrap().write_all(sent).unwrap();
    launcher.wait_with_output().unwrap()
}

/// E12: a message whose server died while it was written.
#[tokio::test]
async fn e12_a_command_gets_the_whole_of_its_message_or_does_not_run() {
    let shop = Shop::with("").await;
    let line = ["/bin/sh", "sh", "-c", "echo ran >> ran; cat"];
    let whole = [&5_u64.to_le_bytes()[..], b"Why?\n"].concat();
    for cut in [0, 3, 8, 10, whole.len() - 1] {
        launched(&shop, &whole[..cut], &line);
        assert!(!shop.file("ran").exists(), "{cut} bytes");
    }
    let output = launched(&shop, &whole, &line);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"Why?\n"[..]));
    let output = launched(&shop, &whole, &["/no/such/program", "x"]);
    assert_eq!(output.status.code(), Some(126), "{output:?}");
}

/// E6, E12: kill -9 at any time: no command outlives its server, and none reads half of its message.
#[tokio::test]
async fn e12_kill_9_leaves_no_command_and_no_half_message() {
    let shop = Shop::with(
        r#"
[[workflow]]
name = "count"
command = ["/bin/sh", "-c", "echo $$ >> pids; wc -c >> sizes; exec sleep 1000"]
"#,
    )
    .await;
    let message = "x".repeat(300_000);
    for round in 0..30 {
        let mut server = shop.serve().await;
        start(&mut server, "count", &message).await;
        // Later in each round: from before the launcher to after the command.
        for _ in 0..round * 3 {
            tokio::task::yield_now().await;
            std::thread::yield_now();
        }
        if round % 3 == 0 {
            eventually("a command runs", || !lines(&shop, "pids").is_empty() || round < 3).await;
        }
        server.kill().await;
        let pids: Vec<u32> =
            lines(&shop, "pids").iter().filter_map(|pid| pid.parse().ok()).collect();
        eventually("all commands end", || !pids.iter().any(|pid| runs(*pid))).await;
    }
    let sizes = lines(&shop, "sizes");
    assert!(!sizes.is_empty(), "some commands read their message");
    let half: Vec<String> = sizes.into_iter().filter(|size| size.trim() != "300000").collect();
    assert_eq!(half, Vec::<String>::new());
}

/// Two configurations with a workflow of the same name on one store: each runs its own command.
#[tokio::test]
async fn e12_two_configurations_never_run_each_others_command() {
    let one = Shop::with("[[workflow]]\nname = \"who\"\ncommand = [\"echo\", \"one\"]\n").await;
    std::fs::create_dir(one.file("two")).unwrap();
    let two = one.file("two/outlast.toml");
    std::fs::write(&two, "[[workflow]]\nname = \"who\"\ncommand = [\"echo\", \"two\"]\n").unwrap();
    let mut first = one.serve().await;
    let flags = ["--tools", "jobs", "--config", two.to_str().unwrap()];
    let mut second = one.world.serve_with(&flags).await;
    let mut asked = Vec::new();
    for _ in 0..8 {
        asked.push((start(&mut first, "who", "").await, "one\n"));
        asked.push((start(&mut second, "who", "").await, "two\n"));
    }
    for (id, said) in asked {
        let got = super::ended(&mut first, &id).await;
        assert_eq!(got["result"]["content"][0]["text"], said, "{got}");
    }
}

/// E12: a queued job runs the command line of the day on which it is run; one whose file has moved waits, and names
/// what it needs.
#[tokio::test]
async fn e12_a_queued_job_belongs_to_its_file_and_says_so_where_that_has_moved() {
    let shop = Shop::with("[[workflow]]\nname = \"who\"\ncommand = [\"echo\", \"old\"]\n").await;
    let mut server = shop.serve_with(&["--tools", "jobs", "--no-worker"]).await;
    let ids = [start(&mut server, "who", "").await, start(&mut server, "who", "").await];
    server.kill().await;
    std::fs::write(
        shop.file("outlast.toml"),
        "[[workflow]]\nname = \"who\"\ncommand = [\"echo\", \"new\"]\n",
    )
    .unwrap();
    std::fs::rename(shop.file("outlast.toml"), shop.file("moved.toml")).unwrap();
    let moved = shop.file("moved.toml");
    let flags = ["--tools", "jobs", "--config", moved.to_str().unwrap()];
    let server = shop.world.serve_with(&flags).await;
    let shown = shop.world.run(&["jobs", "show", &ids[0]]).await;
    assert!(shown.stdout.contains("queued"), "{shown:?}");
    let words = format!("outlast worker --config {}", shop.config());
    let flat = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&words), "{shown:?}");
    drop(server);
    std::fs::rename(shop.file("moved.toml"), shop.file("outlast.toml")).unwrap();
    let mut server = shop.serve().await;
    for id in ids {
        assert_eq!(super::ended(&mut server, &id).await["result"]["content"][0]["text"], "new\n");
    }
}
