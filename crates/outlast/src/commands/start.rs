//! The common part of the commands that start a job: the reasons for a refusal, `--detach`, and the way to the job's end.

use std::path::PathBuf;

use outlast_core::{Job, NewJob, StoreError};
use outlast_engine::{Engine, LeaveTime, Worker, WorkerRole};

use super::engine::CommandSession;
use super::follow::{self, CarriedBy};
use super::job_view::json;
use super::left_worker;
use super::signals::stop_on_signals;
use crate::config::{Config, StoreUrl};
use crate::error::{CommandError, CommandResult, DONE, refuse};
use crate::ui::{self, LineMark};

/// Refuses `--detach` if no other process could continue the job.
pub(super) fn check_detach(detach: bool, config: &Config) -> CommandResult<()> {
    if detach && config.store == StoreUrl::Memory {
        let hint = "leave out --detach, or name a store with --store";
        return refuse("a job in a memory store ends with this command", hint);
    }
    Ok(())
}

/// Refuses `--notify` if no recipient is configured.
pub(super) fn check_notify(notify: bool, config: &Config) -> CommandResult<()> {
    if notify && config.notify.is_none() {
        let hint = "set notify.command, or notify.url and notify.secret, in outlast.toml \
                    (docs/notify.md)";
        return refuse("--notify has no one to tell: [notify] is not configured", hint);
    }
    Ok(())
}

/// Starts a job.
pub(super) async fn start(engine: &Engine, job: NewJob) -> CommandResult<Job> {
    let job = engine.start(job, None).await.map_err(explain_refusal)?.job;
    if let Some(note) = engine.expects(&job.new.profile, &job.new.request).budget_note {
        ui::remark(&note);
    }
    Ok(job)
}

/// Prints the job's id, or the job as JSON, and leaves it to a worker.
pub(super) async fn detach(
    session: &CommandSession<'_>,
    library: &[PathBuf],
    job: &Job,
    as_json: bool,
) -> CommandResult {
    // Printed first, so that the id is known whatever follows.
    print(&session.engine, job, as_json);
    let carrier = left_worker::ensure(session, library, job).await?;
    ui::mark(LineMark::Good, "started");
    left_worker::tell(&carrier, job);
    DONE
}

/// Starts a job, and follows it to its end. This process runs it, unless another one does. If the user leaves first, returns
/// the job unfinished.
pub(super) async fn start_and_follow(
    session: &CommandSession<'_>,
    start: impl AsyncFnOnce(&Engine) -> CommandResult<Job>,
) -> CommandResult<Job> {
    let CommandSession { engine, stop, .. } = session;
    outlast_engine::spawn(stop_on_signals(stop.clone())?);
    let worker =
        outlast_engine::spawn(Worker::new(engine, WorkerRole::HeldCallsOnly).run(LeaveTime::Asked));
    let job = match start(engine).await {
        Ok(job) => follow::with_bar(engine, job, CarriedBy::ThisProcess).await,
        Err(failed) => Err(failed),
    };
    // An unfinished job is released before another worker is asked to continue it.
    stop.ask();
    drop(worker.await);
    let job = job?;
    // The worker may have finished after the last reading.
    Ok(engine.job(&session.own(), &job.id).await?.unwrap_or(job))
}

/// Leaves an unfinished job to a worker, and says so.
pub(super) async fn leave(
    session: &CommandSession<'_>,
    library: &[PathBuf],
    job: &Job,
) -> CommandResult {
    let carrier = left_worker::ensure(session, library, job).await?;
    Ok(left_worker::leave(&carrier, job))
}

/// Prints the job as data: its id, or all of it.
pub(super) fn print(engine: &Engine, job: &Job, as_json: bool) {
    match as_json {
        true => ui::json(&json::job(job, engine.now())),
        false => ui::line(&job.id.to_string()),
    }
}

/// Returns the error for a job that was not accepted, with a next step.
pub(super) fn explain_refusal(error: StoreError) -> CommandError {
    let hint = match &error {
        StoreError::ConversationBusy(job) => {
            format!("`outlast jobs wait {job}` waits until it has ended")
        }
        StoreError::TooManyJobs => {
            "wait for some of them, or cancel them: `outlast jobs list --state queued`".to_owned()
        }
        StoreError::TooManyBytes => {
            "remove what is not needed any more (`outlast conversations delete ID`, `outlast jobs prune`), or raise \
             OUTLAST_MAX_BYTES_PER_OWNER"
                .to_owned()
        }
        StoreError::BudgetExceeded(refused) => {
            format!("{}; `outlast spend` shows what was spent", refused.next_step())
        }
        StoreError::Full => "make room on the disk".to_owned(),
        StoreError::NotInserted(_) => {
            "no job was started; start it again when the database answers".to_owned()
        }
        StoreError::InsertUnconfirmed { job, .. } => {
            format!("`outlast jobs show {job}` shows whether it was, once the database answers; look before you start it again")
        }
        StoreError::Unconfirmed(_) => {
            "the job may have been started: look at `outlast jobs list` before you start it again".to_owned()
        }
        _ => return CommandError::from(error),
    };
    CommandError::from(error).hint(hint)
}
