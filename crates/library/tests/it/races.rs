//! Files that are replaced between the walk and the reading. The fake `pandoc` replaces them while it
//! converts the file that is read first, so these tests are deterministic.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use super::bench::{Bench, Report};

const PLUM: &str = "# Plums\n\nThe plum tree wants chalky soil.\n";
const SECRET: &str = "# Plums\n\nThe plum tree wants the secret word xyzzy.\n";

const LEFT_OUT: &str = "2 files were left out: 2 that could not be read.";

/// Asks a library whose files are replaced by this script after the walk.
async fn ask_while_swapped(bench: &Bench, script: &str) -> Report {
    bench.write("0.docx", "swap");
    bench.write(".swap", script);
    let asked = bench.ask("Which soil does the plum tree want, or which secret word?");
    // A run that waits for the other end of a FIFO never ends.
    tokio::time::timeout(Duration::from_secs(20), asked).await.expect("the run ends")
}

fn outside(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        fs::write(folder.path().join(file), SECRET).unwrap();
    }
    folder
}

#[tokio::test]
async fn p1_a_file_that_is_replaced_by_a_link_after_the_walk_is_not_read() {
    let outside = outside(&["s.md", "s.docx"]);
    let outside = outside.path().display();
    let bench = Bench::with(&[("plum.md", PLUM), ("plum.docx", PLUM), ("fig.md", "A fig tree.")]);
    let script = format!(
        "ln -sf {outside}/s.md \"$folder/plum.md\"; ln -sf {outside}/s.docx \"$folder/plum.docx\""
    );
    let report = ask_while_swapped(&bench, &script).await;
    assert!(!report.text.contains("xyzzy"), "{}", report.text);
    assert!(report.text.contains(LEFT_OUT), "{}", report.text);
    // A replaced file is not recorded as unreadable: after its bytes and date are restored, it is read.
    for name in ["plum.md", "plum.docx"] {
        fs::remove_file(bench.books().join(name)).unwrap();
        bench.write(name, PLUM);
    }
    bench.write("0.docx", "Pears.");
    let report = bench.ask("What does the plum tree want?").await;
    assert!(report.text.contains("Searched: 4 passages in 4 files"), "{}", report.text);
}

#[tokio::test]
async fn p1_a_directory_that_is_replaced_by_a_link_after_the_walk_is_not_entered() {
    let outside = outside(&["plum.md", "plum.docx"]);
    let bench = Bench::with(&[("trees/plum.md", PLUM), ("trees/plum.docx", PLUM)]);
    let script = format!(
        "mv \"$folder/trees\" \"$folder/.t\"; ln -s {} \"$folder/trees\"",
        outside.path().display()
    );
    let report = ask_while_swapped(&bench, &script).await;
    assert!(!report.text.contains("xyzzy"), "{}", report.text);
    assert!(report.text.contains(LEFT_OUT), "{}", report.text);
}

#[tokio::test]
async fn a_file_that_is_replaced_by_a_fifo_after_the_walk_does_not_hang_the_run() {
    let bench = Bench::with(&[("fig.md", PLUM), ("plum.docx", PLUM), ("z.md", PLUM)]);
    let script =
        "for file in fig.md plum.docx; do rm \"$folder/$file\"; mkfifo \"$folder/$file\"; done";
    let report = ask_while_swapped(&bench, script).await;
    assert!(report.text.contains("Searched: 2 passages in 2 files"), "{}", report.text);
    assert!(report.text.contains(LEFT_OUT), "{}", report.text);
}

#[tokio::test]
async fn a_fifo_in_the_place_of_ignore_rules_does_not_hang_the_run() {
    for rules in [".gitignore", "trees/.gitignore", "trees/.ignore"] {
        let bench = Bench::with(&[("plum.md", PLUM), ("trees/fig.md", "A fig tree.")]);
        let fifo = bench.books().join(rules);
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let asked = bench.ask("What does the plum tree want?");
        let report = tokio::time::timeout(Duration::from_secs(20), asked).await.expect("it ends");
        let is_read = report.files() == ["plum.md"];
        assert_eq!(is_read, rules != ".gitignore", "{rules}: {}", report.text);
    }
}

#[tokio::test]
async fn p1_a_folder_that_is_replaced_by_a_link_is_gone() {
    let outside = outside(&["plum.md"]);
    let (bench, other) = (Bench::with(&[("plum.md", PLUM)]), Bench::with(&[("fig.md", "A fig.")]));
    let library = super::bench::library(&[bench.books(), other.books()], &bench.cache());
    fs::rename(bench.books(), bench.cache().with_file_name("moved")).unwrap();
    symlink(outside.path(), bench.books()).unwrap();
    let asked = super::bench::research("What does the plum tree want?");
    let report = super::bench::ask(&library, &asked).await;
    assert!(!report.text.contains("xyzzy"), "{}", report.text);
    assert!(Path::new(&bench.books()).is_symlink());
}
