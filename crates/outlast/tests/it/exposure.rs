//! Configuration that no output or file of outlast may show: a key in a broken file, credentials in an address; and
//! characters from others that no terminal and no model may get.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::World;

/// A secret that does not look like any vendor's key.
const SECRET: &str = "hunter2";

fn config_file(world: &World, text: &str, mode: u32) -> PathBuf {
    let path = world.data_dir().parent().unwrap().join("outlast.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// A mistake in outlast.toml is named by file, line and column; no text of the file is repeated.
#[tokio::test]
async fn a_mistake_in_the_file_is_named_by_its_place_and_never_by_its_text() {
    let world = World::new().await;
    let broken = [
        ("[perplexity]\napi_key = \"pplx-hunter2\n", "line 2"),
        ("[perplexity]\napi_key = pplx-hunter2\n", "line 2"),
        ("[perplexity]\napi_key \"pplx-hunter2\"\n", "line 2"),
        ("[perplexity]\n\napi_key = \"pplx-hunter2\" hunter2\n", "line 3"),
        ("[perplexity]\napi_key = 'pplx-\\hunter2\n'", "line"),
        ("[perplexity]\napi_key = \"hunter2\\q\"\n", "line 2"),
        ("[perplexity]\napi_key = \"\"\"hunter2", "line 2"),
        ("[perplexity]\napi_key = { a = \"hunter2\"\n", "line"),
        ("[perplexity]\napi_key = [\"hunter2\"\n[server]\n", "line"),
        ("[perplexity]\napi_key = \"x\"\napi_key = \"hunter2\"\n", "line 3"),
        ("[perplexity\napi_key = \"hunter2\"\n", "line 1"),
        ("[upstream.x]\nurl = \"http://x\"\nheaders = \"hunter2\"\n", "line 3"),
        ("[upstream.x]\ncommand = [\"x\",\n 5, \"TOKEN=hunter2\"]\n", "line 3"),
        ("[[workflow]]\nname = \"w\"\ncommand = \"run --key hunter2\"\n", "line 3"),
        ("[[workflow]]\nname = \"w\"\ncommand = [\"x\"]\nenv = [\"hunter2\"]\n", "line 4"),
    ];
    for (text, place) in broken {
        let path = config_file(&world, text, 0o600);
        let path = path.to_str().unwrap();
        for command in [
            &["serve"][..],
            &["config", "show"],
            &["config", "show", "--json"],
            &["doctor"],
            &["doctor", "--json"],
        ] {
            let ran = world.run(&[command, &["--config", path]].concat()).await;
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert_ne!(ran.code, Some(0), "{text}: {ran:?}");
            assert!(!said.contains(SECRET), "{command:?} of {text}: {said}");
            assert!(said.contains("outlast.toml") && said.contains(place), "{text}: {said}");
        }
    }
}

/// Credentials in the provider's address are in no store and no output.
#[tokio::test]
async fn credentials_in_the_base_url_are_neither_stored_nor_shown() {
    let mut world = World::new().await;
    let address = world.simulator.url().replace("http://", "http://ann:hunter2@");
    world.set("PERPLEXITY_BASE_URL", &address);
    let question = "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]";
    let ran = world.run(&["research", question, "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let id = job["id"].as_str().unwrap();
    let mut said = format!("{ran:?}");
    for command in [
        &["jobs", "show", id, "--json"][..],
        &["jobs", "show", id],
        &["config", "show"],
        &["doctor"],
    ] {
        said.push_str(&format!("{:?}", world.run(command).await));
    }
    assert!(!said.contains(SECRET), "{said}");
    for file in std::fs::read_dir(world.data_dir()).unwrap() {
        let file = file.unwrap().path();
        let bytes = std::fs::read(&file).unwrap_or_default();
        let found = bytes.windows(SECRET.len()).any(|piece| piece == SECRET.as_bytes());
        assert!(!found, "{}", file.display());
    }
}

/// A refused address is not repeated, nor the password of a refused store.
#[tokio::test]
async fn a_refused_address_is_not_repeated() {
    let mut world = World::new().await;
    for address in ["ann:hunter2@api.example", "ftp://ann:hunter2@api.example", "https:///hunter2"]
    {
        world.set("PERPLEXITY_BASE_URL", address);
        for command in [&["serve"][..], &["config", "show"], &["doctor", "--json"]] {
            let ran = world.run(command).await;
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(ran.code != Some(0) && said.contains("PERPLEXITY_BASE_URL"), "{ran:?}");
            assert!(!said.contains(SECRET), "{command:?}: {said}");
        }
    }
    world.set("PERPLEXITY_BASE_URL", "https://ann:hunter2@");
    let ran = world.run(&["research", "x?"]).await;
    assert!(ran.code == Some(2) && !ran.stderr.contains(SECRET), "{ran:?}");
    world.set("PERPLEXITY_BASE_URL", "https://api.example");
    for store in [
        "mysql://ann:hunter2@db/jobs",
        "mysql://db/jobs?user=ann&password=hunter2",
        "host=db password=hunter2",
    ] {
        let ran = world.run(&["jobs", "list", "--store", store]).await;
        assert!(ran.code == Some(2) && ran.stderr.contains("--store"), "{ran:?}");
        assert!(!ran.stderr.contains(SECRET), "{ran:?}");
    }
}

/// A file that others may write decides which programs run; one with a key that others may read exposes the key.
#[tokio::test]
async fn doctor_warns_of_a_file_that_others_may_write_or_read() {
    let world = World::new().await;
    let plain = "[server]\nconcurrency = 3\n";
    let secret = "[perplexity]\napi_key = \"pplx-test\"\n";
    let header = "[upstream.x]\nurl = \"http://127.0.0.1:1/mcp\"\nheaders = { a = \"b\" }\n";
    let cases = [
        (plain, 0o600, None),
        (plain, 0o644, None),
        (plain, 0o666, Some("chmod go-w")),
        (plain, 0o620, Some("chmod go-w")),
        (secret, 0o600, None),
        (secret, 0o640, Some("chmod 600")),
        (secret, 0o604, Some("chmod 600")),
        (header, 0o644, Some("chmod 600")),
    ];
    for (text, mode, fix) in cases {
        let path = config_file(&world, text, mode);
        let ran = world.run(&["doctor", "--json", "--config", path.to_str().unwrap()]).await;
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let check = &report["checks"][0];
        assert_eq!(check["name"], "configuration");
        match fix {
            None => assert_eq!(check["status"], "pass", "{mode:o} {text}: {check}"),
            Some(fix) => {
                assert_eq!(check["status"], "warn", "{mode:o} {text}: {check}");
                assert!(check["fix"].as_str().unwrap().contains(fix), "{check}");
            }
        }
    }
}

/// Characters that control a terminal or hide words are escaped in all printed JSON; after parsing, the value is the
/// same.
#[tokio::test]
async fn json_on_standard_output_escapes_what_steers_and_what_hides() {
    let world = World::new().await;
    let hidden = "red\u{9b}31m \u{202e}evil\u{2066} \u{e0041}\u{e0042} end";
    let question = format!("{hidden}? [[sim:ok;words=60;delay_ms=0]]");
    let ran = world.run(&["research", &question, "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let (id, conversation) = (job["id"].as_str().unwrap(), job["conversation"].as_str().unwrap());
    let mut outputs = vec![ran.stdout.clone()];
    for command in [
        &["jobs", "show", id, "--json"][..],
        &["jobs", "list", "--json"],
        &["jobs", "wait", id, "--json"],
        &["conversations", "list", "--json"],
        &["conversations", "show", conversation, "--json"],
        &["conversations", "export", conversation, "--format", "json"],
        &["conversations", "export", conversation, "--format", "md"],
        &["conversations", "show", conversation],
        &["jobs", "show", id],
        &["jobs", "list"],
    ] {
        let ran = world.run(command).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        outputs.push(ran.stdout);
    }
    let backup = world.data_dir().join(format!("{}.db", hidden.replace('\u{9b}', "")));
    let backup = backup.to_str().unwrap();
    let greeting =
        json!({ "jsonrpc": "2.0", "id": 0, "result": outlast_testkit::peer::discovery() });
    let tool = json!({ "name": "x", "description": hidden, "inputSchema": { "type": "object" } });
    let mut listed =
        json!({ "jsonrpc": "2.0", "id": 1, "result": outlast_testkit::peer::result("") });
    listed["result"]["tools"] = json!([tool]);
    let server = format!("read a; echo '{greeting}'; read b; echo '{listed}'; cat > /dev/null");
    for command in [
        &["store", "backup", backup, "--json"][..],
        &["store", "check", "--json"],
        &["store", "restore", "--in-place", "--json"],
        &["call", "--json", "--", "/bin/sh", "-c", &server],
    ] {
        let ran = world.run(command).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(serde_json::from_str::<Value>(&ran.stdout).is_ok(), "{ran:?}");
        outputs.push(ran.stdout);
    }
    for output in &outputs {
        let steering = output.chars().find(|it| {
            (it.is_control() && !matches!(it, '\n' | '\t'))
                || matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}')
        });
        assert_eq!(steering, None, "{output}");
    }
    let shown: Value = serde_json::from_str(&outputs[5]).unwrap();
    let asked = shown["turns"][0]["question"].as_str().unwrap();
    assert!(asked.contains(hidden), "JSON keeps what was said: {asked:?}");
}

/// Invisible tag characters, by which a source could speak to a model unseen, reach no model.
#[tokio::test]
async fn invisible_tag_characters_reach_no_model() {
    let mut world = World::new().await;
    let folder = world.data_dir().parent().unwrap().join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.md"), "# Boiler\n\nThe boiler code\u{e0049}\u{e0067} is blue.\n")
        .unwrap();
    world.set("OUTLAST_LIBRARY", folder.to_str().unwrap());
    world.unset("PERPLEXITY_API_KEY");
    world.set("OUTLAST_TOOLS", "research,research-jobs,jobs");
    let mut server = world.serve().await;
    let query = "what is the boiler code\u{e0049}\u{e0067}?";
    let answer = server.call("perplexity_search", json!({ "query": query })).await;
    let id = answer["structuredContent"]["conversationId"].as_str().unwrap().to_owned();
    let history = server.call("get_conversation_history", json!({ "conversationId": id })).await;
    let list = server.call("list_conversations", json!({})).await;
    let started = json!({ "workflow": "deep_research", "message": query });
    let started = server.structured("start_job", started).await;
    let job = server.structured("get_job", json!({ "job_id": started["job_id"] })).await;
    assert_eq!(job["status"], "completed", "{job}");
    for answer in [answer, history, list, job] {
        let text = answer.to_string();
        assert!(!text.contains(['\u{e0049}', '\u{e0067}']) && !text.contains("\\udb40"), "{text}");
    }
}
