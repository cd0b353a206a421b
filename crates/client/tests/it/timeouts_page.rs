//! Checks that every test named in docs/project/sdk-timeouts.md exists.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_row_of_the_timeouts_page_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/project/sdk-timeouts.md")).unwrap();
    let mut sources = String::new();
    for folder in ["crates/client", "crates/outlast/tests"] {
        collect(&root.join(folder), &mut sources);
    }
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.matches(" | ").count() >= 5)
        .filter(|line| !line.ends_with("| test |"))
        .collect();
    for experiment in 'A'..='I' {
        let row = format!("| {experiment} | ");
        assert!(rows.iter().any(|line| line.starts_with(&row)), "{experiment} is missing");
    }
    assert!(rows.len() > 30, "{}", rows.len());
    for row in rows {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let tests: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            let is_test = sources.contains(&format!("fn {test}("));
            assert!(is_test, "there is no test `{test}`: {row}");
        }
    }
}

/// Collects the text of every source file below a folder.
fn collect(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}
