//! External converters, with a fake `pandoc` (`converters/pandoc`) that does what each file says.

use std::fs;
use std::path::Path;
use std::time::Duration;

use outlast_core::Step;
use outlast_library::{ConvertLimits, Converters, Library};

use super::bench::{Bench, LIMIT, Report, ask, begin, converters, converting, research};
use super::reports::check;

const FIG: &str = "# Figs\n\nFigs want shelter from the wind.\n";
const PLUM: &str = "\n# Plums\n\nThe plum tree wants chalky soil.\n";

fn library(bench: &Bench, limits: ConvertLimits) -> Library {
    let converters = Converters { limits, ..converters() };
    converting(&[bench.books()], &bench.cache(), converters).unwrap()
}

/// Asks about a folder that contains a fig and this file.
async fn report_with(name: &str, text: &str, limits: ConvertLimits) -> Report {
    let bench = Bench::with(&[("fig.md", FIG), (name, text)]);
    let report =
        ask(&library(&bench, limits), &research("Which soil does the plum tree want?")).await;
    check(&report);
    let figs = ask(&library(&bench, limits), &research("What do figs want?")).await;
    assert_eq!(figs.files()[0], "fig.md", "{}", figs.text);
    report
}

/// The number of times the fake `pandoc` ran on files that say `counts`.
fn conversions(bench: &Bench) -> usize {
    fs::read_to_string(bench.books().join(".count")).map_or(0, |lines| lines.lines().count())
}

/// Returns true if a process exists and is not a zombie.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(LIMIT, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test]
async fn office_files_are_read_with_their_headings() {
    for ending in ["docx", "odt", "epub", "rtf", "DOCX"] {
        let name = format!("plum.{ending}");
        let report = report_with(&name, PLUM, ConvertLimits::default()).await;
        assert_eq!(report.sources[0].url, format!("{name}:4"), "{}", report.text);
        assert_eq!(report.sources[0].title.as_deref(), Some("Plums"));
    }
}

#[tokio::test]
async fn converters_that_fail_hang_or_never_stop_cost_only_their_file() {
    let quick = ConvertLimits { time: Duration::from_millis(700), ..ConvertLimits::default() };
    let short = ConvertLimits { text: 100_000, ..ConvertLimits::default() };
    let cases = [
        ("hang", quick, "1 that took too long to convert"),
        ("waits-with-a-child", quick, "1 that took too long to convert"),
        ("forever", short, "1 with more than 16 MiB of text"),
        ("fails", ConvertLimits::default(), "1 that could not be read"),
        ("killed", ConvertLimits::default(), "1 that could not be read"),
    ];
    for (says, limits, reason) in cases {
        let report = report_with("plum.docx", says, limits).await;
        assert!(
            report.text.contains(&format!("1 file was left out: {reason}.")),
            "{}",
            report.text
        );
    }
}

#[tokio::test]
async fn the_output_of_a_converter_is_cleaned_like_any_other_text() {
    let report = report_with("plum.docx", "garbage", ConvertLimits::default()).await;
    assert!(report.text.contains("The plum tree wants chalky soil."), "{}", report.text);
    assert!(
        !report.text.contains(['\u{1b}', '\0', '\u{7}', '\u{85}', '\u{202e}']),
        "{:?}",
        report.text
    );
}

#[tokio::test]
async fn a_flood_on_standard_error_does_not_stop_a_conversion() {
    let report = report_with("plum.docx", &format!("noise{PLUM}"), ConvertLimits::default()).await;
    assert_eq!(report.files()[0], "plum.docx", "{}", report.text);
}

#[tokio::test]
async fn a_child_that_a_converter_leaves_behind_ends_with_it() {
    let bench = Bench::with(&[("plum.docx", "child")]);
    let report = bench.ask("Which soil does the plum tree want?").await;
    assert_eq!(report.files(), ["plum.docx"], "{}", report.text);
    let child = fs::read_to_string(bench.books().join(".child")).unwrap();
    until("the child ends", || !is_alive(&child)).await;
}

#[tokio::test]
async fn a_cancel_ends_the_converter_and_its_children() {
    let bench = Bench::with(&[("plum.docx", "waits-with-a-child")]);
    let mut run = begin(&bench.library(), &research("plum")).await;
    let file = bench.books().join(".child");
    let started = async {
        loop {
            match run.next().await.unwrap() {
                Step::Progress(seen) if seen.message.starts_with("Reading") => break,
                Step::Progress(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(LIMIT, started).await.unwrap();
    until("the converter has a child", || {
        fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n'))
    })
    .await;
    let child = fs::read_to_string(&file).unwrap();
    assert!(is_alive(&child));
    drop(run);
    until("the child ends", || !is_alive(&child)).await;
    // A cancelled conversion is not recorded as an unreadable file.
    bench.write("plum.docx", "waits-with-a-child");
    fs::write(bench.books().join("plum.docx"), PLUM).unwrap();
    assert_eq!(bench.ask("Which soil does the plum tree want?").await.files(), ["plum.docx"]);
}

/// P1: nothing leaves the machine, and no key reaches a converter.
#[tokio::test]
async fn p1_pandoc_runs_in_its_sandbox_without_our_environment_and_without_names_of_files() {
    let bench = Bench::with(&[("--output=plum.docx", "arguments")]);
    let report = ask(&bench.library(), &research("plum")).await;
    for argument in ["plum --sandbox", "plum docx"] {
        assert!(report.text.contains(argument), "{argument}: {}", report.text);
    }
    let named =
        report.text.lines().find(|line| line.contains("plum ") && line.contains("--output"));
    assert_eq!(named.filter(|line| line.starts_with('-')), None, "{}", report.text);
    let variables: Vec<_> =
        report.text.lines().filter_map(|line| line.split("plum env ").nth(1)).collect();
    let known = ["PATH=", "LC_ALL=", "PWD=", "SHLVL=", "_=", "OLDPWD="];
    for variable in &variables {
        assert!(known.iter().any(|name| variable.starts_with(name)), "{variables:?}");
    }
}

#[tokio::test]
async fn a_file_is_converted_once_and_again_when_it_or_its_converter_changes() {
    let bench = Bench::with(&[("plum.docx", &format!("counts{PLUM}")), ("fails.docx", "fails")]);
    let root = tempfile::tempdir().unwrap();
    let program = root.path().join("pandoc");
    fs::copy(converters().pandoc, &program).unwrap();
    let converters = Converters { pandoc: program.clone(), ..converters() };
    let library = converting(&[bench.books()], &bench.cache(), converters).unwrap();
    let mut expected = 0;
    for change in ["nothing", "the file", "the converter"] {
        match change {
            "the file" => bench.write("plum.docx", format!("counts{PLUM}\nAnd more.\n")),
            "the converter" => {
                let text = fs::read_to_string(&program).unwrap();
                fs::write(&program, format!("{text}# A newer version.\n")).unwrap();
            }
            _ => {}
        }
        expected += 1;
        for _ in 0..3 {
            let report = ask(&library, &research("Which soil does the plum tree want?")).await;
            assert_eq!(report.files(), ["plum.docx"], "{change}: {}", report.text);
            assert_eq!(conversions(&bench), expected, "{change}");
        }
    }
}

/// Two libraries over the same folder, as two processes would have.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_conversions_do_no_harm() {
    let bench = Bench::new();
    for number in 0..12 {
        bench.write(
            &format!("{number}.docx"),
            format!("counts\n\nTree w{number} wants soil s{number}.\n"),
        );
    }
    let mut asked = Vec::new();
    for number in 0..6 {
        let library = bench.library();
        asked.push(tokio::spawn(async move {
            ask(&library, &research(&format!("What soil does tree w{number} want?"))).await
        }));
    }
    for (number, report) in asked.into_iter().enumerate() {
        let report = report.await.unwrap();
        assert_eq!(report.files()[0], format!("{number}.docx"), "{}", report.text);
    }
}

#[tokio::test]
async fn without_pandoc_office_files_are_named_with_an_install_hint() {
    let bench = Bench::with(&[("fig.md", FIG), ("plum.docx", PLUM), ("pear.epub", PLUM)]);
    let missing = Converters { pandoc: "no-such-pandoc".into(), ..converters() };
    let library = converting(&[bench.books()], &bench.cache(), missing).unwrap();
    let report = ask(&library, &research("What do figs want?")).await;
    let expected = "2 files were left out: 2 office files (pear.epub, plum.docx; install pandoc).";
    assert!(report.text.contains(expected), "{}", report.text);
}

#[test]
fn programs_are_searched_in_absolute_folders_only() {
    let found = |search_path: &str, program: &str| {
        let converters = Converters { search_path: search_path.into(), ..converters() };
        converters.locate(Path::new(program))
    };
    assert_eq!(found("/nowhere:/bin", "sh").unwrap(), Path::new("/bin/sh"));
    assert_eq!(found("bin:.:", "sh"), None);
    assert_eq!(found("/bin", "/bin/sh").unwrap(), Path::new("/bin/sh"));
    assert_eq!(found("/", "bin"), None, "a folder is not a program");
}
