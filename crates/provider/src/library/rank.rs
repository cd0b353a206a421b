//! Which passages answer the question, best first: BM25 for each word, raised by how much of the question a passage
//! and its section cover and by words that stand together as they do in the question.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::document::{Kind, UNDER};
use super::index::{Index, Match, Stored};
use super::query::Query;
use super::reporter::{Reporter, Stopped};
use super::{refresh::Trouble, sentences, words};

/// Passages that are looked at closely.
const CLOSE: usize = 160;
/// What a word of nearly the same meaning counts.
const KIN: f64 = 0.35;

/// What was found, best first.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    pub(super) hits: Vec<Hit>,
    pub(super) weights: Weights,
    /// Words of the question that stand nowhere in the library.
    pub(super) missing: Vec<String>,
}

/// A passage that may answer the question.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) stored: Stored,
    pub(super) score: f64,
    /// How much of the question it and its section have, 0 to 1.
    pub(super) coverage: f64,
}

/// What each word of the question is worth in a text: rare ones more.
#[derive(Debug, Default)]
pub(super) struct Weights {
    terms: Vec<Weight>,
    names: Vec<String>,
    /// Neighbours in the question, words that say nothing included.
    pairs: Vec<(String, String)>,
    total: f64,
}

#[derive(Debug)]
struct Weight {
    stems: Vec<String>,
    kin: Vec<String>,
    worth: f64,
}

impl Weights {
    /// How much of the question a text has, 0 to 1; names must be there as a whole to count fully.
    pub(super) fn share(&self, text: &str) -> f64 {
        if self.total <= 0.0 {
            return 0.0;
        }
        let all: Vec<_> = words::of(text).collect();
        let stems: Vec<_> = all.iter().map(|word| words::stem(word)).collect();
        let found = self.terms.iter().map(|term| {
            if term.stems.iter().any(|form| stems.contains(form)) {
                term.worth
            } else if term.kin.iter().any(|kin| stems.contains(kin)) {
                term.worth * 0.5
            } else {
                0.0
            }
        });
        let share = (found.sum::<f64>() / self.total).min(1.0);
        if self.names.is_empty() {
            return share;
        }
        let line = format!(" {} ", all.join(" "));
        let named = self.names.iter().filter(|name| line.contains(&format!(" {name} "))).count();
        share * (0.5 + 0.5 * named as f64 / self.names.len() as f64)
    }

    /// How well one sentence answers: what it has of the question, more if it says it in the question's own order, less
    /// if it takes many words to do so.
    pub(super) fn fit(&self, sentence: &str) -> f64 {
        let all: Vec<_> = words::of(sentence).collect();
        let said = all.windows(2).filter(
            |pair| matches!(pair, [a, b] if self.pairs.iter().any(|(c, d)| (a, b) == (c, d))),
        );
        let order = said.count() as f64 / self.pairs.len().max(1) as f64;
        let length = 1.0 + (all.len() as f64 - 15.0).max(0.0) / 60.0;
        self.share(sentence) * (1.0 + 0.6 * order.min(1.0)) / length
    }

    /// The same for the best sentence of a text.
    fn best_sentence(&self, text: &str) -> f64 {
        sentences::split(text).into_iter().map(|sentence| self.fit(sentence)).fold(0.0, f64::max)
    }
}

#[derive(Default)]
struct Sum {
    file: i64,
    section: u32,
    score: f64,
    /// Terms it has, and terms it has a word of nearly the same meaning for.
    own: u64,
    kin: u64,
    together: f64,
}

/// Ranks the passages of the index.
pub(super) fn rank(index: &Index, query: &Query, reporter: &Reporter) -> Result<Ranked, Trouble> {
    let passages = index.findable()?;
    let mut sums: HashMap<i64, Sum> = HashMap::new();
    let mut worth = Vec::new();
    let mut ranked = Ranked::default();
    for (number, term) in query.terms.iter().enumerate().take(64) {
        reporter.go_on()?;
        let bit = 1_u64 << number;
        let matches = index.matches(&term.expression())?;
        let rarity = rarity(passages, matches.len());
        // SQLite gives next to nothing for a word that most passages have; in a small library that is every word.
        let evened = rarity / sqlite_rarity(passages, matches.len());
        for found in &matches {
            let sum = add(&mut sums, found, term.weight * evened);
            sum.own |= bit;
        }
        let kin = match term.kin_expression() {
            Some(expression) => index.matches(&expression)?,
            None => Vec::new(),
        };
        for found in &kin {
            // Several kin in one passage are still one word of the question.
            let capped = Match { score: found.score.min(rarity), ..*found };
            let sum = add(&mut sums, &capped, term.weight * KIN);
            sum.kin |= bit;
        }
        if matches.is_empty() && kin.is_empty() && term.weight >= 1.0 {
            ranked.missing.push(term.word.clone());
        }
        worth.push(term.weight * rarity);
        ranked.weights.terms.push(Weight {
            stems: term.forms().map(words::stem).collect(),
            kin: words::kin(&term.word).into_iter().map(words::stem).collect(),
            worth: term.weight * rarity,
        });
        ranked.weights.total += if term.weight >= 1.0 { rarity } else { 0.0 };
    }
    ranked.weights.names.clone_from(&query.names);
    let asked: Vec<_> = words::of(&query.question).take(64).collect();
    ranked.weights.pairs = asked.iter().cloned().zip(asked.iter().skip(1).cloned()).collect();
    for expression in &query.together {
        reporter.go_on()?;
        let matches = index.matches(expression)?;
        let rare = rarity(passages, matches.len());
        for found in &matches {
            if let Some(sum) = sums.get_mut(&found.passage) {
                sum.together += rare;
            }
        }
    }
    ranked.hits = closely(index, query, &ranked.weights, sums, &worth, reporter)?;
    Ok(ranked)
}

fn add<'a>(sums: &'a mut HashMap<i64, Sum>, found: &Match, weight: f64) -> &'a mut Sum {
    let sum = sums.entry(found.passage).or_default();
    sum.file = found.file;
    sum.section = found.section;
    sum.score += weight * found.score;
    sum
}

fn rarity(all: f64, having: usize) -> f64 {
    let having = having as f64;
    (1.0 + (all - having + 0.5).max(0.0) / (having + 0.5)).ln()
}

/// What FTS5's BM25 multiplies by.
fn sqlite_rarity(all: f64, having: usize) -> f64 {
    let having = having as f64;
    ((all - having + 0.5) / (having + 0.5)).ln().max(1e-6)
}

/// How much of the question's worth these terms have.
fn covered(own: u64, kin: u64, worth: &[f64]) -> f64 {
    let total: f64 = worth.iter().sum();
    let mut found = 0.0;
    for (number, worth) in worth.iter().enumerate() {
        let bit = 1_u64 << number;
        if own & bit != 0 {
            found += worth;
        } else if kin & bit != 0 {
            found += worth * 0.5;
        }
    }
    if total > 0.0 { found / total } else { 0.0 }
}

fn closely(
    index: &Index,
    query: &Query,
    weights: &Weights,
    sums: HashMap<i64, Sum>,
    worth: &[f64],
    reporter: &Reporter,
) -> Result<Vec<Hit>, Trouble> {
    let mut sections: HashMap<(i64, u32), (u64, u64)> = HashMap::new();
    for sum in sums.values() {
        let (own, kin) = sections.entry((sum.file, sum.section)).or_default();
        *own |= sum.own;
        *kin |= sum.kin;
    }
    let total: f64 = worth.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let mut scored: Vec<_> = sums
        .into_iter()
        .map(|(id, sum)| {
            let (own, kin) = sections.get(&(sum.file, sum.section)).copied().unwrap_or_default();
            let alone = covered(sum.own, sum.kin, worth);
            let coverage = 0.5 * alone + 0.5 * covered(own, kin, worth);
            let together = (sum.together / total).min(1.0);
            (id, sum.score * (0.25 + 0.75 * coverage) * (1.0 + 0.5 * together), coverage)
        })
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored.truncate(CLOSE);
    let asked: Vec<_> = query.terms.iter().map(|term| words::stem(&term.word)).collect();
    let mut hits = Vec::with_capacity(scored.len());
    for (id, score, coverage) in scored {
        reporter.go_on().map_err(|Stopped| Trouble::Stopped)?;
        let stored = index.passage(id)?;
        let score = score
            * (1.0 + 0.5 * heading_fits(&stored, &asked))
            * if is_looked_up(&stored, &asked) { 1.3 } else { readable(&stored) }
            * (0.4
                + weights.best_sentence(&stored.text).max(0.7 * weights.share(nearest(&stored))));
        hits.push(Hit { stored, score, coverage });
    }
    hits.sort_by(order);
    Ok(hits)
}

/// By worth, and for equal worth by place, so that equal libraries give equal reports.
fn order(a: &Hit, b: &Hit) -> Ordering {
    let place = |hit: &Hit| (hit.stored.name.clone(), hit.stored.line, hit.stored.id);
    b.score.total_cmp(&a.score).then_with(|| place(a).cmp(&place(b)))
}

/// The heading a passage stands under, or its file's title.
fn nearest(stored: &Stored) -> &str {
    let nearest = stored.headings.rsplit(UNDER).next().filter(|heading| !heading.is_empty());
    nearest.or(stored.title.as_deref()).unwrap_or("")
}

/// How much of the nearest heading the question says.
fn heading_fits(stored: &Stored, asked: &[String]) -> f64 {
    let nearest = nearest(stored);
    let heading: Vec<_> = words::of(nearest)
        .filter(|word| !words::is_stop(word))
        .map(|word| words::stem(&word))
        .collect();
    if heading.is_empty() {
        return 0.0;
    }
    let said = heading.iter().filter(|word| asked.contains(word)).count();
    said as f64 / heading.len() as f64
}

/// Prose that one can learn from, rather than names, scraps and listings.
fn readable(stored: &Stored) -> f64 {
    let outside: String = stored.text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let prose = words::of(&outside).count() as f64;
    let all = words::of(&stored.text).count().max(1) as f64;
    let kind = match stored.kind {
        Kind::Paragraph | Kind::Item | Kind::Row => 1.0,
        Kind::Code => 0.6,
        Kind::Head => 0.3,
    };
    let scrap = if all < 5.0 { 0.6 } else { 1.0 };
    let share = if stored.kind == Kind::Code { 1.0 } else { prose / all };
    kind * scrap * (0.25 + 0.75 * share)
}

/// A row whose first cell is what the question names.
fn is_looked_up(stored: &Stored, asked: &[String]) -> bool {
    if stored.kind != Kind::Row {
        return false;
    }
    let first = stored.text.trim_start_matches('|').split(" | ").next().unwrap_or("");
    let mut names = words::of(first).map(|word| words::stem(&word)).peekable();
    names.peek().is_some() && names.all(|name| asked.contains(&name))
}
