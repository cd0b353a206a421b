//! docs/requirements.md maps every requirement to the tests that show it, or to the step that brings it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every id there is.
fn all_ids() -> BTreeSet<String> {
    let letters = [("A", 12), ("B", 17), ("C", 11), ("D", 13), ("E", 15)];
    let mut ids: BTreeSet<String> = letters
        .into_iter()
        .flat_map(|(letter, last)| (1..=last).map(move |n| format!("{letter}{n}")))
        .collect();
    ids.insert("B9a".to_owned());
    ids
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all test functions in the workspace, with the text around each.
fn tests() -> Vec<(String, String)> {
    let mut tests = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                tests.extend(tests_in(&fs::read_to_string(path).unwrap()));
            }
        }
    }
    tests
}

/// Functions under a `#[test]` or `#[tokio::test]` attribute, and cases of the store suite, with their doc comment.
fn tests_in(source: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_case = |line: &str| line.starts_with("pub async fn") && line.contains("(bench: Bench)");
    let is_test =
        |line: &str| line == "#[test]" || line.starts_with("#[tokio::test") || is_case(line);
    let attributes = lines.iter().enumerate().filter(|(_, line)| is_test(line));
    attributes
        .filter_map(|(at, _)| {
            let head = lines[at..].iter().find(|line| line.contains("fn "))?;
            let name = head.split("fn ").nth(1)?.split('(').next()?.to_owned();
            let doc: Vec<&str> = lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.starts_with("///"))
                .copied()
                .collect();
            Some((name, doc.join(" ")))
        })
        .collect()
}

/// The rows of the map: id, and what is said of it.
fn rows() -> Vec<(String, String)> {
    let page = fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.filter(|(id, _)| *id != "id").map(|(id, said)| (id.to_owned(), said.to_owned())).collect()
}

#[test]
fn the_map_of_requirements_is_whole() {
    let ids: Vec<String> = rows().into_iter().map(|(id, _)| id).collect();
    let listed: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(listed.len(), ids.len(), "an id is listed twice");
    assert_eq!(listed, all_ids());
}

#[test]
fn the_map_of_requirements_is_true() {
    let tests = tests();
    assert!(tests.len() > 200, "the tests are found: {}", tests.len());
    for (id, said) in rows() {
        let named: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
        let later = (2..=6).any(|step| said.contains(&format!("step {step}")));
        assert!(!named.is_empty() || later, "{id}: neither a test nor a step");
        for name in named {
            let found = tests.iter().find(|(test, _)| test == name);
            let (test, doc) = found.unwrap_or_else(|| panic!("{id}: there is no test `{name}`"));
            let mine = test.starts_with(&format!("{}_", id.to_lowercase())) || mentions(doc, &id);
            assert!(mine, "{id}: the test `{name}` does not say that it shows {id}");
        }
    }
}

/// Whether the text has the id as a word of its own.
fn mentions(text: &str, id: &str) -> bool {
    text.split(|character: char| !character.is_ascii_alphanumeric()).any(|word| word == id)
}
