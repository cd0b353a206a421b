//! Compares the facts of a claim with the passages of one page (J2). This is a comparison of texts: it finds facts, and
//! does not understand sentences.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::check::Reason;
use super::facts::{
    Agreement, Fact, FactKind, Quantity, Reading, Token, TokenKind, Vocabulary, content_stems,
    facts, tokens,
};
use super::page::{BlockKind, Obstacle, Page};
use super::text::{Language, normalize, sentences, shorten, stem};

/// Sentences that a passage may have.
const WINDOW: usize = 3;
/// The share of a claim's words that a passage needs before a different value in it counts as a difference.
const SAME_SUBJECT: f64 = 0.5;
/// The share of a claim's words without which a passage that has its only fact is about something else.
const SAME_CONTEXT: f64 = 0.34;
/// Pages with fewer words do not deny anything.
const MIN_WORDS: usize = 200;
/// The longest passage that is shown; in characters.
const MAX_PASSAGE: usize = 600;

/// A claim of a report, read once for all its sources.
#[derive(Clone, Debug)]
pub(crate) struct ClaimFacts {
    tokens: Vec<Token>,
    pub(crate) facts: Vec<Fact>,
    stems: HashSet<String>,
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
    /// The reason this page cannot deny a claim.
    pub(crate) cannot_deny: Option<Reason>,
}

/// Negation and directions of a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Signs {
    rises: u64,
    falls: u64,
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

/// Returns the way in which a text in this language is read.
fn reading(language: Option<Language>, vocabulary: &Vocabulary) -> Reading<'_> {
    Reading {
        decimal_comma: language.is_some_and(Language::has_decimal_comma),
        capital_nouns: language == Some(Language::German),
        vocabulary: Some(vocabulary),
    }
}

impl ClaimFacts {
    pub(crate) fn new(text: &str, language: Option<Language>, vocabulary: &Vocabulary) -> Self {
        let text = normalize(text);
        let tokens = tokens(&text);
        let facts = facts(&text, &tokens, reading(language, vocabulary));
        // The words of a number, such as its unit, are compared as a part of it.
        let is_of_number = |token: &Token| {
            facts.iter().any(|fact| {
                matches!(fact.kind, FactKind::Quantity(_))
                    && (fact.start..fact.start + fact.text.len()).contains(&token.start)
            })
        };
        let words: Vec<_> = tokens.iter().filter(|token| !is_of_number(token)).cloned().collect();
        let stems = content_stems(&words).into_iter().collect();
        Self { signs: Signs::of(&tokens), tokens, facts, stems, language }
    }
}

impl PageFacts {
    pub(crate) fn new(page: &Page) -> Self {
        let mut vocabulary = Vocabulary::default();
        let mut words = HashSet::new();
        for block in &page.blocks {
            vocabulary.add(&block.text);
            words.extend(tokens(&block.text).into_iter().map(|token| token.folded));
        }
        let reading = reading(page.language, &vocabulary);
        let title = page.title.as_deref().unwrap_or("");
        let (mut units, mut headings) = (Vec::new(), Vec::<Headings>::new());
        for (number, block) in page.blocks.iter().enumerate() {
            let head = block.header.as_deref().map(|cells| cells.join(" | ")).unwrap_or_default();
            let text = normalize(&format!("{title} . {} . {head}", block.headings));
            if headings.last().is_none_or(|last| last.text != text) {
                headings.push(Headings::new(text, reading));
            }
            let ranges = match block.kind {
                BlockKind::Row => vec![Range { start: 0, end: block.text.len() }],
                BlockKind::Paragraph | BlockKind::Item => sentences(&block.text),
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
                });
            }
        }
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
        let matches: Vec<Vec<Option<Match>>> = self
            .units
            .iter()
            .map(|unit| {
                // Another subject's number is not this one's, even if the two are equal.
                let is_foreign = self.is_about_other(claim, &subject, unit);
                let can_have = |fact: &Fact| !is_foreign || matches!(fact.kind, FactKind::Name(_));
                let find = |fact| if can_have(fact) { self.find(fact, unit) } else { None };
                claim.facts.iter().map(find).collect()
            })
            .collect();
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
                cannot_deny,
            };
        };
        let mut found: Vec<_> = best.found.iter().map(Option::is_some).collect();
        let mut passage = Some(self.passage(&best.units));
        let missing: Vec<_> = (0..found.len()).filter(|at| strong[*at] && !found[*at]).collect();
        let mut other_value = None;
        if let [missing] = missing.as_slice()
            && let Some((value, units)) = self.other_value(claim, &matches, &strong, *missing)
        {
            other_value = Some(value);
            passage = Some(self.passage(&units));
            // The passage that differs has everything else.
            for (at, found) in found.iter_mut().enumerate() {
                *found |= strong[at] && at != *missing;
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

    fn passage(&self, units: &Range<usize>) -> String {
        let texts: Vec<_> =
            self.units[units.clone()].iter().map(|unit| unit.text.as_str()).collect();
        shorten(&texts.join(" "), MAX_PASSAGE)
    }

    fn find(&self, fact: &Fact, unit: &Unit) -> Option<Match> {
        let equal = |at| Match { at, agreement: Agreement::Equal };
        match &fact.kind {
            FactKind::Quote(words) => find_words(&unit.tokens, words).map(equal),
            FactKind::Name(words) => self.find_name(words, &fact.text, &unit.tokens).map(equal),
            FactKind::Code(code) => find_code(&unit.text.to_lowercase(), code).map(equal),
            FactKind::Date(date) => unit.facts.iter().find_map(|found| match &found.kind {
                FactKind::Date(other) => date.is_stated_by(*other).then(|| equal(found.start)),
                _ => None,
            }),
            FactKind::Quantity(quantity) => {
                let agreeing = unit.facts.iter().filter_map(|found| match &found.kind {
                    FactKind::Quantity(other) => {
                        let agreement = self.agreement(quantity, other, unit, fact)?;
                        Some(Match { at: found.start, agreement })
                    }
                    _ => None,
                });
                agreeing.min_by_key(|found| found.agreement)
            }
        }
    }

    /// Compares two numbers; the unit of a table's number may be in the head of its column.
    fn agreement(
        &self,
        own: &Quantity,
        page: &Quantity,
        unit: &Unit,
        fact: &Fact,
    ) -> Option<Agreement> {
        if own.unit.is_some() && page.unit.is_none() {
            let agreement = own.agrees(&page.in_unit_of(own))?;
            let of_fact = tokens(&fact.text);
            let is_named = of_fact.last().is_some_and(|name| {
                let is_name = |token: &Token| {
                    token.folded == name.folded || stem(&token.folded) == stem(&name.folded)
                };
                unit.tokens.iter().any(is_name)
                    || self.headings[unit.headings].tokens.iter().any(is_name)
            });
            return if is_named { Some(agreement) } else { Some(Agreement::BoundDiffers) };
        }
        if own.unit.is_none() && page.unit.is_some() {
            return own.in_unit_of(page).agrees(page).or_else(|| own.agrees(page));
        }
        own.agrees(page)
    }

    fn find_name(&self, words: &[String], written: &str, tokens: &[Token]) -> Option<usize> {
        if let Some(at) = find_words(tokens, words) {
            return Some(at);
        }
        // The last name of a person whose whole name the page has elsewhere.
        if let [_, .., last] = words
            && last.chars().count() > 3
            && words.iter().all(|word| self.words.contains(word))
            && let Some(token) = tokens.iter().find(|token| token.folded == *last)
        {
            return Some(token.start);
        }
        let is_capital = |token: &&Token| token.kind == TokenKind::Capital;
        if let [word] = words {
            let is_acronym =
                written.chars().count() >= 2 && written.chars().all(char::is_uppercase);
            if is_acronym {
                return initials(tokens, word);
            }
            return tokens
                .iter()
                .filter(is_capital)
                .find(|token| is_adjective(word, &token.folded))
                .map(|token| token.start);
        }
        let short: String = words
            .iter()
            .filter(|word| word.len() > 3 || words.len() < 3)
            .filter_map(|word| word.chars().next())
            .collect();
        let is_short = |token: &&Token| {
            short.chars().count() >= 2
                && token.folded.replace('.', "") == short
                && token.kind == TokenKind::Capital
        };
        tokens.iter().find(is_short).map(|token| token.start)
    }

    /// Returns the passage with most facts of the claim; of several, the one that is most about its subject.
    fn best_window(
        &self,
        claim: &ClaimFacts,
        matches: &[Vec<Option<Match>>],
        strong: &[bool],
    ) -> Option<Window> {
        let mut best: Option<Window> = None;
        for start in 0..self.units.len() {
            for length in 1..=WINDOW {
                let end = start + length;
                let is_whole = length == 1
                    || (end <= self.units.len()
                        && self.units[end - 1].block == self.units[start].block);
                if !is_whole {
                    break;
                }
                let window = self.window(claim, matches, strong, start..end);
                let is_better = best.as_ref().is_none_or(|best| window.rank() > best.rank());
                if is_better {
                    best = Some(window);
                }
            }
        }
        best
    }

    fn window(
        &self,
        claim: &ClaimFacts,
        matches: &[Vec<Option<Match>>],
        strong: &[bool],
        units: Range<usize>,
    ) -> Window {
        let headings = &self.headings[self.units[units.start].headings];
        let mut found: Vec<Option<Match>> = vec![None; claim.facts.len()];
        let mut places: Vec<Option<usize>> = vec![None; claim.facts.len()];
        for (at, fact) in claim.facts.iter().enumerate() {
            for unit in units.clone() {
                if found[at].is_none()
                    && let Some(hit) = matches[unit][at]
                {
                    found[at] = Some(hit);
                    places[at] = Some(unit);
                }
            }
            if found[at].is_none()
                && units.len() > 1
                && let FactKind::Quote(words) = &fact.kind
            {
                let all: Vec<_> = self.units[units.clone()]
                    .iter()
                    .flat_map(|unit| unit.tokens.iter().cloned())
                    .collect();
                found[at] =
                    find_words(&all, words).map(|at| Match { at, agreement: Agreement::Equal });
            }
            if found[at].is_none() {
                found[at] = self.find_in_headings(fact, headings);
            }
        }
        let count =
            found.iter().zip(strong).filter(|(found, strong)| found.is_some() && **strong).count();
        let weak =
            found.iter().zip(strong).filter(|(found, strong)| found.is_some() && !**strong).count();
        let overlap = self.overlap(claim, &units);
        let is_lowered =
            count > 0 && self.is_lowered(claim, &units, &found, &places, strong, overlap);
        Window { units, found, count, weak, overlap, is_lowered }
    }

    fn find_in_headings(&self, fact: &Fact, headings: &Headings) -> Option<Match> {
        let at = match &fact.kind {
            FactKind::Name(words) => self.find_name(words, &fact.text, &headings.tokens),
            FactKind::Code(code) => find_code(&headings.text.to_lowercase(), code),
            FactKind::Date(date) => headings.facts.iter().find_map(|found| match &found.kind {
                FactKind::Date(other) => date.is_stated_by(*other).then_some(0),
                _ => None,
            }),
            FactKind::Quantity(_) | FactKind::Quote(_) => None,
        };
        at.map(|at| Match { at, agreement: Agreement::Equal })
    }

    /// The share of the claim's words that a passage and its headings have.
    fn overlap(&self, claim: &ClaimFacts, units: &Range<usize>) -> f64 {
        let headings = &self.headings[self.units[units.start].headings];
        let has = |word: &&String| {
            headings.stems.contains(*word)
                || self.units[units.clone()].iter().any(|unit| unit.stems.contains(*word))
        };
        let found = claim.stems.iter().filter(has).count();
        found as f64 / claim.stems.len().max(1) as f64
    }

    /// Returns true if the passage has the facts in another sense.
    fn is_lowered(
        &self,
        claim: &ClaimFacts,
        units: &Range<usize>,
        found: &[Option<Match>],
        places: &[Option<usize>],
        strong: &[bool],
        overlap: f64,
    ) -> bool {
        if found.iter().zip(strong).any(|(found, strong)| {
            *strong && found.is_some_and(|found| found.agreement == Agreement::BoundDiffers)
        }) {
            return true;
        }
        // The units that have a fact of the claim; the others are only between them.
        let having: Vec<_> = units.clone().filter(|unit| places.contains(&Some(*unit))).collect();
        let signs =
            having.iter().fold(Signs::default(), |all, unit| all.and(self.units[*unit].signs));
        if claim.signs.opposes(signs) {
            return true;
        }
        // "No" is a cell of many tables.
        let page_negated = having
            .iter()
            .map(|unit| &self.units[*unit])
            .any(|unit| unit.kind != BlockKind::Row && is_negated(&unit.tokens, &claim.stems));
        if is_negated(&claim.tokens, &claim.stems) != page_negated {
            return true;
        }
        if self.is_swapped(claim, places, found)
            || self.is_in_other_column(claim, places, found, strong)
        {
            return true;
        }
        if self.has_other_subject(claim, &having, places, found, strong) {
            return true;
        }
        // One common fact in a passage about something else proves nothing.
        let facts: Vec<_> = claim
            .facts
            .iter()
            .zip(strong)
            .filter(|(_, strong)| **strong)
            .map(|(fact, _)| fact)
            .collect();
        let is_distinctive = facts.len() > 1
            && facts.iter().any(|fact| !matches!(fact.kind, FactKind::Name(_)))
            || facts.iter().any(|fact| match &fact.kind {
                FactKind::Quantity(quantity) => quantity.is_distinctive(),
                FactKind::Date(date) => date.day.is_some() && date.year.is_some(),
                FactKind::Quote(_) | FactKind::Code(_) => true,
                FactKind::Name(_) => false,
            });
        let is_named = facts.iter().all(|fact| matches!(fact.kind, FactKind::Name(_)));
        (!is_distinctive && overlap < SAME_CONTEXT) || (is_named && overlap < SAME_SUBJECT)
    }

    /// Returns true if two names of the claim are in the passage's sentence with their roles swapped.
    fn is_swapped(
        &self,
        claim: &ClaimFacts,
        places: &[Option<usize>],
        found: &[Option<Match>],
    ) -> bool {
        let names: Vec<_> = (0..claim.facts.len())
            .filter(|at| matches!(claim.facts[*at].kind, FactKind::Name(_)))
            .collect();
        for pair in names.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let (Some(place_a), Some(place_b)) = (places[a], places[b]) else { continue };
            let (Some(hit_a), Some(hit_b)) = (found[a], found[b]) else { continue };
            if place_a != place_b || self.units[place_a].kind == BlockKind::Row {
                continue;
            }
            let unit = &self.units[place_a];
            let own = between(&claim.tokens, claim.facts[a].start, claim.facts[b].start);
            let (low, high) = (hit_a.at.min(hit_b.at), hit_a.at.max(hit_b.at));
            let page = between(&unit.tokens, low, high);
            let own_verbs: HashSet<_> = content_stems(own).into_iter().collect();
            let has_same_verb = content_stems(page).iter().any(|word| own_verbs.contains(word));
            let is_passive = |tokens: &[Token]| {
                tokens.iter().any(|token| matches!(token.folded.as_str(), "by" | "von" | "par"))
            };
            let is_reversed = hit_a.at > hit_b.at;
            if has_same_verb && is_reversed == (is_passive(own) == is_passive(page)) {
                return true;
            }
        }
        // A number or name next to another one's label: "A was written by B and edited by C".
        (0..claim.facts.len()).any(|at| {
            let (Some(place), Some(hit)) = (places[at], found[at]) else { return false };
            let unit = &self.units[place];
            unit.kind != BlockKind::Row && belongs_to_other_label(claim, at, unit, hit.at)
        })
    }

    /// Returns true if a cell has the fact, but the claim names the head of another column.
    fn is_in_other_column(
        &self,
        claim: &ClaimFacts,
        places: &[Option<usize>],
        found: &[Option<Match>],
        strong: &[bool],
    ) -> bool {
        (0..claim.facts.len()).filter(|at| strong[*at]).any(|at| {
            let (Some(place), Some(hit)) = (places[at], found[at]) else { return false };
            let unit = &self.units[place];
            let Some(header) = &unit.header else { return false };
            let before = unit.text.get(..hit.at).unwrap_or_default();
            let column = before.matches(" | ").count();
            if column == 0 {
                return false;
            }
            let named = |column: usize| {
                header.get(column).is_some_and(|head| {
                    content_stems(&tokens(head)).iter().any(|word| claim.stems.contains(word))
                })
            };
            !named(column) && (1..header.len()).any(|other| other != column && named(other))
        })
    }

    /// Returns true if a fact is in a sentence that begins with a name which the claim does not have, while the claim's
    /// own name is in another sentence.
    fn has_other_subject(
        &self,
        claim: &ClaimFacts,
        having: &[usize],
        places: &[Option<usize>],
        found: &[Option<Match>],
        strong: &[bool],
    ) -> bool {
        let is_name = |at: usize| matches!(claim.facts[at].kind, FactKind::Name(_));
        let own_names: HashSet<&String> = claim
            .facts
            .iter()
            .filter_map(|fact| match &fact.kind {
                FactKind::Name(words) => Some(words),
                _ => None,
            })
            .flatten()
            .collect();
        having.iter().any(|unit| {
            let has_own_name = (0..found.len()).any(|at| is_name(at) && places[at] == Some(*unit));
            let has_value =
                (0..found.len()).any(|at| !is_name(at) && strong[at] && places[at] == Some(*unit));
            let own_name_is_elsewhere =
                (0..found.len()).any(|at| is_name(at) && strong[at] && places[at] != Some(*unit));
            let first =
                self.units[*unit].facts.iter().find(|fact| matches!(fact.kind, FactKind::Name(_)));
            let begins_with_other = first.is_some_and(|fact| match &fact.kind {
                FactKind::Name(words) => {
                    fact.start < 30
                        && !words
                            .iter()
                            .any(|word| own_names.contains(word) || self.title.contains(word))
                }
                _ => false,
            });
            has_value && !has_own_name && own_name_is_elsewhere && begins_with_other
        })
    }

    /// Finds the passage that has everything but one fact, and has another value of the same kind in its place.
    fn other_value(
        &self,
        claim: &ClaimFacts,
        matches: &[Vec<Option<Match>>],
        strong: &[bool],
        missing: usize,
    ) -> Option<(String, Range<usize>)> {
        let fact = &claim.facts[missing];
        let mut best: Option<(f64, String, Range<usize>)> = None;
        for (number, unit) in self.units.iter().enumerate() {
            let units = number..number + 1;
            let headings = &self.headings[unit.headings];
            if self.is_about_other(claim, &self.subjects(claim), unit) {
                continue;
            }
            let has_others =
                (0..claim.facts.len()).filter(|at| strong[*at] && *at != missing).all(|at| {
                    matches[number][at].is_some()
                        || self.find_in_headings(&claim.facts[at], headings).is_some()
                });
            if !has_others {
                continue;
            }
            let overlap = self.overlap(claim, &units);
            let has_anchor = strong.iter().filter(|strong| **strong).count() > 1;
            if overlap < SAME_SUBJECT || (!has_anchor && overlap <= SAME_SUBJECT) {
                continue;
            }
            let Some(value) = other_value_in(claim, fact, unit) else { continue };
            if best.as_ref().is_none_or(|(score, ..)| overlap > *score) {
                best = Some((overlap, value, units));
            }
        }
        best.map(|(_, value, units)| (value, units))
    }
}

/// A passage of a page and what it has of a claim.
struct Window {
    units: Range<usize>,
    found: Vec<Option<Match>>,
    count: usize,
    weak: usize,
    overlap: f64,
    is_lowered: bool,
}

impl Window {
    fn rank(&self) -> (usize, bool, u32, std::cmp::Reverse<usize>) {
        // Whole steps, so that a longer passage needs more than one word to win.
        let about = (self.overlap * 8.0) as u32 + u32::try_from(self.weak).unwrap_or(0);
        (self.count, !self.is_lowered, about, std::cmp::Reverse(self.units.len()))
    }
}

impl Headings {
    fn new(text: String, reading: Reading<'_>) -> Self {
        let tokens = tokens(&text);
        let facts = facts(&text, &tokens, reading);
        let stems = content_stems(&tokens).into_iter().collect();
        Self { text, tokens, facts, stems }
    }
}

impl Signs {
    fn of(tokens: &[Token]) -> Self {
        const PAIRS: [(&str, &str); 22] = [
            (
                "increase increases increased increasing rise rises rose risen rising grew grow grows growing growth gain gained gains climbed up",
                "decrease decreases decreased decreasing fall falls fell fallen falling shrink shrank declined decline declines declining drop drops dropped down reduced",
            ),
            ("more greater higher larger longer bigger", "fewer less lower smaller shorter"),
            ("before earlier prior", "after later since"),
            ("above over", "below under"),
            ("largest biggest highest longest tallest most", "smallest lowest shortest least"),
            ("north northern", "south southern"),
            ("east eastern", "west western"),
            ("win won wins winner", "lose lost loses loser"),
            ("accept accepted accepts approve approved", "reject rejected rejects refused"),
            (
                "allow allowed allows permitted permit permits",
                "forbid forbidden forbids prohibited prohibits banned disallow disallows",
            ),
            ("enable enabled enables", "disable disabled disables"),
            ("begin began begins start started starts", "end ended ends stop stopped stops"),
            ("import imports imported", "export exports exported"),
            ("buy bought buys", "sell sold sells"),
            ("open opened opens", "close closed closes"),
            ("add added adds", "remove removed removes"),
            ("maximum max", "minimum min"),
            ("male men man", "female women woman"),
            ("profit profits", "loss losses"),
            ("first", "last"),
            ("always", "never"),
            ("optional", "required mandatory"),
        ];
        let has = |words: &str| {
            tokens.iter().any(|token| words.split(' ').any(|word| word == token.folded))
        };
        let mut signs = Self::default();
        for (number, (rises, falls)) in PAIRS.iter().enumerate() {
            signs.rises |= u64::from(has(rises)) << number;
            signs.falls |= u64::from(has(falls)) << number;
        }
        signs
    }

    fn and(self, other: Self) -> Self {
        Self { rises: self.rises | other.rises, falls: self.falls | other.falls }
    }

    /// Returns true if one has only one direction of a pair and the other only the opposite one.
    fn opposes(self, other: Self) -> bool {
        let rises = self.rises & !self.falls & other.falls & !other.rises;
        let falls = self.falls & !self.rises & other.rises & !other.falls;
        rises | falls != 0
    }
}

/// Returns true if a negation is near a word of the claim.
fn is_negated(tokens: &[Token], words: &HashSet<String>) -> bool {
    const NOT: [&str; 15] = [
        "not", "no", "never", "without", "neither", "nor", "none", "cannot", "nicht", "kein",
        "keine", "keinen", "ohne", "nie", "pas",
    ];
    tokens.iter().enumerate().any(|(at, token)| {
        let is_not = NOT.contains(&token.folded.as_str()) || token.folded.ends_with("n't");
        let near = tokens[at + 1..].iter().take(5);
        is_not
            && near
                .filter(|near| near.kind != TokenKind::Sign)
                .take(3)
                .any(|near| words.contains(&stem(&near.folded)) || near.kind == TokenKind::Number)
    })
}

fn between(tokens: &[Token], low: usize, high: usize) -> &[Token] {
    let from = tokens.partition_point(|token| token.start <= low);
    let to = tokens.partition_point(|token| token.start < high).max(from);
    &tokens[from..to]
}

/// Returns true if the word before a fact of the claim is in the page's sentence, but another fact of the same kind is
/// nearer to it there.
fn belongs_to_other_label(claim: &ClaimFacts, fact: usize, unit: &Unit, hit: usize) -> bool {
    let fact = &claim.facts[fact];
    let is_same_kind =
        |other: &Fact| std::mem::discriminant(&other.kind) == std::mem::discriminant(&fact.kind);
    let before = &claim.tokens[..claim.tokens.partition_point(|token| token.start < fact.start)];
    // The label belongs to this fact only if no other fact is between.
    let previous = claim
        .facts
        .iter()
        .filter(|other| other.start < fact.start)
        .map(|other| other.start + other.text.len())
        .max();
    let label = before.iter().rev().take(4).find(|token| {
        token.kind == TokenKind::Word && !super::text::is_function_word(&token.folded)
    });
    let Some(label) = label.filter(|label| previous.is_none_or(|end| label.start >= end)) else {
        return false;
    };
    let label = stem(&label.folded);
    let places: Vec<_> = unit
        .tokens
        .iter()
        .filter(|token| stem(&token.folded) == label)
        .map(|token| token.start)
        .collect();
    let [place] = places.as_slice() else { return false };
    let values: Vec<_> =
        unit.facts.iter().filter(|other| is_same_kind(other)).map(|other| other.start).collect();
    let next = values.iter().filter(|at| *at > place).min();
    // The first value after the label is its own, in both texts.
    next.is_some_and(|next| *next < hit && hit - next > 3)
}

fn other_value_in(claim: &ClaimFacts, fact: &Fact, unit: &Unit) -> Option<String> {
    let is_in_claim = |other: &Fact| {
        claim.facts.iter().any(|own| match (&own.kind, &other.kind) {
            (FactKind::Quantity(a), FactKind::Quantity(b)) => a.agrees(b).is_some(),
            (a, b) => a == b,
        })
    };
    let others = || {
        unit.facts
            .iter()
            .filter(|other| !other.weak || fact.weak)
            .filter(|other| !is_in_claim(other))
    };
    match &fact.kind {
        FactKind::Quantity(own) => {
            let same = |other: &&Fact| matches!(&other.kind, FactKind::Quantity(page) if own.is_same_kind(page) || (page.unit.is_none() && unit.kind == BlockKind::Row));
            others().find(same).map(|other| other.text.clone())
        }
        FactKind::Date(own) => {
            let same = |other: &&Fact| matches!(&other.kind, FactKind::Date(page) if page.month.is_some() == own.month.is_some() && page.day.is_some() >= own.day.is_some());
            others().find(same).map(|other| other.text.clone())
        }
        FactKind::Code(own) => {
            let is_version = |code: &str| {
                code.contains('.') && code.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            };
            let same = |other: &&Fact| matches!(&other.kind, FactKind::Code(page) if is_version(own) && is_version(page));
            others().find(same).map(|other| other.text.clone())
        }
        FactKind::Quote(words) => {
            let own: HashSet<_> = words.iter().collect();
            let places: Vec<_> =
                unit.tokens.iter().filter(|token| own.contains(&token.folded)).collect();
            let (first, last) = (places.first()?, places.last()?);
            let shared = places.iter().map(|token| &token.folded).collect::<HashSet<_>>().len();
            let length = between(&unit.tokens, first.start, last.end).len() + 1;
            (shared * 10 >= own.len() * 7 && length <= words.len() * 2)
                .then(|| unit.text[first.start..last.end].to_owned())
        }
        FactKind::Name(_) => None,
    }
}

/// Finds words in order, without other words between them; returns the byte at which they begin.
fn find_words(tokens: &[Token], words: &[String]) -> Option<usize> {
    let plain: Vec<_> = tokens.iter().filter(|token| token.kind != TokenKind::Sign).collect();
    let mut windows = plain.windows(words.len().max(1));
    windows
        .find(|window| window.iter().zip(words).all(|(token, word)| token.folded == *word))
        .map(|window| window[0].start)
}

/// Finds an identifier that is not a part of a longer one.
fn find_code(text: &str, code: &str) -> Option<usize> {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(code).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let mut after = text[at + code.len()..].chars();
        let (next, second) = (after.next(), after.next());
        let is_longer_version = next == Some('.')
            && second.is_some_and(|c| c.is_ascii_digit())
            && code.ends_with(|c: char| c.is_ascii_digit());
        let begins_inside = before.is_some_and(|c| {
            joins(c) && c != 'v' || (c == '.' && code.starts_with(|d: char| d.is_ascii_digit()))
        });
        !begins_inside && !next.is_some_and(joins) && !is_longer_version
    })
}

/// Finds capitalised words whose first letters are an acronym.
fn initials(tokens: &[Token], acronym: &str) -> Option<usize> {
    let capitals: Vec<_> = tokens.iter().filter(|token| token.kind == TokenKind::Capital).collect();
    capitals
        .windows(acronym.chars().count().max(2))
        .find(|window| {
            window
                .iter()
                .map(|token| token.folded.chars().next().unwrap_or(' '))
                .eq(acronym.chars())
        })
        .map(|window| window[0].start)
}

/// Returns true for German and Germany, Italian and Italy, Austrian and Austria.
fn is_adjective(a: &str, b: &str) -> bool {
    const ENDINGS: [&str; 9] = ["s", "n", "an", "ian", "ese", "ish", "i", "y", "es"];
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let is_long_enough = short.chars().count() >= 4;
    is_long_enough
        && (long.strip_prefix(short).is_some_and(|rest| ENDINGS.contains(&rest))
            || short
                .strip_suffix('y')
                .is_some_and(|base| long.strip_prefix(base).is_some_and(|rest| rest == "ian")))
}
