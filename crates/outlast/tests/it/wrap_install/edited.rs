//! Files that people or clients changed between the install and the uninstall.

use serde_json::{Value, json};

use super::{clients, home, install, read, record, uninstall, write};
use crate::support::World;

/// Changes to the rest of the file stay, and the entry gets its old bytes.
#[tokio::test]
async fn h8_edits_beside_the_entry_stay() {
    let world = World::new().await;
    for (client, file, before) in clients() {
        let path = home(&world).join(file);
        let (from, to) = match client {
            "codex" => {
                ("[mcp_servers.x]", "[mcp_servers.new]\ncommand = 'n' # new\n\n[mcp_servers.x]")
            }
            _ => ("\"x\":", "\"new\": {\"command\": \"n\"}, /* new */ \"x\":"),
        };
        write(&path, before);
        install(&world, client, "x").await;
        write(&path, &format!("{} ", read(&path).replace(from, to)));
        let ran = uninstall(&world, client, "x").await;
        assert!(ran.stderr.contains("as it was before wrap"), "{client}: {ran:?}");
        assert_eq!(read(&path), format!("{} ", before.replace(from, to)), "{client}");
    }
}

/// Claude Code rewrites its file often; its meaning stays the same.
#[tokio::test]
async fn h8_a_file_that_the_client_laid_out_again_gets_the_old_bytes_of_the_entry() {
    let world = World::new().await;
    let path = home(&world).join(".claude.json");
    let entry = "{\"command\": \"npx\",   \"args\": []}";
    write(&path, &format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"));
    install(&world, "claude-code", "x").await;
    let whole: Value = serde_json::from_str(&read(&path)).unwrap();
    write(&path, &serde_json::to_string_pretty(&whole).unwrap());
    uninstall(&world, "claude-code", "x").await;
    assert_eq!(read(&path), format!("{{\n  \"mcpServers\": {{\n    \"x\": {entry}\n  }}\n}}"));
}

#[tokio::test]
async fn h8_an_entry_that_was_edited_keeps_the_edits_and_loses_wrap() {
    let world = World::new().await;
    let path = home(&world).join(".cursor/mcp.json");
    let meaning =
        || serde_json::from_str::<Value>(&read(&path)).unwrap()["mcpServers"]["x"].clone();
    let edits = [
        (
            json!({"command": "npx", "args": ["p"]}),
            json!({"command": "npx", "args": ["p", "--more"], "disabled": true}),
            ("\"p\"]", "\"p\", \"--more\"], \"disabled\": true"),
        ),
        (
            json!({"command": "npx"}),
            json!({"command": "npx", "env": {"K": "v"}}),
            ("\"npx\"]", "\"npx\"], \"env\": {\"K\": \"v\"}"),
        ),
    ];
    for (before, after, (from, to)) in edits {
        write(&path, &json!({"mcpServers": {"x": before}}).to_string());
        install(&world, "cursor", "x").await;
        let installed = read(&path);
        assert!(installed.contains(from), "{installed}");
        let edited = installed.replace(from, to);
        write(&path, &edited);
        let ran = uninstall(&world, "cursor", "x").await;
        assert!(ran.code == Some(0) && ran.stderr.contains("was changed since"), "{ran:?}");
        assert_eq!(meaning(), after, "{edited}");
        assert!(!record(&path).exists());
    }
}

/// A file from another machine: the wrapped server is in the entry.
#[tokio::test]
async fn h8_without_what_the_install_kept_wrap_is_taken_out_by_meaning() {
    let world = World::new().await;
    for (client, file, before) in clients() {
        let path = home(&world).join(file);
        write(&path, before);
        install(&world, client, "x").await;
        std::fs::remove_file(record(&path)).unwrap();
        let ran = uninstall(&world, client, "x").await;
        assert!(ran.code == Some(0) && ran.stderr.contains("not known here"), "{client}: {ran:?}");
        let after = read(&path);
        assert!(!after.contains("wrap") && !after.contains("WRAP"), "{client}: {after}");
        for word in ["https://", "npx", "uvx", "secret", "${env:K}"] {
            let count = |text: &str| text.matches(word).count();
            assert_eq!(count(&after), count(before), "{client}: {word}: {after}");
        }
    }
}

#[tokio::test]
async fn h8_an_entry_that_was_taken_out_or_unwrapped_by_hand_leaves_nothing_kept() {
    let world = World::new().await;
    let path = home(&world).join(".cursor/mcp.json");
    let before = "{\"mcpServers\": {\"x\": {\"command\": \"npx\"}}}";
    write(&path, before);
    install(&world, "cursor", "x").await;
    write(&path, before);
    let ran = uninstall(&world, "cursor", "x").await;
    assert!(ran.code == Some(0) && ran.stderr.contains("not wrapped"), "{ran:?}");
    assert!(!record(&path).exists() && read(&path) == before);
    install(&world, "cursor", "x").await;
    write(&path, "{}");
    let ran = uninstall(&world, "cursor", "x").await;
    assert!(ran.code == Some(2) && ran.stderr.contains("any more"), "{ran:?}");
    assert!(!record(&path).exists() && read(&path) == "{}");
}
