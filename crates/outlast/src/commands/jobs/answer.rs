//! `outlast jobs answer`: answers the question that a job waits for (M4).

use outlast_core::{AnswerOutcome, AnswerRefusal, JobState};

use super::{find, retry};
use crate::cli::AnswerArgs;
use crate::commands::engine::CommandSession;
use crate::commands::job_view::json;
use crate::commands::left_worker::short_id;
use crate::error::{CommandError, CommandResult, DONE};
use crate::ui::{self, LineMark};

pub(super) async fn run(session: &CommandSession<'_>, args: AnswerArgs) -> CommandResult {
    let engine = &session.engine;
    let job = find::job(session, &args.id).await?;
    // The answer counts for the question that is open now, and for no later one.
    let question = job.open_question().map(|question| question.id.clone());
    let outcome = engine.answer(&session.own(), &job.id, question.as_deref(), &args.text).await?;
    let job = match outcome {
        Some(AnswerOutcome::Accepted(job)) => job,
        Some(AnswerOutcome::Refused(refusal)) => {
            return Err(explain(&refusal, &short_id(&job)));
        }
        None => return Err(anyhow::anyhow!("job {} was removed", job.id).into()),
    };
    if args.json {
        ui::json(&json::job(&job, engine.now()));
    } else {
        ui::line(&job.id.to_string());
    }
    ui::mark(LineMark::Good, "answered");
    if let JobState::Queued { .. } = job.state {
        retry::go_on(session, &job).await?;
    }
    DONE
}

fn explain(refusal: &AnswerRefusal, id: &str) -> CommandError {
    let hint = match refusal {
        AnswerRefusal::NotAChoice(_) | AnswerRefusal::TooLong(_) => {
            format!("`outlast jobs show {id}` shows the question")
        }
        AnswerRefusal::NoQuestion | AnswerRefusal::AlreadyAnswered | AnswerRefusal::TooLate(_) => {
            "`outlast jobs list --state waiting` shows the jobs that wait for an answer".to_owned()
        }
    };
    let error =
        anyhow::Error::msg(refusal.to_string()).context(format!("job {id} is not answered"));
    CommandError::from(error).hint(hint)
}
