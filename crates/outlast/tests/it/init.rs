//! `outlast init` on the real binary: typical files, before and after, byte by byte.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use outlast_testkit::mcp_process::McpProcess;
use serde_json::Value;

use crate::support::{World, binary};

/// Returns each client, its file under the home directory, and a typical file.
fn clients() -> [(&'static str, PathBuf, &'static str); 8] {
    let support = |path: &str| match cfg!(target_os = "macos") {
        true => Path::new("Library/Application Support").join(path),
        false => Path::new(".config").join(path),
    };
    [
        (
            "claude-code",
            ".claude.json".into(),
            "{\n  \"numStartups\": 3,\n  \"mcpServers\": {}\n}\n",
        ),
        (
            "claude-desktop",
            support("Claude/claude_desktop_config.json"),
            "{\n    \"globalShortcut\": \"\"\n}",
        ),
        ("cursor", ".cursor/mcp.json".into(), "{\"mcpServers\":{\"x\":{\"url\":\"https://x\"}}}"),
        (
            "vscode",
            support("Code/User/mcp.json"),
            "{\n\t// mine\n\t\"servers\": {\n\t\t\"x\": {}, // keep\n\t},\n}\n",
        ),
        (
            "codex",
            ".codex/config.toml".into(),
            "model = \"o\" # why\n\n[mcp_servers.x]\ncommand = 'y'\n",
        ),
        ("windsurf", ".codeium/windsurf/mcp_config.json".into(), ""),
        (
            "zed",
            ".config/zed/settings.json".into(),
            "// Zed\r\n{\r\n  \"theme\": \"One\", // dark\r\n}\r\n",
        ),
        ("gemini-cli", ".gemini/settings.json".into(), "{ \"theme\": \"Default\" }\n"),
    ]
}

fn home(world: &World) -> PathBuf {
    world.data_dir().with_file_name("home")
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn backup(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".outlast-backup");
    name.into()
}

#[tokio::test]
async fn every_client_is_set_up_once_and_put_back_to_the_byte() {
    let world = World::new().await;
    for (client, file, before) in clients() {
        let path = home(&world).join(file);
        write(&path, before);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let ran = world.run(&["init", client]).await;
        assert_eq!(ran.code, Some(0), "{client}: {ran:?}");
        assert_eq!(ran.stdout.trim(), path.to_str().unwrap(), "{client}");
        assert!(ran.stderr.contains("OUTLAST_ASYNC_RESEARCH=auto"), "it says so: {ran:?}");
        let after = std::fs::read_to_string(&path).unwrap();
        for part in ["outlast", "serve", "OUTLAST_ASYNC_RESEARCH", binary().to_str().unwrap()] {
            assert!(after.contains(part), "{client}: {part}: {after}");
        }
        assert!(!after.contains("pplx-test"), "{client}: no key is written: {after}");
        assert_eq!(std::fs::read_to_string(backup(&path)).unwrap(), before, "{client}");
        for file in [&path, &backup(&path)] {
            assert_eq!(
                std::fs::metadata(file).unwrap().permissions().mode() & 0o777,
                0o640,
                "{client}"
            );
        }

        let again = world.run(&["init", client]).await;
        assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""), "{client}: {again:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after, "{client}: twice is once");

        let removed = world.run(&["init", client, "--remove"]).await;
        assert_eq!(removed.code, Some(0), "{client}: {removed:?}");
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            before,
            "{client}: the bytes from before"
        );
        assert!(!backup(&path).exists(), "{client}");
        let removed = world.run(&["init", client, "--remove"]).await;
        assert!(removed.code == Some(0) && removed.stdout.is_empty(), "{client}: {removed:?}");
    }
}

#[tokio::test]
async fn a_client_without_a_file_gets_one_and_loses_it_again() {
    let world = World::new().await;
    for (client, file, _) in clients() {
        let path = home(&world).join(file);
        world.run(&["init", client]).await;
        assert!(path.exists() && !backup(&path).exists(), "{client}");
        world.run(&["init", client, "--remove"]).await;
        assert!(!path.exists(), "{client}");
    }
}

#[tokio::test]
async fn a_file_that_was_changed_since_loses_the_entry_alone() {
    let world = World::new().await;
    let path = home(&world).join(".cursor/mcp.json");
    write(&path, "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n");
    world.run(&["init", "cursor"]).await;
    let changed =
        std::fs::read_to_string(&path).unwrap().replace("\"x\": {}", "\"x\": { \"url\": \"new\" }");
    std::fs::write(&path, changed).unwrap();
    let ran = world.run(&["init", "cursor", "--remove"]).await;
    assert!(ran.stderr.contains("changed since"), "{ran:?}");
    let after = std::fs::read_to_string(&path).unwrap();
    assert_eq!(after, "{\n  \"mcpServers\": {\n    \"x\": { \"url\": \"new\" }\n  }\n}\n");
}

#[tokio::test]
async fn print_and_dry_run_write_nothing() {
    let world = World::new().await;
    let ran = world.run(&["init", "zed", "--print"]).await;
    let snippet: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(snippet["context_servers"]["outlast"]["args"][0], "serve");
    let ran = world.run(&["init", "vscode", "--dry-run"]).await;
    assert!(
        ran.stdout.starts_with("--- /dev/null\n+++ ")
            && ran.stdout.contains("\n+  \"servers\": {\n"),
        "{ran:?}"
    );
    assert!(!home(&world).exists());

    let path = home(&world).join(".gemini/settings.json");
    write(&path, "{\n  \"a\": 1\n}\n");
    let ran = world.run(&["init", "gemini-cli", "--dry-run"]).await;
    assert!(
        ran.stdout.contains("@@ -1,3 +1,") && ran.stdout.contains("\n-  \"a\": 1\n+  \"a\": 1,\n"),
        "{ran:?}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\n  \"a\": 1\n}\n");
    world.run(&["init", "gemini-cli"]).await;
    let ran = world.run(&["init", "gemini-cli", "--remove", "--dry-run"]).await;
    assert!(ran.stdout.contains("\n-  \"a\": 1,\n") && backup(&path).exists(), "{ran:?}");
    let ran = world.run(&["init", "gemini-cli", "--dry-run"]).await;
    assert!(ran.stdout.is_empty() && ran.stderr.contains("Nothing would change"), "{ran:?}");
}

#[tokio::test]
async fn a_broken_file_is_refused_with_line_and_column_and_stays_as_it_is() {
    let world = World::new().await;
    for (client, file, text, place) in [
        (
            "cursor",
            ".cursor/mcp.json",
            "{\n  \"mcpServers\": {\n    \"x\" {}\n  }\n}\n",
            "line 3, column 9",
        ),
        ("codex", ".codex/config.toml", "a = 1\nb = \n", "line 2, column 5"),
        ("zed", ".config/zed/settings.json", "{\"context_servers\": []}", "line 1, column 21"),
    ] {
        let path = home(&world).join(file);
        write(&path, text);
        let ran = world.run(&["init", client]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(
            ran.stderr.contains(place) && ran.stderr.contains(&format!("init {client} --print")),
            "{ran:?}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(!backup(&path).exists());
    }
}

#[tokio::test]
async fn a_link_stays_a_link() {
    let world = World::new().await;
    let (path, real) =
        (home(&world).join(".cursor/mcp.json"), home(&world).join("dotfiles/cursor.json"));
    write(&real, "{}\n");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, &path).unwrap();
    world.run(&["init", "cursor"]).await;
    assert!(path.is_symlink() && std::fs::read_to_string(&real).unwrap().contains("outlast"));
    world.run(&["init", "cursor", "--remove"]).await;
    assert!(path.is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "{}\n");
}

/// An unset variable must not override a key in the file.
#[tokio::test]
async fn a_key_in_the_file_is_left_to_the_file() {
    let mut world = World::new().await;
    world.unset("PERPLEXITY_API_KEY");
    let config = world.data_dir().with_extension("toml");
    std::fs::write(&config, "[perplexity]\napi_key = \"pplx-hunter2\"\n").unwrap();
    let config = config.to_str().unwrap();
    let ran = world.run(&["init", "gemini-cli", "--print", "--config", config]).await;
    let snippet: Value = serde_json::from_str(&ran.stdout).unwrap();
    let ours = &snippet["mcpServers"]["outlast"];
    assert_eq!(ours["args"], serde_json::json!(["serve", "--config", config]));
    assert!(ours["env"]["PERPLEXITY_API_KEY"].is_null(), "{ours}");
    let ran = world.run(&["init", "gemini-cli", "--print"]).await;
    assert!(ran.stdout.contains("\"PERPLEXITY_API_KEY\": \"$PERPLEXITY_API_KEY\""), "{ran:?}");
}

/// Given folders replace the former ones; without any, the entry keeps them.
#[tokio::test]
async fn a_library_that_is_given_replaces_the_one_in_the_entry() {
    let world = World::new().await;
    let (old, new) = (home(&world).join("old"), home(&world).join("new"));
    for folder in [&old, &new] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    for (client, file, _) in clients() {
        let path = home(&world).join(file);
        for (flags, library) in
            [(&["--library", old][..], old), (&["--library", new], new), (&[], new)]
        {
            let ran = world.run(&[&["init", client], flags].concat()).await;
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let written = std::fs::read_to_string(&path).unwrap();
            let other = if library == old { new } else { old };
            assert!(written.contains(library) && !written.contains(other), "{client}: {written}");
            assert_eq!(ran.stderr.contains("nothing was changed"), flags.is_empty(), "{ran:?}");
        }
        let removed = world.run(&["init", client, "--remove"]).await;
        assert!(removed.code == Some(0) && !path.exists(), "{removed:?}");
    }
}

/// N3: the tool sets of an entry can be chosen, and an unknown one is refused at once.
#[tokio::test]
async fn n3_the_tool_sets_of_an_entry_can_be_chosen() {
    let world = World::new().await;
    let chosen = ["init", "claude-code", "--tools", "perplexity, research-jobs", "--print"];
    let ran = world.run(&chosen).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let squeezed: String = ran.stdout.split_whitespace().collect();
    assert!(squeezed.contains(r#""--tools","perplexity,research-jobs""#), "{ran:?}");
    for wrong in ["everything", " , "] {
        let ran = world.run(&["init", "claude-code", "--tools", wrong]).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("deep-research, perplexity"), "{ran:?}");
    }
}

/// The entry works: run as a client would, it serves, in the promised mode.
#[tokio::test]
async fn what_is_written_can_be_run() {
    let world = World::new().await;
    let ran = world.run(&["init", "claude-desktop", "--print"]).await;
    let snippet: Value = serde_json::from_str(&ran.stdout).unwrap();
    let ours = &snippet["mcpServers"]["outlast"];
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut environment = world.environment.clone();
    for (name, value) in ours["env"].as_object().unwrap() {
        environment.push((name.clone(), value.as_str().unwrap().to_owned()));
    }
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let program = Path::new(ours["command"].as_str().unwrap());
    let mut server = McpProcess::start(program, texts(&ours["args"]), &environment).await;
    let listed = server.request("tools/list", serde_json::json!({})).await;
    assert!(listed.to_string().contains("perplexity_deep_research"), "{listed}");
    assert_eq!(ours["env"]["OUTLAST_ASYNC_RESEARCH"], "auto");
}
