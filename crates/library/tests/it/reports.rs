//! The parts of a report.

use std::collections::BTreeSet;

use outlast_core::{
    Cost, Effort, Message, NanoUsd, Provider, ResearchKind, ResearchRequest, Role, Usage,
};
use outlast_engine::ReportCheck;

use super::answers::our_documents;
use super::bench::{Bench, Report, ask, of_kind, research};

const CRASH: &str = "How does a job survive a crash of the server?";

/// The numbers cited outside code, in order.
fn cited(text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for outside in line.split('`').step_by(2) {
            for after in outside.split('[').skip(1) {
                let inner = after.split(']').next().unwrap_or("");
                numbers.extend(inner.parse::<u32>());
            }
        }
    }
    numbers
}

/// Every citation has its source and every source its citation, numbered in order of appearance.
pub(crate) fn check(report: &Report) {
    let numbers = cited(&report.text);
    let mut seen = Vec::new();
    for number in &numbers {
        if !seen.contains(number) {
            seen.push(*number);
        }
    }
    let sources: Vec<_> = report.sources.iter().map(|source| source.number).collect();
    assert_eq!(seen, sources, "{}", report.text);
    assert!(sources.iter().copied().eq(1..=u32::try_from(sources.len()).unwrap()));
    let urls: BTreeSet<_> = report.sources.iter().map(|source| &source.url).collect();
    assert_eq!(urls.len(), sources.len(), "{urls:?}");
    for source in &report.sources {
        let (file, place) = source.url.rsplit_once(':').unwrap();
        // A line, or a page for a PDF.
        let place = if file.ends_with(".pdf") { place.strip_prefix('p').unwrap() } else { place };
        assert!(place.parse::<u32>().unwrap() > 0, "{source:?}");
        assert!(source.title.as_ref().is_some_and(|title| !title.is_empty()), "{source:?}");
    }
}

/// C4: a report without a summary does not claim to have one.
#[tokio::test]
async fn a_report_has_a_title_its_best_passages_and_says_what_it_is() {
    let report = our_documents().ask(CRASH).await;
    check(&report);
    let headings: Vec<_> = report.text.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(headings[..2], [format!("# {CRASH}").as_str(), "## Best passages"]);
    assert!(headings[2..].iter().all(|heading| heading.starts_with("### ")), "{headings:?}");
    assert!((2..=5).contains(&report.sources.len()), "{:?}", report.sources);
    assert!(report.text.contains("no model wrote it"), "{}", report.text);
    let found = ReportCheck::check(&research(CRASH), &report.output).unwrap();
    assert!(!found.has_summary && found.headings > 2, "{found:?}");
    assert!(found.dangling_citations.is_empty() && found.uncited_sources.is_empty(), "{found:?}");
}

#[tokio::test]
async fn a_citation_points_at_the_file_and_line_where_its_text_begins() {
    let bench = our_documents();
    let report = bench.ask(CRASH).await;
    for source in &report.sources {
        let (file, line) = source.url.rsplit_once(':').unwrap();
        let text = std::fs::read_to_string(bench.books().join(file)).unwrap();
        // A passage of code starts with its fence, which the report replaces.
        let mut lines = text.lines().skip(line.parse::<usize>().unwrap() - 1);
        let line = lines.find(|line| !line.starts_with("```")).unwrap();
        let first = line.split(|c: char| !c.is_alphanumeric()).find(|word| word.len() > 3);
        assert!(
            report.text.contains(first.unwrap_or("")) && !line.trim().is_empty(),
            "{source:?}: {line}"
        );
    }
}

#[tokio::test]
async fn it_is_free_and_names_itself_honestly() {
    let bench = our_documents();
    let output = bench.ask(CRASH).await.output;
    assert_eq!(output.cost, Cost::Reported(NanoUsd(0)));
    assert_eq!(output.usage, Usage { searches: 1, ..Usage::default() });
    assert_eq!(output.model.as_deref(), Some("library (extractive)"));
    assert_eq!(
        bench.library().expected_model(&outlast_core::Request::from(serde_json::Value::Null)),
        output.model
    );
    assert_eq!(
        bench.library().typical_cost(&outlast_core::Request::from(serde_json::Value::Null)),
        Cost::Reported(NanoUsd(0))
    );
}

#[tokio::test]
async fn more_effort_gives_a_longer_report() {
    let bench = our_documents();
    let library = bench.library();
    let mut lengths = Vec::new();
    for effort in [Some(Effort::Low), None, Some(Effort::High)] {
        let report = ask(
            &library,
            &ResearchRequest { effort, ..research("What happens when a server stops?") },
        )
        .await;
        check(&report);
        lengths.push(report.text.len());
    }
    assert!(lengths[0] < lengths[1] && lengths[1] < lengths[2], "{lengths:?}");
}

#[tokio::test]
async fn short_asks_get_a_short_answer_and_ranked_results_get_snippets() {
    let bench = our_documents();
    let library = bench.library();
    for kind in [ResearchKind::Search, ResearchKind::Ask, ResearchKind::Reason] {
        let report = ask(&library, &of_kind(kind, CRASH)).await;
        check(&report);
        assert!(
            !report.text.contains("# ") && (1..=3).contains(&report.sources.len()),
            "{}",
            report.text
        );
    }
    let mut results = of_kind(ResearchKind::Results, CRASH);
    let report = ask(&library, &results).await;
    check(&report);
    assert!(report.sources.len() > 4, "{:?}", report.sources);
    assert!(
        report
            .sources
            .iter()
            .all(|source| source.snippet.as_ref().is_some_and(|text| !text.is_empty()))
    );
    results.filters.max_results = Some(2);
    assert_eq!(ask(&library, &results).await.sources.len(), 2);
}

#[tokio::test]
async fn an_empty_result_says_what_was_searched() {
    let bench = Bench::with(&[("plum.md", "The plum tree wants chalky soil.")]);
    let report = bench.ask("Quantum chromodynamics lattices?").await;
    assert!(report.sources.is_empty());
    for part in [
        "# Quantum",
        "Nothing in the library answers",
        "1 passage in 1 file of 1 folder",
        "Try other words",
    ] {
        assert!(report.text.contains(part), "{part}: {}", report.text);
    }
}

#[tokio::test]
async fn an_empty_library_is_named_so() {
    let report = Bench::new().ask("Which soil does the plum tree want?").await;
    assert!(report.text.contains("The library is empty"), "{}", report.text);
    assert!(report.text.contains("Put documents into the folder"), "{}", report.text);
}

#[tokio::test]
async fn a_word_that_occurs_nowhere_is_named() {
    let bench = Bench::with(&[("plum.md", "The plum tree wants chalky soil.")]);
    let report = bench.ask("Does a plum tree like vermiculite?").await;
    assert!(report.text.contains("Not found anywhere: \"vermiculite\""), "{}", report.text);
}

#[tokio::test]
async fn words_written_apart_find_the_word_written_together() {
    let bench = Bench::with(&[
        ("a.md", "Making a backup takes a minute."),
        ("b.md", "Come back when the minute is up."),
        ("c.md", "Something else."),
    ]);
    assert!(bench.ask("How do I back up?").await.files().contains(&"a.md"));
}

/// A follow-up relies on the earlier questions.
#[tokio::test]
async fn earlier_questions_decide_between_equals() {
    let bench = Bench::with(&[
        ("plum.md", "# Plum\n\nIt is planted in October at a depth of 40 centimetres.\n"),
        ("fig.md", "# Fig\n\nIt is planted in April at a depth of 20 centimetres.\n"),
    ]);
    for (subject, file) in [("plum", "plum.md"), ("fig", "fig.md")] {
        let mut follow_up = research(&format!("Tell me about the {subject}"));
        for (role, content) in
            [(Role::Assistant, "..."), (Role::User, "At what depth is it planted?")]
        {
            follow_up.messages.push(Message { role, content: content.to_owned() });
        }
        let report = ask(&bench.library(), &follow_up).await;
        assert_eq!(report.files()[0], file, "{}", report.text);
        assert!(report.text.starts_with("# At what depth"), "{}", report.text);
    }
}

#[tokio::test]
async fn equal_libraries_give_equal_reports() {
    let (a, b) = (our_documents(), our_documents());
    // The second index has a history; files that were read, removed and read again must not show.
    b.write("extra.md", "A job and a crash and a server, for a while.");
    b.ask("anything about a job").await;
    std::fs::remove_file(b.books().join("extra.md")).unwrap();
    b.write("README.md", "Nothing.");
    b.ask("anything else").await;
    let readme = std::fs::read(a.books().join("README.md")).unwrap();
    b.write("README.md", readme);
    for question in [CRASH, "Which crates may the engine use?", "disk full"] {
        let (first, second) = (a.ask(question).await, b.ask(question).await);
        assert_eq!((first.text, first.sources), (second.text, second.sources));
    }
}
