//! The choice of files, and that the index follows their changes.

use std::fs;

use super::bench::{Bench, ask, library, open, research};
use outlast_library::LibraryError;

const PLUM: &str = "# Plums\n\nThe plum tree wants chalky soil.\n";

#[tokio::test]
async fn an_edit_an_addition_and_a_deletion_are_seen_at_the_next_question() {
    let bench = Bench::with(&[("plum.md", PLUM), ("pear.md", "Pears keep until winter.")]);
    assert_eq!(bench.ask("What soil does the plum tree want?").await.files(), ["plum.md"]);

    bench.write("plum.md", "# Plums\n\nThe plum tree wants sandy loam instead.\n");
    let report = bench.ask("What soil does the plum tree want?").await;
    assert!(
        report.text.contains("sandy loam") && !report.text.contains("chalky"),
        "{}",
        report.text
    );

    bench.write("fig.md", "Figs want shelter from the wind.");
    assert_eq!(bench.ask("What do figs want?").await.files()[0], "fig.md");

    fs::remove_file(bench.books().join("plum.md")).unwrap();
    let report = bench.ask("plum soil").await;
    assert!(report.sources.is_empty(), "{}", report.text);
    assert!(report.text.contains("2 files"), "{}", report.text);
}

#[tokio::test]
async fn ignored_and_hidden_files_and_links_stay_out() {
    let bench = Bench::with(&[
        (".gitignore", "drafts/\n*.tmp.md\n"),
        ("drafts/plum.md", PLUM),
        ("plum.tmp.md", PLUM),
        (".secret.md", PLUM),
        (".hidden/plum.md", PLUM),
        ("pear.md", "Pears keep until winter."),
    ]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("plum.md"), PLUM).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(outside.path(), bench.books().join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("plum.md"), bench.books().join("p.md"))
            .unwrap();
    }
    let report = bench.ask("Which soil for a plum tree?").await;
    assert!(report.sources.is_empty(), "{:?}", report.sources);
    assert!(report.text.contains("1 passage in 1 file"), "{}", report.text);
}

#[tokio::test]
async fn the_rules_of_a_repository_count_in_a_folder_of_it() {
    let bench = Bench::with(&[
        ("docs/plum.md", PLUM),
        ("docs/old.md", PLUM),
        (".gitignore", "/docs/old.md\n"),
    ]);
    fs::create_dir(bench.books().join(".git")).unwrap();
    let library = library(&[bench.books().join("docs")], &bench.cache());
    assert_eq!(ask(&library, &research("plum soil")).await.files(), ["plum.md"]);
}

#[tokio::test]
async fn files_that_are_left_out_are_counted_with_their_reason() {
    let bench =
        Bench::with(&[("plum.md", PLUM), ("main.rs", "fn main() {}"), ("paper.pdf", "%PDF-1.4")]);
    bench.write("blob.txt", b"plum\0tree soil");
    bench.write("huge.txt", vec![b'x'; 8 * 1024 * 1024 + 1]);
    bench.write("latin.txt", b"Der Pflaumenbaum, plum tree, gr\xfc\xdft.");
    for _cold_then_warm in 0..2 {
        let report = bench.ask("Which soil does a plum tree want?").await;
        let note = report.text.lines().last().unwrap();
        assert!(
            note.contains(
                "in 2 files of 1 folder. 4 files were left out: 1 binary, 1 over 8 MiB, 1 PDF that could not be read, 1 of"
            ),
            "{note}"
        );
        assert!(note.contains("1 of a kind that is not readable text"), "{note}");
    }
    let report = bench.ask("Pflaumenbaum").await;
    assert_eq!(report.files(), ["latin.txt"]);
}

#[tokio::test]
async fn several_folders_are_distinguished_by_name() {
    let (a, b) =
        (Bench::with(&[("plum.md", PLUM)]), Bench::with(&[("fig.md", "A fig tree in any soil.")]));
    fs::create_dir(a.books().join("other")).unwrap();
    fs::write(a.books().join("other/pear.md"), "A pear tree in deep soil.").unwrap();
    let folders = [a.books().join("other"), b.books(), a.books()];
    let library = library(&folders, &a.cache());
    let report = ask(&library, &research("tree soil")).await;
    let mut files = report.files();
    files.sort_unstable();
    assert!(files.contains(&"other/pear.md"), "{files:?}");
    assert!(files.iter().any(|file| file.starts_with("books-2/")), "{files:?}");
}

#[test]
fn folders_that_cannot_be_searched_are_named() {
    let bench = Bench::with(&[("plum.md", PLUM)]);
    let error = |path: &str| open(&[bench.books().join(path)], &bench.cache()).err().unwrap();
    let missing = error("nowhere");
    assert!(matches!(&missing, LibraryError::Missing(path) if path.ends_with("nowhere")));
    assert!(missing.to_string().contains("nowhere"), "{missing}");
    assert!(matches!(error("plum.md"), LibraryError::NotADirectory(_)));
    assert!(matches!(open(&[], &bench.cache()), Err(LibraryError::NoFolders)));
}

#[test]
fn the_profile_names_the_folders_whatever_their_order() {
    let (a, b) = (Bench::new(), Bench::new());
    let profile = |folders: &[_]| library(folders, &a.cache()).profile();
    let both = profile(&[a.books(), b.books()]);
    assert_eq!(both, profile(&[b.books(), a.books(), b.books().join(".")]));
    assert_ne!(both, profile(&[a.books()]));
    assert!(both.as_str().starts_with("library "), "{both}");
}

/// A link's target is read under its own name or not at all, and the report counts the latter.
#[cfg(unix)]
#[tokio::test]
async fn links_are_not_followed_and_those_that_hide_something_are_counted() {
    use std::os::unix::fs::symlink;
    let bench = Bench::with(&[("plum.md", PLUM), (".hidden/fig.md", "Figs want soil.")]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("pear.md"), "The pear tree wants deep soil.").unwrap();
    let link = |to: &std::path::Path, name: &str| symlink(to, bench.books().join(name)).unwrap();
    link(&bench.books().join("plum.md"), "same.md");
    link(&bench.books(), "loop");
    link(outside.path(), "out");
    link(&outside.path().join("pear.md"), "pear.md");
    link(&bench.books().join("nowhere.md"), "broken.md");
    link(&bench.books().join(".hidden/fig.md"), "fig.md");
    let report = bench.ask("Which soil does a tree want?").await;
    assert_eq!(report.files(), ["plum.md"], "{}", report.text);
    let note = report.text.lines().last().unwrap();
    assert!(
        note.contains("4 files were left out: 2 links to targets outside the library's folders, 1 broken link, 1 link to a file or folder that is not read."),
        "{note}"
    );
}

/// A link from one folder of the library into another points at a file that is read anyway.
#[cfg(unix)]
#[tokio::test]
async fn a_link_into_another_folder_of_the_library_hides_nothing() {
    let (a, b) =
        (Bench::with(&[("plum.md", PLUM)]), Bench::with(&[("fig.md", "A fig tree in any soil.")]));
    std::os::unix::fs::symlink(b.books(), a.books().join("figs")).unwrap();
    let library = library(&[a.books(), b.books()], &a.cache());
    let report = ask(&library, &research("fig soil")).await;
    assert!(!report.text.contains("left out"), "{}", report.text);
}
