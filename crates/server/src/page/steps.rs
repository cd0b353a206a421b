//! The steps of a researcher's run: a line for each kind, and the newest ones in a list (K10).

use maud::{Markup, html};
use outlast_core::{Job, JournalStep, Profile, StepState, StoreError, visible};

use super::request::PageRequest;
use crate::step_totals::StepTotals;

/// The number of steps that are listed; a run may have thousands.
const MAX_LISTED: usize = 100;

/// Reads the steps of a researcher's job; other jobs have none to show.
pub(super) async fn read(asked: &PageRequest, job: &Job) -> Result<Vec<JournalStep>, StoreError> {
    if job.new.profile.provider() != Profile::RESEARCHER {
        return Ok(Vec::new());
    }
    asked.engine().steps(&asked.visitor.scope(), &job.id).await
}

/// Renders the steps; nothing if there are none.
pub(super) fn render(steps: &[JournalStep]) -> Markup {
    let totals = StepTotals::sum(steps);
    let known: Vec<_> =
        steps.iter().filter(|step| StepTotals::name_of(&step.kind).is_some()).collect();
    let hidden = known.len().saturating_sub(MAX_LISTED);
    html! {
        @if !totals.is_empty() {
            h2 { "Steps" }
            ul .steps { @for line in &totals { li { (line.to_string()) } } }
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
