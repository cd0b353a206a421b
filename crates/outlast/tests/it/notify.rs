//! G7: the operator is notified when a job has ended, by a command or at an address, whatever happens to the processes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{CANCEL, World, eventually, finished, question, running, start};

/// Writes outlast.toml to the path that every process of the world reads, and returns its folder.
fn configure(world: &World, notify: &str) -> PathBuf {
    let folder = PathBuf::from(world.variable("HOME")).join(".config/outlast");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("outlast.toml"), format!("[notify]\n{notify}")).unwrap();
    folder
}

/// A command that appends its input to a file, a line for each notice.
struct Told(PathBuf);

impl Told {
    fn by_command(world: &World) -> Self {
        let script = "read -r line; printf '%s\\\\n' \\\"$line\\\" >> reported";
        let folder = configure(world, &format!("command = [\"/bin/sh\", \"-c\", \"{script}\"]\n"));
        Self(folder.join("reported"))
    }

    fn all(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn of(&self, id: &str) -> Vec<Value> {
        self.all().into_iter().filter(|reported| reported["jobId"] == id).collect()
    }
}

/// The headers and the body of a POST.
type Post = (HashMap<String, String>, String);

/// An HTTP server that answers with these statuses, then with 200, and remembers the POSTs.
#[derive(Clone, Default)]
struct Receiver {
    answers: Arc<Mutex<Vec<u16>>>,
    posts: Arc<Mutex<Vec<Post>>>,
}

impl Receiver {
    /// Starts it and returns its address.
    async fn start(answers: &[u16]) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = Self { answers: Arc::new(Mutex::new(answers.to_vec())), ..Self::default() };
        let serving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(connection));
            }
        });
        (receiver, format!("http://{address}/t0ken-in-path"))
    }

    async fn serve(self, mut connection: TcpStream) {
        let (mut sent, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let read = connection.read(&mut piece).await.unwrap_or(0);
            sent.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&sent).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let headers: HashMap<String, String> = head
                    .lines()
                    .filter_map(|line| line.split_once(": "))
                    .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                    .collect();
                if body.len() == headers["content-length"].parse::<usize>().unwrap() {
                    self.posts.lock().unwrap().push((headers, body.to_owned()));
                    break;
                }
            }
            if read == 0 {
                return;
            }
        }
        let mut answers = self.answers.lock().unwrap().clone();
        let status = if answers.is_empty() { 200 } else { answers.remove(0) };
        *self.answers.lock().unwrap() = answers;
        let answer = format!(
            "HTTP/1.1 {status} x\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        drop(connection.write_all(answer.as_bytes()).await);
    }

    fn posts(&self) -> Vec<Post> {
        self.posts.lock().unwrap().clone()
    }
}

/// Ends a server as when its client leaves; returns its log.
async fn leave(mut server: McpProcess) -> String {
    server.close_input();
    server.ended().await.1
}

/// Computes HMAC-SHA256 by its definition.
fn hmac(key: &[u8], text: &str) -> String {
    let mut block = key.to_vec();
    block.resize(64, 0);
    let pad = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = Sha256::digest([pad(0x36), text.as_bytes().to_vec()].concat());
    let outer = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// G7: success, failure and cancel are notified, with the title and the cost and nothing of the report.
#[tokio::test]
async fn g7_a_command_receives_every_end() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_MAX_JOB_RETRIES", "0");
    world.set("OUTLAST_LOG", "debug");
    let reported = Told::by_command(&world);
    let mut server = world.serve().await;
    let succeeded = start(&mut server, "ok;words=80;delay_ms=0").await;
    let report = finished(&mut server, &succeeded).await["response"].as_str().unwrap().to_owned();
    let failed = start(&mut server, "fail;delay_ms=0").await;
    finished(&mut server, &failed).await;
    let cancelled = start(&mut server, "stuck").await;
    running(&world, &cancelled).await;
    server.structured(CANCEL, json!({ "jobId": cancelled })).await;
    eventually("three notices are sent", || reported.all().len() == 3).await;
    for (id, status) in [(succeeded, "succeeded"), (failed, "failed"), (cancelled, "cancelled")] {
        let reported = reported.of(&id);
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert_eq!(
            (&reported[0]["event"], &reported[0]["status"]),
            (&json!("job.ended"), &json!(status))
        );
        assert!(
            reported[0]["title"].as_str().unwrap().starts_with("Why is the sky blue?"),
            "{reported:?}"
        );
        assert!(reported[0]["endedAt"].as_str().unwrap().ends_with('Z'), "{reported:?}");
        let fields = reported[0].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let known = ["cost", "endedAt", "event", "jobId", "owner", "status", "title"];
        assert_eq!(fields, known, "nothing else is reported");
    }
    let cost = &reported.all()[0]["cost"];
    assert_eq!(cost["kind"], "reported", "{cost}");
    assert!(cost["usd"].as_f64().unwrap() > 0.0, "{cost}");
    let line = report.lines().find(|line| line.len() > 40).unwrap();
    assert!(!std::fs::read_to_string(&reported.0).unwrap().contains(line));
}

/// Returns the first example of `[notify]` in the documentation.
fn documented_example() -> &'static str {
    let page = include_str!("../../../../docs/notify.md");
    let (_, rest) = page.split_once("```toml\n[notify]\n").unwrap();
    rest.split_once("```").unwrap().0
}

/// G7: the documented example shows state and title by `notify-send`, which finds the session's bus. A title is never
/// read as an option.
#[tokio::test]
async fn g7_the_documented_example_runs_notify_send() {
    let mut world = World::new().await;
    let folder = configure(&world, documented_example());
    let (program, shown) = (folder.join("notify-send"), folder.join("shown"));
    let script = format!(
        "#!/bin/sh\n[ \"$DBUS_SESSION_BUS_ADDRESS\" = unix:path=/run/bus ] || exit 1\n\
         for argument; do printf '<%s>' \"$argument\"; done >> {0}\necho >> {0}\n",
        shown.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    world.set("PATH", &format!("{}:/usr/bin:/bin", folder.display()));
    world.set("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/bus");
    let mut server = world.serve().await;
    let content = "--help {state} [[sim:ok;words=40;delay_ms=0]]";
    let asked = json!({ "messages": [{ "role": "user", "content": content }] });
    let started = server.structured(crate::support::START, asked).await;
    finished(&mut server, started["jobId"].as_str().unwrap()).await;
    let said = || std::fs::read_to_string(&shown).unwrap_or_default();
    eventually("it is shown", || said().ends_with('\n')).await;
    let said = said();
    assert!(said.starts_with("<outlast: succeeded>< --help {state}"), "{said}");
    assert_eq!(said.matches('<').count(), 2, "two arguments: {said}");
}

/// G7: a server with `[notify]` starts a job, a worker without it ends the job, and the next server delivers the notice.
#[tokio::test]
async fn g7_a_worker_without_notify_does_not_lose_the_notice() {
    let world = World::new().await;
    let reported = Told::by_command(&world);
    let mut server = world.serve_with(&["--no-worker"]).await;
    let id = start(&mut server, "ok;words=40;delay_ms=0").await;
    leave(server).await;
    let worker = world.run(&["worker", "--until-idle", "--config", "/dev/null"]).await;
    assert_eq!((worker.code, world.submits()), (Some(0), 1), "{worker:?}");
    assert!(reported.all().is_empty(), "the worker notifies nobody");
    let server = world.serve().await;
    eventually("its end is reported", || reported.of(&id).len() == 1).await;
    leave(server).await;
}

/// G7: posts are signed; a 500 and a redirect are retried; the secret and the address's path are shown nowhere.
async fn an_address_is_told(world: World) {
    let (receiver, url) = Receiver::start(&[500, 302]).await;
    configure(&world, &format!("url = \"{url}\"\nsecret = \"hunter2-secret\"\n"));
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=40;delay_ms=0").await;
    finished(&mut server, &id).await;
    eventually("the third post is there", || receiver.posts().len() == 3).await;
    let posts = receiver.posts();
    assert!(posts.iter().all(|(_, body)| *body == posts[0].1), "{posts:?}");
    for (headers, body) in &posts {
        let (time, signed) = headers["outlast-signature"].split_once(",v1=").unwrap();
        let time = time.strip_prefix("t=").unwrap();
        assert_eq!(signed, hmac(b"hunter2-secret", &format!("{time}.{body}")), "{headers:?}");
        let sent: i64 = time.parse().unwrap();
        let ended: Value = serde_json::from_str(body).unwrap();
        let ended = seconds_of(ended["endedAt"].as_str().unwrap());
        assert!((0..60).contains(&(sent - ended)), "signed when it was sent: {sent}, {ended}");
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(serde_json::from_str::<Value>(body).unwrap()["jobId"], json!(id));
    }
    let shown = world.run(&["config", "show"]).await;
    assert!(shown.stdout.contains("notify.url"), "{shown:?}");
    let log = leave(server).await;
    for text in [shown.stdout, shown.stderr, log] {
        assert!(!text.contains("hunter2") && !text.contains("t0ken"), "{text}");
    }
    assert_eq!(receiver.posts().len(), 3, "a 2xx is the end of it");
}

/// Returns seconds since 1970 of an RFC 3339 moment, as SQLite counts them.
fn seconds_of(moment: &str) -> i64 {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    let seconds = "SELECT CAST(strftime('%s', ?1) AS INTEGER)";
    database.query_row(seconds, [moment], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn g7_an_address_receives_signed_notices_and_again_after_an_error() {
    an_address_is_told(World::new().await).await;
}

#[tokio::test]
async fn g7_an_address_receives_notices_from_a_database_too() {
    an_address_is_told(World::on_postgres().await).await;
}

/// G7: kill -9 between the end and its notice loses nothing.
async fn an_end_is_told_after_a_crash(world: World) {
    let reported = Told::by_command(&world);
    let mut doomed = world.serve_with(&["--kill-at", "after-settle"]).await;
    let arguments = question("ok;words=40;delay_ms=0");
    let call =
        doomed.send("tools/call", json!({ "name": crate::support::START, "arguments": arguments }));
    let call = call.await;
    let answered = doomed.answer(call).await;
    let (status, _) = doomed.ended().await;
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    assert!(reported.all().is_empty(), "it died before it reported anything");
    let mut server = world.serve().await;
    eventually("the end is reported", || reported.all().len() == 1).await;
    if let Some(answer) = answered {
        assert_eq!(reported.all()[0]["jobId"], answer["result"]["structuredContent"]["jobId"]);
    }
    // Notified once: the notice of the next end arrives, and nothing more about the first.
    let next = start(&mut server, "ok;words=40;delay_ms=0").await;
    eventually("the next end is reported", || reported.of(&next).len() == 1).await;
    assert_eq!(reported.all().len(), 2);
}

#[tokio::test]
async fn g7_an_end_sends_a_notice_although_its_process_was_killed() {
    an_end_is_told_after_a_crash(World::new().await).await;
}

#[tokio::test]
async fn g7_an_end_in_a_database_sends_a_notice_although_its_process_was_killed() {
    an_end_is_told_after_a_crash(World::on_postgres().await).await;
}

/// G7: one of several processes delivers the notice of each end.
async fn one_process_tells(world: World) {
    let reported = Told::by_command(&world);
    let (mut one, mut other) = (world.serve().await, world.serve().await);
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(start(&mut one, "ok;words=40;delay_ms=0").await);
        ids.push(start(&mut other, "ok;words=40;delay_ms=0").await);
    }
    eventually("all ends are reported", || ids.iter().all(|id| !reported.of(id).is_empty())).await;
    // Both processes exit, and with them every notice that either could still have sent.
    leave(one).await;
    leave(other).await;
    assert_eq!(reported.all().len(), ids.len(), "each once");
}

#[tokio::test]
async fn g7_of_two_servers_one_sends_each_notice() {
    one_process_tells(World::new().await).await;
}

#[tokio::test]
async fn g7_of_two_servers_on_a_database_one_sends_each_notice() {
    one_process_tells(World::on_postgres().await).await;
}

/// G7: without `[notify]` no notices are stored, and a process that has it later finds none.
#[tokio::test]
async fn g7_a_store_without_notify_keeps_no_notices() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let before = start(&mut server, "ok;words=40;delay_ms=0").await;
    finished(&mut server, &before).await;
    leave(server).await;
    let reported = Told::by_command(&world);
    let mut server = world.serve().await;
    let after = start(&mut server, "ok;words=40;delay_ms=0").await;
    eventually("the later end is reported", || reported.of(&after).len() == 1).await;
    assert!(reported.of(&before).is_empty());
}

/// G7: from the command line: notified before `research` is over, and by the worker of a detached job.
#[tokio::test]
async fn g7_research_on_the_command_line_sends_a_notice() {
    let world = World::new().await;
    let refused = world.run(&["research", "why?", "--detach", "--notify"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("[notify]") && world.submits() == 0, "{refused:?}");
    let reported = Told::by_command(&world);
    let question = "Why? [[sim:ok;words=40;delay_ms=0]]";
    let ran = world.run(&["research", question]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(reported.all().len(), 1, "reported before the command ends");
    assert_eq!(reported.all()[0]["status"], "succeeded");
    assert!(reported.all()[0]["conversationId"].is_string());
    let ran = world.run(&["research", question, "--detach", "--notify"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let id = ran.stdout.trim().to_owned();
    eventually("the detached job is reported", || reported.of(&id).len() == 1).await;
}

/// G7: a mistake is found at once, and its message repeats no secret.
#[tokio::test]
async fn g7_an_address_without_a_secret_is_refused() {
    let world = World::new().await;
    for (notify, why) in [
        ("url = \"https://hooks.example/t0ken\"\n", "secret"),
        ("url = \"https://hooks.example/t0ken\"\nsecret = \"s\"\ncommand = [\"x\"]\n", "command"),
    ] {
        configure(&world, notify);
        for command in [&["jobs", "list"][..], &["research", "why?", "--notify"]] {
            let ran = world.run(command).await;
            assert_eq!(ran.code, Some(2), "{ran:?}");
            assert!(ran.stderr.contains(why) && !ran.stderr.contains("t0ken"), "{ran:?}");
        }
    }
}
