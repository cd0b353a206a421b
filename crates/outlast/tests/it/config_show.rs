//! `outlast config`, completions and manual pages.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::cli::assert_usage_error;
use crate::support::{Ran, World};

fn setting<'a>(shown: &'a Value, key: &str) -> &'a Value {
    let settings = shown["settings"].as_array().unwrap();
    settings.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("no {key}"))
}

#[tokio::test]
async fn config_init_writes_a_file_once_that_changes_nothing() {
    let world = World::new().await;
    let run = async |command: &[&str]| world.run(&[&["config"][..], command].concat()).await;
    let ran = run(&["path"]).await;
    let path = std::path::PathBuf::from(ran.stdout.trim());
    assert!(path.ends_with("outlast/outlast.toml") && !path.exists(), "{ran:?}");
    assert!(ran.code == Some(0) && ran.stderr.contains("outlast config init"), "{ran:?}");
    let before = run(&["show", "--json"]).await;

    let written = run(&["init"]).await;
    assert_eq!((written.code, &written.stdout), (Some(0), &ran.stdout), "{written:?}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\n[server]\n") && text.contains("\n# concurrency = 5\n"), "{text}");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "keys belong into it");
    let after = run(&["show", "--json"]).await;
    let settings =
        |ran: &Ran| serde_json::from_str::<Value>(&ran.stdout).unwrap()["settings"].take();
    assert_eq!(settings(&before), settings(&after));
    assert_eq!(run(&["path"]).await.stderr, "");

    std::fs::write(&path, "# mine\n").unwrap();
    assert_usage_error(&run(&["init"]).await, "exists", "--config");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "# mine\n");
    let other = path.with_file_name("other.toml");
    let ran = run(&["init", "--config", other.to_str().unwrap()]).await;
    assert!(ran.code == Some(0) && other.exists(), "{ran:?}");
}

#[tokio::test]
async fn every_setting_is_shown_with_its_source_and_no_secret() {
    let mut world = World::new().await;
    world.set("HTTPS_PROXY", "http://ann:hunter2@proxy:1");
    world.set("OUTLAST_TOKENS", "ann=hunter2-hunter2-hunter2-hunter2");
    world.set("PERPLEXITY_API_KEY", "pplx-hunter2");
    let file = world.data_dir().with_extension("toml");
    std::fs::write(&file, "[server]\nconcurrency = 7\nowner = \"team\"\n").unwrap();
    world.set("OUTLAST_OWNER", "ann");
    let file = file.to_str().unwrap();
    let arguments = ["config", "show", "--json", "--no-mirror", "--config", file];
    let ran = world.run(&arguments).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["file"], file);
    let cases = [
        ("store.mirror", "false", "flag", "--no-mirror"),
        ("server.owner", "ann", "environment", "OUTLAST_OWNER"),
        ("server.concurrency", "7", "file", file),
        ("perplexity.api_key", "[redacted]", "environment", "PERPLEXITY_API_KEY"),
        ("network.proxy", "http://[redacted]@proxy:1", "environment", "HTTPS_PROXY"),
    ];
    for (key, value, kind, name) in cases {
        let setting = setting(&shown, key);
        assert_eq!(setting["value"], value, "{setting}");
        assert_eq!(
            (&setting["source"]["kind"], &setting["source"]["name"]),
            (&kind.into(), &name.into())
        );
    }
    let default = setting(&shown, "limits.max_polls");
    assert_eq!(
        (&default["value"], &default["source"]["kind"]),
        (&"10000".into(), &"default".into())
    );

    let ran = world
        .run(&arguments.map(|argument| if argument == "--json" { "-q" } else { argument }))
        .await;
    assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
    let line = ran.stdout.lines().find(|line| line.starts_with("server.owner ")).unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["server.owner", "ann", "OUTLAST_OWNER"]
    );
    assert!(!world.data_dir().exists(), "looking makes nothing");
}

#[tokio::test]
async fn a_bad_value_is_shown_among_the_others_and_then_refused() {
    let mut world = World::new().await;
    world.set("OUTLAST_CONCURRENCY", "lots");
    let ran = world.run(&["config", "show"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.contains("server.concurrency") && ran.stdout.contains("lots"), "{ran:?}");
    assert!(ran.stderr.contains("hint: allowed: a whole number"), "{ran:?}");
    let ran = world.run(&["config", "show", "--json"]).await;
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(shown["error"].as_str().unwrap().contains("OUTLAST_CONCURRENCY"), "{shown}");
}

#[tokio::test]
async fn shells_and_man_learn_every_command() {
    let world = World::new().await;
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = world.run(&["completions", shell]).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["doctor", "completions", "until-idle"] {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
    }
    let ran = world.run(&["man"]).await;
    assert!(ran.stdout.contains(".TH outlast 1"), "{ran:?}");
    let dir = world.data_dir().with_file_name("man");
    let ran = world.run(&["man", dir.to_str().unwrap()]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = std::fs::read_to_string(dir.join("outlast-init.1")).unwrap();
    assert!(page.contains("dry\\-run") && page.contains("remove"), "{page}");
    assert!(dir.join("outlast.1").exists() && dir.join("outlast-jobs-list.1").exists());
}
