//! Every link in the docs that leads to a file or a heading of this repository leads somewhere, and every page is
//! reached from the index.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let named = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    docs.chain(named).collect()
}

/// Where the links of a page lead, as they are written.
fn links(page: &str) -> Vec<&str> {
    let parts = page.split("](").skip(1).filter_map(|part| part.split(')').next());
    parts.filter(|link| !link.contains("://")).collect()
}

/// The names that headings have as parts of an address.
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
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let linked: BTreeSet<&str> = links(&index).into_iter().collect();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") && name != "README.md" {
            assert!(linked.contains(name.as_str()), "docs/README.md does not name {name}");
        }
    }
}
