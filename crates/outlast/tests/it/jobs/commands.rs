//! The input of a command, its output, and the meaning of its end.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Shop, ended, ran, start};

/// E12: message, arguments, session and job id arrive where they should, and never in argv.
#[tokio::test]
async fn e12_a_command_receives_everything_but_nothing_in_its_arguments() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let arguments = json!({ "text": "$(touch pwned) ; `id` \"'\n", "list": [1] });
    let asked = json!({
        "workflow": "given", "message": "; touch pwned", "arguments": arguments, "session_id": "$(touch pwned)"
    });
    let started = server.structured("start_job", asked).await;
    let id = started["job_id"].as_str().unwrap().to_owned();
    let got = ended(&mut server, &id).await;
    let text = got["result"]["content"][0]["text"].as_str().unwrap();
    let parts: Vec<&str> = text.split('|').collect();
    let [argv, reported, session, job] = parts[..] else { panic!("{text}") };
    assert_eq!((argv, session, job), ("", "$(touch pwned)", id.as_str()));
    assert_eq!(serde_json::from_str::<Value>(reported).unwrap(), arguments);
    assert!(!shop.file("pwned").exists(), "nothing goes through a shell");
}

/// E12: only four variables of our environment, the configured ones, and those that the job adds.
#[tokio::test]
async fn e12_a_command_has_a_clean_environment() {
    let mut shop = Shop::with(
        r#"
[[workflow]]
name = "env"
command = ["env", "-0"]
env = { MODE = "fast", LANG = "C" }
pass_env = ["WANTED", "ABSENT"]
"#,
    )
    .await;
    for (name, value) in
        [("LANG", "de_DE.UTF-8"), ("TMPDIR", "/tmp"), ("WANTED", "yes"), ("OTHER", "no")]
    {
        shop.world.set(name, value);
    }
    let mut server = shop.serve().await;
    let got = ran(&mut server, "env", "").await;
    let text = got["result"]["content"][0]["text"].as_str().unwrap();
    let seen: BTreeMap<&str, &str> =
        text.split('\0').filter_map(|entry| entry.split_once('=')).collect();
    let names: Vec<&str> = seen.keys().copied().collect();
    let expected = [
        "HOME",
        "LANG",
        "MODE",
        "OUTLAST_ARGUMENTS",
        "OUTLAST_JOB_ID",
        "OUTLAST_SESSION_ID",
        "PATH",
        "TMPDIR",
        "WANTED",
    ];
    assert_eq!(names, expected, "none of our keys among them");
    assert_eq!((seen["LANG"], seen["MODE"], seen["OUTLAST_ARGUMENTS"]), ("C", "fast", "{}"));
}

/// tools.md: it runs in the folder of outlast.toml, and a relative program is found there.
#[tokio::test]
async fn e12_a_relative_program_is_found_beside_the_configuration() {
    use std::os::unix::fs::PermissionsExt;
    let shop = Shop::with("[[workflow]]\nname = \"own\"\ncommand = [\"./own.sh\"]\n").await;
    std::fs::write(shop.file("own.sh"), "#!/bin/sh\npwd\n").unwrap();
    std::fs::set_permissions(shop.file("own.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut server = shop.serve().await;
    let got = ran(&mut server, "own", "").await;
    let text = got["result"]["content"][0]["text"].as_str().unwrap();
    let folder = std::fs::canonicalize(&shop.folder).unwrap();
    assert_eq!(std::path::Path::new(text.trim()), folder);
}

/// E10, E11: another exit code, a signal or a missing program is a failure with its reason.
#[tokio::test]
async fn e11_a_command_that_fails_leaves_a_failed_job_with_a_reason() {
    let shop = Shop::with(&format!(
        "{}\n[[workflow]]\nname = \"absent\"\ncommand = [\"/no/such/program\"]\n\
         [[workflow]]\nname = \"text\"\ncommand = [\"./outlast.toml\"]\n",
        super::WORKFLOWS
    ))
    .await;
    let mut server = shop.serve().await;
    let cases = [
        ("fail", "", "the command ended with exit code 3;"),
        ("shell", "exit 0; exit 9", ""),
        ("shell", "exit 255", "the command ended with exit code 255;"),
        ("shell", "kill -9 $$", "the command was ended by signal 9;"),
        ("shell", "kill -11 $$", "the command was ended by signal 11;"),
        ("absent", "", "the program of this workflow cannot be started;"),
        ("text", "", "the program of this workflow cannot be started;"),
    ];
    for (workflow, message, expected) in cases {
        let got = ran(&mut server, workflow, message).await;
        if expected.is_empty() {
            assert_eq!(got["status"], "completed");
            continue;
        }
        assert_eq!((&got["status"], &got["result"]), (&json!("failed"), &Value::Null), "{got}");
        assert_eq!(got["error"]["code"], "EXECUTION_ERROR");
        // E16: a command that ran may succeed next time; one that cannot be started will not.
        assert_eq!(got["error"]["retryable"], !expected.contains("cannot be started"), "{got}");
        let said = got["error"]["message"].as_str().unwrap();
        assert!(said.starts_with(expected), "{said}");
        assert!(!got.to_string().contains("secret words"), "stderr is for the operator");
        assert!(!got.to_string().contains("/no/such"), "no path is shown");
    }
    server.logged("secret words").await;
    server.logged("/no/such/program").await;
}

/// E10: a child that never reads its input is not a failure, for any size of input.
#[tokio::test]
async fn e10_a_child_that_never_reads_stdin_is_no_failure() {
    let shop = Shop::with("[[workflow]]\nname = \"deaf\"\ncommand = [\"echo\", \"done\"]\n").await;
    let mut server = shop.serve().await;
    let got = ran(&mut server, "deaf", &"x".repeat(1_000_000)).await;
    assert_eq!(got["result"]["content"][0]["text"], "done\n", "{got}");
}

/// tools.md: lines on standard error move the progress, which never falls.
#[tokio::test]
async fn e4_lines_on_stderr_move_the_progress() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let script = r#"
        echo '{"progress": 40, "message": "scanning"}' >&2
        echo 'not progress' >&2
        while [ ! -e half ]; do sleep 0.01; done
        echo '{"progress": 10, "message": "still"}' >&2
        echo '{"progress": 3, "total": 4, "message": "nearly"}' >&2
        while [ ! -e go ]; do sleep 0.01; done"#;
    let id = start(&mut server, "shell", script).await;
    for (message, percent, then) in [("scanning", 40, "half"), ("nearly", 75, "go")] {
        let seen = async {
            loop {
                let got =
                    server.structured("get_job", json!({ "job_id": id, "wait_seconds": 0 })).await;
                assert_eq!(got["done"], false, "{got}");
                if got["progress"]["message"] == message {
                    return got;
                }
            }
        };
        let limit = std::time::Duration::from_secs(30);
        let got = tokio::time::timeout(limit, seen).await.expect("the progress is seen");
        assert_eq!(
            got["progress"],
            json!({ "percent": percent, "step": "running", "message": message })
        );
        std::fs::write(shop.file(then), "").unwrap();
    }
    assert_eq!(ended(&mut server, &id).await["status"], "completed");
}

/// E6: the number of retries is that of the workflow; each is a new run.
#[tokio::test]
async fn e6_a_workflow_is_retried_as_often_as_it_says() {
    let shop = Shop::with(
        r#"
[[workflow]]
name = "twice"
command = ["/bin/sh", "-c", "echo x >> tries; test $(wc -l < tries) -ge 3 && echo made it"]
retries = 2

[[workflow]]
name = "never"
command = ["/bin/sh", "-c", "echo x >> once; exit 1"]
"#,
    )
    .await;
    let mut server = shop.serve().await;
    let got = ran(&mut server, "twice", "").await;
    assert_eq!(got["result"]["content"][0]["text"], "made it\n", "{got}");
    assert_eq!(ran(&mut server, "never", "").await["status"], "failed");
    assert_eq!(std::fs::read_to_string(shop.file("once")).unwrap(), "x\n");
}
