//! Ranks the passages, best first: BM25 for each word and name, where rare words weigh more, and whole words
//! weigh more than their other forms. The score rises with the share of the question that a passage and its
//! section cover, and with words that are next to each other as in the question.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::document::PassageKind;
use super::index::{Index, PassageMatch, StoredPassage};
use super::query::{Query, Term, quote};
use super::reporter::{Reporter, ReporterGone};
use super::{refresh::SearchError, sentences, words};

/// The number of passages that are examined closely.
const CLOSE: usize = 160;
/// The weight of another form of a word. Other forms of a proper name are other words.
const FORM: f64 = 0.7;
/// The degree to which another form of a word covers it.
const FORM_COVERS: f64 = 0.9;
/// The weight of a word with nearly the same meaning.
const SYNONYM: f64 = 0.35;
/// The weight of a code, a version or a variable: a user who writes one means exactly that.
const CODE: f64 = 1.5;
/// The number of passages that are read to see how the library writes a word.
const SAMPLE: usize = 12;
/// The weight of the name and title of a file next to the nearest heading.
const FILE: f64 = 0.3;
/// The weight of a list of changes for a question that is not about changes.
const HISTORY: f64 = 0.5;
/// A passage that covers this share of the words that occur in the library is a sure answer.
const SURE: f64 = 0.8;
/// A passage whose heading fits this well is too.
const SURE_HEADING: f64 = 0.5;
/// The weight of one word of a name next to the whole name.
const PART: f64 = 0.4;

/// The hits, best first.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    pub(super) hits: Vec<Hit>,
    pub(super) weights: Weights,
    /// Words of the question that occur nowhere in the library.
    pub(super) missing: Vec<String>,
    /// The number of words of the question that occur somewhere.
    pub(super) known_words: usize,
}

/// A passage that may answer the question.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) stored: StoredPassage,
    pub(super) score: f64,
    /// The share of the question that the passage and its section cover, 0 to 1.
    pub(super) coverage: f64,
    /// The share that the passage itself covers, without synonyms, of what occurs in the library, 0 to 1.
    pub(super) known: f64,
    /// True if the passage or its heading has most of the question.
    pub(super) is_sure: bool,
}

/// The weight of each word and name of the question in a text: rare words weigh more, and whole words weigh
/// more than their other forms.
#[derive(Debug, Default)]
pub(super) struct Weights {
    terms: Vec<Weight>,
    /// Adjacent words of the question, including stop words.
    pairs: Vec<(String, String)>,
    /// The total weight of the words and names of the question itself.
    total: f64,
    /// The part of it that occurs in the library.
    known: f64,
}

#[derive(Debug)]
struct Weight {
    /// A word, the word joined with the next one, or the words of a name separated by single spaces.
    whole: Vec<String>,
    /// `whole` between spaces.
    spaced: Vec<String>,
    forms: Vec<String>,
    synonyms: Vec<String>,
    /// The weights of the whole word, of another form and of a word with nearly the same meaning.
    worth: [f64; 3],
}

impl Weights {
    /// The share of the question that a text covers, 0 to 1.
    pub(super) fn share(&self, text: &str) -> f64 {
        self.share_of(self.score_terms(&tokens(text)).into_iter())
    }

    fn share_of(&self, found: impl Iterator<Item = f64>) -> f64 {
        if self.total > 0.0 { (found.sum::<f64>() / self.total).min(1.0) } else { 0.0 }
    }

    /// Returns the weight with which a text has each term.
    fn score_terms(&self, all: &[String]) -> Vec<f64> {
        let line = format!(" {} ", all.join(" "));
        let found = self.terms.iter().map(|term| {
            let [whole, form, synonyms] = term.worth;
            if term.spaced.iter().any(|whole| line.contains(whole)) {
                whole
            } else if all.iter().any(|word| term.forms.contains(word)) {
                form
            } else if all.iter().any(|word| term.synonyms.contains(word)) {
                synonyms
            } else {
                0.0
            }
        });
        found.collect()
    }

    /// Examines a heading.
    fn heading(&self, text: &str) -> RankedHeading {
        let all = tokens(text);
        let found = self.score_terms(&all);
        let fit = self.heading_fit(&all, &found);
        RankedHeading { found, fit }
    }

    /// Scores how well a heading fits the question: by the share of the question that it covers, and by the share of the
    /// heading that the question has.
    fn heading_fit(&self, all: &[String], found: &[f64]) -> f64 {
        let covers = self.share_of(found.iter().copied()) * self.total;
        if covers <= 0.0 {
            return 0.0;
        }
        let own: Vec<_> = all.iter().filter(|word| !words::is_stop(word)).collect();
        let said = own.iter().map(|word| {
            if self.terms.iter().any(|term| term.whole.contains(word) || term.forms.contains(word))
            {
                1.0
            } else if self.terms.iter().any(|term| term.synonyms.contains(word)) {
                0.5
            } else {
                0.0
            }
        });
        let said = said.sum::<f64>() / own.len().max(1) as f64;
        (covers / self.known.max(f64::MIN_POSITIVE)).min(1.0).sqrt() * said.sqrt()
    }

    /// Scores how well the best sentence of a text answers the question, alone and with the words of its heading: by the
    /// share it covers, more for the word order of the question, less for a long sentence.
    fn best_sentence(&self, text: &str, heading: &RankedHeading) -> f64 {
        let fit = |sentence: &str| {
            let all = tokens(sentence);
            let pairs = all.windows(2).filter(
                |pair| matches!(pair, [a, b] if self.pairs.iter().any(|(c, d)| (a, b) == (c, d))),
            );
            let order = pairs.count() as f64 / self.pairs.len().max(1) as f64;
            let length = 1.0 + (all.len() as f64 - 15.0).max(0.0) / 60.0;
            let found = self.score_terms(&all);
            let both = found.iter().zip(&heading.found).map(|(own, above)| own.max(*above));
            let alone = self.share_of(found.iter().copied());
            (alone * (1.0 + 0.6 * order.min(1.0)) / length + self.share_of(both)) / 2.0
        };
        sentences::split(text).into_iter().map(fit).fold(0.0, f64::max)
    }

    /// Returns the covered share of the question's weight, given how each term was found, and how much a synonym counts.
    fn coverage(&self, found: &[TermMatch], synonym: f64) -> f64 {
        let worth = found.iter().zip(&self.terms).map(|(found, term)| match found {
            TermMatch::Not => 0.0,
            TermMatch::Synonym => term.worth[0] * synonym,
            TermMatch::Form => term.worth[0] * FORM_COVERS,
            TermMatch::Whole => term.worth[0],
        });
        (worth.sum::<f64>() / self.total.max(f64::MIN_POSITIVE)).min(1.0)
    }
}

/// The heading of passages, examined once.
struct RankedHeading {
    /// The weight with which it has each term.
    found: Vec<f64>,
    fit: f64,
}

/// Returns the words of a text, then the parts of its names.
fn tokens(text: &str) -> Vec<String> {
    let parts = words::parts(text).into_iter().map(str::to_lowercase);
    words::of(text).chain(parts).collect()
}

/// The way a passage contains a term, the best last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum TermMatch {
    #[default]
    Not,
    Synonym,
    Form,
    Whole,
}

/// The terms of the question that a passage contains.
struct CoveredTerms {
    file: i64,
    section: u32,
    /// For each term, how it was found and its score.
    terms: Vec<(TermMatch, f64)>,
    together: f64,
}

/// The passages that contain a term, and how.
struct TermMatches {
    passages: Vec<(PassageMatch, TermMatch)>,
    weight: Weight,
}

/// Ranks the passages of the index.
pub(super) fn rank(
    index: &Index,
    query: &Query,
    reporter: &Reporter,
) -> Result<Ranking, SearchError> {
    let passages = index.findable()?;
    let mut ranked = Ranking::default();
    let mut matched = Vec::new();
    let mut named: Vec<&str> = Vec::new();
    for name in &query.names {
        reporter.check()?;
        let whole = index.matches(&quote(&name.words))?;
        if whole.is_empty() && !name.is_identifier() {
            continue;
        }
        let worth = rarity(passages, whole.len()) * if name.is_identifier() { CODE } else { 1.0 };
        ranked.weights.total += worth;
        if whole.is_empty() {
            ranked.missing.push(name.written.clone());
        } else {
            ranked.weights.known += worth;
            named.extend(name.words.split(' '));
        }
        let passages =
            rescore(whole, passages, worth).map(|found| (found, TermMatch::Whole)).collect();
        let weight = Weight {
            whole: vec![name.words.clone()],
            spaced: vec![format!(" {} ", name.words)],
            forms: Vec::new(),
            synonyms: Vec::new(),
            worth: [worth, 0.0, 0.0],
        };
        matched.push(TermMatches { passages, weight });
    }
    for term in &query.terms {
        reporter.check()?;
        let is_part = named.contains(&term.word.as_str());
        let found = matches(index, passages, term, if is_part { PART } else { 1.0 })?;
        if found.passages.is_empty() && term.weight >= 1.0 {
            ranked.missing.push(term.word.clone());
        }
        if term.weight >= 1.0 && !is_part {
            ranked.weights.total += found.weight.worth[0];
            if !found.passages.is_empty() {
                ranked.weights.known += found.weight.worth[0];
                ranked.known_words += 1;
            }
        }
        matched.push(found);
    }
    let mut sums: HashMap<i64, CoveredTerms> = HashMap::new();
    let all = matched.len();
    for (number, TermMatches { passages, weight }) in matched.into_iter().enumerate() {
        for (found, how) in passages {
            let sum = sums.entry(found.passage).or_insert_with(|| CoveredTerms {
                file: found.file,
                section: found.section,
                terms: vec![Default::default(); all],
                together: 0.0,
            });
            let term = &mut sum.terms[number];
            *term = (term.0.max(how), term.1.max(found.score));
        }
        ranked.weights.terms.push(weight);
    }
    let asked: Vec<_> = words::of(&query.question).take(64).collect();
    ranked.weights.pairs = asked.iter().cloned().zip(asked.iter().skip(1).cloned()).collect();
    for expression in &query.together {
        reporter.check()?;
        let matches = index.matches(expression)?;
        let rare = rarity(passages, matches.len());
        for found in &matches {
            if let Some(sum) = sums.get_mut(&found.passage) {
                sum.together += rare;
            }
        }
    }
    ranked.hits = examine(index, query, &ranked.weights, sums, reporter)?;
    Ok(ranked)
}

/// Finds the passages that contain a word, another form of it, or a word with nearly the same meaning.
fn matches(index: &Index, passages: f64, term: &Term, share: f64) -> rusqlite::Result<TermMatches> {
    let any = |words: &[String]| match words {
        [] => Ok(Vec::new()),
        words => {
            index.matches(&words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" OR "))
        }
    };
    let mut forms = index.forms(&term.word)?;
    forms.retain(|form| *form != term.word);
    let whole_words: Vec<_> = term.joined.iter().chain([&term.word]).cloned().collect();
    let mut synonyms = Vec::new();
    for word in words::synonyms(&term.word) {
        synonyms.extend(index.forms(word)?);
    }
    let whole = any(&whole_words)?;
    let is_plural = !term.is_proper && !forms.is_empty();
    let is_proper =
        !whole.is_empty() && (term.is_proper || is_plural && is_name(index, &term.word, &whole)?);
    if is_proper {
        forms.clear();
    }
    let form = any(&forms)?;
    let either: HashSet<_> = whole.iter().chain(&form).map(|found| found.passage).collect();
    let is_code = term.word.contains(|c: char| c.is_ascii_digit());
    let weight = term.weight * share * if is_code { CODE } else { 1.0 };
    let common = rarity(passages, either.len());
    // A whole word that is rarer than its other forms weighs more than they do; if it occurs nowhere, they
    // replace it.
    let rare =
        if whole.is_empty() { common } else { (common + rarity(passages, whole.len())) / 2.0 };
    let worth = [rare, common * FORM, common * SYNONYM].map(|worth| worth * weight);
    let mut found: Vec<_> = Vec::new();
    found.extend(
        rescore(any(&synonyms)?, passages, worth[2]).map(|found| (found, TermMatch::Synonym)),
    );
    found.extend(rescore(form, passages, worth[1]).map(|found| (found, TermMatch::Form)));
    found.extend(rescore(whole, passages, worth[0]).map(|found| (found, TermMatch::Whole)));
    Ok(TermMatches {
        passages: found,
        weight: Weight {
            spaced: whole_words.iter().map(|word| format!(" {word} ")).collect(),
            whole: whole_words,
            forms,
            synonyms,
            worth,
        },
    })
}

/// Returns true if the library writes the plural of a word as a name, with a capital inside sentences: "Windows".
fn is_name(index: &Index, word: &str, whole: &[PassageMatch]) -> rusqlite::Result<bool> {
    if !word.ends_with('s') {
        return Ok(false);
    }
    let (mut capitals, mut all) = (0, 0);
    for found in whole.iter().take(SAMPLE) {
        let text = index.passage(found.passage)?.text;
        // The first word of a sentence has a capital anyway.
        let inside = sentences::split(&text)
            .into_iter()
            .flat_map(|sentence| words::surface_words(sentence).skip(1));
        for this in inside.filter(|this| this.eq_ignore_ascii_case(word)) {
            all += 1;
            capitals += u32::from(this.starts_with(char::is_uppercase));
        }
    }
    Ok(capitals * 2 > all)
}

/// Rescores matches by the weight of their word. SQLite's own weight is close to zero for a word that occurs in
/// most passages, which in a small library is every word. Several words of one expression count once.
fn rescore(matches: Vec<PassageMatch>, all: f64, worth: f64) -> impl Iterator<Item = PassageMatch> {
    let rarity = sqlite_rarity(all, matches.len());
    matches.into_iter().map(move |found| {
        // The remaining factor depends on the frequency of the word and the length of the text, and BM25 keeps
        // it below 2.2. Its root is used because all passages are short and the shortest ones are not the best.
        PassageMatch { score: (found.score / rarity).min(2.2).sqrt() * worth, ..found }
    })
}

fn rarity(all: f64, having: usize) -> f64 {
    let having = having as f64;
    (1.0 + (all - having + 0.5).max(0.0) / (having + 0.5)).ln()
}

/// The inverse document frequency by which FTS5 multiplies BM25.
fn sqlite_rarity(all: f64, having: usize) -> f64 {
    let having = having as f64;
    ((all - having + 0.5) / (having + 0.5)).ln().max(1e-6)
}

fn examine(
    index: &Index,
    query: &Query,
    weights: &Weights,
    sums: HashMap<i64, CoveredTerms>,
    reporter: &Reporter,
) -> Result<Vec<Hit>, SearchError> {
    let mut sections: HashMap<(i64, u32), Vec<TermMatch>> = HashMap::new();
    for sum in sums.values() {
        let found = sections
            .entry((sum.file, sum.section))
            .or_insert_with(|| vec![TermMatch::Not; sum.terms.len()]);
        for (found, (own, _)) in found.iter_mut().zip(&sum.terms) {
            *found = (*found).max(*own);
        }
    }
    let total = weights.total.max(f64::MIN_POSITIVE);
    let mut scored: Vec<_> = sums
        .into_iter()
        .map(|(id, sum)| {
            let own: Vec<_> = sum.terms.iter().map(|(found, _)| *found).collect();
            let section = sections
                .get(&(sum.file, sum.section))
                .map_or(0.0, |all| weights.coverage(all, 0.5));
            let known = weights.coverage(&own, 0.0) * total / weights.known.max(f64::MIN_POSITIVE);
            let own = weights.coverage(&own, 0.5);
            let coverage = 0.5 * own + 0.5 * section;
            let score: f64 = sum.terms.iter().map(|(_, score)| score).sum();
            let together = (sum.together / total).min(1.0);
            (id, score * (0.25 + 0.75 * coverage) * (1.0 + 0.5 * together), coverage, known)
        })
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored.truncate(CLOSE);
    let asked: Vec<_> = query.terms.iter().map(|term| words::stem(&term.word)).collect();
    let mut hits = Vec::with_capacity(scored.len());
    let mut headings: HashMap<String, RankedHeading> = HashMap::new();
    for (id, score, coverage, known) in scored {
        reporter.check().map_err(|ReporterGone| SearchError::Stopped)?;
        let stored = index.passage(id)?;
        let file = file_heading(&stored);
        let file = headings.entry(file).or_insert_with_key(|text| weights.heading(text)).fit;
        let above = stored.heading().unwrap_or("");
        let heading = headings.entry(above.to_owned()).or_insert_with(|| weights.heading(above));
        let in_heading = weights.share_of(heading.found.iter().copied());
        let factors = [
            1.0 + heading.fit + FILE * file,
            if is_looked_up(&stored, &asked) { 1.3 } else { readable(&stored, &asked) },
            if is_history(&stored.name) && !query.is_about_changes { HISTORY } else { 1.0 },
            0.4 + weights.best_sentence(&stored.text, heading).max(0.7 * in_heading),
        ];
        let score = score * factors.iter().product::<f64>();
        let is_sure = known >= SURE || heading.fit >= SURE_HEADING;
        hits.push(Hit { stored, score, coverage, known, is_sure });
    }
    hits.sort_by(order);

    Ok(hits)
}

/// Orders by score, then by place, so that equal libraries give equal reports.
fn order(a: &Hit, b: &Hit) -> Ordering {
    let place = |hit: &Hit| (hit.stored.name.clone(), hit.stored.line, hit.stored.id);
    b.score.total_cmp(&a.score).then_with(|| place(a).cmp(&place(b)))
}

/// Returns the words of the file's name, and of its title if that is not the nearest heading.
fn file_heading(stored: &StoredPassage) -> String {
    let file = stored.name.rsplit('/').next().unwrap_or(&stored.name);
    let stem = file.split('.').next().unwrap_or(file);
    let title = stored.title.as_deref().filter(|_| !stored.headings.is_empty());
    format!("{stem} {}", title.unwrap_or(""))
}

/// Returns true for a file that lists what changed in each version, which answers only questions about changes.
fn is_history(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let stem = file.split('.').next().unwrap_or("");
    let words = stem.split(['-', '_']);
    words.into_iter().any(|word| {
        matches!(
            word,
            "changes"
                | "changelog"
                | "changelogs"
                | "history"
                | "news"
                | "whatsnew"
                | "releasenotes"
        )
    }) || stem.starts_with("release") && stem.ends_with("notes")
}

/// Scores prose that informs the reader higher than names, fragments, listings and repetitions of the question.
fn readable(stored: &StoredPassage, asked: &[String]) -> f64 {
    let outside: String = stored.text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let prose = words::of(&outside).count() as f64;
    let all: Vec<_> = words::of(&stored.text).map(|word| words::stem(&word)).collect();
    let new = all.iter().filter(|word| !asked.contains(word)).count();
    let kind = match stored.kind {
        PassageKind::Paragraph | PassageKind::Line | PassageKind::Item | PassageKind::Row => 1.0,
        PassageKind::Code => 0.6,
        PassageKind::Head => 0.3,
    };
    let scrap = if new == 0 || new == all.len() && new < 5 { 0.5 } else { 1.0 };
    let share =
        if stored.kind == PassageKind::Code { 1.0 } else { prose / all.len().max(1) as f64 };
    kind * scrap * (0.25 + 0.75 * share)
}

/// Returns true for a row whose first cell is what the question names.
fn is_looked_up(stored: &StoredPassage, asked: &[String]) -> bool {
    if stored.kind != PassageKind::Row {
        return false;
    }
    let first = stored.text.trim_start_matches('|').split(" | ").next().unwrap_or("");
    let mut names = words::of(first).map(|word| words::stem(&word)).peekable();
    names.peek().is_some() && names.all(|name| asked.contains(&name))
}
