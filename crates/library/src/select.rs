//! Selects the ranked passages that a report shows: the best ones, no duplicates, and not all from one file
//! unless that file is by far the best. Each comes with the list, table, listing or lead-in that is needed to
//! understand it.

use std::collections::{HashMap, HashSet};

use super::index::{Index, StoredPassage};
use super::rank::{Hit, Ranking};
use super::words;

/// A list or table up to this many characters is shown whole.
const WHOLE: usize = 500;
/// The number of parts shown of a longer one.
const PARTS: usize = 6;

/// The passages shown under one citation.
#[derive(Debug)]
pub(super) struct CitedPassages {
    /// The cited place: the one line that was asked for, or the beginning of the block.
    pub(super) line: u32,
    pub(super) parts: Vec<StoredPassage>,
    /// The passage for which the block was selected.
    pub(super) best: StoredPassage,
    /// The number of parts of the list or table that are not shown.
    pub(super) left_out: usize,
}

impl CitedPassages {
    /// The nearest heading, or the name of its file.
    pub(super) fn heading(&self) -> &str {
        self.best.heading().unwrap_or(&self.best.name)
    }
}

/// The number and quality of passages that a report needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportLimits {
    pub(super) blocks: usize,
    /// The number of blocks if one line, item or row has everything that was asked for.
    pub(super) for_a_fact: usize,
    /// The minimum score as a share of the best one; the first few need half of it.
    pub(super) least: f64,
    pub(super) few: usize,
    /// The minimum coverage as a share of the best one.
    pub(super) covers: f64,
}

impl ReportLimits {
    fn takes(self, hit: &Hit, best: &Hit, taken: usize) -> bool {
        let least = if taken < self.few { self.least / 2.0 } else { self.least };
        let share = hit.score / best.score.max(f64::MIN_POSITIVE);
        let covers = hit.coverage / best.coverage.max(f64::MIN_POSITIVE);
        share >= least && covers >= self.covers
    }
}

/// Selects the blocks to show, best first.
pub(super) fn select(
    index: &Index,
    ranked: &Ranking,
    wanted: ReportLimits,
) -> rusqlite::Result<Vec<CitedPassages>> {
    let mut chosen: Vec<&Hit> = Vec::new();
    let mut seen: Vec<HashSet<String>> = Vec::new();
    let mut per_file: HashMap<i64, i32> = HashMap::new();
    let mut blocks: HashSet<(i64, u32)> = HashSet::new();
    let Some(best) = ranked.hits.first() else { return Ok(Vec::new()) };
    let is_fact = best.stored.kind.is_listed() && best.coverage >= 0.9;
    let most = if is_fact { wanted.for_a_fact } else { wanted.blocks };
    while chosen.len() < most {
        let worth = |hit: &Hit| {
            hit.score * 0.9_f64.powi(per_file.get(&hit.stored.file).copied().unwrap_or(0))
        };
        let open = ranked.hits.iter().filter(|hit| !blocks.contains(&key(hit)));
        // Selects the first of equals, because hits are in order.
        let next = open.rev().max_by(|one, other| worth(one).total_cmp(&worth(other)));
        let Some(hit) = next.filter(|hit| wanted.takes(hit, best, chosen.len())) else {
            break;
        };
        blocks.insert(key(hit));
        let words: HashSet<_> = words::of(&hit.stored.text).collect();
        if seen.iter().any(|other| alike(other, &words)) {
            continue;
        }
        seen.push(words);
        *per_file.entry(hit.stored.file).or_default() += 1;
        chosen.push(hit);
    }
    chosen.into_iter().map(|hit| block(index, ranked, hit)).collect()
}

fn key(hit: &Hit) -> (i64, u32) {
    (hit.stored.file, hit.stored.block)
}

pub(super) fn alike(a: &HashSet<String>, b: &HashSet<String>) -> bool {
    let both = a.intersection(b).count();
    let either = a.len() + b.len() - both;
    both * 10 > either * 8
}

fn block(index: &Index, ranked: &Ranking, hit: &Hit) -> rusqlite::Result<CitedPassages> {
    let mut parts = index.block(hit.stored.file, hit.stored.block)?;
    let all = parts.len();
    let relevant =
        ranked.hits.iter().filter(|other| key(other) == key(hit) && other.score >= hit.score * 0.5);
    let relevant: HashSet<_> = relevant.take(PARTS).map(|other| other.stored.id).collect();
    let listed = parts.iter().filter(|part| part.kind.is_listed());
    if listed.map(|part| part.text.len()).sum::<usize>() > WHOLE {
        // Introductory parts and the header of a table are needed to read the rest.
        parts.retain(|part| !part.kind.is_listed() || relevant.contains(&part.id));
    }
    let first = parts.first().filter(|_| relevant.len() > 1).unwrap_or(&hit.stored);
    let (line, left_out) = (first.line, all - parts.len());
    Ok(CitedPassages { line, parts, best: hit.stored.clone(), left_out })
}
