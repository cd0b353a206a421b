//! First commands of a new user, and their output: words without quotes, `-`, `-q`, ids taken for others, full disks.

use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::pty::{Terminal, painted};
use super::snapshots::{asked, failed};
use crate::support::{World, binary, running, start};

const ASK: &str = "Why is the sky blue? [[sim:ok;words=60;sources=2;delay_ms=0]]";

/// tools.md: output that cannot be written is exit 1, for every command; a closed pipe is not.
#[tokio::test]
async fn output_that_cannot_be_written_is_exit_1() {
    let world = World::new().await;
    let (job, conversation) = asked(&world, ASK).await;
    let server = binary().to_str().unwrap();
    for arguments in [
        ["research", ASK].as_slice(),
        &["research", ASK, "--json"],
        &["research", ASK, "-o", "-"],
        &["jobs", "list"],
        &["jobs", "list", "--json"],
        &["jobs", "show", &job],
        &["jobs", "wait", &job],
        &["jobs", "prune"],
        &["conversations", "list"],
        &["conversations", "show", &conversation],
        &["conversations", "export", &conversation, "--format", "html"],
        &["call", "--tool", "list_conversations", "--", server, "serve"],
        &["config", "show"],
        &["doctor"],
        &["completions", "bash"],
        &["man"],
        &["explain", "TIMEOUT"],
        &["version"],
        &["--version"],
        &["jobs", "--help"],
    ] {
        let run = |stdout: Stdio| {
            let mut command = tokio::process::Command::new(binary());
            command.args(arguments).env_clear().envs(world.environment.iter().cloned());
            command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
            command.spawn().unwrap().wait_with_output()
        };
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = run(full.into()).await.unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.contains("error: write to standard output: No space left"),
            "{arguments:?}: {said}"
        );
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = run(writer.into()).await.unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(!said.contains("error:") && !said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[tokio::test]
async fn a_question_needs_no_quotes_and_may_come_from_standard_input() {
    let world = World::new().await;
    let words = [
        "research",
        "Why",
        "is",
        "the",
        "sky",
        "blue?",
        "[[sim:ok;words=60;delay_ms=0]]",
        "--json",
    ];
    let ran = world.run(&words).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(job["question"], "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]");

    let mut child = std::process::Command::new(binary())
        .args(["research", "-", "--json"])
        .env_clear()
        .envs(world.environment.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"Why is the sky red?\n[[sim:ok;words=60;delay_ms=0]]\n").unwrap();
    drop(stdin);
    let ran = tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let job: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert!(job["question"].as_str().unwrap().starts_with("Why is the sky red?"), "{job}");
    assert_eq!(world.submits(), 2);
}

#[tokio::test]
async fn a_dash_as_file_is_standard_output() {
    let world = World::new().await;
    let ran = world.run(&["research", ASK, "-o", "-", "-q"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stdout.starts_with("---\nquestion: \"Why is the sky blue?"), "{ran:?}");
    assert!(ran.stdout.contains("\n## Sources\n"), "{ran:?}");
    let list = world.run(&["conversations", "list", "--json"]).await;
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let id = list["conversations"][0]["id"].as_str().unwrap();
    let plain = world.run(&["conversations", "export", id]).await;
    let dash = world.run(&["conversations", "export", id, "-o", "-"]).await;
    assert_eq!((plain.code, dash.code), (Some(0), Some(0)), "{dash:?}");
    assert_eq!(plain.stdout, dash.stdout);
    assert!(!std::path::Path::new("-").exists());
}

#[tokio::test]
async fn quiet_leaves_data_and_errors() {
    let world = World::new().await;
    let loud = world.run(&["research", ASK]).await;
    assert!(loud.stderr.contains("--follow-up"), "there is a footer: {loud:?}");
    let quiet = world.run(&["-q", "research", ASK]).await;
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""), "{quiet:?}");
    assert_eq!(quiet.stdout, loud.stdout);
    let (code, screen) = Terminal::run(&world, 80, &["-q", "research", ASK]).ended().await;
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains('%') && !screen.contains("--follow-up"), "{screen}");
    let failed = world.run(&["-q", "jobs", "show", "abc"]).await;
    assert!(failed.stderr.starts_with("error: "), "{failed:?}");
}

#[tokio::test]
async fn version_is_a_command_too() {
    let world = World::new().await;
    let [command, flag] = [world.run(&["version"]).await, world.run(&["--version"]).await];
    assert_eq!((command.code, &command.stdout), (Some(0), &flag.stdout), "{command:?}");
    let help = world.run(&["--help"]).await;
    for command in ["man", "version", "explain"] {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{command}: {}", help.stdout);
    }
}

#[tokio::test]
async fn an_id_taken_for_another_is_named_for_what_it_is() {
    let world = World::new().await;
    let (job, conversation) = asked(&world, ASK).await;
    for id in [conversation.as_str(), &conversation[..8]] {
        let ran = world.run(&["jobs", "show", id]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.stderr.contains(&format!("`{id}` is a conversation, not a job")), "{ran:?}");
        let hint = format!("hint: `outlast conversations show {conversation}`");
        assert!(ran.stderr.contains(&hint), "{ran:?}");
    }
    for arguments in [
        ["conversations", "show", &job].as_slice(),
        &["conversations", "export", &job[..8]],
        &["research", "And?", "--follow-up", &job],
    ] {
        let ran = world.run(arguments).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.stderr.contains("is a job, not a conversation"), "{ran:?}");
        assert!(ran.stderr.contains(&conversation), "{ran:?}");
        assert!(ran.stderr.contains(&format!("`outlast jobs show {job}`")), "{ran:?}");
    }
    assert_eq!(world.submits(), 1);
}

#[tokio::test]
async fn a_server_and_a_worker_on_a_terminal_say_what_they_wait_for() {
    let world = World::new().await;
    for (arguments, said) in [
        (["serve"].as_slice(), "Waiting for an MCP client on standard input"),
        (&["serve", "--http", "127.0.0.1:0"], "Waiting for MCP clients at http://127.0.0.1:"),
        (&["worker"], "Waiting for jobs in the store"),
    ] {
        let terminal = Terminal::run(&world, 80, arguments);
        terminal.shows(said).await;
        terminal.shows("Ctrl-C").await;
        terminal.interrupt();
        let (code, screen) = terminal.ended().await;
        assert_eq!(code, Some(0), "{arguments:?}: {screen}");
    }
    // Not if a client reads it.
    let server = world.serve().await;
    let mut server = server;
    server.close_input();
    let (_, log) = server.ended().await;
    assert!(!log.contains("Waiting for an MCP client"), "{log}");
}

#[tokio::test]
async fn one_turn_is_one_turn() {
    let world = World::new().await;
    let (_, conversation) = asked(&world, ASK).await;
    let mut terminal = Terminal::run(&world, 80, &["conversations", "delete", &conversation]);
    terminal.shows("(1 turn) for good?").await;
    terminal.types("n\n");
    assert_eq!(terminal.ended().await.0, Some(1));
}

#[tokio::test]
async fn old_conversations_are_removed_on_request() {
    let world = World::new().await;
    let (_, first) = asked(&world, ASK).await;
    let (_, second) = asked(&world, ASK).await;
    let none = world.run(&["conversations", "prune", "--older-than", "1d"]).await;
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    assert_eq!(none.stderr, "0 conversations removed\n");
    let gone = world.run(&["conversations", "prune", "--older-than", "0s", "--json"]).await;
    let gone: Value = serde_json::from_str(&gone.stdout).unwrap();
    let mut ids: Vec<_> =
        gone["removed"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    ids.sort_unstable();
    let mut expected = [first.as_str(), second.as_str()];
    expected.sort_unstable();
    assert_eq!(ids, expected);
    let list = world.run(&["conversations", "list"]).await;
    assert!(list.stderr.contains("No conversations"), "{list:?}");
    let folders = std::fs::read_dir(world.data_dir().join("conversation-logs")).unwrap();
    assert_eq!(folders.count(), 0, "their files go too");
}

#[tokio::test]
async fn a_code_is_explained_where_it_is_met() {
    let world = World::new().await;
    let id = failed(&world).await;
    let shown = world.shown(&id).await;
    let code = shown["failures"][0]["code"].as_str().unwrap();
    let asked = world.run(&["research", "Why? [[sim:http;status=400]]"]).await;
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(asked.stderr.contains(&format!("`outlast explain {code}`")), "{asked:?}");
    assert!(!asked.stderr.contains("docs/"), "{asked:?}");
    for given in [code.to_owned(), code.to_lowercase().replace('_', "-")] {
        let ran = world.run(&["explain", &given]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.starts_with(&format!("# {code}\n")), "{ran:?}");
        assert!(ran.stdout.contains("**Money:**") && ran.stdout.contains("**Next:**"), "{ran:?}");
    }
    let all = world.run(&["explain"]).await;
    let line = all.stdout.lines().find(|line| line.starts_with("SUBMIT_UNKNOWN")).unwrap();
    assert!(line.contains("unknown whether the provider accepted the question"), "{all:?}");
}

#[tokio::test]
async fn the_log_of_the_workers_is_shown_and_followed() {
    let mut world = World::new().await;
    world.set("NO_COLOR", "1");
    let none = world.run(&["logs"]).await;
    assert!(none.code == Some(0) && none.stdout.is_empty(), "{none:?}");
    assert!(none.stderr.contains("No worker has logged anything"), "{none:?}");
    std::fs::create_dir_all(world.data_dir()).unwrap();
    let log = world.data_dir().join("worker.log");
    std::fs::write(world.data_dir().join("worker.log.1"), "one\ntwo\n").unwrap();
    std::fs::write(&log, "three\nfour\n").unwrap();
    let shown = world.run(&["logs", "--lines", "3"]).await;
    assert_eq!(shown.stdout, "two\nthree\nfour\n", "{shown:?}");
    let terminal = Terminal::run(&world, 80, &["logs", "-f"]);
    terminal.shows("four").await;
    // A worker starts the file again when it is large.
    std::fs::rename(&log, world.data_dir().join("worker.log.1")).unwrap();
    std::fs::write(&log, "five\n").unwrap();
    terminal.shows("five").await;
    terminal.interrupt();
    let (_, screen) = terminal.ended().await;
    assert_eq!(screen.matches("four").count(), 1, "{screen}");
}

#[tokio::test]
async fn a_failed_job_is_listed_with_its_code_and_its_provider() {
    let world = World::new().await;
    let id = failed(&world).await;
    let code = world.shown(&id).await["failures"][0]["code"].as_str().unwrap().to_owned();
    let listed = world.run(&["jobs", "list"]).await.stdout;
    let row = listed.lines().find(|line| line.starts_with(&id)).unwrap();
    assert!(row.contains(&format!("failed {code}")) && row.contains("perplexity"), "{listed}");
    assert!(
        listed.starts_with("ID") && listed.contains("WORKFLOW") && listed.contains("COST"),
        "{listed}"
    );
}

#[tokio::test]
async fn a_backup_that_fails_says_what_to_do() {
    let world = World::new().await;
    failed(&world).await;
    let there = world.data_dir().join("there.db");
    std::fs::write(&there, "").unwrap();
    let missing = world.data_dir().join("missing/there.db");
    for (file, hint) in [
        (there, "hint: name a file that does not exist yet"),
        (missing, "hint: make the folder first: mkdir -p "),
    ] {
        let ran = world.run(&["store", "backup", file.to_str().unwrap()]).await;
        assert!(ran.code == Some(1) && ran.stderr.contains(hint), "{ran:?}");
    }
}

#[tokio::test]
async fn the_configuration_fits_a_terminal_of_80_columns() {
    let mut world = World::new().await;
    world.set("NO_COLOR", "1");
    let (code, screen) = Terminal::run(&world, 80, &["config", "show"]).ended().await;
    assert_eq!(code, Some(0), "{screen}");
    let data = world.data_dir();
    for line in screen.lines().filter(|line| !line.contains(data.to_str().unwrap())) {
        assert!(line.width() <= 80, "{line}");
    }
    assert!(
        screen.contains(
            "[perplexity]\n  api_key                     [redacted]  (PERPLEXITY_API_KEY)"
        ),
        "{screen}"
    );
    assert!(
        screen.contains(
            "\n\n[server]\n  providers                   perplexity\n  \
             tools                       research,research-jobs\n"
        ),
        "{screen}"
    );
}

#[tokio::test]
async fn watched_jobs_can_be_distinguished_at_80_columns() {
    let mut world = World::new().await;
    world.set("NO_COLOR", "1");
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;hold=true").await;
    running(&world, &id).await;
    let terminal = Terminal::run(&world, 80, &["jobs", "watch"]);
    terminal.shows(&format!("{}  Why is the sky blue?", &id[..8])).await;
    terminal.shows("%").await;
    let screen = terminal.screen();
    let row = screen.split(['\n', '\r']).find(|row| row.contains('%')).unwrap();
    let row = row.rsplit("\x1b[2K").next().unwrap();
    assert!(row.width() <= 80, "{row:?}");
    let words = row.split('%').nth(1).unwrap().trim();
    assert!(!words.contains('\u{2026}'), "the words have room: {row:?}");
    world.simulator.release();
    let (code, screen) = terminal.ended().await;
    assert_eq!(code, Some(0), "{screen}");
}

/// Each job has its own line, from its beginning to its end: no line is drawn after another.
#[tokio::test]
async fn several_watched_jobs_have_a_line_each_and_leave_none() {
    let mut world = World::new().await;
    world.set("NO_COLOR", "1");
    let mut server = world.serve().await;
    let mut ids = Vec::new();
    for sources in 1..=3 {
        let id = start(&mut server, &format!("ok;words=60;hold=true;sources={sources}")).await;
        running(&world, &id).await;
        ids.push(id);
    }
    for columns in [60, 80, 200] {
        let mut terminal = Terminal::leading(&world, columns, &["jobs", "watch"]);
        let rows = || {
            let mut rows = terminal.painted();
            rows.retain(|row| row.contains(" %"));
            rows
        };
        crate::support::eventually("a line for each job", || {
            ids.iter().all(|id| {
                let is_its_own =
                    |row: &&String| row.chars().skip(4).collect::<String>().starts_with(&id[..8]);
                let rows = rows();
                rows.len() == 3 && rows.iter().filter(is_its_own).count() == 1
            })
        })
        .await;
        // Typed, so that the terminal writes `^C` after the last line.
        terminal.types("\x03");
        let (code, screen) = terminal.ended().await;
        assert_eq!(code, Some(130), "{screen}");
        let left = painted(&screen, usize::from(columns));
        assert!(!left.iter().any(|row| row.contains(" %")), "{left:#?}");
        assert!(
            left.iter().any(|row| row.contains("3 jobs are unfinished; they go on")),
            "{left:#?}"
        );
    }
    let terminal = Terminal::run(&world, 80, &["jobs", "watch"]);
    terminal.shows(" %").await;
    world.simulator.release();
    let (code, screen) = terminal.ended().await;
    assert_eq!(code, Some(0), "{screen}");
    let left = painted(&screen, 80);
    assert!(!left.iter().any(|row| row.contains(" %")), "{left:#?}");
    for id in ids {
        assert!(left.iter().any(|row| row.starts_with(&format!("{id}  succeeded"))), "{left:#?}");
    }
}

/// A remark goes above the progress lines.
#[tokio::test]
async fn a_remark_about_waiting_jobs_does_not_break_their_lines() {
    let mut world = World::new().await;
    world.set("NO_COLOR", "1");
    let mut server = world.serve_with(&["--no-worker"]).await;
    for sources in 1..=2 {
        start(&mut server, &format!("ok;words=60;sources={sources}")).await;
    }
    let terminal = Terminal::run(&world, 200, &["jobs", "watch"]);
    crate::support::eventually("the remark has its own line", || {
        let rows = terminal.painted();
        let at = rows.iter().position(|row| row.starts_with("Queued: no live worker has"));
        let is_bar = |row: &&String| row.starts_with("  ") && row.contains("s  Queued: no live");
        at.is_some_and(|at| rows[at + 1..].iter().filter(is_bar).count() == 2)
    })
    .await;
    terminal.interrupt();
    assert_eq!(terminal.ended().await.0, Some(130));
}

#[tokio::test]
async fn a_demo_that_is_left_ends_with_a_sentence_and_leaves_nothing() {
    let mut world = World::new().await;
    let temporary = tempfile::tempdir().unwrap();
    world.set("TMPDIR", temporary.path().to_str().unwrap());
    world.set("NO_COLOR", "1");
    let terminal = Terminal::run(&world, 80, &["demo"]);
    terminal.shows("%").await;
    let screen = terminal.screen();
    let pid = screen.split("(pid ").nth(1).unwrap().split(')').next().unwrap().to_owned();
    terminal.interrupt();
    let (code, screen) = terminal.ended().await;
    assert_eq!(code, Some(130), "{screen}");
    let last = screen.trim_end().lines().last().unwrap();
    let last = last.rsplit("\x1b[2K").next().unwrap();
    assert!(last.contains("the demo was left before its end"), "{last:?}");
    assert!(!last.contains('%'), "{last:?}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "its folder is gone");
    crate::support::eventually("its server is gone", || {
        !std::path::Path::new(&format!("/proc/{pid}/exe")).exists()
    })
    .await;
}
