//! The steps of a researcher's run: a line for each kind, and the newest ones in a list (K10).

use maud::{Markup, html};
use outlast_core::{
    Job, JournalStep, NoteRecord, Profile, ResearchRecord, StepState, StoreError, address_line,
    visible,
};

use super::request::PageRequest;
use crate::research_details::{ResearchDetails, TakenStep};
use crate::step_totals::StepTotals;

/// The number of entries that a list shows; a run may have thousands of steps.
const MAX_LISTED: usize = 200;

/// The steps of a run and their records.
#[derive(Default)]
pub(super) struct RunSteps {
    steps: Vec<JournalStep>,
    details: ResearchDetails,
}

/// Reads the steps of a researcher's job; other jobs have none to show.
pub(super) async fn read(asked: &PageRequest, job: &Job) -> Result<RunSteps, StoreError> {
    if job.new.profile.provider() != Profile::RESEARCHER {
        return Ok(RunSteps::default());
    }
    let (engine, scope) = (asked.engine(), asked.visitor.scope());
    let steps = engine.steps(&scope, &job.id).await?;
    let outputs = engine.step_outputs(&scope, &job.id, &ResearchRecord::KINDS).await?;
    Ok(RunSteps { details: ResearchDetails::new(&steps, outputs), steps })
}

/// Renders the steps; nothing if there are none.
pub(super) fn render(RunSteps { steps, details }: &RunSteps) -> Markup {
    let totals = StepTotals::sum(steps);
    let known: Vec<_> =
        steps.iter().filter(|step| StepTotals::name_of(&step.kind).is_some()).collect();
    let hidden = known.len().saturating_sub(MAX_LISTED);
    html! {
        @if !totals.is_empty() {
            h2 { "Steps" }
            ul .steps { @for line in &totals { li { (line.to_string()) } } }
            (list("Questions", &details.questions, |question| html! { (visible(question)) }))
            (list("Searches", &details.searches, render_search))
            (list("Pages", &details.pages, render_page))
            (list("Notes", &details.notes, render_note))
            details {
                summary { "Each step" }
                @if hidden > 0 { p .soft { "The first " (hidden) " are left out." } }
                ol .steps {
                    @for step in known.iter().skip(hidden) { li { (visible(&line(step))) } }
                }
            }
        }
    }
}

/// Renders a folded list with its length; nothing if it is empty.
fn list<T>(name: &str, entries: &[T], render: impl Fn(&T) -> Markup) -> Markup {
    let left_out = entries.len().saturating_sub(MAX_LISTED);
    html! {
        @if !entries.is_empty() {
            details {
                summary { (name) " (" (entries.len()) ")" }
                ol .steps { @for entry in entries.iter().take(MAX_LISTED) { li { (render(entry)) } } }
                @if left_out > 0 { p .soft { "The last " (left_out) " are left out." } }
            }
        }
    }
}

fn render_search(search: &TakenStep) -> Markup {
    html! { (visible(&search.subject)) " " span .soft { (visible(&search.facts())) } }
}

fn render_page(page: &TakenStep) -> Markup {
    html! { (address(&page.subject)) " " span .soft { (visible(&page.facts())) } }
}

fn render_note(note: &NoteRecord) -> Markup {
    html! {
        (visible(&note.claim)) " " q { (visible(&note.quotation)) } " " (address(&note.url))
    }
}

/// Renders the address of a page as a link, and the name of a file as text.
fn address(address: &str) -> Markup {
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    html! {
        @if is_web {
            a href=(address_line(address)) rel="noopener noreferrer" { (visible(address)) }
        } @else {
            (visible(address))
        }
    }
}

fn line(step: &JournalStep) -> String {
    let name = StepTotals::name_of(&step.kind).unwrap_or_default();
    let state = match step.state {
        StepState::Done => "",
        StepState::Failed => ", failed",
        StepState::Sending => ", no answer recorded",
    };
    let time = step.ended_at.map(|at| at.since(step.started_at));
    let time = time.map_or_else(String::new, |time| format!(", {:.1} s", time.as_secs_f32()));
    let again = match step.resent {
        0 => String::new(),
        times => format!(", sent again {times}\u{d7}"),
    };
    let cost = match step.spent.0 {
        0 => String::new(),
        _ => format!(", {}", step.spent),
    };
    format!("{name} {}{state}{time}{again}{cost}", number(&step.key))
}

/// Returns the part of a key that distinguishes steps of one kind, shortened.
fn number(key: &str) -> &str {
    let rest = key.split_once(':').map_or("", |(_, rest)| rest);
    &rest[..rest.floor_char_boundary(12)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K10, I5: texts of others are text on the page, and only addresses of the web are links.
    #[test]
    fn k10_texts_of_others_cannot_become_a_part_of_the_page() {
        let hostile = "<script>x()</script>\u{1b}[31m\u{202e}\" onclick=\"y()";
        let note = NoteRecord {
            claim: hostile.to_owned(),
            quotation: hostile.to_owned(),
            url: format!("https://a.example/{hostile}"),
            ..NoteRecord::default()
        };
        let taken = |subject: &str| TakenStep {
            subject: subject.to_owned(),
            result: Some(hostile.to_owned()),
            failed: true,
            time: None,
            spent: outlast_core::NanoUsd(0),
        };
        let shown = [
            render_note(&note),
            render_page(&taken("javascript:alert(1)")),
            render_search(&taken(hostile)),
            list("Questions", &[hostile.to_owned()], |text| html! { (visible(text)) }),
        ];
        for shown in shown.map(Markup::into_string) {
            assert!(!shown.contains("<script") && !shown.contains("\" onclick"), "{shown}");
            assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
            assert!(!shown.contains("href=\"javascript"), "{shown}");
        }
    }
}
