//! docs/errors.md has a section for every code that a client or a user can see, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Words in capitals that are not codes: states of a job, a log level, a variable of the build, settings.
const NO_CODES: [&str; 12] = [
    "CREATED",
    "IN_PROGRESS",
    "COMPLETED",
    "FAILED",
    "WARN",
    "HTML",
    "JSON",
    "OUTLAST_LIBRARY",
    "PERPLEXITY_API_KEY",
    "CARGO_PKG_VERSION",
    "OUTLAST_MAX_USD_PER_JOB",
    "OUTLAST_MAX_USD_PER_DAY",
];

/// Returns all words in capitals between quotes in the crates that define codes, each with its retryable flag.
fn codes() -> BTreeMap<String, Option<bool>> {
    let mut codes = BTreeMap::new();
    let crates = ["core", "engine", "server"];
    let mut folders = crates.map(|name| root().join("crates").join(name).join("src")).to_vec();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                fs::read_to_string(path).unwrap().lines().for_each(|line| take(line, &mut codes));
            }
        }
    }
    codes
}

fn take(line: &str, codes: &mut BTreeMap<String, Option<bool>>) {
    let is_code = |text: &&str| {
        text.len() > 3 && text.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
    };
    for code in line.split('"').skip(1).step_by(2).filter(is_code) {
        let says = |name: &str, yes: &str| line.split(name).nth(1).map(|it| it.starts_with(yes));
        let retryable = says("retryable: ", "true").or_else(|| says("retry_after: ", "Some"));
        let known = codes.entry(code.to_owned()).or_default();
        *known = known.or(retryable);
    }
}

/// Returns the sections of the page by their code.
fn sections() -> BTreeMap<String, String> {
    let page = fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let sections = page.split("\n### ").skip(1).map(|section| {
        let (code, text) = section.split_once('\n').unwrap();
        (code.to_owned(), text.split("\n## ").next().unwrap().to_owned())
    });
    sections.collect()
}

#[test]
fn every_code_has_a_section_and_every_section_a_code() {
    let codes: BTreeSet<String> = codes().into_keys().collect();
    let no_codes: BTreeSet<String> = NO_CODES.map(str::to_owned).into();
    assert!(codes.is_superset(&no_codes), "a word that is gone need not be excepted");
    let codes: BTreeSet<&String> = codes.difference(&no_codes).collect();
    let sections = sections();
    assert_eq!(codes, sections.keys().collect(), "left: the code, right: docs/errors.md");
    for code in outlast_core::Code::ALL {
        assert!(sections.contains_key(code.as_str()), "{code}");
    }
}

/// Every section must answer two questions: was money spent, and what is the next step.
#[test]
fn every_section_says_whether_money_was_spent_and_what_to_do() {
    let codes = codes();
    for (code, text) in sections() {
        for part in ["**Money:** ", "**Next:** "] {
            assert_eq!(text.matches(part).count(), 1, "{code}: {part}");
        }
        let said = text.contains("Retryable.");
        match codes[&code] {
            Some(retryable) => assert_eq!(said, retryable, "{code}: `Retryable.`"),
            None => assert!(!said, "{code} has no word on it"),
        }
    }
}
