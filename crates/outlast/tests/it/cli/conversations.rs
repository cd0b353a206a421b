//! `outlast conversations`: read, exported, deleted.

use serde_json::Value;

use super::left_behind::LeftBehind;
use super::pty::Terminal;
use super::snapshots::asked;
use crate::support::World;

const QUICK: &str = "Why is the sky blue? [[sim:ok;words=60;sources=2;delay_ms=0]]";

#[tokio::test]
async fn a_conversation_can_be_listed_shown_and_exported() {
    let world = World::new().await;
    let (job, id) = asked(&world, QUICK).await;
    let ran = world.run(&["research", QUICK, "--follow-up", &id]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let list = world.run(&["conversations", "list"]).await;
    assert!(list.stdout.lines().nth(1).unwrap().starts_with(&id), "{list:?}");
    let show = world.run(&["conversations", "show", &id[..8]]).await;
    assert!(show.stdout.contains(&job) && show.stdout.contains("2. Why is the sky"), "{show:?}");
    let json = world.run(&["conversations", "export", &id, "--format", "json"]).await;
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["turns"].as_array().unwrap().len(), 2);
    let shown = world.run(&["conversations", "show", &id, "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&shown.stdout).unwrap(), json);
    let md = world.run(&["conversations", "export", &id]).await;
    assert!(md.stdout.starts_with("---\nconversation: "), "{md:?}");
    assert_eq!(md.stdout.matches("> **Question:** Why").count(), 2, "{md:?}");
}

/// An export of a report with scripts, escapes and NUL runs nothing.
#[tokio::test]
async fn an_html_export_of_a_hostile_report_is_one_harmless_file() {
    let world = World::new().await;
    let question = "<script>alert(1)</script> \"'> [[sim:inject;line=1000;words=60;delay_ms=0]]";
    let (_, id) = asked(&world, question).await;
    let file = world.data_dir().join("export.html");
    let ran = world
        .run(&["conversations", "export", &id, "--format", "html", "-o", file.to_str().unwrap()])
        .await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    let page = std::fs::read_to_string(file).unwrap();
    assert!(
        page.contains("Content-Security-Policy") && page.contains("default-src 'none'"),
        "{page}"
    );
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &quot;'&gt;"), "{page}");
    for bad in ["<script", "javascript:", "<img", "<iframe", "<link", "@import", "src="] {
        let found = page.to_ascii_lowercase().find(bad);
        assert!(
            found.is_none(),
            "{bad}: {:?}",
            found.map(|at| &page[at..(at + 80).min(page.len())])
        );
    }
    let piped = world.run(&["conversations", "export", &id, "--format", "html"]).await;
    assert!(piped.stdout.starts_with("<!DOCTYPE html>") && !piped.stdout.contains('\x1b'));
}

#[tokio::test]
async fn a_conversation_is_deleted_only_with_consent() {
    let world = World::new().await;
    let (job, id) = asked(&world, QUICK).await;
    let files = world.data_dir().join("conversation-logs").join(&id);
    assert!(files.exists());
    let unasked = world.run(&["conversations", "delete", &id]).await;
    super::assert_usage_error(&unasked, "there is no terminal to ask", "--yes");

    let mut terminal = Terminal::run(&world, 80, &["conversations", "delete", &id]);
    terminal.shows("[y/N]").await;
    terminal.types("\n");
    let (code, screen) = terminal.ended().await;
    assert_eq!(code, Some(1), "{screen}");
    assert!(screen.contains("Nothing was deleted") && files.exists(), "{screen}");

    let mut terminal = Terminal::run(&world, 80, &["conversations", "delete", &id[..8]]);
    terminal.shows("[y/N]").await;
    terminal.types("y\n");
    let (code, screen) = terminal.ended().await;
    assert_eq!(code, Some(0), "{screen}");
    assert!(!files.exists());
    let gone = world.run(&["jobs", "show", &job]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
}

#[tokio::test]
async fn a_busy_conversation_is_neither_deleted_nor_continued() {
    let world = World::new().await;
    let held = "Why is the sky blue? [[sim:stuck]]";
    let ran = world.run(&["research", held, "--detach", "--json"]).await;
    let worker = LeftBehind::of(&ran.stderr);
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (job, id) = (job["id"].as_str().unwrap(), job["conversation"].as_str().unwrap());
    for arguments in
        [["conversations", "delete", id, "--yes"], ["research", "And now?", "--follow-up", id]]
    {
        let ran = world.run(&arguments).await;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.stderr.contains("busy with job")
                && ran.stderr.contains(&format!("outlast jobs wait {job}")),
            "{ran:?}"
        );
    }
    let ran = world.run(&["jobs", "cancel", job]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    worker.leaves().await;
}

/// P4: `conversations show` reports a question that no worker can run, as `jobs show` does.
#[tokio::test]
async fn p4_conversations_show_says_that_a_queued_question_has_no_worker() {
    let mut world = World::new().await;
    world.set("OUTLAST_ASYNC_RESEARCH", "true");
    let mut server = world.serve_with(&["--no-worker"]).await;
    let question = serde_json::json!({ "query": QUICK });
    let queued = server.call("perplexity_deep_research", question).await;
    let id = queued["structuredContent"]["conversationId"].as_str().unwrap().to_owned();
    drop(server);
    let shown = world.run(&["conversations", "show", &id]).await;
    let said = "no live worker has the provider and key";
    assert!(shown.stdout.contains(said), "{shown:?}");
    let json = world.run(&["conversations", "show", &id, "--json"]).await;
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(json["progress"].as_str().unwrap().contains(said), "{json}");
    let job = json["turns"][0]["job"].as_str().unwrap();
    let job = world.run(&["jobs", "show", job]).await;
    let progress = json["progress"].as_str().unwrap();
    assert!(job.stdout.contains(progress.split(';').next().unwrap()), "{job:?}");
}

/// A folder of an older server is read like any other conversation, and outlast never deletes it.
#[tokio::test]
async fn a_conversation_that_only_files_know_can_be_shown_exported_and_continued() {
    let world = World::new().await;
    let id = "20251031-1761930000000";
    let folder = world.data_dir().join("conversation-logs").join(id);
    std::fs::create_dir_all(&folder).unwrap();
    let file = serde_json::json!({ "conversationId": id, "createdAt": "2025-10-31T17:00:00.000Z",
        "updatedAt": "2025-10-31T17:00:00.000Z", "model": "sonar-deep-research", "messageCount": 2,
        "messages": [{ "role": "user", "content": "Old?" }, { "role": "assistant", "content": "# Old answer" }] });
    std::fs::write(folder.join("conversation.json"), file.to_string()).unwrap();
    let show = world.run(&["conversations", "show", id]).await;
    assert_eq!(show.code, Some(0), "{show:?}");
    assert!(show.stdout.contains("1. Old?") && show.stdout.contains("# Old answer"), "{show:?}");
    let html = world.run(&["conversations", "export", id, "--format", "html"]).await;
    assert!(html.stdout.contains(">Old answer</h1>"), "{html:?}");
    let delete = world.run(&["conversations", "delete", id, "--yes"]).await;
    assert_eq!(delete.code, Some(1), "{delete:?}");
    assert!(delete.stderr.contains("remove the folder") && folder.exists(), "{delete:?}");
    let ran = world.run(&["research", QUICK, "--follow-up", id, "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(job["conversation"], id, "{ran:?}");
}
