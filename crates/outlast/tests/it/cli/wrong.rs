//! Wrong usage: each is refused with its exit code and a helpful message, and nothing on standard output.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::support::World;

const NONE: &str = "0123456789abcdef0123456789abcdef";

/// Arguments, the exit code, and the text on standard error.
const WRONG: &[(&[&str], i32, &str)] = &[
    (&[], 2, "Usage: outlast"),
    (&["sevre"], 2, "some similar subcommands exist: 'store', 'serve'"),
    (&["--bogus"], 2, "unexpected argument '--bogus'"),
    (&["--color", "pink", "jobs", "list"], 2, "possible values: auto, always, never"),
    (&["-v", "-q", "jobs", "list"], 2, "cannot be used with"),
    (&["--store", "redis://x", "jobs", "list"], 2, "sqlite:FILE"),
    (&["--config", "/nonexistent/outlast.toml", "jobs", "list"], 2, "/nonexistent/outlast.toml"),
    (&["serve", "--concurrency", "x"], 2, "--concurrency"),
    (&["serve", "--concurrency", "0"], 2, "a whole number from 1"),
    (&["serve", "--http", "nowhere"], 2, "127.0.0.1:8080"),
    (&["serve", "--no-auth"], 2, "--http"),
    (&["serve", "--tools", "dance"], 2, "research-jobs"),
    (&["worker", "--concurrency", "-1"], 2, "unexpected argument '-1'"),
    (&["worker", "now"], 2, "unrecognized subcommand 'now'"),
    (&["research"], 2, "<QUESTION>"),
    (&["research", ""], 2, "the question is empty"),
    (&["research", "   \n"], 2, "the question is empty"),
    (&["research", "Why?", "--effort", "heroic"], 2, "possible values: low, medium, high"),
    (&["research", "Why?", "--library", "/nonexistent"], 2, "folders that can be read"),
    (&["research", "Why?", "--follow-up", "abc"], 2, "is not the id of a conversation"),
    (
        &["research", "Why?", "--follow-up", "../../etc/passwd"],
        2,
        "is not the id of a conversation",
    ),
    (&["research", "Why?", "--follow-up", NONE], 1, "outlast conversations list"),
    (&["research", "Why?", "-o", "/nonexistent/report.md"], 2, "its directory does not exist"),
    (&["research", "Why?", "-o", "/"], 2, "it is a directory"),
    (&["research", "Why?", "--detach", "-o", "x.md"], 2, "cannot be used with"),
    (&["research", "Why?", "--detach", "--store", "memory:"], 2, "leave out --detach"),
    (&["research", "-"], 2, "the question is empty"),
    (&["research", "Why?", "--json", "-o", "-"], 2, "both write to standard output"),
    (&["conversations", "prune"], 2, "--older-than"),
    (&["explain", "NO_SUCH_CODE"], 2, "`outlast explain` lists every code"),
    (&["jobs"], 2, "Usage: outlast jobs"),
    (&["jobs", "lsit"], 2, "a similar subcommand exists: 'list'"),
    (&["jobs", "list", "--state", "asleep"], 2, "possible values: queued, running"),
    (&["jobs", "list", "--limit", "0"], 2, "0 is not in 1..=1000"),
    (&["jobs", "list", "--limit", "many"], 2, "invalid digit"),
    (&["jobs", "list", NONE], 2, "unexpected argument"),
    (&["jobs", "show"], 2, "<ID>"),
    (&["jobs", "show", "abc"], 2, "8 to 32 lower-case hexadecimal digits"),
    (&["jobs", "show", "ABCDEF0123456789"], 2, "is not the id of a job"),
    (&["jobs", "show", "../../etc/passwd"], 2, "is not the id of a job"),
    (&["jobs", "show", NONE], 1, "hint: `outlast jobs list`"),
    (&["jobs", "show", NONE, NONE], 2, "unexpected argument"),
    (&["jobs", "watch", "xyz"], 2, "is not the id of a job"),
    (&["jobs", "watch", NONE], 1, "there is no job"),
    (&["jobs", "wait"], 2, "<ID>..."),
    (&["jobs", "wait", NONE], 1, "there is no job"),
    (&["jobs", "wait", NONE, "--timeout", "soon"], 2, "30, 1.5s, 500ms, 5m, 2h or 7d"),
    (&["jobs", "wait", NONE, "--timeout", "5 m"], 2, "30, 1.5s, 500ms, 5m, 2h or 7d"),
    (&["jobs", "cancel"], 2, "<ID>"),
    (&["jobs", "cancel", "0123456"], 2, "is not the id of a job"),
    (&["jobs", "cancel", NONE], 1, "there is no job"),
    (&["jobs", "retry", NONE], 1, "there is no job"),
    (&["jobs", "prune", "--older-than", "yesterday"], 2, "7d"),
    (&["conversations"], 2, "Usage: outlast conversations"),
    (&["conversations", "list", "--state", "odd"], 2, "possible values"),
    (&["conversations", "show"], 2, "<ID>"),
    (&["conversations", "show", "a b"], 2, "is not the id of a conversation"),
    (&["conversations", "show", NONE], 1, "there is no conversation"),
    (&["conversations", "export", NONE], 1, "there is no conversation"),
    (&["conversations", "export", NONE, "--format", "pdf"], 2, "possible values: md, json, html"),
    (
        &["conversations", "export", NONE, "-o", "/nonexistent/x.html"],
        2,
        "its directory does not exist",
    ),
    (&["conversations", "delete"], 2, "<ID>"),
    (&["conversations", "delete", NONE, "--yes"], 1, "there is no conversation"),
    (&["store", "backup"], 2, "<FILE>"),
    (&["store", "check", "--store", "memory:"], 2, "a memory store has no file"),
    (&["simulate"], 2, "it is the program outlast-simulator of its source"),
    (&["simulate"], 2, "`cargo run -p outlast-simulator`"),
    (&["simulate", "--port", "9000"], 2, "`cargo run -p outlast-simulator -- --port 9000`"),
    (&["simulate", "--help"], 2, "`cargo run -p outlast-simulator -- --help`"),
];

#[tokio::test]
async fn wrong_uses_are_refused_with_words_that_help() {
    assert!(WRONG.len() >= 40);
    let world = World::new().await;
    for (arguments, code, said) in WRONG {
        let ran = world.run(arguments).await;
        assert_eq!(ran.code, Some(*code), "{arguments:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{arguments:?}");
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
        let is_helpful = ran.stderr.contains("\n\nhint: ")
            || ran.stderr.contains("--help")
            || ran.stderr.contains("Usage: ");
        assert!(is_helpful, "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains('\x1b'), "{}", ran.stderr);
    }
    assert_eq!(world.submits(), 0, "nothing that is refused costs anything");
}

#[tokio::test]
async fn arguments_that_are_not_utf_8_are_refused_or_used_as_they_are() {
    let world = World::new().await;
    let strange = OsStr::from_bytes(b"\xff\xfe");
    let words = |words: &[&'static str]| -> Vec<&'static OsStr> {
        words.iter().map(|word| OsStr::new(*word)).collect()
    };
    let wrong = [
        [words(&["research"]), vec![strange]].concat(),
        [words(&["jobs", "show"]), vec![strange]].concat(),
        [words(&["jobs", "list", "--search"]), vec![strange]].concat(),
        [words(&["conversations", "show"]), vec![strange]].concat(),
        [vec![strange], words(&["jobs", "list"])].concat(),
        [words(&["jobs", "list", "--data-dir"]), vec![strange]].concat(),
    ];
    for arguments in wrong {
        let ran = world.run(&arguments).await;
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{arguments:?}");
        assert!(!ran.stderr.contains("panicked"), "{arguments:?}: {ran:?}");
    }
    // A file may have any name.
    std::fs::create_dir_all(world.data_dir()).unwrap();
    let file = world.data_dir().join(strange);
    let question = "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]";
    let arguments = [words(&["research", question, "-o"]), vec![file.as_os_str()]].concat();
    let ran = world.run(&arguments).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(std::fs::read_to_string(file).unwrap().starts_with("---\nquestion: \"Why is the sky"));
}
