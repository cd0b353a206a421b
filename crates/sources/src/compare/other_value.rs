//! Another value of the page in the place of a fact that is missing.

use std::collections::HashSet;
use std::ops::Range;

use super::sense::between;
use super::{ClaimFacts, Headings, Match, PageFacts, SAME_SUBJECT, Unit};
use crate::facts::{Fact, FactKind};
use crate::page::BlockKind;

impl PageFacts {
    /// Finds the passage that has everything but one fact, and has another value of the same kind in its place.
    pub(super) fn other_value(
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
            let value = other_value_in(claim, fact, unit);
            let Some(value) = value.or_else(|| other_value_above(claim, fact, headings)) else {
                continue;
            };
            if best.as_ref().is_none_or(|(score, ..)| overlap > *score) {
                best = Some((overlap, value, units));
            }
        }
        best.map(|(_, value, units)| (value, units))
    }
}

/// Returns the date or version of a sentence's heading, as change logs have it, if the claim has another one.
fn other_value_above(claim: &ClaimFacts, fact: &Fact, headings: &Headings) -> Option<String> {
    let same = |other: &&Fact| match (&fact.kind, &other.kind) {
        (FactKind::Date(own), FactKind::Date(page)) => {
            own.month.is_some() == page.month.is_some() && page.day.is_some() >= own.day.is_some()
        }
        (FactKind::Code(own), FactKind::Code(page)) => {
            let is_version = |code: &str| {
                code.matches('.').count() == 2
                    && code.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            };
            is_version(own) && is_version(page)
        }
        _ => false,
    };
    let mut others = headings.facts.iter().filter(same);
    // The nearest heading is the last one.
    let other = others.next_back()?;
    let is_in_claim = claim.facts.iter().any(|own| own.kind == other.kind);
    (!is_in_claim && (fact.weak || !other.weak)).then(|| other.text.clone())
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
