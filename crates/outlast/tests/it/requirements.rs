//! docs/requirements.md maps every requirement to the tests that show it. Generated from the tests, and checked here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns all ids, in order.
fn all_ids() -> Vec<String> {
    let letters = [
        ("A", 12),
        ("B", 17),
        ("C", 11),
        ("D", 13),
        ("E", 16),
        ("P", 9),
        ("F", 12),
        ("G", 9),
        ("H", 9),
        ("I", 8),
        ("J", 7),
        ("K", 12),
        ("L", 6),
        ("M", 5),
        ("N", 5),
    ];
    let numbered = letters
        .into_iter()
        .flat_map(|(letter, last)| (1..=last).map(move |n| format!("{letter}{n}")));
    let with_9a = |id: String| if id == "B9" { vec![id, "B9a".to_owned()] } else { vec![id] };
    numbered.flat_map(with_9a).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the names of all test functions in the workspace, with the text around each.
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

/// Returns functions under a `#[test]` or `#[tokio::test]` attribute, and cases of the store suite, with their doc
/// comment.
fn tests_in(source: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_case =
        |line: &str| line.starts_with("pub async fn") && line.contains("(fixture: Fixture)");
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

/// Returns true for requirements that are not built yet: these ids, or all of a letter but these.
fn comes_later(id: &str) -> bool {
    match id.split_at(1) {
        ("F", number) => number == "12",
        ("M", number) => number == "5",
        _ => false,
    }
}

/// Returns the script that shows a requirement, for those that need more than a test can have.
fn script_of(id: &str) -> Option<&'static str> {
    match id {
        "J6" => Some("scripts/citation-questions"),
        "M4" => Some("scripts/questions"),
        "N1" | "N2" => Some("scripts/package"),
        _ => None,
    }
}

const HEAD: &str = "# Requirements and the tests that show them

Every requirement has an id (A: job tools for deep research, B: asynchronous deep research, C: the deep research tool,
D: the patient client, E: jobs for any workflow, P: what every version keeps, F: many machines, G: any vendor and budgets,
H: work that outlives the client, I: the page, J: checks of citations, L: agents that are notified, reports as resources,
M: remote use, N: packages and the repository). A row names the tests that say they show it, by the id in their name or in
their doc comment. Made by `crates/outlast/tests/it/requirements.rs`: `UPDATE_DOCS=1 cargo nextest run -p outlast requirements`.

| id | shown by |
|---|---|
";

/// Returns the page as it should be.
fn page() -> String {
    let tests = tests();
    let mut page = HEAD.to_owned();
    for id in all_ids() {
        let prefix = format!("{}_", id.to_lowercase());
        let mine =
            tests.iter().filter(|(test, doc)| test.starts_with(&prefix) || mentions(doc, &id));
        let names: BTreeSet<String> = mine.map(|(test, _)| format!("`{test}`")).collect();
        // Tests with the id in their name come first.
        let (named, said): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name[1..].starts_with(&prefix));
        let later = comes_later(&id).then(|| "a later version".to_owned());
        let script = script_of(&id).inspect(|file| assert!(root().join(file).is_file(), "{file}"));
        let script = script.map(|file| format!("`{file}`"));
        let cells: Vec<String> = named.into_iter().chain(said).chain(script).chain(later).collect();
        assert!(!cells.is_empty(), "{id}: no test says that it shows it");
        page.push_str(&format!("| {id} | {} |\n", cells.join(", ")));
    }
    page
}

#[test]
#[expect(clippy::disallowed_methods, reason = "asked of the test, not of the program")]
fn the_map_of_requirements_is_whole_and_true() {
    let path = root().join("docs/requirements.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    let stale =
        "docs/requirements.md is stale: UPDATE_DOCS=1 cargo nextest run -p outlast requirements";
    assert!(written == page, "{stale}");
}

#[test]
fn tests_are_found_with_what_they_say() {
    assert!(tests().len() > 500, "{}", tests().len());
    let source = "/// B9a: so.\n#[tokio::test]\nasync fn one() {}\n#[test]\nfn a1_two() {}\n";
    let found = tests_in(source);
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["one", "a1_two"]);
    assert!(mentions(&found[0].1, "B9a") && !mentions(&found[0].1, "B9"));
}

/// Returns true if the text contains the id as a separate word.
fn mentions(text: &str, id: &str) -> bool {
    text.split(|character: char| !character.is_ascii_alphanumeric()).any(|word| word == id)
}
