//! The sources of tokens, and the refusals at the start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::client::Served;
use crate::support::{Ran, World};

#[tokio::test]
async fn a_token_is_made_at_the_first_start_and_kept() {
    let world = World::new().await;
    let file = world.data_dir().join("http-token");
    let mut made = Vec::new();
    for _ in 0..2 {
        let served = Served::start_as_it_is(&world, &[]).await;
        let token = fs::read_to_string(&file).unwrap().trim().to_owned();
        assert_eq!(token.len(), 64, "32 random bytes");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
        let log = served.process.log();
        assert!(log.contains(file.to_str().unwrap()), "says where: {log}");
        assert!(!log.contains(&token), "and not what: {log}");
        served.client(&token).initialize().await;
        made.push(token);
    }
    assert_eq!(made[0], made[1]);
    let others = World::new().await;
    let _served = Served::start_as_it_is(&others, &[]).await;
    let other = fs::read_to_string(others.data_dir().join("http-token")).unwrap();
    assert_ne!(other.trim(), made[0]);
}

#[tokio::test]
async fn tokens_come_from_a_file_as_well() {
    let mut world = World::new().await;
    let file = world.data_dir().with_file_name("tokens");
    fs::write(&file, "# people\ncyd cyd-0123456789abcdef\n\ndan\tdan-0123456789abcdef\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    world.set("OUTLAST_TOKENS_FILE", file.to_str().unwrap());
    let served = Served::start(&mut world, &[]).await;
    for token in ["cyd-0123456789abcdef", "dan-0123456789abcdef", super::client::ANN] {
        served.client(token).initialize().await;
    }
    assert!(!world.data_dir().join("http-token").exists(), "none is made beside them");
}

#[tokio::test]
async fn without_auth_every_client_on_this_machine_is_the_local_owner() {
    let world = World::new().await;
    let served = Served::start_as_it_is(&world, &["--no-auth"]).await;
    let reply = served.say(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert_eq!(reply.status, 404);
    let reply = served.say(b"GET /nothing HTTP/1.1\r\nHost: evil.example\r\n\r\n").await.unwrap();
    assert_eq!(reply.status, 421, "the host still counts");
    served.client("anything").initialize().await;
    assert!(!world.data_dir().join("http-token").exists());
}

/// Exit 2 before anything is opened, with the name of the unsafe setting and never a token.
#[tokio::test]
async fn what_would_be_unsafe_is_refused_at_the_start() {
    let open = tempfile_with("eve eve-0123456789abcdef\n", 0o644);
    let weak = tempfile_with("eve eve-0123456789abcdef\nmal hunter2\n", 0o600);
    let (open, weak) = (open.path().to_str().unwrap(), weak.path().to_str().unwrap());
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case<'_>; 16] = [
        (&["--http", "0.0.0.0:0"], &[], "OUTLAST_ALLOWED_HOSTS"),
        (&["--http", "[::]:0"], &[], "OUTLAST_ALLOWED_HOSTS"),
        (
            &["--http", "0.0.0.0:0", "--no-auth"],
            &[("OUTLAST_ALLOWED_HOSTS", "a.example")],
            "--no-auth",
        ),
        (&["--http", "127.0.0.1"], &[], "127.0.0.1:8080"),
        (&["--http", "example.com:80"], &[], "127.0.0.1:8080"),
        (&["--no-auth"], &[], "--http"),
        (&[], &[("OUTLAST_TOKENS", "hunter2hunter2hunter2")], "OUTLAST_TOKENS"),
        (&[], &[("OUTLAST_TOKENS", "eve=hunter2")], "OUTLAST_TOKENS"),
        (&[], &[("OUTLAST_TOKENS", "e e=hunter2hunter2hunter2")], "name"),
        (
            &[],
            &[("OUTLAST_TOKENS", "eve=hunter2hunter2hunter2,eve=hunter3hunter3hunter3")],
            "twice",
        ),
        (
            &[],
            &[("OUTLAST_TOKENS", "eve=hunter2hunter2hunter2,mal=hunter2hunter2hunter2")],
            "twice",
        ),
        (&[], &[("OUTLAST_TOKENS_FILE", "/nowhere/tokens")], "OUTLAST_TOKENS_FILE"),
        (&[], &[("OUTLAST_TOKENS_FILE", open)], "0644"),
        (&[], &[("OUTLAST_TOKENS_FILE", weak)], "line 2"),
        (&[], &[("OUTLAST_ALLOWED_HOSTS", "http://a.example")], "OUTLAST_ALLOWED_HOSTS"),
        (&[], &[("OUTLAST_ALLOWED_ORIGINS", "a.example")], "OUTLAST_ALLOWED_ORIGINS"),
    ];
    for (flags, environment, expected) in cases {
        let mut world = World::new().await;
        for (name, value) in environment {
            world.set(name, value);
        }
        let http: &[&str] = if flags.is_empty() { &["--http", "127.0.0.1:0"] } else { flags };
        let arguments: Vec<&str> = ["serve"].iter().chain(http).copied().collect();
        let ran = refused(&world, &arguments).await;
        assert_eq!(ran.code, Some(2), "{arguments:?} {environment:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{arguments:?} {environment:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
        assert!(!world.data_dir().join("outlast.db").exists(), "{arguments:?} {environment:?}");
    }
}

/// A token file that others could read is not used, not even our own.
#[tokio::test]
async fn our_own_token_is_not_used_when_others_can_read_it() {
    let world = World::new().await;
    drop(Served::start_as_it_is(&world, &[]).await);
    let file = world.data_dir().join("http-token");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let ran = refused(&world, &["serve", "--http", "127.0.0.1:0"]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("http-token") && ran.stderr.contains("0640"), "{}", ran.stderr);
}

/// Other commands and stdio do not fail because of tokens that they do not need.
#[tokio::test]
async fn stdio_does_not_look_at_tokens() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOKENS_FILE", "/nowhere/tokens");
    let _server = world.serve().await;
    assert_eq!(world.run(&["jobs", "list"]).await.code, Some(0));
    assert!(!world.data_dir().join("http-token").exists());
}

/// Runs a server that should not start; one that starts would run for ever.
async fn refused(world: &World, arguments: &[&str]) -> Ran {
    let ran = tokio::time::timeout(Duration::from_secs(30), world.run(arguments)).await;
    ran.unwrap_or_else(|_| panic!("{arguments:?} started"))
}

fn tempfile_with(text: &str, mode: u32) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
    file
}
