//! The index between runs: shared, lost, damaged, or impossible to store.

use std::fs;
use std::path::PathBuf;

use super::bench::{Bench, Report, ask, library, research};

const PLUM: &str = "# Plums\n\nThe plum tree wants chalky soil.\n";

fn database(bench: &Bench) -> PathBuf {
    let files = fs::read_dir(bench.cache()).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "db")).unwrap()
}

/// The number of times a run reported that it reads files.
fn reads(report: &Report) -> usize {
    report.progress.iter().filter(|seen| seen.message.starts_with("Reading")).count()
}

#[tokio::test]
async fn a_second_question_reads_no_file_again() {
    let bench = Bench::with(&[("plum.md", PLUM)]);
    assert_eq!(reads(&bench.ask("plum").await), 1);
    assert_eq!(reads(&bench.ask("plum").await), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn the_index_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::with(&[("plum.md", PLUM)]);
    bench.ask("plum").await;
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(bench.cache()), mode(database(&bench))), (0o700, 0o600));
}

#[tokio::test]
async fn a_damaged_index_is_rebuilt() {
    let bench = Bench::with(&[("plum.md", PLUM)]);
    bench.ask("plum").await;
    let path = database(&bench);
    let whole = fs::read(&path).unwrap();
    let mut bent = whole.clone();
    let middle = bent.len() / 4;
    bent[middle..].fill(0xa5);
    for damage in
        [b"not a database at all, but long enough to be read as one".to_vec(), bent, Vec::new()]
    {
        for ending in ["-wal", "-shm"] {
            let mut name = path.clone().into_os_string();
            name.push(ending);
            drop(fs::remove_file(name));
        }
        fs::write(&path, damage).unwrap();
        // A file that must be indexed makes the update touch the damaged part.
        bench.write("fig.md", "Figs want shelter.");
        assert_eq!(bench.ask("plum soil").await.files()[0], "plum.md");
        assert_eq!(bench.ask("figs shelter").await.files()[0], "fig.md");
        assert_eq!(reads(&bench.ask("figs").await), 0, "the index was not kept");
        fs::remove_file(bench.books().join("fig.md")).unwrap();
    }
}

/// A file in place of the directory stops every user, including root.
#[tokio::test]
async fn an_answer_does_not_need_a_place_for_the_index() {
    let bench = Bench::with(&[("plum.md", PLUM)]);
    let blocked = bench.books().join("blocked");
    fs::write(&blocked, "a file").unwrap();
    for cache in [blocked.join("cache"), PathBuf::from("/proc/nowhere")] {
        let library = library(&[bench.books()], &cache);
        assert_eq!(ask(&library, &research("plum soil")).await.files(), ["plum.md"]);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_cache_directory_is_tolerated() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::with(&[("plum.md", PLUM)]);
    bench.ask("plum").await;
    let path = database(&bench);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(bench.cache(), fs::Permissions::from_mode(0o500)).unwrap();
    bench.write("fig.md", "Figs want shelter.");
    let report = bench.ask("figs shelter").await;
    fs::set_permissions(bench.cache(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(report.files(), ["fig.md"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_runs_share_one_index_while_files_change() {
    let bench = Bench::new();
    for number in 0..60 {
        bench.write(
            &format!("{number}.md"),
            format!("# Tree {number}\n\nTree w{number} wants soil s{number}.\n"),
        );
    }
    let mut asked = Vec::new();
    for round in 0..12 {
        bench.write(
            "changing.md",
            format!("The changing file of round {round}{}.", "!".repeat(round)),
        );
        let library = bench.library();
        asked.push(tokio::spawn(async move {
            ask(&library, &research(&format!("What soil does tree w{round} want?"))).await
        }));
    }
    for (round, report) in asked.into_iter().enumerate() {
        let report = report.await.unwrap();
        assert_eq!(report.files()[0], format!("{round}.md"), "{}", report.text);
    }
    assert_eq!(bench.ask("changing file of round 11").await.files()[0], "changing.md");
}

/// The format version is in the header of a SQLite file, at byte 60.
#[tokio::test]
async fn an_index_of_an_older_format_is_rebuilt() {
    let bench = Bench::with(&[("plum.md", PLUM)]);
    bench.ask("plum").await;
    let path = database(&bench);
    let mut bytes = fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&2_u32.to_be_bytes());
    fs::write(&path, bytes).unwrap();
    assert_eq!(reads(&bench.ask("plum").await), 1);
    assert_eq!(reads(&bench.ask("plum").await), 0);
}
