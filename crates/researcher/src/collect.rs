//! The rounds of searching, reading and noting. Each phase works on the complete results of the phase before, in the
//! order of the steps' keys, so that a resumed run takes the same decisions.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use outlast_core::rules::MAX_STEP_OUTPUT;
use outlast_core::{
    NoteRecord, NotesRecord, ProviderError, ResearchRecord, Role, SearchFilters, SearchHit,
};
use outlast_library::rank_passages;
use outlast_sources::Fetcher;
use tokio::sync::Semaphore;
use url::Url;

use crate::earlier::add_earlier;
use crate::notes::{AskedNotes, Note, Notes, gaps_question, note_questions, take_notes};
use crate::plan::{Plan, line};
use crate::prompts::GapsAnswer;
use crate::read::{ReadPage, read_page, to_hex};
use crate::search::{SearchQuery, canonical, search};
use crate::settings::SearchBackend;
use crate::steps::to_json;
use crate::work::{QuestionBound, RunContext};

/// The searches that are sent at the same time.
const AT_ONCE: usize = 4;
/// The notes from known pages with which a sub-question of a follow-up needs no further search.
const ENOUGH_NOTES: usize = 3;
/// The phase before the first round, in the keys of its steps.
const EARLIER: &str = "earlier";
/// The queries for each gap.
const GAP_QUERIES: usize = 2;

/// Everything that a run has found.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) pages: Vec<ReadPage>,
    pub(crate) notes: Notes,
    /// The number of searches that were made, and of their hits.
    pub(crate) searches: usize,
    pub(crate) hits: usize,
    pub(crate) failed_searches: usize,
    /// The number of pages that were chosen from the hits of searches, read or not.
    pub(crate) chosen: usize,
    /// True if a limit ended the collection.
    pub(crate) was_limited: bool,
}

/// A query of a sub-question.
#[derive(Clone, Debug)]
struct Query {
    question: usize,
    text: String,
}

/// Collects notes in rounds.
pub(crate) async fn collect(
    work: &RunContext,
    plan: &Plan,
    fetcher: &Fetcher,
) -> Result<Findings, ProviderError> {
    let limits = work.header.limits;
    let mut found = Findings::default();
    add_earlier(work, plan, fetcher, &mut found).await?;
    let mut known: HashSet<String> = found.pages.iter().map(|page| canonical(&page.url)).collect();
    let mut asked: HashSet<String> = HashSet::new();
    let mut queries = first_queries(plan);
    if !found.pages.is_empty() {
        queries = open_queries(work, plan, queries, &mut found).await?;
    }
    let mut rounds_without_source = 0;
    for round in 0..limits.rounds {
        queries.retain(|query| asked.insert(query.text.to_lowercase()));
        let left = limits.searches.saturating_sub(found.searches);
        let planned = queries.len();
        queries.truncate(left);
        let price = work.shared.settings.prices.search.unwrap_or_default();
        let bound =
            QuestionBound { cost: outlast_core::NanoUsd(price.0.div_ceil(1_000)), tokens: 0 };
        let allowed =
            work.allow(&format!("search:{round}"), &vec![bound; queries.len()], true).await?;
        queries.truncate(allowed);
        found.was_limited |= queries.len() < planned;
        let named = if round == 0 { urls_of_user(work) } else { Vec::new() };
        if queries.is_empty() && named.is_empty() {
            break;
        }
        let (hits, failed) = run_searches(work, round, &queries).await?;
        found.failed_searches += failed;
        found.searches += queries.len();
        found.hits += hits.iter().map(|(_, hits)| hits.len()).sum::<usize>();
        let left = limits.pages.saturating_sub(found.chosen);
        let share = if round + 1 < limits.rounds { left.div_ceil(2) } else { left };
        let mut chosen: Vec<_> =
            named.into_iter().filter(|url| known.insert(canonical(url))).collect();
        chosen.extend(choose(&hits, &work.ask.filters, &mut known, share));
        let pages = read_all(work, round, fetcher, &chosen).await?;
        found.chosen += chosen.len();
        rounds_without_source = if pages.is_empty() { rounds_without_source + 1 } else { 0 };
        let first = found.pages.len();
        found.pages.extend(pages);
        note_phase(work, plan, &round.to_string(), first, &mut found).await?;
        work.end_phase();
        if round + 1 == limits.rounds || rounds_without_source == 2 {
            break;
        }
        queries = next_queries(work, plan, &round.to_string(), &found, &asked).await?;
        work.end_phase();
        if queries.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// Takes notes for the sub-questions from the pages of earlier questions, and returns the queries of the plan for the
/// sub-questions that these pages leave open.
async fn open_queries(
    work: &RunContext,
    plan: &Plan,
    mut queries: Vec<Query>,
    found: &mut Findings,
) -> Result<Vec<Query>, ProviderError> {
    let pages = found.pages.len();
    let taken = note_phase(work, plan, EARLIER, 0, found).await?;
    work.end_phase();
    queries.retain(|query| taken.get(&query.question).is_none_or(|notes| *notes < ENOUGH_NOTES));
    let left = queries.iter().map(|query| query.question).collect::<HashSet<_>>().len();
    let all = plan.questions.len();
    work.report(
        5,
        format!("{} of {all} questions are answered by {pages} known pages", all - left),
    );
    if queries.is_empty() && work.header.limits.rounds > 1 {
        queries = next_queries(work, plan, EARLIER, found, &HashSet::new()).await?;
        work.end_phase();
    }
    Ok(queries)
}

/// Returns the queries of the plan, the first of each question before the second of any.
fn first_queries(plan: &Plan) -> Vec<Query> {
    let most = plan.questions.iter().map(|question| question.queries.len()).max().unwrap_or(0);
    let rank = |rank: usize| {
        plan.questions.iter().enumerate().filter_map(move |(number, question)| {
            let text = question.queries.get(rank)?.clone();
            Some(Query { question: number, text })
        })
    };
    (0..most).flat_map(rank).collect()
}

async fn run_searches(
    work: &RunContext,
    round: usize,
    queries: &[Query],
) -> Result<(Vec<(usize, Vec<SearchHit>)>, usize), ProviderError> {
    let percent = percent_of(work, round, 0);
    if let Some(first) = queries.first() {
        work.report(percent, format!("Searching: {}", first.text));
    }
    let (slots, failed) = (Semaphore::new(AT_ONCE), AtomicUsize::new(0));
    let mut searches = Vec::new();
    for (number, query) in queries.iter().enumerate() {
        let key = format!("search:{round}:{number}");
        searches.push(search_one(work, (&slots, &failed), key, query, percent));
    }
    let found: Result<Vec<_>, _> = join_all(searches).await.into_iter().collect();
    Ok((found?, failed.into_inner()))
}

async fn search_one(
    work: &RunContext,
    (slots, failed): (&Semaphore, &AtomicUsize),
    key: String,
    query: &Query,
    percent: u8,
) -> Result<(usize, Vec<SearchHit>), ProviderError> {
    let _slot = slots.acquire().await;
    let asked = SearchQuery::for_reading(&query.text, work.ask.filters.recency);
    let Ok(hits) = search(&work.shared, &work.steps, key, asked).await? else {
        failed.fetch_add(1, Ordering::Relaxed);
        return Ok((query.question, Vec::new()));
    };
    work.report(percent, format!("Found {} pages for: {}", hits.len(), query.text));
    Ok((query.question, hits))
}

/// Chooses the pages to read: the best hit of each query in turn, each page once.
fn choose(
    hits: &[(usize, Vec<SearchHit>)],
    filters: &SearchFilters,
    known: &mut HashSet<String>,
    at_most: usize,
) -> Vec<String> {
    let mut queues: Vec<VecDeque<&SearchHit>> = hits
        .iter()
        .map(|(_, hits)| hits.iter().filter(|hit| is_wanted(hit, filters)).collect())
        .collect();
    let mut chosen = Vec::new();
    while chosen.len() < at_most && queues.iter().any(|queue| !queue.is_empty()) {
        for queue in &mut queues {
            let next = std::iter::from_fn(|| queue.pop_front())
                .find(|hit| known.insert(canonical(&hit.url)));
            if let Some(hit) = next.filter(|_| chosen.len() < at_most) {
                chosen.push(hit.url.clone());
            }
        }
    }
    chosen
}

/// Returns true if the filters of the request allow the domain of a hit.
pub(crate) fn is_wanted(hit: &SearchHit, filters: &SearchFilters) -> bool {
    let host = Url::parse(&hit.url).ok().and_then(|url| url.host_str().map(str::to_lowercase));
    let Some(host) = host else { return true };
    let is_within = |domain: &str| {
        let domain = domain.to_lowercase();
        host == domain || host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
    };
    let (excluded, only): (Vec<_>, Vec<_>) =
        filters.domains.iter().partition(|domain| domain.starts_with('-'));
    !excluded.iter().any(|domain| is_within(&domain[1..]))
        && (only.is_empty() || only.iter().any(|domain| is_within(domain)))
}

/// Returns the addresses that the user named in the question.
fn urls_of_user(work: &RunContext) -> Vec<String> {
    if matches!(work.shared.settings.search, SearchBackend::Library(_)) {
        return Vec::new();
    }
    let last = work.ask.messages.iter().rfind(|message| message.role == Role::User);
    let Some(question) = last.map(|message| message.content.as_str()) else { return Vec::new() };
    let is_end =
        |sign: char| sign.is_whitespace() || matches!(sign, '<' | '>' | '"' | '(' | ')' | '`');
    let words = question
        .split(is_end)
        .filter(|word| word.starts_with("https://") || word.starts_with("http://"));
    let bare = words
        .map(|word| word.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', ']']).to_owned());
    bare.take(5).collect()
}

async fn read_all(
    work: &RunContext,
    round: usize,
    fetcher: &Fetcher,
    urls: &[String],
) -> Result<Vec<ReadPage>, ProviderError> {
    let done = AtomicUsize::new(0);
    let mut reads = Vec::new();
    for url in urls {
        reads.push(read_one(work, fetcher, url, (round, &done, urls.len())));
    }
    let all: Result<Vec<_>, _> = join_all(reads).await.into_iter().collect();
    Ok(all?.into_iter().flatten().collect())
}

async fn read_one(
    work: &RunContext,
    fetcher: &Fetcher,
    url: &str,
    (round, done, all): (usize, &AtomicUsize, usize),
) -> Result<Option<ReadPage>, ProviderError> {
    let page = read_page(work, fetcher, url).await?;
    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
    work.report(percent_of(work, round, 1), format!("Reading {done} of {all} pages"));
    Ok(page)
}

/// Takes notes from the pages of this phase. Returns the number of new notes for each sub-question.
async fn note_phase(
    work: &RunContext,
    plan: &Plan,
    phase: &str,
    first: usize,
    found: &mut Findings,
) -> Result<HashMap<usize, usize>, ProviderError> {
    let round = phase.parse().unwrap_or(0);
    let mut taken = HashMap::new();
    let documents: Vec<_> = found.pages[first..].iter().map(ReadPage::document).collect();
    if documents.is_empty() {
        return Ok(taken);
    }
    let questions: Vec<String> = plan.questions.iter().map(|it| it.question.clone()).collect();
    let at_most = work.header.limits.passages();
    let ranked =
        tokio::task::spawn_blocking(move || rank_passages(&documents, &questions, at_most)).await;
    let ranked = ranked.unwrap_or_default();
    let mut asked = Vec::new();
    for (number, ranked) in ranked.iter().enumerate() {
        let passages: Vec<_> = ranked.iter().map(|it| (first + it.document, it.passage)).collect();
        asked.extend(note_questions(work, plan, phase, number, &found.pages, &passages));
    }
    let bounds: Vec<_> = asked.iter().map(|asked| work.bound(&asked.question)).collect();
    let allowed = work.allow(&format!("note:{phase}"), &bounds, true).await?;
    found.was_limited |= allowed < asked.len();
    asked.truncate(allowed);
    let (all, done) = (asked.len(), AtomicUsize::new(0));
    work.report(percent_of(work, round, 2), "Taking notes");
    let mut notes = Vec::new();
    for asked in asked {
        notes.push(note_one(work, &found.pages, asked, (round, &done, all)));
    }
    let notes: Result<Vec<Vec<Note>>, _> = join_all(notes).await.into_iter().collect();
    let notes: Vec<Note> = notes?.into_iter().flatten().collect();
    for note in &notes {
        *taken.entry(note.question).or_default() += 1;
    }
    // Those of earlier questions are recorded too: the next question looks at the newest run first.
    let first = if phase == EARLIER { 0 } else { found.notes.all.len() };
    found.notes.extend(notes);
    record_notes(work, plan, &format!("notes:{phase}"), found, first).await?;
    Ok(taken)
}

/// Records the notes from this one on, for people and for the next question of the conversation.
async fn record_notes(
    work: &RunContext,
    plan: &Plan,
    key: &str,
    found: &Findings,
    first: usize,
) -> Result<(), ProviderError> {
    let to_record = |note: &Note| {
        let page = &found.pages[note.page];
        NoteRecord {
            question: plan.questions[note.question].question.clone(),
            claim: note.claim.clone(),
            quotation: note.quotation.clone(),
            url: page.url.clone(),
            page: to_hex(&page.digest),
        }
    };
    let notes = || {
        let mut notes: Vec<_> = found.notes.all[first..].iter().map(to_record).collect();
        loop {
            let record = to_json(&NotesRecord { notes: notes.clone() });
            if record.len() <= MAX_STEP_OUTPUT {
                break record;
            }
            notes.truncate(notes.len() * 3 / 4);
        }
    };
    work.steps.record(key, ResearchRecord::NOTES, notes).await.map(drop)
}

async fn note_one(
    work: &RunContext,
    pages: &[ReadPage],
    asked: AskedNotes,
    (round, done, all): (usize, &AtomicUsize, usize),
) -> Result<Vec<Note>, ProviderError> {
    let notes = take_notes(work, pages, asked).await?;
    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
    work.report(percent_of(work, round, 2), format!("Taking notes: {done} of {all}"));
    Ok(notes)
}

/// Asks the model which questions are still open, and returns the queries for them.
async fn next_queries(
    work: &RunContext,
    plan: &Plan,
    phase: &str,
    found: &Findings,
    asked: &HashSet<String>,
) -> Result<Vec<Query>, ProviderError> {
    work.report(percent_of(work, phase.parse().unwrap_or(0), 3), "Looking for gaps");
    let question = gaps_question(work, plan, phase, &found.notes);
    let bound = work.bound(&question);
    if work.allow(&format!("gaps:{phase}"), &[bound], true).await? == 0 {
        return Ok(Vec::new());
    }
    let answer: GapsAnswer = work.ask(question, |_| Ok(())).await?.unwrap_or_default();
    let mut per_question: HashMap<usize, usize> = HashMap::new();
    let mut queries = Vec::new();
    for gap in answer.gaps {
        let number = usize::try_from(gap.question).unwrap_or(0).wrapping_sub(1);
        if number >= plan.questions.len() {
            continue;
        }
        for text in gap.queries.iter().map(|query| line(query)) {
            let count = per_question.entry(number).or_default();
            if text.is_empty() || asked.contains(&text.to_lowercase()) || *count == GAP_QUERIES {
                continue;
            }
            *count += 1;
            queries.push(Query { question: number, text });
        }
    }
    Ok(queries)
}

/// Returns the percentage at a phase of a round: the rounds take the progress from 5 to 65 %.
fn percent_of(work: &RunContext, round: usize, phase: usize) -> u8 {
    let all = work.header.limits.rounds.max(1) * 4;
    u8::try_from(5 + 60 * (round * 4 + phase) / all).unwrap_or(65)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K4: pages are chosen in turn, within the limit, in the order of the queries.
    #[test]
    fn k4_pages_are_chosen_from_each_query_in_turn() {
        let hits = |urls: &[&str]| {
            urls.iter()
                .map(|url| SearchHit { url: (*url).to_owned(), ..SearchHit::default() })
                .collect()
        };
        let found = [
            (0, hits(&["https://a.example/1", "https://a.example/2"])),
            (1, hits(&["https://a.example/1", "https://b.example/1", "https://no.example/"])),
        ];
        let filters =
            SearchFilters { domains: vec!["-no.example".to_owned()], ..SearchFilters::default() };
        let mut known = HashSet::new();
        let chosen = choose(&found, &filters, &mut known, 3);
        assert_eq!(chosen, ["https://a.example/1", "https://b.example/1", "https://a.example/2"]);
        assert_eq!(choose(&found, &filters, &mut known, 3), Vec::<String>::new());
        let only =
            SearchFilters { domains: vec!["b.example".to_owned()], ..SearchFilters::default() };
        assert_eq!(choose(&found, &only, &mut HashSet::new(), 9), ["https://b.example/1"]);
    }
}
