//! The check of a report's citations next to the report (J3): marks at sentences and sources, and the list of claims with
//! what was found. The report itself never changes.

use std::fmt::Write as _;

use maud::{Markup, html};
use outlast_core::visible;
use outlast_sources::{CheckedClaim, CheckedSource, CitationCheck, ClaimVerdict, SourceVerdict};

use super::markdown::markdown_text;
use crate::text::readable_time;

/// The number of claims among which the one of a citation is looked for: a renderer may find fewer citations than the
/// check, never in another order.
const LOOK_AHEAD: usize = 12;

/// Finds the claim of each citation of a report that is rendered from its beginning.
pub(super) struct ClaimMarks<'a> {
    check: &'a CitationCheck,
    /// The claim of the last citation, and its citations that are still to come.
    at: usize,
    left: Vec<u32>,
}

impl<'a> ClaimMarks<'a> {
    pub(super) fn new(check: &'a CitationCheck) -> Self {
        let left = check.claims.first().map(|claim| claim.citations.clone()).unwrap_or_default();
        Self { check, at: 0, left }
    }

    /// Returns the claim, with its number, that ends with this citation.
    pub(super) fn next(&mut self, cited: u32) -> Option<(usize, &'a CheckedClaim)> {
        if !self.left.contains(&cited) {
            let claims = self.check.claims.iter().enumerate().skip(self.at + 1).take(LOOK_AHEAD);
            let (at, claim) = { claims }.find(|(_, claim)| claim.citations.contains(&cited))?;
            (self.at, self.left) = (at, claim.citations.clone());
        }
        self.left.retain(|number| *number != cited);
        let claim = self.check.claims.get(self.at)?;
        self.left.is_empty().then_some((self.at, claim))
    }

    /// Returns the number of the source with this address.
    pub(super) fn source(&self, address: &str) -> Option<u32> {
        self.check.sources.iter().find(|source| source.url == address).map(|source| source.n)
    }
}

/// The verdicts in the order in which a reader needs them.
const ORDER: [ClaimVerdict; 6] = [
    ClaimVerdict::Differs,
    ClaimVerdict::NotFound,
    ClaimVerdict::Partly,
    ClaimVerdict::Unchecked,
    ClaimVerdict::Supported,
    ClaimVerdict::NoFacts,
];

fn sign(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Supported => "✓",
        ClaimVerdict::Partly => "◐",
        ClaimVerdict::Differs => "≠",
        ClaimVerdict::NotFound => "✗",
        ClaimVerdict::NoFacts => "·",
        ClaimVerdict::Unchecked => "?",
    }
}

/// Returns the verdict as a reader sees it.
fn words(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Supported => "facts found in the source",
        ClaimVerdict::Partly => "some facts found in the source",
        ClaimVerdict::Differs => "the source has another value",
        ClaimVerdict::NotFound => "facts not found in the source",
        ClaimVerdict::NoFacts => "nothing to compare",
        ClaimVerdict::Unchecked => "not checked",
    }
}

/// Renders the mark after a sentence. A sentence without facts has none.
pub(super) fn mark(number: usize, at: usize, claim: &CheckedClaim) -> Markup {
    let verdict = claim.verdict;
    html! {
        @if verdict != ClaimVerdict::NoFacts {
            a .verdict .(verdict.as_str()) href={ "#c" (number) "-" (at + 1) } title=(words(verdict)) {
                (sign(verdict))
            }
        }
    }
}

/// Renders the verdict on a source, unless it was read.
pub(super) fn source_mark(source: &CheckedSource) -> Markup {
    let detail = source.detail.as_deref().map(visible);
    html! {
        @if source.verdict != SourceVerdict::Ok {
            span .source-verdict .(source.verdict.as_str()) title=[detail] { (source.verdict.as_str()) }
        }
    }
}

/// Renders the check: its totals, a filter by verdict, and each claim with what was found.
pub(crate) fn check_html(check: &CitationCheck, number: usize) -> Markup {
    let count = |verdict| check.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let shown: Vec<_> = ORDER.into_iter().filter(|verdict| count(*verdict) > 0).collect();
    let group = format!("f{number}");
    let checked_at = readable_time(&check.checked_at, "%-d %B %Y, %H:%M UTC");
    html! {
        section .check {
            h2 .sources-title { "Citation check" }
            p .facts {
                (visible(&checked_at)) " · " (check.summary())
                ". Texts are compared: “found in the source” does not mean true."
            }
            @if !check.claims.is_empty() {
                div .claims {
                    input type="radio" name=(group) id={ (group) "-all" } .all checked;
                    label for={ (group) "-all" } { "all " (check.claims.len()) }
                    @for verdict in &shown {
                        input type="radio" name=(group) id={ (group) "-" (verdict.as_str()) } .(format!("only-{}", verdict.as_str()));
                        label for={ (group) "-" (verdict.as_str()) } {
                            (sign(*verdict)) " " (verdict.as_str().replace('_', " ")) " " (count(*verdict))
                        }
                    }
                    ol {
                        @for (at, claim) in check.claims.iter().enumerate() { (claim_html(claim, number, at)) }
                    }
                }
            }
        }
    }
}

fn claim_html(claim: &CheckedClaim, number: usize, at: usize) -> Markup {
    html! {
        li .(claim.verdict.as_str()) id={ "c" (number) "-" (at + 1) } {
            details {
                summary dir="auto" {
                    span .verdict .(claim.verdict.as_str()) title=(words(claim.verdict)) { (sign(claim.verdict)) }
                    " " (visible(&claim.text)) " "
                    @for cited in &claim.citations {
                        a .cite href={ "#s" (number) "-" (cited) } { "[" (cited) "]" }
                    }
                }
                p { (words(claim.verdict)) }
                @if let Some(found) = &claim.found { p { "The source has: " strong dir="auto" { (visible(found)) } } }
                @if !claim.missing.is_empty() { p dir="auto" { "Not found: " (visible(&claim.missing.join("; "))) } }
                @if let Some(reason) = claim.reason { p { (reason.words()) } }
                @if let Some(passage) = &claim.passage {
                    blockquote dir="auto" { "[" (passage.n) "] " (visible(&passage.text)) }
                }
            }
        }
    }
}

/// Renders the check as Markdown: its totals, then the claims and the sources that a reader should look at.
pub(super) fn check_markdown(check: &CitationCheck) -> String {
    let mut text = format!(
        "\n## Citation check\n\n{}: {}.\nTexts are compared: \"supported\" means that the facts were found in the source, not that a sentence is true.\n",
        markdown_text(&check.checked_at),
        check.summary()
    );
    let mut is_first = true;
    let mut entry = |line: String| {
        let before = if std::mem::take(&mut is_first) { "\n" } else { "" };
        let _ = writeln!(text, "{before}- {line}");
    };
    for claim in check.claims.iter().filter(|claim| claim.verdict.is_doubtful()) {
        entry(claim_line(claim));
    }
    for source in check.sources.iter().filter(|source| source.verdict != SourceVerdict::Ok) {
        let detail = source.detail.as_deref().map(markdown_text);
        let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
        entry(format!("source {}: **{}**{detail}", source.n, source.verdict.as_str()));
    }
    text
}

fn claim_line(claim: &CheckedClaim) -> String {
    let numbers: String = claim.citations.iter().map(|number| format!("\\[{number}\\]")).collect();
    let verdict = claim.verdict.as_str().replace('_', " ");
    let mut line = format!("**{verdict}**: {} {numbers}", markdown_text(&claim.text));
    if let Some(found) = &claim.found {
        let _ = write!(line, "; the source has: {}", markdown_text(found));
    } else if !claim.missing.is_empty() {
        let _ = write!(line, "; not found: {}", markdown_text(&claim.missing.join("; ")));
    }
    if let Some(reason) = claim.reason {
        let _ = write!(line, "; {}", reason.words());
    }
    if let Some(passage) = &claim.passage {
        let _ = write!(line, "\n  > \\[{}\\] {}", passage.n, markdown_text(&passage.text));
    }
    line
}

#[cfg(test)]
mod tests {
    use outlast_core::Source;
    use outlast_sources::{FoundPassage, Reason, Totals};

    use super::super::report::report_with_check;
    use super::*;

    fn claim(text: &str, citations: &[u32], verdict: ClaimVerdict) -> CheckedClaim {
        CheckedClaim {
            text: text.to_owned(),
            citations: citations.to_vec(),
            verdict,
            passage: None,
            found: None,
            missing: Vec::new(),
            rounded: false,
            reason: None,
        }
    }

    fn check() -> CitationCheck {
        let source = |n, verdict| CheckedSource {
            n,
            url: format!("https://a.example/{n}"),
            verdict,
            final_url: None,
            title: None,
            http_status: None,
            detail: None,
        };
        let mut differs = claim("The area is <b>14</b> km²", &[1, 2], ClaimVerdict::Differs);
        differs.found = Some("12 km² <script>".to_owned());
        differs.passage = Some(FoundPassage { n: 1, text: "It has # 12 km²".to_owned() });
        let mut unchecked = claim("It is deep", &[3], ClaimVerdict::Unchecked);
        unchecked.reason = Some(Reason::Dead);
        CitationCheck {
            checked_at: "2026-01-02T03:04:05.000Z".to_owned(),
            complete: true,
            sources: vec![
                source(1, SourceVerdict::Ok),
                source(2, SourceVerdict::Ok),
                source(3, SourceVerdict::Dead),
            ],
            claims: vec![
                claim("It is long", &[1], ClaimVerdict::Supported),
                differs,
                claim("It is nice", &[2], ClaimVerdict::NoFacts),
                unchecked,
            ],
            totals: Totals {
                supported: 1,
                differs: 1,
                no_facts: 1,
                unchecked: 1,
                ..Totals::default()
            },
        }
    }

    /// J3: each sentence has the mark of its claim, after its last citation; one without facts has none.
    #[test]
    fn j3_marks_are_at_the_sentences_of_their_claims() {
        let numbers = 1..=3;
        let sources: Vec<_> = numbers
            .map(|number| Source {
                number,
                url: format!("https://a.example/{number}"),
                ..Source::default()
            })
            .collect();
        let text = "It is long [1]. The area is 14 km² [1][2]. It is nice [2].\n\nIt is [deep](https://a.example/3).";
        let html = report_with_check(text, &sources, 1, Some(&check())).text.into_string();
        let marks: Vec<_> =
            html.match_indices("class=\"verdict ").map(|(at, _)| &html[at + 15..at + 30]).collect();
        assert_eq!(marks.len(), 3, "{html}");
        assert!(html.contains("[1]</a><a class=\"verdict supported\" href=\"#c1-1\""), "{html}");
        assert!(html.contains("[2]</a><a class=\"verdict differs\" href=\"#c1-2\""), "{html}");
        assert!(html.contains("deep</a><a class=\"verdict unchecked\" href=\"#c1-4\""), "{html}");
        let without = report_with_check(text, &sources, 1, None).text.into_string();
        assert!(!without.contains("verdict"), "{without}");
    }

    /// J3: nothing that a report or a page says becomes a tag or a heading.
    #[test]
    fn j3_a_check_shows_what_was_found_as_text() {
        let html = check_html(&check(), 1).into_string();
        assert!(html.contains("The source has: "), "{html}");
        assert!(!html.contains("<b>") && !html.contains("<script>"), "{html}");
        let markdown = check_markdown(&check());
        assert!(markdown.contains("**differs**: The area is \\<b\\>14\\</b\\> km² \\[1\\]\\[2\\]; the source has: 12 km² \\<script\\>"), "{markdown}");
        assert!(markdown.contains("source 3: **dead**"), "{markdown}");
        assert!(!markdown.contains("It is nice"), "only what a reader should look at: {markdown}");
    }
}
