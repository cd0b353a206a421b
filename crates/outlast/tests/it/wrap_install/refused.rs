//! Impossible changes are reported, and the file stays unchanged.

use super::{clients, home, install, read, record, uninstall, write};
use crate::support::World;

#[tokio::test]
async fn h8_a_broken_file_is_refused_and_untouched() {
    let world = World::new().await;
    for (client, file, before) in clients() {
        let path = home(&world).join(file);
        let broken = format!("{before}\n= nonsense [");
        write(&path, &broken);
        for ran in [install(&world, client, "x").await, uninstall(&world, client, "x").await] {
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{client}: {ran:?}");
            assert!(ran.stderr.contains("nothing was written"), "{client}: {ran:?}");
            assert!(ran.stderr.contains("line "), "{client}: {ran:?}");
        }
        assert_eq!(read(&path), broken, "{client}");
        assert!(!record(&path).exists(), "{client}");
    }
}

#[tokio::test]
async fn h8_an_unknown_server_or_client_lists_the_known_ones() {
    let world = World::new().await;
    let path = home(&world).join(".cursor/mcp.json");
    let ran = install(&world, "cursor", "x").await;
    assert!(ran.code == Some(2) && ran.stderr.contains("is Cursor used here?"), "{ran:?}");
    let before = "{\"mcpServers\": {\"a\": {\"command\": \"a\"}, \"b\": {\"command\": \"b\"}}}";
    write(&path, before);
    for ran in [install(&world, "cursor", "x").await, uninstall(&world, "cursor", "x").await] {
        assert!(ran.code == Some(2) && ran.stderr.contains("its servers are a, b"), "{ran:?}");
    }
    let ran = install(&world, "emacs", "x").await;
    assert!(ran.code == Some(2) && ran.stderr.contains("claude-code, claude-desktop"), "{ran:?}");
    assert_eq!(read(&path), before);
}

#[tokio::test]
async fn h8_entries_that_wrap_cannot_serve_are_left_alone() {
    let world = World::new().await;
    let path = home(&world).join(".cursor/mcp.json");
    let cases = [
        ("{\"type\": \"sse\", \"url\": \"https://e\"}", "streamable HTTP"),
        ("{\"url\": \"https://e\", \"auth\": {\"CLIENT_ID\": \"c\"}}", "signs in"),
        ("{\"command\": \"/o/outlast\", \"args\": [\"serve\"]}", "outlast itself"),
        ("{\"command\": \"x\", \"args\": [1]}", "list of texts"),
    ];
    for (entry, why) in cases {
        let before = format!("{{\"mcpServers\": {{\"x\": {entry}}}}}");
        write(&path, &before);
        let ran = install(&world, "cursor", "x").await;
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{ran:?}");
        assert_eq!(read(&path), before);
        assert!(!record(&path).exists());
    }
}
