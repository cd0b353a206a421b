//! The approval of a plan by the owner of the job, before the part of the run that costs most (M4).

use outlast_core::{NanoUsd, NewQuestion, ProviderError, QuestionState, RunJournal};

use crate::plan::Plan;
use crate::steps::store_error;
use crate::work::RunContext;

/// The key of the question, and of the step that records its answer.
const KEY: &str = "approval";

/// The decision about a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approval {
    Given,
    /// The owner is asked, and has not answered yet.
    Pending,
    /// The owner said no, or nothing until the deadline.
    Declined,
}

/// Asks the owner to approve the plan, or finds the answer.
pub(crate) async fn ask_for_approval(
    work: &RunContext,
    plan: &Plan,
) -> Result<Approval, ProviderError> {
    let journal = work.steps.journal();
    if work.steps.has_ended(KEY) {
        let recorded = work.steps.decide(KEY, String::new).await?;
        close(journal).await;
        return Ok(read(&recorded));
    }
    let question = NewQuestion::approval(KEY, describe(work, plan), NewQuestion::TIMEOUT);
    let asked = journal.ask(&question).await.map_err(store_error)?;
    let answer = match asked.state {
        QuestionState::Open => {
            work.report(4, "Waiting for the approval of the plan");
            return Ok(Approval::Pending);
        }
        QuestionState::Answered(answer) if answer.text == NewQuestion::YES => answer.text,
        // Not recorded as a step: a later job that takes over the plan asks again. This job ends with its question.
        QuestionState::Answered(_) | QuestionState::NotAnswered => return Ok(Approval::Declined),
    };
    // Recorded before it is acted on: a run that is resumed needs no second answer.
    let recorded = work.steps.decide(KEY, || answer).await?;
    close(journal).await;
    Ok(read(&recorded))
}

fn read(answer: &str) -> Approval {
    if answer == NewQuestion::YES { Approval::Given } else { Approval::Declined }
}

/// Removes the question with its answer, which is recorded as a step.
async fn close(journal: &RunJournal) {
    if let Err(error) = journal.close_question(KEY).await {
        tracing::debug!(%error, "failed to remove an answered question");
    }
}

/// Returns the question with the plan, and the amount that the run may cost.
fn describe(work: &RunContext, plan: &Plan) -> String {
    let mut text = format!("Start the research with this plan?\n\n{}\n", plan.title);
    for (number, planned) in (1..).zip(&plan.questions) {
        text.push_str(&format!("{number}. {}\n", planned.question));
    }
    let prices = &work.shared.settings.prices;
    let limits = &work.header.limits;
    text.push_str(&format!(
        "\nAt most {} searches, {} pages and {} tokens",
        limits.searches, limits.pages, limits.tokens
    ));
    let most = limits.highest_cost(prices).map(|most| match work.ask.budget {
        Some(budget) => most.min(budget),
        None => most,
    });
    match most {
        Some(NanoUsd(0)) => text.push_str("; it is free."),
        Some(most) => text.push_str(&format!("; it costs {most} at most.")),
        None => text.push_str("; its cost is not known."),
    }
    text
}
