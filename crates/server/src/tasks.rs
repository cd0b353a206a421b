//! MCP tasks over our jobs. A task has the id of its job, so every interface finds it, and a restart loses none. This is
//! the extension of 2026-07-28, for clients that declare it: see `caller.rs`. `tasks_2025.rs` has the tasks of 2025-11-25.

use outlast_core::{Job, JobId, JobState, Standing, Waits, rules};
use outlast_engine::JobSnapshot;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, InputResponses, JsonObject,
    Task, TaskPayload, TaskStatus,
};
use serde_json::Value;

use crate::caller::Caller;
use crate::face::Face;
use crate::questions::{self, Reaction};
use crate::reply::Refusal;
use crate::text::printable;

/// The recommended interval of a client's polls.
pub(crate) const POLL_EVERY_MS: u64 = 2_000;

/// Answers a call that continues as a task.
pub(crate) fn describe_created(job: &Job) -> CreateTaskResult {
    CreateTaskResult::new(task(job, None))
}

impl Face {
    /// `tasks/get`: returns the state of the task, with its result.
    pub(crate) async fn task_state(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<GetTaskResult, ErrorData> {
        let reading = self.task_job(caller, id).await?;
        let detailed = self.detail_task(caller, &reading)?;
        self.follow_up_read_task(&reading.job);
        Ok(GetTaskResult::new(detailed))
    }

    /// Does what a client's look at its task calls for.
    pub(crate) fn follow_up_read_task(&self, job: &Job) {
        match &job.state {
            // The process that ran it may have exited, or its next attempt may be due.
            JobState::Queued { .. } => self.engine.carry_if_held(job),
            // The call that became this task is answered now; an identical call may follow at once.
            JobState::Succeeded { .. } | JobState::Failed { .. } => {
                self.engine.record_answer_soon(&job.id);
            }
            JobState::Running { .. } | JobState::Cancelled { .. } => {}
        }
    }

    /// Returns the params of `notifications/tasks`; `None` if the caller has no such task any more. A notification may be
    /// lost, so it does not count as an answer.
    pub(crate) async fn task_notification(
        &self,
        caller: &Caller,
        id: &JobId,
    ) -> Result<Option<Value>, ErrorData> {
        let reading = self.engine.read(&caller.scope(), id).await;
        let Some(reading) = reading.map_err(|error| report_refusal(error.into()))? else {
            return Ok(None);
        };
        let detailed = serde_json::to_value(self.detail_task(caller, &reading)?);
        detailed.map(Some).map_err(|_| report_refusal(Refusal::internal()))
    }

    fn detail_task(
        &self,
        caller: &Caller,
        JobSnapshot { job, waits, .. }: &JobSnapshot,
    ) -> Result<DetailedTask, ErrorData> {
        // Only a client that can ask its user gets the status that input is required.
        let question = job.open_question().filter(|_| caller.channel.is_some());
        let input = question.and_then(questions::input_requests);
        let payload = match &job.state {
            _ if let Some(input_requests) = input => TaskPayload::InputRequired { input_requests },
            JobState::Queued { .. } | JobState::Running { .. } => TaskPayload::Working,
            JobState::Cancelled { .. } => TaskPayload::Cancelled,
            JobState::Succeeded { .. } | JobState::Failed { .. } => {
                TaskPayload::Completed { result: object(self.outcome(job))? }
            }
        };
        let mut task = task(job, *waits);
        if let Some(question) = job.open_question() {
            let how = questions::how_to_answer(job, question, caller.page.as_deref());
            task.status_message = Some(how);
        }
        task.status = payload.status();
        Ok(DetailedTask::new(task, payload))
    }

    /// `tasks/cancel`: cancels the job; a job that has ended keeps its outcome.
    pub(crate) async fn task_cancelled(&self, caller: &Caller, id: &str) -> Result<(), ErrorData> {
        let job = self.task_job(caller, id).await?.job;
        let cancelled = self.engine.cancel(&caller.scope(), &job.id).await;
        cancelled
            .map_err(|error| report_refusal(error.into()))?
            .map(drop)
            .ok_or_else(report_unknown)
    }

    /// `tasks/update`: records the answer to the task's question. Unknown and answered keys are ignored.
    pub(crate) async fn task_updated(
        &self,
        caller: &Caller,
        id: &str,
        responses: &InputResponses,
    ) -> Result<(), ErrorData> {
        let job = self.task_job(caller, id).await?.job;
        if let Some(question) = job.open_question()
            && let Some(response) = responses.get(&question.id)
        {
            let reaction = Reaction::read(response);
            let scope = caller.scope();
            let _ = questions::record(&self.engine, &scope, &job.id, &question.id, reaction).await;
        }
        Ok(())
    }

    /// Reads the job of a task.
    pub(crate) async fn task_job(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<JobSnapshot, ErrorData> {
        let Ok(id) = id.parse::<JobId>() else { return Err(report_unknown()) };
        let reading = self.engine.read(&caller.scope(), &id).await;
        reading.map_err(|error| report_refusal(error.into()))?.ok_or_else(report_unknown)
    }
}

fn task(job: &Job, waits: Option<Waits>) -> Task {
    let status = match &job.state {
        JobState::Queued { .. } | JobState::Running { .. } => TaskStatus::Working,
        JobState::Succeeded { .. } | JobState::Failed { .. } => TaskStatus::Completed,
        JobState::Cancelled { .. } => TaskStatus::Cancelled,
    };
    let [created, updated] = [job.created_at, job.updated_at].map(|at| at.to_string());
    let mut task = Task::new(job.id.to_string(), status, created, updated)
        .with_status_message(describe_standing(job, waits))
        .with_poll_interval_ms(POLL_EVERY_MS);
    let kept = rules::expires_at(job).map(|end| end.since(job.created_at).as_millis());
    task.ttl_ms = kept.map(|millis| u64::try_from(millis).unwrap_or(u64::MAX));
    task
}

/// Progress comes first: clients read it there.
pub(crate) fn describe_standing(job: &Job, waits: Option<Waits>) -> String {
    let standing = Standing::new(job, waits);
    let words = printable(&standing.words());
    match (standing.percent(), job.stop_text()) {
        (Some(percent), _) => format!("{percent} %: {words}"),
        (None, Some(stop)) => format!("{words}. {stop}"),
        (None, None) => words,
    }
}

fn object(result: Option<CallToolResult>) -> Result<JsonObject, ErrorData> {
    match serde_json::to_value(result) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) | Err(_) => Err(report_refusal(Refusal::internal())),
    }
}

/// Ids of other owners, expired ids and invented ids get the same error.
pub(crate) fn report_unknown() -> ErrorData {
    ErrorData::invalid_params("there is no such task; it may have expired", None)
}

pub(crate) fn report_refusal(refusal: Refusal) -> ErrorData {
    ErrorData::internal_error(refusal.into_sentence(), None)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tools::outcome::outcome;
    use outlast_core::{
        Checkpoint, Fence, NewJob, OwnerId, Profile, RemoteStop, Rev, Timestamp, Visibility,
    };

    const NOW: Timestamp = Timestamp::from_millis(0);

    fn cancelled(remote: RemoteStop) -> Job {
        let new = NewJob {
            owner: OwnerId::new("ann"),
            conversation: None,
            subject: None,
            profile: Profile::new("perplexity"),
            workflow: "deep_research".to_owned(),
            title: "why?".to_owned(),
            request: Value::Null.into(),
            priority: 0,
            visibility: Visibility::Task,
            max_failures: 0,
            attempt_timeout: Duration::from_secs(600),
            life: None,
            keep: None,
        };
        Job {
            id: JobId::new(uuid::Uuid::from_u128(1)),
            new,
            turn: 1,
            state: JobState::Cancelled { at: NOW, remote, cost: outlast_core::Cost::Unknown },
            failures: Vec::new(),
            checkpoint: Checkpoint::NotBegun,
            allowance: None,
            progress: None,
            partial: None,
            questions: outlast_core::Questions::default(),
            fence: Fence(1),
            created_at: NOW,
            updated_at: NOW,
            rev: Rev(0),
        }
    }

    #[test]
    fn a_held_call_and_a_task_say_what_is_known_of_a_cancelled_run() {
        for (remote, known) in [
            (RemoteStop::MaybeBegun, "a run may have been begun and paid for"),
            (RemoteStop::Owed, "is being told to stop its run"),
            (RemoteStop::Told, "was told to stop its run; nobody looked whether it did"),
            (RemoteStop::Ended, "run was stopped, or ended without a report"),
            (RemoteStop::Completed, "had already completed: `outlast jobs retry"),
            (RemoteStop::GoesOn, "which goes on and may still finish, and be charged"),
            (RemoteStop::Unsupported, "its run may still finish, and be charged"),
        ] {
            let job = cancelled(remote);
            let refusal = outcome(&job, |_| Err(Refusal::internal())).unwrap().unwrap_err();
            let answer = refusal.into_sentence();
            assert!(answer.contains("was cancelled by its owner"), "{answer}");
            assert!(answer.contains(known), "{answer}");
            let task = task(&job, None);
            assert_eq!(task.status, TaskStatus::Cancelled);
            let said = task.status_message.unwrap();
            assert!(said.contains(known), "{said}");
        }
        let job = cancelled(RemoteStop::NotNeeded);
        let refusal = outcome(&job, |_| Err(Refusal::internal())).unwrap().unwrap_err();
        assert!(refusal.into_sentence().ends_with("make it again to begin anew"), "no run");
        assert!(!task(&job, None).status_message.unwrap().contains("provider"), "no run");
    }
}
