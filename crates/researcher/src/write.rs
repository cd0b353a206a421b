//! Writes the sections and the summary. A sentence that its sources do not confirm is corrected once, then removed.

use std::sync::Arc;

use outlast_core::ProviderError;

use crate::collect::Findings;
use crate::notes::Note;
use crate::plan::{Plan, line};
use crate::prompts::{self, RepairAnswer, SentencesAnswer, WrittenSentence, enclose, fill};
use crate::verify::{Pages, Sentence, clean_sentences, names_address, verify};
use crate::work::{Question, RunContext};

/// The claims that a section is written from.
const MAX_CLAIMS: usize = 40;
/// The quotations that replace a section without a confirmed sentence.
const MAX_QUOTATIONS: usize = 5;
/// The citations of one sentence.
const MAX_CITATIONS: usize = 3;

/// A section that is finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) sentences: Vec<Sentence>,
}

/// The written parts of a report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) summary: Vec<Sentence>,
    pub(crate) sections: Vec<Section>,
    /// The sub-questions without any note.
    pub(crate) open: Vec<String>,
    pub(crate) removed: usize,
}

/// Writes the sections, one at a time, and the summary. `show` receives the draft after each section.
pub(crate) async fn write(
    work: &RunContext,
    plan: &Plan,
    found: &Findings,
    show: impl Fn(&Draft),
) -> Result<Draft, ProviderError> {
    let pages: Pages = found.pages.iter().map(|page| Arc::clone(&page.facts)).collect();
    let mut draft = Draft::default();
    let numbered = plan.questions.iter().enumerate();
    let (with_notes, without): (Vec<_>, Vec<_>) =
        numbered.partition(|(number, _)| !found.notes.of(*number).is_empty());
    draft.open.extend(without.into_iter().map(|(_, sub)| sub.question.clone()));
    let questions: Vec<_> =
        with_notes.iter().map(|(number, _)| section_question(work, plan, found, *number)).collect();
    let bounds: Vec<_> = questions.iter().map(|question| work.bound(question)).collect();
    let allowed = work.allow("write", &bounds, false).await?;
    let all = with_notes.len();
    for (at, ((number, sub), question)) in with_notes.into_iter().zip(questions).enumerate() {
        let percent = u8::try_from(65 + 25 * at / all.max(1)).unwrap_or(90);
        work.report(percent, format!("Writing section {} of {all}: {}", at + 1, sub.heading));
        let notes = found.notes.of(number);
        let mut sentences = Vec::new();
        if at < allowed {
            let answer: SentencesAnswer =
                work.ask(question, has_sentences).await?.unwrap_or_default();
            sentences = from_notes(answer.sentences, &notes);
        }
        let key = format!("repair:{number}");
        let quotations = |sentence: &Sentence| {
            let own = notes.iter().filter(|(number, _)| sentence.claims.contains(number));
            own.map(|(_, note)| note.quotation.clone()).collect()
        };
        let (kept, removed) = confirm(work, key, &pages, sentences, quotations).await?;
        draft.removed += removed;
        let sentences = if kept.is_empty() { quote(&pages, &notes).await } else { kept };
        work.end_phase();
        if sentences.is_empty() {
            draft.open.push(sub.question.clone());
        } else {
            draft.sections.push(Section { heading: sub.heading.clone(), sentences });
            show(&draft);
        }
    }
    work.report(90, "Writing the summary");
    let (summary, removed) = write_summary(work, &pages, &draft).await?;
    draft.summary = summary;
    draft.removed += removed;
    Ok(draft)
}

fn has_sentences(answer: &SentencesAnswer) -> Result<(), &'static str> {
    let has_text = answer.sentences.iter().any(|sentence| !sentence.text.trim().is_empty());
    if has_text { Ok(()) } else { Err("it has no sentences") }
}

fn section_question(work: &RunContext, plan: &Plan, found: &Findings, number: usize) -> Question {
    let sub = &plan.questions[number];
    let part = |(number, note): &(usize, &Note)| {
        let site = line(&found.pages[note.page].title).replace('"', "'");
        let text = format!("{}\nquotation: {}", note.claim, note.quotation);
        enclose("claim", &format!(" id=\"{number}\" source=\"{site}\""), &text)
    };
    let mut question = Question {
        key: format!("section:{number}"),
        kind: "section",
        system: fill(prompts::SECTION, work.date(), 0),
        head: format!(
            "{}{}",
            enclose("question", "", &sub.question),
            enclose("heading", "", &sub.heading)
        ),
        parts: found.notes.of(number).iter().take(MAX_CLAIMS).map(part).collect(),
        schema: prompts::sentences_schema(),
        max_tokens: 2_000,
        needs_room: false,
    };
    work.fit(&mut question);
    question
}

/// Returns the sentences of a section with the pages of their claims.
fn from_notes(written: Vec<WrittenSentence>, notes: &[(usize, &Note)]) -> Vec<Sentence> {
    let find = |number: &u64| {
        let number = usize::try_from(*number).ok()?;
        notes.iter().find(|(known, _)| *known == number).map(|(known, note)| (*known, note.page))
    };
    let mut sentences = Vec::new();
    for written in written {
        let found: Vec<_> = written.claims.iter().filter_map(find).collect();
        for text in clean_sentences(&written.text) {
            sentences.push(new_sentence(text, found.iter().copied()));
        }
    }
    without_repetition(sentences)
}

fn new_sentence(text: String, of: impl Iterator<Item = (usize, usize)>) -> Sentence {
    let mut sentence = Sentence { text, ..Sentence::default() };
    for (claim, page) in of {
        sentence.claims.push(claim);
        if !sentence.pages.contains(&page) && sentence.pages.len() < MAX_CITATIONS {
            sentence.pages.push(page);
        }
    }
    sentence
}

/// Removes sentences that repeat an earlier one, as a model in a loop writes them.
fn without_repetition(sentences: Vec<Sentence>) -> Vec<Sentence> {
    let mut seen = std::collections::HashSet::new();
    sentences.into_iter().filter(|sentence| seen.insert(sentence.text.to_lowercase())).collect()
}

/// Keeps the sentences that their pages confirm, after one correction of the others. Returns them and the number of
/// removed ones.
async fn confirm(
    work: &RunContext,
    key: String,
    pages: &Pages,
    mut sentences: Vec<Sentence>,
    quotations: impl Fn(&Sentence) -> Vec<String>,
) -> Result<(Vec<Sentence>, usize), ProviderError> {
    let mut confirmed = check(pages, &sentences).await;
    let failed: Vec<usize> = (0..sentences.len())
        .filter(|at| !confirmed[*at] && !sentences[*at].pages.is_empty())
        .collect();
    if !failed.is_empty() {
        let mut question = Question {
            key,
            kind: "repair",
            system: fill(prompts::REPAIR, work.date(), 0),
            head: String::new(),
            parts: Vec::new(),
            schema: prompts::repair_schema(),
            max_tokens: 1_200,
            needs_room: false,
        };
        for at in &failed {
            let mut text = sentences[*at].text.clone();
            for quotation in quotations(&sentences[*at]) {
                text.push_str(&format!("\nquotation: {quotation}"));
            }
            question.parts.push(enclose("sentence", &format!(" id=\"{}\"", at + 1), &text));
        }
        let answer: RepairAnswer = work.ask(question, |_| Ok(())).await?.unwrap_or_default();
        for repaired in answer.sentences {
            let at = usize::try_from(repaired.sentence).unwrap_or(0).wrapping_sub(1);
            // A correction is one sentence, so that each sentence keeps its place.
            if let ([text], true) =
                (clean_sentences(&repaired.text).as_slice(), failed.contains(&at))
            {
                sentences[at].text.clone_from(text);
            }
        }
        confirmed = check(pages, &sentences).await;
    }
    let all = sentences.len();
    let kept: Vec<_> = sentences
        .into_iter()
        .zip(confirmed)
        .filter_map(|(it, is_kept)| is_kept.then_some(it))
        .collect();
    let removed = all - kept.len();
    Ok((without_repetition(kept), removed))
}

async fn check(pages: &Pages, sentences: &[Sentence]) -> Vec<bool> {
    let (pages, all) = (Arc::clone(pages), sentences.to_vec());
    let verified = tokio::task::spawn_blocking(move || verify(&pages, &all)).await;
    let verified = verified.unwrap_or_else(|_| vec![false; sentences.len()]);
    let is_plain = |sentence: &Sentence| !names_address(&sentence.text);
    verified.into_iter().zip(sentences).map(|(is_true, it)| is_true && is_plain(it)).collect()
}

/// Returns the quotations of a section whose sentences were all removed.
async fn quote(pages: &Pages, notes: &[(usize, &Note)]) -> Vec<Sentence> {
    let quoted = notes.iter().take(MAX_QUOTATIONS).flat_map(|(number, note)| {
        let texts = clean_sentences(&note.quotation);
        let text = texts.join(" ").replace('"', "'");
        let text = format!("\"{}\".", text.trim_end_matches('.'));
        (texts.len() == 1).then(|| new_sentence(text, std::iter::once((*number, note.page))))
    });
    let sentences: Vec<_> = quoted.collect();
    let confirmed = check(pages, &sentences).await;
    sentences.into_iter().zip(confirmed).filter_map(|(it, is_kept)| is_kept.then_some(it)).collect()
}

async fn write_summary(
    work: &RunContext,
    pages: &Pages,
    draft: &Draft,
) -> Result<(Vec<Sentence>, usize), ProviderError> {
    let known: Vec<&Sentence> =
        draft.sections.iter().flat_map(|section| &section.sentences).collect();
    if known.is_empty() {
        return Ok((Vec::new(), 0));
    }
    // The first sentences of each section come first, because the last parts may not fit.
    let mut order: Vec<(usize, usize, &Sentence)> = Vec::new();
    let mut number = 0;
    for section in &draft.sections {
        for (rank, sentence) in section.sentences.iter().enumerate() {
            number += 1;
            order.push((rank, number, sentence));
        }
    }
    order.sort_by_key(|(rank, number, _)| (*rank, *number));
    let part = |(_, number, sentence): &(usize, usize, &Sentence)| {
        enclose("sentence", &format!(" id=\"{number}\""), &sentence.text)
    };
    let mut question = Question {
        key: "summary".to_owned(),
        kind: "summary",
        system: fill(prompts::SUMMARY, work.date(), 0),
        head: enclose("question", "", &line(work.ask.question())),
        parts: order.iter().map(part).collect(),
        schema: prompts::sentences_schema(),
        max_tokens: 1_000,
        needs_room: false,
    };
    work.fit(&mut question);
    let mut written = Vec::new();
    let bound = work.bound(&question);
    if work.allow("summary", &[bound], false).await? > 0 {
        let answer: SentencesAnswer = work.ask(question, has_sentences).await?.unwrap_or_default();
        for sentence in answer.sentences {
            let numbers = sentence.claims.iter().filter_map(|number| usize::try_from(*number).ok());
            let of: Vec<(usize, usize)> = numbers
                .filter_map(|number| Some((number, *known.get(number.checked_sub(1)?)?)))
                .flat_map(|(number, of)| of.pages.iter().map(move |page| (number, *page)))
                .collect();
            for text in clean_sentences(&sentence.text) {
                written.push(new_sentence(text, of.iter().copied()));
            }
        }
    }
    let quotations = |sentence: &Sentence| {
        let own = sentence.claims.iter().filter_map(|number| known.get(number.checked_sub(1)?));
        let mut texts: Vec<_> = own.map(|sentence| sentence.text.clone()).collect();
        texts.dedup();
        texts
    };
    let written = without_repetition(written);
    let (kept, removed) =
        confirm(work, "repair:summary".to_owned(), pages, written, quotations).await?;
    if !kept.is_empty() {
        return Ok((kept, removed));
    }
    let first = draft.sections.iter().filter_map(|section| section.sentences.first());
    Ok((first.take(5).cloned().collect(), removed))
}
