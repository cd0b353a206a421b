//! The report: the written parts, and the sources in the order of their first mention. Nothing in it depends on the
//! time or the cost of the run.

use outlast_core::{Body, Cost, Output, Source, Usage};

use crate::collect::Findings;
use crate::limits::token_cost;
use crate::plan::Plan;
use crate::read::ReadPage;
use crate::verify::Sentence;
use crate::work::RunContext;
use crate::write::Draft;

/// The sentences of a paragraph.
const PARAGRAPH: usize = 4;

/// The text of a report and its sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AssembledReport {
    pub(crate) text: String,
    pub(crate) sources: Vec<Source>,
}

/// Returns the text of a draft, finished or not.
pub(crate) fn write_out(
    plan: &Plan,
    found: &Findings,
    draft: &Draft,
    is_whole: bool,
) -> AssembledReport {
    let mut cited: Vec<usize> = Vec::new();
    let mut parts = vec![format!("# {}", plan.title)];
    if !draft.summary.is_empty() {
        parts.push("## Summary".to_owned());
        parts.extend(paragraphs(&draft.summary, &mut cited));
    }
    for section in &draft.sections {
        parts.push(format!("## {}", section.heading));
        parts.extend(paragraphs(&section.sentences, &mut cited));
    }
    if is_whole {
        parts.extend(closing(found, draft));
    }
    let source = |(at, page): (usize, &usize)| to_source(at, &found.pages[*page]);
    let sources = cited.iter().enumerate().map(source).collect();
    AssembledReport { text: parts.join("\n\n"), sources }
}

fn to_source(at: usize, page: &ReadPage) -> Source {
    Source {
        number: u32::try_from(at + 1).unwrap_or(u32::MAX),
        url: page.url.clone(),
        title: Some(page.title.clone()),
        ..Source::default()
    }
}

fn paragraphs(sentences: &[Sentence], cited: &mut Vec<usize>) -> Vec<String> {
    let mut write = |sentence: &Sentence| {
        for page in &sentence.pages {
            if !cited.contains(page) {
                cited.push(*page);
            }
        }
        let number = |page| cited.iter().position(|known| *known == page).unwrap_or(0) + 1;
        sentence.cited(|page| u32::try_from(number(page)).unwrap_or(u32::MAX))
    };
    let paragraph =
        |sentences: &[Sentence]| sentences.iter().map(&mut write).collect::<Vec<_>>().join(" ");
    sentences.chunks(PARAGRAPH).map(paragraph).collect()
}

/// Returns what the report could not establish.
fn closing(found: &Findings, draft: &Draft) -> Vec<String> {
    let mut parts = Vec::new();
    let mut notes = Vec::new();
    if found.pages.is_empty() {
        notes.push(match found.hits {
            0 if found.failed_searches > 0 => {
                format!("{} of {} searches failed.", found.failed_searches, found.searches)
            }
            0 => "The searches returned no results.".to_owned(),
            _ => "None of the pages that the searches found could be read.".to_owned(),
        });
    } else if draft.sections.is_empty() {
        notes.push("The pages that were read do not answer the question.".to_owned());
    }
    if draft.removed > 0 {
        let (statements, were, their) = match draft.removed {
            1 => ("One statement", "was", "its sources do"),
            _ => ("statements", "were", "their sources do"),
        };
        let number = if draft.removed == 1 { String::new() } else { format!("{} ", draft.removed) };
        notes.push(format!(
            "{number}{statements} {were} removed because {their} not confirm what was written."
        ));
    }
    if found.was_limited {
        notes.push(
            "The research was ended by a limit before everything was searched and read.".to_owned(),
        );
    }
    if notes.is_empty() && draft.open.is_empty() {
        return parts;
    }
    parts.push("## What could not be established".to_owned());
    parts.extend((!notes.is_empty()).then(|| notes.join(" ")));
    let open = draft.open.iter().map(|question| format!("- {question}")).collect::<Vec<_>>();
    parts.extend((!open.is_empty()).then(|| open.join("\n")));
    parts
}

/// Returns the result of the run.
pub(crate) fn to_output(work: &RunContext, written: AssembledReport) -> Output {
    let totals = work.steps.totals();
    let prices = &work.shared.settings.prices;
    let is_priced = token_cost(prices, 1, 1).is_some() && prices.search.is_some();
    Output {
        body: Body::report(written.text, written.sources),
        model: Some(work.shared.settings.model.clone()),
        usage: Usage {
            input_tokens: totals.read,
            output_tokens: totals.written,
            total_tokens: totals.read + totals.written,
            searches: totals.searches,
            ..Usage::default()
        },
        cost: if is_priced { Cost::Computed(totals.spent) } else { Cost::Unknown },
    }
}
