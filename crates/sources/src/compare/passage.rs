//! Passages of a page: a few adjacent sentences, and what they have of a claim.

use std::ops::Range;

use super::find::find_words;
use super::{ClaimFacts, Match, Matches, PageFacts};
use crate::facts::{Agreement, FactKind};
use crate::page::BlockKind;
use crate::text::shorten;

/// Sentences that a passage may have.
const WINDOW: usize = 3;
/// The share of a claim's words that a passage needs if only the headings above it have the facts.
const ABOUT: f64 = 0.4;
/// The longest passage that is shown; in characters.
const MAX_PASSAGE: usize = 600;

/// A passage of a page and what it has of a claim.
pub(super) struct Window {
    pub(super) units: Range<usize>,
    pub(super) found: Vec<Option<Match>>,
    pub(super) count: usize,
    weak: usize,
    overlap: f64,
    pub(super) is_lowered: bool,
    /// True if its sentences, not only its headings, have the facts, and state the opposite.
    opposes: bool,
    /// The facts that its own sentences have.
    pub(super) own: usize,
}

impl Window {
    fn rank(&self) -> (usize, bool, u32, std::cmp::Reverse<usize>) {
        // Whole steps, so that a longer passage needs more than one word to win.
        let about = (self.overlap * 8.0) as u32 + u32::try_from(self.weak).unwrap_or(0);
        (self.count, !self.is_lowered, about, std::cmp::Reverse(self.units.len()))
    }
}

impl PageFacts {
    /// Returns the passage with most facts of the claim; of several, the one that is most about its subject.
    pub(super) fn best_window(
        &self,
        claim: &ClaimFacts,
        matches: &Matches,
        strong: &[bool],
    ) -> Option<Window> {
        let mut best: Option<Window> = None;
        let mut opposing = (0, 0);
        for start in 0..self.units.len() {
            for length in 1..=WINDOW {
                let end = start + length;
                let is_whole = length == 1 || (end <= self.units.len() && self.goes_on(end - 2));
                if !is_whole {
                    break;
                }
                let window = self.window(claim, matches, strong, start..end);
                if window.opposes {
                    opposing = opposing.max((window.count, window.own));
                }
                let is_better = best.as_ref().is_none_or(|best| window.rank() > best.rank());
                if is_better {
                    best = Some(window);
                }
            }
        }
        // A sentence that has the facts itself and contradicts outweighs one that has them from its headings.
        if let Some(best) = &mut best {
            best.is_lowered |= opposing > (best.count, best.own);
        }
        best
    }

    /// Returns true if the next sentence belongs to the same passage: it is in the same block, or this one leads to it.
    pub(super) fn goes_on(&self, unit: usize) -> bool {
        let (unit, next) = (&self.units[unit], &self.units[unit + 1]);
        unit.block == next.block || unit.text.ends_with(':') && next.kind != BlockKind::Row
    }

    fn window(
        &self,
        claim: &ClaimFacts,
        matches: &Matches,
        strong: &[bool],
        units: Range<usize>,
    ) -> Window {
        let in_headings = &matches.headings[self.units[units.start].headings];
        let mut found: Vec<Option<Match>> = vec![None; claim.facts.len()];
        let mut places: Vec<Option<usize>> = vec![None; claim.facts.len()];
        for (at, fact) in claim.facts.iter().enumerate() {
            for unit in units.clone() {
                if found[at].is_none()
                    && let Some(hit) = matches.units[unit][at]
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
                found[at] = in_headings[at];
            }
        }
        let count =
            found.iter().zip(strong).filter(|(found, strong)| found.is_some() && **strong).count();
        let weak =
            found.iter().zip(strong).filter(|(found, strong)| found.is_some() && !**strong).count();
        let overlap = self.overlap(claim, &units);
        // A version in a heading says what follows, not that the sentence below it is the one of the claim.
        let is_in_headings =
            (0..found.len()).all(|at| !strong[at] || found[at].is_none() || places[at].is_none());
        let is_off_topic = is_in_headings && self.own_overlap(claim, &units) < ABOUT;
        let own = (0..found.len()).filter(|at| strong[*at] && places[*at].is_some()).count();
        let opposes = own > 0 && self.opposes(claim, &units, &found, &places);
        let is_lowered = count > 0
            && (is_off_topic
                || opposes
                || self.is_lowered(claim, &units, &found, &places, strong, overlap));
        Window { units, found, count, weak, overlap, is_lowered, opposes, own }
    }

    /// The share of the claim's words that a passage and its headings have.
    pub(super) fn overlap(&self, claim: &ClaimFacts, units: &Range<usize>) -> f64 {
        let headings = &self.headings[self.units[units.start].headings];
        let has = |word: &&String| {
            headings.stems.contains(*word)
                || self.units[units.clone()].iter().any(|unit| unit.stems.contains(*word))
        };
        let found = claim.stems.iter().filter(has).count();
        found as f64 / claim.stems.len().max(1) as f64
    }

    /// The share of the words around the claim's facts that a passage and its headings have.
    pub(super) fn context(&self, claim: &ClaimFacts, units: &Range<usize>) -> f64 {
        let headings = &self.headings[self.units[units.start].headings];
        let has = |word: &&String| {
            headings.stems.contains(*word)
                || self.units[units.clone()].iter().any(|unit| unit.stems.contains(*word))
        };
        let found = claim.context.iter().filter(has).count();
        if claim.context.is_empty() { 1.0 } else { found as f64 / claim.context.len() as f64 }
    }

    /// The share of the claim's words that a passage has without its headings.
    fn own_overlap(&self, claim: &ClaimFacts, units: &Range<usize>) -> f64 {
        let units = &self.units[units.clone()];
        let has = |word: &&String| units.iter().any(|unit| unit.stems.contains(*word));
        let found = claim.stems.iter().filter(has).count();
        found as f64 / claim.stems.len().max(1) as f64
    }

    pub(super) fn passage(&self, units: &Range<usize>) -> String {
        let texts: Vec<_> =
            self.units[units.clone()].iter().map(|unit| unit.text.as_str()).collect();
        shorten(&texts.join(" "), MAX_PASSAGE)
    }
}
