//! `outlast step resolve`: the decision of a person about an interrupted step. It is one write to the store, which a job
//! that runs refuses.

use outlast_core::{Job, JournalStep, ResolveOutcome, StateKind, StepDecision, StepState};
use outlast_engine::Providers;
use outlast_provider::command::{STEP_KIND, is_question_step, step_of_key};

use crate::cli::{Global, ResolveArgs};
use crate::commands::engine::with_engine;
use crate::commands::find;
use crate::commands::left_worker::short_id;
use crate::error::{CommandError, CommandResult, DONE};
use crate::open_store::OpenStore;
use crate::ui;

pub(super) async fn run(global: &Global, args: ResolveArgs) -> CommandResult {
    let config = crate::commands::load_config(global, &[])?;
    let store = OpenStore::open_existing(&config).await?;
    let decision = if args.done { StepDecision::Done } else { StepDecision::Rerun };
    with_engine(global, &config, store, Providers::new(), async |session| {
        // The job of a worker that was killed does not run any more.
        session.engine.find_dead_workers().await;
        let job = find::job(session, &args.id).await?;
        let steps = session.engine.steps(&session.own(), &job.id).await?;
        let name = &args.name;
        let tries: Vec<_> = steps.iter().filter(|step| is_try_of(step, name)).collect();
        let open = tries.iter().find(|step| step.state == StepState::Sending);
        let Some(open) = open else { return Err(not_interrupted(&job, name, &tries)) };
        if args.done && is_question_step(name) {
            return Err(not_answered(&job, name));
        }
        let engine = &session.engine;
        match engine.resolve_step(&session.own(), &job.id, &open.key, decision).await? {
            ResolveOutcome::Recorded => {}
            ResolveOutcome::JobRuns => return Err(still_runs(&job)),
            ResolveOutcome::NotOpen => return Err(not_interrupted(&job, name, &tries)),
        }
        let id = short_id(&job);
        ui::remark(&match decision {
            StepDecision::Done => {
                format!("Step `{name}` of job {id} is recorded as done. Its output is empty.")
            }
            StepDecision::Rerun => format!("Step `{name}` of job {id} runs again in its next run."),
        });
        if matches!(job.state.kind(), StateKind::Failed | StateKind::Cancelled) {
            ui::remark(&format!("`outlast jobs retry {id}` starts that run."));
        }
        DONE
    })
    .await
}

fn is_try_of(step: &JournalStep, name: &str) -> bool {
    step.kind == STEP_KIND && step_of_key(&step.key).is_some_and(|(step, _)| step == name)
}

fn still_runs(job: &Job) -> CommandError {
    let id = short_id(job);
    let why = format!("job {id} is running, and may be running this step");
    let hint = format!("wait for its end with `outlast jobs wait {id}`, or cancel it");
    CommandError::failed(why, hint)
}

/// Returns the refusal to end a question without an answer: the script would take nothing for the answer.
fn not_answered(job: &Job, name: &str) -> CommandError {
    let id = short_id(job);
    let why = format!("the step `{name}` of job {id} is a question, and it needs an answer");
    CommandError::failed(
        why,
        match job.state.kind().is_terminal() {
            true => format!("`outlast jobs retry {id}` asks it again"),
            false => format!("`outlast jobs answer {id} TEXT` answers it"),
        },
    )
}

fn not_interrupted(job: &Job, name: &str, tries: &[&JournalStep]) -> CommandError {
    let id = short_id(job);
    let name = ui::short(name, 64);
    let why = match tries.last().map(|step| step.state) {
        None => format!("job {id} has no step `{name}`"),
        Some(StepState::Done) => format!("the step `{name}` of job {id} is done"),
        Some(StepState::Failed) => {
            format!("the step `{name}` of job {id} has failed; the next run runs it again anyway")
        }
        Some(StepState::Sending) => format!("the step `{name}` of job {id} has ended meanwhile"),
    };
    CommandError::failed(why, format!("`outlast step list {id}` shows the steps of the job"))
}
