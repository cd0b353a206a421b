//! docs/cli.md matches the program: the reference equals `--help`, and the JSON has the documented keys.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use super::snapshot::is_renewing;
use super::snapshots::{asked, failed};
use crate::support::World;

const REFERENCE: &str = "renews it.\n\n";

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md")
}

#[tokio::test]
async fn the_reference_in_the_docs_is_what_help_says() {
    let world = World::new().await;
    let mut reference = String::new();
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(command) = commands.pop() {
        let help = [command.clone(), vec!["-h".to_owned()]].concat();
        let ran = world.run(&help).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let name = [vec!["outlast".to_owned()], command.clone()].concat().join(" ");
        let is_listed_above = command.len() == 1;
        let shown = match command.is_empty() {
            true => ran.stdout.trim_end().to_owned(),
            false => without_repetition(&ran.stdout),
        };
        if !(is_listed_above && shown.lines().count() == 1) {
            reference.push_str(&format!("### {name}\n\n```\n{shown}\n```\n\n"));
        }
        let listed = ran.stdout.split("\nCommands:\n").nth(1).unwrap_or_default();
        let mut inner: Vec<Vec<String>> = listed
            .lines()
            .take_while(|line| line.starts_with("  "))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|word| *word != "help")
            .map(|word| [command.clone(), vec![word.to_owned()]].concat())
            .collect();
        inner.reverse();
        commands.extend(inner);
    }
    let written = std::fs::read_to_string(path()).unwrap();
    let (text, old) = written.split_once(REFERENCE).unwrap();
    let new = format!("{}\n", reference.trim_end());
    if is_renewing() {
        std::fs::write(path(), format!("{text}{REFERENCE}{new}")).unwrap();
        return;
    }
    assert_eq!(old, new, "UPDATE_SNAPSHOTS=1 renews it");
}

/// Returns a command's help without what every command has, and without its subcommands, which have their own sections.
fn without_repetition(help: &str) -> String {
    let help = help.split("\n\nGlobal options:").next().unwrap();
    let mut kept = Vec::new();
    for block in help.split("\n\n") {
        let is_noise = |line: &&str| {
            line.starts_with("  -h, --help ")
                || line
                    .trim_start()
                    .split_once(' ')
                    .is_some_and(|(option, text)| option == "--json" && text.trim() == "Print JSON")
        };
        let lines: Vec<&str> = block.lines().filter(|line| !is_noise(line)).collect();
        let is_empty =
            lines == ["Options:"] || (lines[0].starts_with("Usage: ") && !block.contains("[--"));
        if !is_empty && !block.starts_with("Commands:") {
            kept.push(lines.join("\n"));
        }
    }
    kept.join("\n\n")
}

fn documented(heading: &str) -> BTreeSet<String> {
    let written = std::fs::read_to_string(path()).unwrap();
    let section = written.split(&format!("\n### {heading}\n")).nth(1).unwrap();
    let section = section.split("\n#").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("- `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned()).collect()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().cloned().collect()
}

#[tokio::test]
async fn the_json_has_the_keys_that_the_docs_name() {
    let world = World::new().await;
    let (job, conversation) =
        asked(&world, "Why is the sky blue? [[sim:ok;words=60;sources=2;delay_ms=0]]").await;
    let failed = failed(&world).await;
    let read = async |arguments: &[&str]| -> Value {
        let ran = world.run(arguments).await;
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
    };
    let list = read(&["jobs", "list", "--json"]).await;
    let shown = read(&["jobs", "show", &job, "--json"]).await;
    let bad = read(&["jobs", "show", &failed, "--json"]).await;
    let conversations = read(&["conversations", "list", "--json"]).await;
    let told = read(&["conversations", "show", &conversation, "--json"]).await;
    for (heading, value) in [
        ("jobs list --json", &list),
        ("a job in a list", &list["jobs"][0]),
        ("a job", &shown),
        ("a job", &bad),
        ("a failure", &bad["failures"][0]),
        ("an output", &shown["output"]),
        ("conversations list --json", &conversations),
        ("a conversation in a list", &conversations["conversations"][0]),
        ("a conversation", &told),
        ("a turn", &told["turns"][0]),
    ] {
        assert_eq!(keys(value), documented(heading), "{heading}");
    }
}
