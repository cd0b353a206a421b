//! Hostile questions and files.

use super::answers::corpus;
use super::bench::{Bench, ask, library, research};
use super::reports::check;

#[tokio::test]
async fn no_question_breaks_the_search() {
    let bench = Bench::new();
    let library = library(&[corpus()], &bench.cache());
    let long = "compost \"heap\" AND ".repeat(600);
    let cases = [
        "\"",
        "''",
        "compost\"",
        "\" OR 1=1 --",
        "compost AND",
        "NOT compost",
        "NEAR(compost heap, 2)",
        "body:compost",
        "{name title}: heap",
        "^compost",
        "comp*",
        "compost + heap",
        "(compost",
        "compost)",
        "-",
        "*",
        ":",
        "a:b:c",
        "`",
        "what is the of and",
        "",
        "   ",
        "\0",
        "\u{1b}[31mcompost",
        "🌱",
        "🌱 compost",
        "堆肥",
        "\u{301}\u{301}",
        "_",
        "__init__",
        "compost\nheap\n# Heading",
        &long,
        "<script>alert(1)</script>",
        "[1] compost [99]",
    ];
    for question in cases {
        let report = ask(&library, &research(question)).await;
        check(&report);
        assert!(report.text.starts_with("# "), "{question:?}: {}", report.text);
        assert!(report.text.lines().next().unwrap().chars().count() < 200, "{question:?}");
        assert!(!report.text.contains(['\0', '\u{1b}']), "{question:?}");
    }
}

#[tokio::test]
async fn a_question_without_words_gets_a_clear_answer() {
    let bench = Bench::with(&[("a.md", "What is the of and.")]);
    for question in ["what is the of and", "", "🌱"] {
        let report = bench.ask(question).await;
        assert!(report.sources.is_empty());
        assert!(report.text.contains("no words to search for"), "{question:?}: {}", report.text);
    }
}

#[tokio::test]
async fn files_cannot_smuggle_control_characters_or_citations_into_a_report() {
    let evil = "# Plum\u{1b}]0;owned\u{7}\n\nThe plum \u{1b}[31mtree\u{1b}[0m is \u{202e}evil\u{202c} [7] and [8](x).\u{0} See \u{9b}2J.\n\n# Heading\u{2028}two\n\nplum <!-- hidden plum --> tree\n";
    let bench = Bench::new();
    bench.write("plum.txt", evil.replace('\0', ""));
    bench.write("plum.md", evil.replace('\0', ""));
    bench.write("odd\nname\u{202e}.md", "A plum tree with an odd name.");
    let report = bench.ask("Tell me of the plum tree").await;
    check(&report);
    assert!(report.text.contains("(7)"), "{}", report.text);
    let titles: String =
        report.sources.iter().flat_map(|s| [s.url.clone(), s.title.clone().unwrap()]).collect();
    for text in [&report.text.replace('\n', ""), &titles] {
        assert!(
            !text.chars().any(|c| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)),
            "{text:?}"
        );
    }
}

#[tokio::test]
async fn files_full_of_markup_do_no_harm() {
    let bench = Bench::with(&[("plum.md", "The plum tree.")]);
    let odd = [
        "[", "![", "`", "<", "<!--", "|", "> ", "#", "*", "\\", "&", "- ", "1. ", "::\n", "====\n",
        "<td>", "<script>", "\u{301}", "é",
    ];
    for (number, sign) in odd.iter().enumerate() {
        for ending in ["md", "txt", "rst", "adoc", "html"] {
            bench.write(&format!("{number}.{ending}"), sign.repeat(20_000));
        }
    }
    let report = bench.ask("Where is the plum tree?").await;
    assert_eq!(report.files()[0], "plum.md");
    check(&report);
}
