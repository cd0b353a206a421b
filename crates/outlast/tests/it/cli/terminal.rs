//! Narrow and wide terminals, colour, and output to something other than a terminal.

use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use super::left_behind::LeftBehind;
use super::pty::Terminal;
use super::snapshot::{Mask, compare};
use super::snapshots::asked;
use crate::support::World;

const ASK: &str = "Why is the sky blue, and why is it red in the evening, and what of the night? [[sim:ok;words=120;sources=3;delay_ms=0]]";

#[tokio::test]
async fn tables_and_reports_fit_the_terminal() {
    let mut world = World::new().await;
    world.set("NO_COLOR", "1");
    let (job, conversation) = asked(&world, ASK).await;
    for columns in [40, 80, 160] {
        let mask = Mask::new(&world).id(&job, "job").id(&conversation, "conversation");
        for (name, arguments) in [
            ("jobs-list", vec!["jobs", "list"]),
            ("conversations-list", vec!["conversations", "list"]),
        ] {
            let (code, screen) = Terminal::run(&world, columns, &arguments).ended().await;
            assert_eq!(code, Some(0), "{screen}");
            assert!(!screen.contains('\x1b'), "NO_COLOR: {screen:?}");
            for line in screen.lines() {
                assert!(line.width() <= usize::from(columns), "{columns}: {line}");
            }
            compare(&format!("terminal-{columns}-{name}"), &uncut(&mask.masked(&screen)));
        }
        let (_, screen) = Terminal::run(&world, columns, &["jobs", "show", &job]).ended().await;
        let (_, report) = screen.split_once("\n\n").unwrap();
        let prose = report.split("\nSources\n").next().unwrap();
        assert!(prose.contains("Executive summary") && !prose.contains("# Executive"), "{prose}");
        for line in prose.lines().filter(|line| !line.contains("://")) {
            assert!(line.width() <= usize::from(columns).min(100), "{columns}: {line}");
        }
    }
}

/// Replaces a cut question or heading with a fixed text, because the position of the cut depends on the width of its
/// age.
fn uncut(screen: &str) -> String {
    let lines = screen.lines().map(|line| match line.split_once("Why") {
        None if line.ends_with('\u{2026}') => {
            format!("{}QUESTION\n", line.split("Q").next().unwrap())
        }
        Some((start, _)) if line.ends_with('\u{2026}') => format!("{start}Why\u{2026}\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

#[tokio::test]
async fn colour_is_for_terminals_unless_the_user_says_otherwise() {
    let mut world = World::new().await;
    let (job, _) = asked(&world, ASK).await;
    let screen = |world: &World, arguments: &[&str]| Terminal::run(world, 80, arguments).ended();
    let (_, coloured) = screen(&world, &["jobs", "list"]).await;
    assert!(coloured.contains("\x1b[32m"), "{coloured:?}");
    let (_, never) = screen(&world, &["jobs", "list", "--color", "never"]).await;
    assert!(!never.contains('\x1b'), "{never:?}");
    let piped = world.run(&["jobs", "list"]).await;
    assert!(!piped.stdout.contains('\x1b') && piped.stdout.contains(&job), "whole ids: {piped:?}");
    let always = world.run(&["jobs", "list", "--color", "always"]).await;
    assert!(always.stdout.contains("\x1b[32m"), "{always:?}");
    world.set("NO_COLOR", "1");
    let (_, none) = screen(&world, &["jobs", "show", &job]).await;
    assert!(!none.contains('\x1b'), "{none:?}");
}

/// Standard output has the Markdown unchanged; the rest is on standard error.
#[tokio::test]
async fn a_piped_report_is_plain_markdown() {
    let world = World::new().await;
    let ran = world.run(&["research", ASK]).await;
    assert!(ran.stdout.starts_with("# ") || ran.stdout.contains("\n## "), "{ran:?}");
    assert!(ran.stdout.contains("\nSources\n[1] http"), "{ran:?}");
    assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'), "{ran:?}");
    assert!(ran.stderr.contains("--follow-up"), "{ran:?}");
}

/// The log on a terminal, and a bar on a narrow one, do not panic.
#[tokio::test]
async fn research_on_a_narrow_terminal_shows_a_bar_and_the_report() {
    let world = World::new().await;
    let terminal = Terminal::run(&world, 40, &["research", ASK, "-v"]);
    let (code, screen) = terminal.ended().await;
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("summary") && !screen.contains("panicked"), "{screen}");
}

const HELD: &str = "Why is the sky blue? [[sim:ok;words=60;sources=2;hold]]";

/// Removes colour and other control sequences.
fn bare(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap().to_owned();
    let rest = parts.map(|part| part.split_once(|end: char| end.is_ascii_alphabetic()).unwrap().1);
    first + &rest.collect::<String>()
}

/// A terminal writes `^C` after the bar. Beyond the edge it would begin a new line, and the bar would remain above it.
#[tokio::test]
async fn a_bar_leaves_room_for_ctrl_c_and_is_never_of_another_kind() {
    let world = World::new().await;
    for columns in [40, 100] {
        let mut workers = Vec::new();
        for arguments in [["research", HELD].as_slice(), &["jobs", "watch"]] {
            let terminal = Terminal::run(&world, columns, arguments);
            terminal.shows(" %").await;
            terminal.interrupt();
            let (code, screen) = terminal.ended().await;
            assert_eq!(code, Some(130), "{screen}");
            let drawn: Vec<&str> = screen.split("\r\x1b[2K").collect();
            assert!(drawn.len() > 2, "{screen:?}");
            let (last, bars) = drawn.split_last().unwrap();
            for bar in bars.iter().flat_map(|bars| bars.lines()).map(bare) {
                assert!(bar.width() <= usize::from(columns) - 3, "{columns}: {bar:?}");
                assert!(!bar.contains('\u{2591}'), "drawn before its style was set: {bar:?}");
            }
            assert!(!last.contains(" % "), "the bar was removed: {last:?}");
            if arguments[0] == "research" {
                workers.push(LeftBehind::of(&screen));
            }
        }
        for job in world.run(&["jobs", "list"]).await.stdout.lines().skip(1) {
            let id = job.split(' ').next().unwrap();
            assert_eq!(world.run(&["jobs", "cancel", id]).await.code, Some(0));
        }
        for worker in workers {
            worker.leaves().await;
        }
    }
}

/// The same for bars: they do not go through the stream that removes colour.
#[tokio::test]
async fn no_colour_means_none_while_something_runs() {
    let mut world = World::new().await;
    let coloured = |screen: &str| screen.contains("\x1b[36m") || screen.contains("\x1b[2m");
    let run = |world: &World, arguments: &[&str]| Terminal::run(world, 80, arguments).ended();
    let (_, never) = run(&world, &["research", ASK, "--color", "never"]).await;
    assert!(!coloured(&never), "{never:?}");
    let (_, some) = run(&world, &["research", ASK]).await;
    assert!(coloured(&some), "{some:?}");
    world.set("NO_COLOR", "1");
    let (_, none) = run(&world, &["research", ASK]).await;
    assert!(!coloured(&none), "{none:?}");
}

/// A table that does not fit a terminal of this width is not printed as a table.
#[tokio::test]
async fn the_configuration_can_be_read_on_a_narrow_terminal() {
    let world = World::new().await;
    let (code, screen) = Terminal::run(&world, 60, &["config", "show"]).ended().await;
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("\n  concurrency                 5\n"), "{screen}");
    assert!(!screen.contains('\u{2026}'), "nothing is cut: {screen}");
}

/// Errors and hints are broken between words, and the commands in them stay whole.
#[tokio::test]
async fn an_error_on_a_narrow_terminal_is_broken_between_words() {
    let world = World::new().await;
    let (code, screen) =
        Terminal::run(&world, 60, &["research", "Why? [[sim:http;status=400]]"]).ended().await;
    assert_eq!(code, Some(1), "{screen}");
    let (_, said) = screen.split_once("error:").unwrap();
    let said = bare(said);
    assert!(said.contains("\n  rejected the request"), "{said:?}");
    assert!(said.lines().all(|line| line.matches('`').count() % 2 == 0), "{said}");
}

/// A report can contain control characters as entities. On a terminal, only our colours are control sequences, and
/// hidden characters are visible.
#[tokio::test]
async fn text_from_outside_never_steers_the_terminal_or_hides_on_it() {
    let world = World::new().await;
    let hostile = "What is a lease? [[sim:inject;line=100;words=60;delay_ms=0]]";
    let (job, conversation) = asked(&world, hostile).await;
    let tool = json!({ "name": "x", "description": HOSTILE, "inputSchema": { "type": "object" } });
    let listing = hostile_server(&json!({ "tools": [tool] }));
    let calling = hostile_server(&json!({ "content": [{ "type": "text", "text": HOSTILE }] }));
    for arguments in [
        &["jobs", "show", &job][..],
        &["jobs", "list"],
        &["jobs", "show", &job, "--json"],
        &["conversations", "list"],
        &["conversations", "show", &conversation],
        &["conversations", "export", &conversation],
        &["conversations", "export", &conversation, "--format", "html"],
        &["call", "--tool", "x", "--", "/bin/sh", "-c", &calling],
        &["call", "--", "/bin/sh", "-c", &listing],
    ] {
        let (code, screen) = Terminal::run(&world, 100, arguments).ended().await;
        assert_eq!(code, Some(0), "{arguments:?}: {screen}");
        // Our own sequences remove a bar.
        let screen = screen.replace("\r\x1b[2K", "");
        let mut orders = screen.split("\x1b[");
        let mut text = orders.next().unwrap().to_owned();
        for order in orders {
            let (code, rest) = order.split_once('m').unwrap_or_else(|| panic!("{order:?}"));
            let is_color = code.bytes().all(|it| it.is_ascii_digit() || it == b';');
            assert!(is_color, "{arguments:?}: {code:?}");
            text.push_str(rest);
        }
        let steers = |it: char| {
            (it.is_control() && !matches!(it, '\n' | '\t')) || outlast_core::is_hidden(it)
        };
        assert_eq!(text.find(steers), None, "{arguments:?}: {text:?}");
        if arguments.contains(&"show") && !arguments.contains(&"--json") {
            assert!(text.contains("<U+202E>txt.exe") && text.contains("<U+E0041>"), "{text}");
        }
    }
}

/// Characters that control a terminal or are hidden on it.
const HOSTILE: &str = "\x1b]52;c;aGk=\x07 \u{9d}0;x\u{9c} \u{202e}txt.exe \u{200b}\u{e0041}\r";

/// Returns an MCP server that answers its first request with this, in ASCII.
fn hostile_server(answer: &serde_json::Value) -> String {
    let greeting = outlast_testkit::peer::discovery();
    let mut result = outlast_testkit::peer::result("");
    result.as_object_mut().unwrap().remove("content");
    result.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
    let says = |id: u32, result: serde_json::Value| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        let mut ascii = String::new();
        for character in message.chars() {
            match character.is_ascii() {
                true => ascii.push(character),
                false => character
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| ascii.push_str(&format!("\\u{unit:04x}"))),
            }
        }
        format!("printf '%s\\n' '{ascii}'")
    };
    format!("read a; {}; read b; {}; cat > /dev/null", says(0, greeting), says(1, result))
}
