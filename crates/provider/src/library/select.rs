//! Which of the ranked passages a report shows: the best, not twice the same, and not all from one file unless that
//! file is by far the best; each with the list, table or lead-in it needs to be understood.

use std::collections::{HashMap, HashSet};

use super::document::{Kind, UNDER};
use super::index::{Index, Stored};
use super::rank::{Hit, Ranked};
use super::words;

/// A list or table up to this many characters is shown whole.
const WHOLE: usize = 1_100;
/// Of a longer one, this many of its parts.
const PARTS: usize = 6;
/// A section up to this many characters is shown whole when it has one of the best passages.
const SECTION: usize = 1_800;

/// What is shown under one citation.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) score: f64,
    pub(super) parts: Vec<Stored>,
    /// The passage it was chosen for.
    pub(super) best: Stored,
    /// Parts of the list or table that are not shown.
    pub(super) left_out: usize,
}

impl Block {
    /// What it stands under: the nearest heading, or the name of its file.
    pub(super) fn heading(&self) -> &str {
        let Stored { headings, title, name, .. } = &self.best;
        let nearest = headings.rsplit(UNDER).next().filter(|heading| !heading.is_empty());
        nearest.or(title.as_deref()).unwrap_or(name)
    }
}

/// How much is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) blocks: usize,
    /// Of the best score, what the last may have.
    pub(super) least: f64,
    /// So many are shown even if they are much weaker.
    pub(super) few: usize,
    /// Of the best coverage, what each must have.
    pub(super) covers: f64,
    /// Of how many of the best the whole section is shown, if it is short.
    pub(super) sections: usize,
}

impl Wanted {
    fn takes(self, hit: &Hit, best: &Hit, taken: usize) -> bool {
        let share = hit.score / best.score.max(f64::MIN_POSITIVE);
        let covers = hit.coverage / best.coverage.max(f64::MIN_POSITIVE);
        covers >= self.covers
            && (share >= self.least
                || (covers >= 0.6 && share >= self.least * 0.5)
                || (taken < self.few && covers >= 0.45 && share >= self.least * 0.5))
    }
}

/// Chooses what is shown, best first.
pub(super) fn select(
    index: &Index,
    ranked: &Ranked,
    wanted: Wanted,
) -> rusqlite::Result<Vec<Block>> {
    let mut chosen: Vec<(&Hit, f64)> = Vec::new();
    let mut seen: Vec<HashSet<String>> = Vec::new();
    let mut per_file: HashMap<i64, i32> = HashMap::new();
    let mut blocks: HashSet<(i64, u32)> = HashSet::new();
    let Some(best) = ranked.hits.first() else { return Ok(Vec::new()) };
    while chosen.len() < wanted.blocks {
        let worth = |hit: &Hit| {
            hit.score * 0.9_f64.powi(per_file.get(&hit.stored.file).copied().unwrap_or(0))
        };
        let open = ranked.hits.iter().filter(|hit| !blocks.contains(&key(hit)));
        // The first of equals: hits are in order.
        let next = open.fold(None, |next: Option<(&Hit, f64)>, hit| match next {
            Some((_, most)) if most >= worth(hit) => next,
            Some(_) | None => Some((hit, worth(hit))),
        });
        let Some((hit, worth)) = next.filter(|(hit, _)| wanted.takes(hit, best, chosen.len()))
        else {
            break;
        };
        blocks.insert(key(hit));
        let words: HashSet<_> = words::of(&hit.stored.text).collect();
        if seen.iter().any(|other| alike(other, &words)) {
            continue;
        }
        seen.push(words);
        *per_file.entry(hit.stored.file).or_default() += 1;
        chosen.push((hit, worth));
    }
    let mut shown = Vec::new();
    for (rank, (hit, score)) in chosen.into_iter().enumerate() {
        shown.push(block(index, ranked, hit, score)?);
        let is_about_it = hit.score >= best.score * 0.2 && hit.coverage >= best.coverage * 0.5;
        if rank < wanted.sections && is_about_it {
            around(index, hit, score, &mut blocks, &mut shown)?;
        }
    }
    Ok(shown)
}

/// The rest of a short section: a table often needs the sentence before it, and the sentence the table.
fn around(
    index: &Index,
    hit: &Hit,
    score: f64,
    blocks: &mut HashSet<(i64, u32)>,
    shown: &mut Vec<Block>,
) -> rusqlite::Result<()> {
    let section = index.section(hit.stored.file, hit.stored.section)?;
    if section.iter().map(|part| part.text.len()).sum::<usize>() > SECTION {
        return Ok(());
    }
    for part in &section {
        if blocks.insert((part.file, part.block)) {
            let parts: Vec<_> =
                section.iter().filter(|other| other.block == part.block).cloned().collect();
            shown.push(Block { score: score * 0.4, parts, best: part.clone(), left_out: 0 });
        }
    }
    Ok(())
}

fn key(hit: &Hit) -> (i64, u32) {
    (hit.stored.file, hit.stored.block)
}

fn alike(a: &HashSet<String>, b: &HashSet<String>) -> bool {
    let both = a.intersection(b).count();
    let either = a.len() + b.len() - both;
    both * 10 > either * 8
}

fn block(index: &Index, ranked: &Ranked, hit: &Hit, score: f64) -> rusqlite::Result<Block> {
    let mut parts = index.block(hit.stored.file, hit.stored.block)?;
    let all = parts.len();
    let length: usize = parts.iter().map(|part| part.text.len()).sum();
    if length > WHOLE && all > 1 {
        let relevant = ranked
            .hits
            .iter()
            .filter(|other| key(other) == key(hit) && other.score >= hit.score * 0.5);
        let relevant: HashSet<_> = relevant.take(PARTS).map(|other| other.stored.id).collect();
        parts.retain(|part| match part.kind {
            // What leads up to the rest, and a table's head, are needed to read it.
            Kind::Paragraph | Kind::Head => true,
            Kind::Item | Kind::Row | Kind::Code => relevant.contains(&part.id),
        });
    }
    let left_out = all - parts.len();
    Ok(Block { score, parts, best: hit.stored.clone(), left_out })
}
