//! Lines are put together as a person reads them.

use super::*;

/// Lines of 10 point, each with its place from the left and from the top.
fn document_of(lines: &[(u32, f64, f64, &str)]) -> Vec<(u32, String)> {
    let line = |(page, x, down, text): &(u32, f64, f64, &str)| Line {
        page: *page,
        x: *x,
        end: x + 5.0 * text.chars().count() as f64,
        y: 800.0 - down,
        size: 10.0,
        is_bold: false,
        is_row: false,
        text: (*text).to_owned(),
        unknown: 0,
    };
    let pages = lines.iter().map(|line| line.0).max().unwrap_or(0) as usize;
    let document = document(lines.iter().map(line).collect(), pages, None);
    document.passages.into_iter().map(|passage| (passage.line, passage.text)).collect()
}

fn texts(lines: &[(u32, f64, f64, &str)]) -> Vec<String> {
    document_of(lines).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn lines_become_paragraphs_and_broken_words_whole() {
    let lines = [
        (1, 0.0, 0.0, "A well-known pump is the effi-"),
        (1, 0.0, 12.0, "cient one that was a well-"),
        (1, 0.0, 24.0, "known pump. It is good."),
        (1, 10.0, 36.0, "Here is another paragraph of"),
        (1, 0.0, 48.0, "two lines."),
        (1, 0.0, 72.0, "And one after a gap."),
    ];
    let expected = [
        "A well-known pump is the efficient one that was a well-known pump. It is good.",
        "Here is another paragraph of two lines.",
        "And one after a gap.",
    ];
    assert_eq!(texts(&lines), expected);
}

#[test]
fn what_is_too_long_for_a_word_is_not_looked_up_as_one() {
    let joined = |times: usize| {
        let lines = ["x".repeat(times) + "-y-", "z".to_owned()].map(|text| Line {
            page: 1,
            x: 0.0,
            end: 0.0,
            y: 0.0,
            size: 10.0,
            is_bold: false,
            is_row: false,
            text,
            unknown: 0,
        });
        joined(&lines, &HashSet::new()).ends_with("-y-z")
    };
    assert_eq!((joined(5), joined(WORD)), (true, false));
}

#[test]
fn a_sentence_goes_on_in_the_next_column_and_on_the_next_page() {
    let lines = [
        (1, 0.0, 700.0, "The sentence starts in the left"),
        (1, 300.0, 0.0, "column, goes on in the right"),
        (2, 0.0, 0.0, "one and ends on the next page."),
        (2, 0.0, 40.0, "Another one."),
    ];
    let whole = "The sentence starts in the left column, goes on in the right one and ends on the next page.";
    assert_eq!(document_of(&lines), [(1, whole.to_owned()), (2, "Another one.".to_owned())]);
}

#[test]
fn what_runs_along_on_every_page_is_left_out() {
    let mut lines = Vec::new();
    let texts_of: Vec<String> = (1..=4).map(|page| format!("Page {page} of 4")).collect();
    for (page, number) in (1..).zip(&texts_of) {
        lines.push((page, 0.0, 0.0, "The handbook"));
        lines.push((page, 0.0, 100.0, "The same words stand on every page, but in the middle."));
        lines.push((page, 0.0, 200.0, "So they stay."));
        lines.push((page, 0.0, 700.0, number.as_str()));
    }
    let seen = texts(&lines);
    assert!(
        seen.len() == 8
            && !seen.iter().any(|text| text.contains("handbook") || text.contains("Page")),
        "{seen:?}"
    );
}

#[test]
fn items_and_lines_that_ended_on_purpose_stand_alone() {
    let lines = [
        (1, 0.0, 0.0, "The following is in the box, as far as anybody knows"),
        (1, 0.0, 12.0, "today:"),
        (1, 0.0, 24.0, "• a pump"),
        (1, 0.0, 36.0, "– a hose of some"),
        (1, 0.0, 60.0, "Name of the first maker"),
        (1, 0.0, 72.0, "Name of the second maker"),
    ];
    let expected = [
        "The following is in the box, as far as anybody knows today:",
        "- a pump",
        "- a hose of some",
        "Name of the first maker",
        "Name of the second maker",
    ];
    assert_eq!(texts(&lines), expected);
}
