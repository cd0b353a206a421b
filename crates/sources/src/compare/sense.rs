//! The sense in which a passage uses the facts of a claim: directions, negations, roles, columns and subjects.

use std::collections::HashSet;
use std::ops::Range;

use super::{ClaimFacts, Match, PageFacts, SAME_SUBJECT, Unit};
use crate::facts::{Agreement, Fact, FactKind, Token, TokenKind, content_stems, tokens};
use crate::page::BlockKind;
use crate::text::{is_function_word, stem};

/// The share of a claim's words without which a passage that has its only fact is about something else.
const SAME_CONTEXT: f64 = 0.34;

/// Negation and directions of a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Signs {
    rises: u64,
    falls: u64,
}

impl PageFacts {
    /// Returns true if the passage has the facts in another sense.
    pub(super) fn is_lowered(
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
}

impl Signs {
    pub(super) fn of(tokens: &[Token]) -> Self {
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

    pub(super) fn and(self, other: Self) -> Self {
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

pub(super) fn between(tokens: &[Token], low: usize, high: usize) -> &[Token] {
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
    let label = before
        .iter()
        .rev()
        .take(4)
        .find(|token| token.kind == TokenKind::Word && !is_function_word(&token.folded));
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
    // The first value after the label is its own, in both texts, unless their prepositions differ: "a leak when
    // using A with B".
    let Some(next) = next.filter(|next| **next < hit && hit - **next > 3) else { return false };
    let own = word_before(&claim.tokens, fact.start).filter(|word| is_function_word(word));
    let is_told_apart = own.is_some()
        && own == word_before(&unit.tokens, hit)
        && own != word_before(&unit.tokens, *next);
    !is_told_apart
}

/// Returns the word directly before a place.
fn word_before(tokens: &[Token], at: usize) -> Option<&str> {
    let before = &tokens[..tokens.partition_point(|token| token.start < at)];
    let word = before.iter().rev().find(|token| token.kind != TokenKind::Sign);
    word.filter(|word| word.kind == TokenKind::Word).map(|word| word.folded.as_str())
}
