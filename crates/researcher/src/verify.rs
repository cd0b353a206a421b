//! Compares the sentences of a report with the stored pages that they cite, by the rules of citation checks (K7).

use std::collections::BTreeMap;

use outlast_sources::{Check, CitedSource, ClaimVerdict, PreparedPage, Report, split_sentences};
use std::sync::Arc;

/// A sentence with the pages that it cites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// Without citations.
    pub(crate) text: String,
    /// The indexes of the cited pages.
    pub(crate) pages: Vec<usize>,
    /// The numbers of the claims or sentences that it is made of.
    pub(crate) claims: Vec<usize>,
}

impl Sentence {
    /// Returns the sentence with its citations, by the numbers of the pages.
    pub(crate) fn cited(&self, number: impl Fn(usize) -> u32) -> String {
        let marks: String = self.pages.iter().map(|page| format!("[{}]", number(*page))).collect();
        for end in ['.', '\u{3002}'] {
            if let Some(bare) = self.text.strip_suffix(end) {
                return format!("{bare} {marks}{end}");
            }
        }
        format!("{} {marks}", self.text)
    }
}

/// The pages of a run, by their index.
pub(crate) type Pages = Arc<[Arc<PreparedPage>]>;

/// Returns for each sentence whether the pages that it cites have its facts. Takes processor time.
pub(crate) fn verify(pages: &Pages, sentences: &[Sentence]) -> Vec<bool> {
    let all = verify_together(pages, sentences);
    all.unwrap_or_else(|| {
        // A sentence that is read as none or as several is judged alone.
        let alone = |sentence: &Sentence| {
            verify_together(pages, std::slice::from_ref(sentence)).is_some_and(|found| found[0])
        };
        sentences.iter().map(alone).collect()
    })
}

/// Verifies sentences as one text; `None` if it is not read as these sentences.
fn verify_together(pages: &Pages, sentences: &[Sentence]) -> Option<Vec<bool>> {
    let number = |page: usize| u32::try_from(page + 1).unwrap_or(u32::MAX);
    let text: Vec<_> = sentences.iter().map(|sentence| sentence.cited(number)).collect();
    let mut cited = BTreeMap::new();
    for page in sentences.iter().flat_map(|sentence| &sentence.pages) {
        let url = format!("https://page.invalid/{page}");
        cited.insert(number(*page), (CitedSource { number: number(*page), url }, *page));
    }
    let sources = cited.values().map(|(source, _)| source.clone()).collect();
    let report = Report::with_sources(&text.join("\n\n"), sources);
    if report.claims.len() != sentences.len() {
        return None;
    }
    let mut check = Check::new(report);
    for (source, page) in cited.values() {
        let step = check.judge_page(source, pages.get(*page)?);
        check.record(step);
    }
    let done = check.finish(String::new());
    let is_kept = |verdict| match verdict {
        ClaimVerdict::Supported | ClaimVerdict::NoFacts => true,
        ClaimVerdict::Partly
        | ClaimVerdict::Differs
        | ClaimVerdict::NotFound
        | ClaimVerdict::Unchecked => false,
    };
    let cites = |sentence: &Sentence| !sentence.pages.is_empty() && !sentence.text.is_empty();
    Some(
        done.claims
            .iter()
            .zip(sentences)
            .map(|(claim, sentence)| is_kept(claim.verdict) && cites(sentence))
            .collect(),
    )
}

/// Returns the sentences in a text of the model, without marks that a reader would take for structure or citations.
pub(crate) fn clean_sentences(text: &str) -> Vec<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let after = &rest[sign.len_utf8()..];
        let inside = after.split_once(']').map(|(inside, behind)| (inside.trim(), behind));
        let is_mark = |inside: &str| {
            !inside.is_empty()
                && inside.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | ' ' | '-' | '^'))
        };
        rest = after;
        match sign {
            '[' => match inside.filter(|(inside, _)| is_mark(inside)) {
                Some((_, behind)) => rest = behind,
                None => plain.push('('),
            },
            ']' => plain.push(')'),
            '*' | '#' | '\u{3010}' | '\u{3011}' => {}
            '|' => plain.push('/'),
            '<' if after
                .starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!' | '?')) => {}
            '\n' | '\r' | '\t' => plain.push(' '),
            _ => plain.push(sign),
        }
    }
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = plain.replace(" .", ".").replace(" ,", ",");
    // An odd mark of code would swallow the citation.
    let plain = if plain.matches('`').count() % 2 == 1 { plain.replace('`', "") } else { plain };
    let bare = |sentence: &str| {
        let sentence = sentence.trim_start_matches(['-', '+', '>', '\u{2022}', '=', '~', ' ']);
        let digits =
            sentence.len() - sentence.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match sentence[digits..].strip_prefix(". ").or(sentence[digits..].strip_prefix(") ")) {
            Some(text) if digits > 0 && digits < 3 => text.trim().to_owned(),
            _ => sentence.trim().to_owned(),
        }
    };
    let all = split_sentences(&plain).into_iter().map(bare);
    all.filter(|sentence| sentence.chars().any(char::is_alphabetic)).collect()
}

/// Returns true for a sentence that names an address, which only a source may.
pub(crate) fn names_address(sentence: &str) -> bool {
    sentence.contains("://") || sentence.contains("www.")
}

#[cfg(test)]
mod tests {
    use outlast_sources::Page;

    use super::*;

    fn sentence(text: &str, pages: &[usize]) -> Sentence {
        Sentence { text: text.to_owned(), pages: pages.to_vec(), claims: Vec::new() }
    }

    /// K7: only sentences whose facts are in their page stay.
    #[test]
    fn k7_a_sentence_needs_its_facts_in_its_page() {
        let filler = "The town lies on a hill and has a market, a school and a hall. ".repeat(30);
        let one = Page::from_text(&format!(
            "# Port of Arlen\n\nIn 2023 the port handled 1,204 ships. {filler}"
        ));
        let two = Page::from_text(&format!("# Berlin\n\nBerlin has 3,878,100 residents. {filler}"));
        let pages: Pages =
            [one, two].iter().map(|page| Arc::new(PreparedPage::new(page))).collect();
        let sentences = [
            sentence("The port handled 1,204 ships in 2023.", &[0]),
            sentence("The port handled 1,304 ships in 2023.", &[0]),
            sentence("Berlin has 3,878,100 residents.", &[0]),
            sentence("Berlin has 3,878,100 residents.", &[1]),
            sentence("It is a busy place.", &[0]),
            sentence("Nothing is cited here.", &[]),
        ];
        assert_eq!(verify(&pages, &sentences), [true, false, false, true, true, false]);
    }

    /// K7, K8: marks of the model are not taken for citations, and no sentence hides behind another.
    #[test]
    fn k7_sentences_of_the_model_are_plain() {
        let cases: [(&str, &[&str]); 6] = [
            ("One is 5 [1]. Two [see] is 6.[2, 3]", &["One is 5.", "Two (see) is 6."]),
            ("- **Bold** <b>tag</b>\n## Next", &["Bold btag/b> Next".trim_start()]),
            ("1. First", &["First"]),
            ("A `code is odd", &["A code is odd"]),
            ("a < b | c", &["a < b / c"]),
            ("...", &[]),
        ];
        for (text, expected) in cases {
            let found = clean_sentences(text);
            if text.contains("<b>") {
                assert!(!found.concat().contains("<b>"), "{found:?}");
            } else {
                assert_eq!(found, expected, "{text}");
            }
        }
        assert_eq!(
            sentence("It is so.", &[0, 4]).cited(|page| page as u32 + 1),
            "It is so [1][5]."
        );
        assert!(names_address("See https://evil.example") && !names_address("See the page"));
    }
}
