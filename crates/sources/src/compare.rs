//! Compares the facts of a claim with the passages of one page (J2). This is a comparison of texts: it finds facts, and
//! does not understand sentences.

mod acronym;
mod find;
mod other_value;
mod passage;
mod sense;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::sense::Signs;
use super::check::Reason;
use super::facts::{
    Agreement, Fact, FactKind, ReadingOptions, Token, TokenKind, Vocabulary, content_stems, facts,
    tokens,
};
use super::language::Language;
use super::page::{Block, BlockKind, Obstacle, Page};
use super::text::{normalize, sentences};

/// The share of a claim's words that a passage needs before a different value in it counts as a difference.
const SAME_SUBJECT: f64 = 0.5;
/// The share of the words around a claim's facts that a passage about the same thing has.
const ABOUT_THE_SAME: f64 = 0.5;
/// Pages with fewer words do not deny anything.
const MIN_WORDS: usize = 200;
/// Longer sentences are compared in parts; in bytes.
const MAX_UNIT: usize = 600;

/// A claim of a report, read once for all its sources.
#[derive(Clone, Debug)]
pub(crate) struct ClaimFacts {
    tokens: Vec<Token>,
    pub(crate) facts: Vec<Fact>,
    stems: HashSet<String>,
    /// The stems of the words that are not a part of a fact.
    context: HashSet<String>,
    signs: Signs,
    language: Option<Language>,
}

/// The result of the comparison of one claim with one page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Evidence {
    /// For each fact of the claim, true if the best passage has it.
    pub(crate) found: Vec<bool>,
    /// For each fact of the claim, true if it is the page's own subject.
    pub(crate) subject: Vec<bool>,
    /// True if the passage uses the facts in another sense.
    pub(crate) is_lowered: bool,
    pub(crate) is_rounded: bool,
    /// The passage's value in the place of the missing fact.
    pub(crate) other_value: Option<String>,
    pub(crate) passage: Option<String>,
    /// True if the passage has a fact of the claim and most of the words around its facts.
    #[serde(default)]
    pub(crate) is_about: bool,
    /// The reason this page cannot deny a claim.
    pub(crate) cannot_deny: Option<Reason>,
}

/// A sentence, an item or a row of a page.
struct Unit {
    block: usize,
    /// The place of its headings in [`PageFacts::headings`].
    headings: usize,
    header: Option<Arc<[String]>>,
    text: String,
    tokens: Vec<Token>,
    facts: Vec<Fact>,
    stems: HashSet<String>,
    signs: Signs,
    kind: BlockKind,
    /// The acronyms in it that the page writes out elsewhere.
    acronyms: Vec<Acronym>,
}

/// An acronym of a sentence.
struct Acronym {
    at: usize,
    /// The folded words that it abbreviates.
    words: Arc<[String]>,
}

/// A page, read once for all claims that cite it.
pub(crate) struct PageFacts {
    units: Vec<Unit>,
    /// The page's title with the headings above a block and the head of its table.
    headings: Vec<Headings>,
    title: HashSet<String>,
    words: HashSet<String>,
    language: Option<Language>,
    cannot_deny: Option<Reason>,
}

struct Headings {
    text: String,
    tokens: Vec<Token>,
    facts: Vec<Fact>,
    stems: HashSet<String>,
}

/// A fact of a claim that a unit has.
#[derive(Clone, Copy, Debug)]
struct Match {
    /// The byte at which the unit has it.
    at: usize,
    agreement: Agreement,
}

/// The facts of a claim that a page has, by sentence and by headings. Each is searched once: all rows of a table are below
/// the same headings.
struct Matches {
    units: Vec<Vec<Option<Match>>>,
    headings: Vec<Vec<Option<Match>>>,
}

/// Returns the way in which a text in this language is read.
fn choose_reading(language: Option<Language>, vocabulary: &Vocabulary) -> ReadingOptions<'_> {
    ReadingOptions {
        decimal_comma: language.is_some_and(Language::has_decimal_comma),
        capital_nouns: language == Some(Language::German),
        vocabulary: Some(vocabulary),
    }
}

impl ClaimFacts {
    pub(crate) fn new(text: &str, language: Option<Language>, vocabulary: &Vocabulary) -> Self {
        let text = normalize(text);
        let tokens = tokens(&text);
        let facts = facts(&text, &tokens, choose_reading(language, vocabulary));
        // The words of a number or date, such as a unit or month, are compared as a part of it.
        let is_number =
            |fact: &&Fact| matches!(fact.kind, FactKind::Quantity(_) | FactKind::Date(_));
        let is_of = |fact: &Fact, token: &Token| {
            (fact.start..fact.start + fact.text.len()).contains(&token.start)
        };
        let stems = stems_without(&tokens, |token| {
            facts.iter().filter(is_number).any(|fact| is_of(fact, token))
        });
        let context = stems_without(&tokens, |token| facts.iter().any(|fact| is_of(fact, token)));
        Self { signs: Signs::of(&tokens), tokens, facts, stems, context, language }
    }
}

fn stems_without(tokens: &[Token], is_left_out: impl Fn(&Token) -> bool) -> HashSet<String> {
    let words: Vec<_> = tokens.iter().filter(|token| !is_left_out(token)).cloned().collect();
    content_stems(&words).into_iter().collect()
}

/// Joins the title, the headings and the head of a table. Of several versions only that of the nearest heading counts:
/// in a change log, they are not above one another.
fn join_headings(title: &str, path: &str, head: &str) -> String {
    let has_version = |text: &str| {
        tokens(text)
            .iter()
            .any(|token| token.kind == TokenKind::Number && token.folded.contains('.'))
    };
    let mut parts: Vec<_> = std::iter::once(title).chain(path.split(" > ")).collect();
    if let Some(nearest) = parts.iter().rposition(|part| has_version(part)) {
        let mut at = 0;
        parts.retain(|part| {
            at += 1;
            at > nearest || !has_version(part)
        });
    }
    normalize(&format!("{} . {head}", parts.join(" . ")))
}

fn has_same_headings(above: &Block, block: &Block) -> bool {
    let is_same_header = match (&above.header, &block.header) {
        (Some(above), Some(block)) => Arc::ptr_eq(above, block),
        (above, block) => above.is_none() && block.is_none(),
    };
    is_same_header && above.headings == block.headings
}

/// Cuts a text without ends of sentences, such as a listing, into parts in which facts are near each other.
fn cut_long(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    while range.end - start > MAX_UNIT {
        let limit = text.floor_char_boundary(start + MAX_UNIT);
        let end = text[start..limit].rfind(' ').map_or(limit, |at| start + at + 1);
        parts.push(start..end);
        start = end;
    }
    parts.push(start..range.end);
    parts
}

impl PageFacts {
    pub(crate) fn new(page: &Page) -> Self {
        let mut vocabulary = Vocabulary::default();
        let mut words = HashSet::new();
        for block in &page.blocks {
            vocabulary.add(&block.text);
            words.extend(tokens(&block.text).into_iter().map(|token| token.folded));
        }
        let reading = choose_reading(page.language, &vocabulary);
        let title = page.title.as_deref().unwrap_or("");
        let (mut units, mut headings) = (Vec::new(), Vec::<Headings>::new());
        let mut above: Option<&Block> = None;
        for (number, block) in page.blocks.iter().enumerate() {
            if !above.is_some_and(|above| has_same_headings(above, block)) {
                let cells = block.header.as_deref().map(|cells| cells.join(" | "));
                let text = join_headings(title, &block.headings, &cells.unwrap_or_default());
                headings.push(Headings::new(text, reading));
            }
            above = Some(block);
            let ranges = match block.kind {
                BlockKind::Row => vec![Range { start: 0, end: block.text.len() }],
                BlockKind::Paragraph | BlockKind::Item => sentences(&block.text)
                    .into_iter()
                    .flat_map(|range| cut_long(&block.text, range))
                    .collect(),
            };
            for range in ranges {
                let text = block.text[range].trim().to_owned();
                let tokens = tokens(&text);
                units.push(Unit {
                    block: number,
                    headings: headings.len() - 1,
                    header: block.header.clone(),
                    facts: facts(&text, &tokens, reading),
                    stems: content_stems(&tokens).into_iter().collect(),
                    signs: Signs::of(&tokens),
                    kind: block.kind,
                    text,
                    tokens,
                    acronyms: Vec::new(),
                });
            }
        }
        acronym::write_out(&mut units);
        let cannot_deny = match page.obstacle {
            Some(Obstacle::Paywall) => Some(Reason::Paywall),
            Some(Obstacle::CookieWall) => Some(Reason::CookieWall),
            Some(Obstacle::ScriptShell) => Some(Reason::ScriptShell),
            Some(Obstacle::SoftNotFound) => Some(Reason::SoftNotFound),
            Some(Obstacle::Captcha) => Some(Reason::Blocked),
            None if page.truncated => Some(Reason::Truncated),
            None if page.words() < MIN_WORDS => Some(Reason::TooShort),
            None => None,
        };
        let title = tokens(&normalize(title)).into_iter().map(|token| token.folded).collect();
        Self { units, headings, title, words, language: page.language, cannot_deny }
    }

    /// Compares a claim with this page.
    pub(crate) fn compare(&self, claim: &ClaimFacts) -> Evidence {
        let subject = self.subjects(claim);
        let strong: Vec<_> = claim
            .facts
            .iter()
            .zip(&subject)
            .map(|(fact, subject)| !fact.weak && !subject)
            .collect();
        let in_unit = |unit: &Unit| {
            // Another subject's number is not this one's, even if the two are equal.
            let is_foreign = self.is_about_other(claim, &subject, unit);
            let can_have = |fact: &Fact| !is_foreign || matches!(fact.kind, FactKind::Name(_));
            let find = |fact| if can_have(fact) { self.find(fact, unit) } else { None };
            claim.facts.iter().map(find).collect()
        };
        let in_headings = |headings: &Headings| {
            claim.facts.iter().map(|fact| self.find_in_headings(fact, headings)).collect()
        };
        let matches = Matches {
            units: self.units.iter().map(in_unit).collect(),
            headings: self.headings.iter().map(in_headings).collect(),
        };
        let best = self.best_window(claim, &matches, &strong);
        let is_foreign = matches!((claim.language, self.language), (Some(a), Some(b)) if a != b);
        let cannot_deny = if is_foreign { Some(Reason::OtherLanguage) } else { self.cannot_deny };
        let Some(best) = best else {
            let found = vec![false; claim.facts.len()];
            return Evidence {
                found,
                subject,
                is_lowered: false,
                is_rounded: false,
                other_value: None,
                passage: None,
                is_about: false,
                cannot_deny,
            };
        };
        let mut found: Vec<_> = best.found.iter().map(Option::is_some).collect();
        let mut passage = Some(self.passage(&best.units));
        let missing: Vec<_> = (0..found.len()).filter(|at| strong[*at] && !found[*at]).collect();
        let mut other_value = None;
        if let Some((value, units)) = self.other_value(claim, &matches, &strong, &missing) {
            other_value = Some(value);
            passage = Some(self.passage(&units));
            // The passage that differs has everything else.
            for (at, found) in found.iter_mut().enumerate() {
                *found |= strong[at] && !missing.contains(&at);
            }
        }
        if best.count == 0 && other_value.is_none() {
            passage = None;
        }
        let rounded =
            best.found.iter().flatten().any(|found| found.agreement == Agreement::Rounded);
        Evidence {
            found,
            subject,
            is_lowered: best.is_lowered,
            is_rounded: rounded,
            other_value,
            passage,
            is_about: best.count > 0 && self.context(claim, &best.units) >= ABOUT_THE_SAME,
            cannot_deny,
        }
    }

    fn subjects(&self, claim: &ClaimFacts) -> Vec<bool> {
        claim.facts.iter().map(|fact| self.is_subject(fact)).collect()
    }

    fn is_subject(&self, fact: &Fact) -> bool {
        match &fact.kind {
            FactKind::Name(words) => words.iter().all(|word| self.title.contains(word)),
            FactKind::Quote(_) | FactKind::Quantity(_) | FactKind::Date(_) | FactKind::Code(_) => {
                false
            }
        }
    }

    /// Returns true for a sentence that begins with a name which neither the claim nor the page's title has, if the
    /// claim is about the page's own subject.
    fn is_about_other(&self, claim: &ClaimFacts, subject: &[bool], unit: &Unit) -> bool {
        let names = |fact: &Fact| match &fact.kind {
            FactKind::Name(words) => words.clone(),
            FactKind::Quote(_) | FactKind::Quantity(_) | FactKind::Date(_) | FactKind::Code(_) => {
                Vec::new()
            }
        };
        if unit.kind == BlockKind::Row || !subject.contains(&true) {
            return false;
        }
        let own: HashSet<_> = claim.facts.iter().flat_map(names).collect();
        let is_own = |word: &String| own.contains(word) || self.title.contains(word);
        let first = unit.facts.iter().find(|fact| !names(fact).is_empty() && fact.start < 30);
        first.is_some_and(|first| !names(first).iter().any(is_own))
            && !unit.tokens.iter().any(|token| is_own(&token.folded))
    }
}

impl Headings {
    fn new(text: String, reading: ReadingOptions<'_>) -> Self {
        #[cfg(test)]
        work::count();
        let tokens = tokens(&text);
        let facts = facts(&text, &tokens, reading);
        let stems = content_stems(&tokens).into_iter().collect();
        Self { text, tokens, facts, stems }
    }
}

/// Counts how often headings are read or searched.
#[cfg(test)]
mod work {
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        COUNT.with(|count| count.set(count.get() + 1));
    }

    pub(super) fn counted() -> usize {
        COUNT.with(Cell::get)
    }
}

#[cfg(test)]
mod tests;
