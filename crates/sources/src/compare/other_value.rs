//! Another value of the page in the place of a fact that is missing.

use std::collections::HashSet;
use std::ops::Range;

use super::sense::{between, word_before};
use super::{ClaimFacts, Headings, Matches, PageFacts, SAME_SUBJECT, Unit};
use crate::facts::{Fact, FactKind};
use crate::page::BlockKind;

impl PageFacts {
    /// Finds the passage that has everything but some facts, and has another value of the same kind in the place of each;
    /// returns the first of these values.
    pub(super) fn other_value(
        &self,
        claim: &ClaimFacts,
        matches: &Matches,
        strong: &[bool],
        missing: &[usize],
    ) -> Option<(String, Range<usize>)> {
        let has_anchor = strong.iter().filter(|strong| **strong).count() > missing.len();
        if missing.is_empty() || (missing.len() > 1 && !has_anchor) {
            return None;
        }
        let is_name = |at: &usize| matches!(claim.facts[*at].kind, FactKind::Name(_));
        let misses_name = missing.iter().any(is_name);
        let subject = self.subjects(claim);
        let mut best: Option<(f64, String, Range<usize>)> = None;
        for number in 0..self.units.len() {
            if self.is_about_other(claim, &subject, &self.units[number]) {
                continue;
            }
            let Some((value, is_near)) = self.other_values(claim, missing, number) else {
                continue;
            };
            // The subject may be in the sentence before.
            let with_one_before = number.checked_sub(1).filter(|before| self.goes_on(*before));
            for start in [Some(number), with_one_before].into_iter().flatten() {
                let units = start..number + 1;
                let in_headings = &matches.headings[self.units[start].headings];
                let has_others = (0..claim.facts.len())
                    .filter(|at| strong[*at] && !missing.contains(at))
                    .all(|at| {
                        units.clone().any(|unit| matches.units[unit][at].is_some())
                            || in_headings[at].is_some()
                    });
                // The words of a missing name cannot be in the passage.
                let overlap = match misses_name && claim.context.len() >= 2 {
                    true => self.context(claim, &units),
                    false => self.overlap(claim, &units),
                };
                let is_enough =
                    overlap > SAME_SUBJECT || (overlap >= SAME_SUBJECT && (has_anchor || is_near));
                if has_others
                    && is_enough
                    && best.as_ref().is_none_or(|(score, ..)| overlap > *score)
                {
                    best = Some((overlap, value.clone(), units));
                }
            }
        }
        best.map(|(_, value, units)| (value, units))
    }

    /// Returns the first of the values that a sentence has in the place of missing facts, and if it is a date that
    /// differs in one part only.
    fn other_values(
        &self,
        claim: &ClaimFacts,
        missing: &[usize],
        number: usize,
    ) -> Option<(String, bool)> {
        let unit = &self.units[number];
        let headings = &self.headings[unit.headings];
        let mut values: Vec<(String, bool)> = Vec::new();
        for at in missing {
            let fact = &claim.facts[*at];
            let found = other_value_in(claim, fact, unit, values.len())
                .or_else(|| other_value_above(claim, fact, headings))?;
            values.push(found);
        }
        values.into_iter().next()
    }
}

/// Returns the date or version of a sentence's heading, as change logs have it, if the claim has another one.
fn other_value_above(
    claim: &ClaimFacts,
    fact: &Fact,
    headings: &Headings,
) -> Option<(String, bool)> {
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
    (!is_in_claim && (fact.weak || !other.weak)).then(|| (other.text.clone(), is_near(fact, other)))
}

/// Returns true for dates that have a part in common.
fn is_near(fact: &Fact, other: &Fact) -> bool {
    match (&fact.kind, &other.kind) {
        (FactKind::Date(own), FactKind::Date(page)) => {
            own.month == page.month || (own.year.is_some() && own.year == page.year)
        }
        _ => false,
    }
}

/// Returns the value that a sentence has in the place of a fact; `skipped` of them belong to facts before it.
fn other_value_in(
    claim: &ClaimFacts,
    fact: &Fact,
    unit: &Unit,
    skipped: usize,
) -> Option<(String, bool)> {
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
    let found = |other: &Fact| (other.text.clone(), is_near(fact, other));
    match &fact.kind {
        FactKind::Quantity(own) => {
            let same = |other: &&Fact| matches!(&other.kind, FactKind::Quantity(page) if own.is_same_kind(page) || (page.unit.is_none() && unit.kind == BlockKind::Row));
            others().filter(same).nth(skipped).map(found)
        }
        FactKind::Date(own) => {
            let same = |other: &&Fact| matches!(&other.kind, FactKind::Date(page) if page.month.is_some() == own.month.is_some() && page.day.is_some() >= own.day.is_some());
            others().filter(same).nth(skipped).map(found)
        }
        FactKind::Code(own) => {
            let is_version = |code: &str| {
                code.contains('.') && code.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            };
            let name = |code: &str| code.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
            let is_numbered = |code: &str| {
                code.starts_with(|c: char| c.is_ascii_lowercase())
                    && name(code).ends_with(['-', '+'])
            };
            let same = |other: &&Fact| {
                matches!(&other.kind, FactKind::Code(page) if (is_version(own) && is_version(page))
                    || (is_numbered(own) && name(own) == name(page)))
            };
            others().filter(same).nth(skipped).map(found)
        }
        FactKind::Quote(words) => {
            let own: HashSet<_> = words.iter().collect();
            let places: Vec<_> =
                unit.tokens.iter().filter(|token| own.contains(&token.folded)).collect();
            let (first, last) = (places.first()?, places.last()?);
            let shared = places.iter().map(|token| &token.folded).collect::<HashSet<_>>().len();
            let length = between(&unit.tokens, first.start, last.end).len() + 1;
            (shared * 10 >= own.len() * 7 && length <= words.len() * 2)
                .then(|| (unit.text[first.start..last.end].to_owned(), false))
        }
        // "Written by Ann Poe", not "by Eva Falk": another name after the same word.
        FactKind::Name(words) => {
            let own = word_before(&claim.tokens, fact.start).filter(|word| *word != "the")?;
            let same = |other: &&Fact| {
                matches!(&other.kind, FactKind::Name(page) if (page.len() > 1) == (words.len() > 1)
                    && !page.iter().any(|word| words.contains(word)))
                    && word_before(&unit.tokens, other.start) == Some(own)
            };
            others().filter(same).nth(skipped).map(found)
        }
    }
}
