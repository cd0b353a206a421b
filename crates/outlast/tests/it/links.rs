//! Every link in the docs to a file or a heading of this repository has a target, and the index leads to every page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the Markdown files below a folder.
fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "md"));
    files.chain(folders.iter().flat_map(|folder| markdown_files(folder))).collect()
}

fn pages() -> Vec<PathBuf> {
    let named =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "scripts/README.md"];
    let named = named.map(|name| root().join(name));
    markdown_files(&root().join("docs")).into_iter().chain(named).collect()
}

/// Returns the targets of a page's links, as written.
fn links(page: &str) -> Vec<&str> {
    let parts = page.split("](").skip(1).filter_map(|part| part.split(')').next());
    parts.filter(|link| !link.contains("://")).collect()
}

/// Returns the anchors of the headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let name = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let kept =
            kept.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.collect::<String>().replace(' ', "-")
    };
    headings.map(name).collect()
}

#[test]
fn no_link_leads_nowhere() {
    let mut seen = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        for link in links(&page) {
            seen += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            let from = path.display();
            assert!(target.exists(), "{from}: {link}");
            if !anchor.is_empty() {
                let there = fs::read_to_string(&target).unwrap();
                assert!(anchors(&there).contains(anchor), "{from}: {link}");
            }
        }
    }
    assert!(seen > 40, "only {seen} links were found");
}

#[test]
fn the_index_names_every_page() {
    let docs = root().join("docs");
    let mut linked = BTreeSet::new();
    for folder in ["", "design/", "project/"] {
        let index = fs::read_to_string(docs.join(folder).join("README.md")).unwrap();
        linked.extend(links(&index).into_iter().map(|link| format!("{folder}{link}")));
    }
    for page in markdown_files(&docs) {
        let name = page.strip_prefix(&docs).unwrap().to_str().unwrap();
        assert!(linked.contains(name) || name == "README.md", "no index links {name}");
    }
}

#[test]
fn every_script_is_described() {
    let scripts = root().join("scripts");
    let page = fs::read_to_string(scripts.join("README.md")).unwrap();
    for entry in fs::read_dir(scripts).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name != "README.md" {
            assert!(
                page.contains(&format!("`{name}`")),
                "scripts/README.md does not describe {name}"
            );
        }
    }
}
