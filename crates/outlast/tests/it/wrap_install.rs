//! `outlast wrap --install` and `--uninstall` on the real binary: typical files, byte by byte.

mod edited;
mod refused;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::{Ran, World, binary};

/// Returns each client, its file under the home directory, a file with the server `x` and other entries.
fn clients() -> [(&'static str, PathBuf, &'static str); 8] {
    let support = |path: &str| match cfg!(target_os = "macos") {
        true => Path::new("Library/Application Support").join(path),
        false => Path::new(".config").join(path),
    };
    [
        (
            "claude-code",
            ".claude.json".into(),
            "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"x\": {\n      \"type\": \"stdio\",\n      \"command\": \"npx\",\n      \"args\": [\n        \"-y\"\n      ],\n      \"env\": {\n        \"TOKEN\": \"secret\"\n      }\n    },\n    \"y\": {\"command\": \"y\"}\n  }\n}\n",
        ),
        (
            "claude-desktop",
            support("Claude/claude_desktop_config.json"),
            "{\n    \"mcpServers\": {\"x\": {\"command\": \"npx\",   \"args\": [\"-y\", \"p\"]}}\n}",
        ),
        (
            "cursor",
            ".cursor/mcp.json".into(),
            "{\"mcpServers\":{\"y\":{\"url\":\"https://y\"},\"x\":{\"command\":\"npx\",\"env\":{\"K\":\"${env:K}\"}}}}",
        ),
        (
            "vscode",
            support("Code/User/mcp.json"),
            "{\n\t// mine\n\t\"servers\": {\n\t\t\"x\": { // keep\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"uvx\", /* fast */\n\t\t\t\"args\": [\n\t\t\t\t\"secretly\", // why\n\t\t\t],\n\t\t}, // keep\n\t},\n}\n",
        ),
        (
            "codex",
            ".codex/config.toml".into(),
            "model = \"o\" # why\n\n[mcp_servers.x]\ncommand = 'uvx' # there\nenv = { \"K\" = \"secret\" }\n\n# next\n[mcp_servers.y]\ncommand = 'y'",
        ),
        (
            "windsurf",
            ".codeium/windsurf/mcp_config.json".into(),
            "{\"mcpServers\": {\"x\": {\"args\": [], \"command\": \"x\"}}}",
        ),
        (
            "zed",
            ".config/zed/settings.json".into(),
            "// Zed\r\n{\r\n  \"theme\": \"One\", // dark\r\n  \"context_servers\": {\r\n    \"x\": {\r\n      \"command\": \"x\",\r\n    },\r\n  },\r\n}\r\n",
        ),
        (
            "gemini-cli",
            ".gemini/settings.json".into(),
            "{ \"mcpServers\": { \"x\": { \"command\": \"x\", \"timeout\": 5 } } }\n",
        ),
    ]
}

fn home(world: &World) -> PathBuf {
    world.data_dir().with_file_name("home")
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn record(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".outlast-wrap");
    name.into()
}

async fn install(world: &World, client: &str, server: &str) -> Ran {
    world.run(&["wrap", "--install", client, server]).await
}

async fn uninstall(world: &World, client: &str, server: &str) -> Ran {
    world.run(&["wrap", "--uninstall", client, server]).await
}

#[tokio::test]
async fn h8_every_client_goes_through_wrap_and_back_to_the_byte() {
    let world = World::new().await;
    for (client, file, before) in clients() {
        let path = home(&world).join(file);
        write(&path, before);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();

        let tried = world.run(&["wrap", "--install", client, "x", "--dry-run"]).await;
        assert!(tried.code == Some(0) && tried.stdout.contains("wrap"), "{client}: {tried:?}");
        assert_eq!(read(&path), before, "{client}: nothing is written");

        let ran = install(&world, client, "x").await;
        assert_eq!(ran.code, Some(0), "{client}: {ran:?}");
        assert_eq!(ran.stdout.trim(), path.to_str().unwrap(), "{client}");
        assert!(ran.stderr.contains(&format!("--uninstall {client} x")), "{client}: {ran:?}");
        let after = read(&path);
        assert!(after.contains(binary().to_str().unwrap()), "{client}: {after}");
        assert!(after.contains("\"wrap\", \"--name\", \"x\""), "{client}: {after}");
        let args = after.lines().find(|line| line.contains("\"wrap\"")).unwrap();
        let args = &args[args.find("\"wrap\"").unwrap()..];
        let args = &args[..args.find(']').unwrap()];
        assert!(args.contains("\"--\", "), "{client}: {args}");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&record(&path))), (0o640, 0o600), "{client}");

        let again = install(&world, client, "x").await;
        assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""), "{client}: {again:?}");
        assert!(again.stderr.contains("wrapped already"), "{client}: {again:?}");
        assert_eq!(read(&path), after, "{client}: twice is once");

        let ran = uninstall(&world, client, "x").await;
        assert_eq!(ran.code, Some(0), "{client}: {ran:?}");
        assert!(ran.stderr.contains("as it was before wrap"), "{client}: {ran:?}");
        assert_eq!(read(&path), before, "{client}: the bytes from before");
        assert!(!record(&path).exists(), "{client}");
        let ran = uninstall(&world, client, "x").await;
        assert!(ran.code == Some(0) && ran.stdout.is_empty(), "{client}: {ran:?}");
        assert!(ran.stderr.contains("not wrapped"), "{client}: {ran:?}");
    }
}

#[tokio::test]
async fn h8_doctor_lists_the_servers_and_which_are_wrapped() {
    let world = World::new().await;
    for (client, file, before) in clients() {
        write(&home(&world).join(file), before);
        if client != "zed" {
            install(&world, client, "x").await;
        }
    }
    let ran = world.run(&["doctor", "--json"]).await;
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let servers = report["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 11, "{report}");
    let wrapped = |client: &str, server: &str| {
        let is =
            |found: &&serde_json::Value| found["client"] == client && found["server"] == server;
        servers.iter().find(is).unwrap()["wrapped"].clone()
    };
    assert_eq!(wrapped("codex", "x"), true);
    assert_eq!(wrapped("codex", "y"), false);
    assert_eq!(wrapped("zed", "x"), false);
    let ran = world.run(&["doctor"]).await;
    assert!(ran.stdout.contains("codex: x (wrapped), y"), "{ran:?}");

    let cursor = home(&world).join(".cursor/mcp.json");
    write(&cursor, &read(&cursor).replace(binary().to_str().unwrap(), "/gone/outlast"));
    let ran = world.run(&["doctor"]).await;
    assert!(ran.stdout.contains("outlast wrap --install cursor x"), "{ran:?}");
    let ran = install(&world, "cursor", "x").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(read(&cursor).contains(binary().to_str().unwrap()), "it moves to this program");
}

#[tokio::test]
async fn h8_an_entry_with_an_address_goes_behind_wrap_and_comes_back() {
    let world = World::new().await;
    let path = home(&world).join(".cursor/mcp.json");
    let before = "{\"mcpServers\": {\"x\": {\"url\": \"https://e/m?k=secret\",  \"headers\": {\"A\": \"b\"}}}}";
    write(&path, before);
    let ran = install(&world, "cursor", "x").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let after: serde_json::Value = serde_json::from_str(&read(&path)).unwrap();
    let entry = &after["mcpServers"]["x"];
    let args = entry["args"].to_string();
    assert!(args.contains("\"--url-env\",\"OUTLAST_WRAP_URL\""), "{entry}");
    assert!(!args.contains("secret"), "{entry}");
    assert_eq!(entry["env"]["OUTLAST_WRAP_URL"], "https://e/m?k=secret");
    let ran = uninstall(&world, "cursor", "x").await;
    assert_eq!((ran.code, read(&path).as_str()), (Some(0), before), "{ran:?}");
}
