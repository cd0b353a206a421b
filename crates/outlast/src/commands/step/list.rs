//! `outlast step list`: the recorded steps of a job.

use outlast_core::{Fence, Job, JobState, JournalStep, StepState, Timestamp};
use outlast_engine::Providers;
use outlast_provider::command::{STEP_KIND, step_of_key};
use serde_json::{Value, json};

use crate::cli::{Global, JobArgs};
use crate::commands::engine::with_engine;
use crate::commands::find;
use crate::error::{CommandResult, DONE};
use crate::open_store::OpenStore;
use crate::ui::{self, Cell};

pub(super) async fn run(global: &Global, args: JobArgs) -> CommandResult {
    let config = crate::commands::load_config(global, &[])?;
    let store = OpenStore::to_read(&config).await?;
    with_engine(global, &config, store, Providers::new(), async |session| {
        let job = find::job(session, &args.id).await?;
        let steps = session.engine.steps(&session.own(), &job.id).await?;
        let rows: Vec<_> = steps.iter().filter_map(|step| row(&job, step)).collect();
        if args.json {
            let steps: Vec<_> = rows.iter().map(StepRow::shape).collect();
            ui::json(&json!({"job_id": job.id.to_string(), "steps": steps}));
        } else if rows.is_empty() {
            ui::remark("The job has no steps.");
        } else {
            let now = session.engine.now();
            ui::table(
                &["STEP", "STATE", "TRY", "TOOK"],
                rows.iter().map(|row| row.cells(now)).collect(),
            );
        }
        DONE
    })
    .await
}

/// One try of a step.
struct StepRow<'a> {
    name: &'a str,
    nth: u32,
    state: &'static str,
    step: &'a JournalStep,
}

/// Returns the row of a step; `None` for a part of an output, and for the steps of other providers.
fn row<'a>(job: &Job, step: &'a JournalStep) -> Option<StepRow<'a>> {
    let (name, nth) = step_of_key(&step.key).filter(|_| step.kind == STEP_KIND)?;
    // A step that was taken over from another job was started before this claim.
    let is_under_way = matches!(job.state, JobState::Running { since } if step.started_at >= since)
        && step.fence == job.fence;
    let state = match step.state {
        StepState::Done => "done",
        StepState::Failed => "failed",
        StepState::Sending if is_under_way => "running",
        StepState::Sending if step.fence == Fence::NONE => "to rerun",
        StepState::Sending => "interrupted",
    };
    Some(StepRow { name, nth, state, step })
}

impl StepRow<'_> {
    fn shape(&self) -> Value {
        json!({
            "name": self.name,
            "state": self.state,
            "try": self.nth,
            "started_at": self.step.started_at.to_string(),
            "ended_at": self.step.ended_at.map(|at| at.to_string()),
        })
    }

    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let ended = match self.state {
            "running" => Some(now),
            _ => self.step.ended_at,
        };
        let took = ended.map_or_else(String::new, |at| ui::took(at.since(self.step.started_at)));
        [self.name, self.state, &self.nth.to_string(), &took].map(Cell::plain).into()
    }
}
