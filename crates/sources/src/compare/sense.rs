//! The sense in which a passage uses the facts of a claim: directions, negations, roles, columns and subjects.

use std::collections::HashSet;
use std::ops::Range;

use super::{ClaimFacts, Match, PageFacts, SAME_SUBJECT, Unit};
use crate::facts::{Agreement, Fact, FactKind, Token, TokenKind, content_stems, tokens};
use crate::page::BlockKind;
use crate::text::{self, is_function_word, stem};

/// The share of a claim's words without which a passage that has its only fact is about something else.
const SAME_CONTEXT: f64 = 0.34;
/// The share of the words around its facts without which a passage only mentions the names of a claim.
const MENTIONED: f64 = 0.3;
/// The same for a claim with a single name.
const MENTIONED_ALONE: f64 = 0.6;

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
        let having = self.having(units, places);
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
        // Names and identifiers are in many sentences: what the claim states of them must be in this one.
        let is_mentioned =
            facts.iter().all(|fact| matches!(fact.kind, FactKind::Name(_) | FactKind::Code(_)));
        (!is_distinctive && overlap < SAME_CONTEXT)
            || (is_named && overlap < SAME_SUBJECT)
            || (is_mentioned
                && claim.context.len() >= 2
                && self.context(claim, units)
                    < if facts.len() == 1 { MENTIONED_ALONE } else { MENTIONED })
    }

    /// Returns the sentences that have a fact of the claim; the others are only between them.
    fn having(&self, units: &Range<usize>, places: &[Option<usize>]) -> Vec<usize> {
        units.clone().filter(|unit| places.contains(&Some(*unit))).collect()
    }

    /// Returns true if the passage states the opposite of the claim, or only asks.
    pub(super) fn opposes(
        &self,
        claim: &ClaimFacts,
        units: &Range<usize>,
        found: &[Option<Match>],
        places: &[Option<usize>],
    ) -> bool {
        let having = self.having(units, places);
        let signs =
            having.iter().fold(Signs::default(), |all, unit| all.and(self.units[*unit].signs));
        if claim.signs.opposes(signs) {
            return true;
        }
        // "No" is a cell of many tables.
        let sentences: Vec<_> = having
            .iter()
            .map(|unit| &self.units[*unit])
            .filter(|unit| unit.kind != BlockKind::Row)
            .collect();
        let is_negated = if has_negation(&claim.tokens) {
            is_negated(&claim.tokens, &claim.stems)
                && !sentences.iter().any(|unit| has_negation(&unit.tokens))
        } else {
            sentences.iter().any(|unit| is_negated(&unit.tokens, &claim.stems))
        };
        if is_negated || sentences.iter().any(|unit| negates_other_word(claim, unit)) {
            return true;
        }
        let is_opposite = |at: usize| {
            let (Some(place), Some(hit)) = (places[at], found[at]) else { return false };
            let unit = &self.units[place];
            let fact = &claim.facts[at];
            let is_contrast = unit.kind != BlockKind::Row && !has_negation(&claim.tokens) && {
                let before = unit.tokens.partition_point(|token| token.start < hit.at);
                before > 0 && is_negation(&unit.tokens[before - 1])
            };
            is_contrast || side(&claim.tokens, fact.start) * side(&unit.tokens, hit.at) < 0
        };
        // A question states nothing.
        (0..found.len()).any(is_opposite)
            || (!having.is_empty()
                && having.iter().all(|unit| self.units[*unit].text.ends_with('?')))
    }

    /// Returns true if two facts of the claim are in the passage's sentence with their roles swapped.
    fn is_swapped(
        &self,
        claim: &ClaimFacts,
        places: &[Option<usize>],
        found: &[Option<Match>],
    ) -> bool {
        let is_pair = |a: usize, b: usize| {
            let (a, b) = (&claim.facts[a].kind, &claim.facts[b].kind);
            std::mem::discriminant(a) == std::mem::discriminant(b) && a != b
        };
        for a in 0..claim.facts.len() {
            let Some(b) = (a + 1..claim.facts.len()).find(|b| is_pair(a, *b)) else { continue };
            let (Some(place_a), Some(place_b)) = (places[a], places[b]) else { continue };
            let (Some(hit_a), Some(hit_b)) = (found[a], found[b]) else { continue };
            if place_a != place_b || self.units[place_a].kind == BlockKind::Row {
                continue;
            }
            let unit = &self.units[place_a];
            let own = between(&claim.tokens, claim.facts[a].start, claim.facts[b].start);
            let (low, high) = (hit_a.at.min(hit_b.at), hit_a.at.max(hit_b.at));
            let page = between(&unit.tokens, low, high);
            let own_verbs: HashSet<_> = verbs(own, &claim.facts).collect();
            let has_same_verb = verbs(page, &unit.facts).any(|word| own_verbs.contains(&word));
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
            let is_other_named = || (1..header.len()).any(|other| other != column && named(other));
            (!named(column) && is_other_named())
                || claim.labels_other_column(&claim.facts[at], header, column)
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

impl ClaimFacts {
    /// Returns true if the label before a fact is the head of another column than its own: "A takes 5 ms and B 3 ms".
    fn labels_other_column(&self, fact: &Fact, header: &[String], column: usize) -> bool {
        let stems: Vec<HashSet<_>> =
            header.iter().map(|head| content_stems(&tokens(head)).into_iter().collect()).collect();
        let is_label = |token: &Token, column: usize| {
            let word = stem(&token.folded);
            stems[column].contains(&word)
                && stems.iter().filter(|words| words.contains(&word)).count() == 1
        };
        let is_value = |token: &Token| {
            self.facts.iter().any(|other| {
                other.start == token.start && matches!(other.kind, FactKind::Quantity(_))
            })
        };
        if column >= header.len() {
            return false;
        }
        let before = &self.tokens[..self.tokens.partition_point(|token| token.start < fact.start)];
        let from = self.tokens.partition_point(|token| token.start <= fact.start);
        let mut after = self.tokens[from..].iter().take_while(|token| !is_value(token));
        if after.any(|token| is_label(token, column)) {
            return false;
        }
        let nearest = before
            .iter()
            .rev()
            .take_while(|token| !is_value(token))
            .find_map(|token| (1..header.len()).find(|column| is_label(token, *column)));
        nearest.is_some_and(|nearest| nearest != column)
    }
}

impl Signs {
    pub(super) fn of(tokens: &[Token]) -> Self {
        const PAIRS: [(&str, &str); 28] = [
            (
                "increase increases increased increasing rise rises rose risen rising grew grow grows growing growth gain gained gains climbed up",
                "decrease decreases decreased decreasing fall falls fell fallen falling shrink shrank declined decline declines declining drop drops dropped down reduced",
            ),
            ("more greater higher larger longer bigger", "fewer less lower smaller shorter"),
            ("earlier", "later"),
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
            (
                "add added adds introduce introduced introduces",
                "remove removed removes drop dropped drops delete deleted deletes",
            ),
            ("faster quicker", "slower"),
            ("within inside", "outside"),
            ("include included includes including", "exclude excluded excludes excluding"),
            ("respect respected respects honor honors honours", "ignore ignored ignores"),
            ("raise raised raises", "lower lowered lowers"),
            ("succeed succeeded succeeds", "fail failed fails"),
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

/// Returns true if a negation is near a word of the claim. "On June 15, not May 15" negates only the other date.
fn is_negated(tokens: &[Token], words: &HashSet<String>) -> bool {
    tokens.iter().enumerate().any(|(at, token)| {
        let is_value = tokens.get(at + 1).is_some_and(|next| {
            next.kind == TokenKind::Number || text::month(&next.folded).is_some()
        });
        let near = tokens[at + 1..].iter().take(5);
        is_negation(token)
            && !is_value
            && near
                .filter(|near| near.kind != TokenKind::Sign)
                .take(3)
                .any(|near| words.contains(&stem(&near.folded)) || near.kind == TokenKind::Number)
    })
}

const NEGATIONS: [&str; 16] = [
    "not", "non", "no", "never", "without", "neither", "nor", "none", "cannot", "nicht", "kein",
    "keine", "keinen", "ohne", "nie", "pas",
];

fn is_negation(token: &Token) -> bool {
    NEGATIONS.contains(&token.folded.as_str()) || token.folded.ends_with("n't")
}

fn has_negation(tokens: &[Token]) -> bool {
    tokens.iter().any(is_negation)
}

/// Returns the stems of the words that follow each negation.
fn negated(tokens: &[Token], words: usize) -> HashSet<String> {
    let after = |at: usize| {
        let content = content_stems(&tokens[at + 1..(at + 7).min(tokens.len())]);
        content.into_iter().take(words)
    };
    (0..tokens.len()).filter(|at| is_negation(&tokens[*at])).flat_map(after).collect()
}

/// Returns true if one text negates a word that the other has without negation.
fn negates_other_word(claim: &ClaimFacts, unit: &Unit) -> bool {
    let states = |tokens: &[Token], stems: &HashSet<String>, word: &String| {
        stems.contains(word) && !negated(tokens, 3).contains(word)
    };
    negated(&claim.tokens, 1).iter().any(|word| states(&unit.tokens, &unit.stems, word))
        || negated(&unit.tokens, 1).iter().any(|word| states(&claim.tokens, &claim.stems, word))
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

/// Returns the stems of the words between two facts. Verbs of the same meaning are the same.
fn verbs<'a>(tokens: &'a [Token], facts: &'a [Fact]) -> impl Iterator<Item = String> + 'a {
    const SAME: [&str; 3] =
        ["replac obsolet supersed succe", "acquir buy bought purchas", "beat defeat"];
    let is_fact = |token: &Token| {
        facts.iter().any(|fact| {
            !matches!(fact.kind, FactKind::Quote(_))
                && (fact.start..fact.start + fact.text.len()).contains(&token.start)
        })
    };
    let words: Vec<_> = tokens.iter().filter(|token| !is_fact(token)).cloned().collect();
    content_stems(&words).into_iter().map(|word| {
        let class = SAME.iter().find(|class| class.split(' ').any(|same| same == word));
        class.map_or(word, |class| (*class).to_owned())
    })
}

/// Returns -1 for a fact with "before", and 1 for one with "since".
fn side(tokens: &[Token], at: usize) -> i8 {
    let before = &tokens[..tokens.partition_point(|token| token.start < at)];
    for token in before.iter().rev().take(3) {
        match token.folded.as_str() {
            "before" | "until" | "prior" | "till" => return -1,
            "after" | "since" | "from" => return 1,
            "version" | "release" | "v" | "to" | "the" => {}
            _ if token.kind == TokenKind::Capital || token.kind == TokenKind::Sign => {}
            _ => return 0,
        }
    }
    0
}

/// Returns the word directly before a place.
pub(super) fn word_before(tokens: &[Token], at: usize) -> Option<&str> {
    let before = &tokens[..tokens.partition_point(|token| token.start < at)];
    let word = before.iter().rev().find(|token| token.kind != TokenKind::Sign);
    word.filter(|word| word.kind == TokenKind::Word).map(|word| word.folded.as_str())
}
