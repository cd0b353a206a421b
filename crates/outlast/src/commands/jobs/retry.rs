//! `outlast jobs retry`: repeats a request as a new job that names the original. A second retry returns the same job.

use outlast_core::{
    Checkpoint, Fence, Job, JobId, JobQuery, NewJob, Profile, Resend, StateKind, StepState,
};
use outlast_engine::Engine;
use outlast_provider::command::{STEP_KIND, step_of_key};
use outlast_server::{RetrySettings, retry_job, retry_key, retry_of};

use super::find;
use crate::cli::RetryArgs;
use crate::commands::engine::CommandSession;
use crate::commands::job_view::outcome::why;
use crate::commands::left_worker::{self, short_id};
use crate::commands::start::{explain_refusal, print};
use crate::config::Config;
use crate::error::{CommandError, CommandResult, DONE};
use crate::ui::{self, LineMark};
use crate::wire::{research_providers, workflow_providers};

/// The maximum number of jobs with the same question that are searched for retries.
const LOOKED_AT: u32 = 20;

pub(super) async fn run(session: &CommandSession<'_>, args: RetryArgs) -> CommandResult {
    let engine = &session.engine;
    let job = find::job(session, &args.id).await?;
    let hint = match job.state.kind() {
        StateKind::Failed | StateKind::Cancelled => None,
        StateKind::Succeeded => Some("`outlast research` asks a question again".to_owned()),
        StateKind::Queued | StateKind::Running | StateKind::Waiting => {
            Some(format!("`outlast jobs watch {}` follows it", short_id(&job)))
        }
    };
    if let Some(hint) = hint {
        let error = anyhow::anyhow!("job {} is {}", job.id, job.state.kind().as_str());
        let error = error.context("only what failed or was cancelled is retried");
        return Err(CommandError::from(error).hint(hint));
    }
    // The effect of a retry depends on whether the run of a cancelled job was seen to end.
    let job = if args.again { job } else { engine.settle_stop(job).await? };
    if (job.needs_consent() || job.may_run_on()) && !args.again {
        let Some(retry) = retries_of(session, &job).await?.into_iter().next() else {
            return Err(in_doubt(&job));
        };
        let retry = engine.job(&session.own(), &retry).await?.ok_or_else(|| in_doubt(&job))?;
        tell_of_the_first(engine, &job, &retry, args.json);
        return DONE;
    }
    let new = again(&job, session.config);
    // With the owner's consent another run begins, whatever the outcome of the first.
    let run = job.run_left().filter(|_| !args.again && job.journaled_run().is_none());
    let consent = if args.again { Resend::Allow } else { Resend::Refuse };
    let started = engine.start_after(&job, new, Some(retry_key(&job.id)), consent).await;
    let started = started.map_err(explain_refusal)?;
    if started.existed {
        tell_of_the_first(engine, &job, &started.job, args.json);
        return DONE;
    }
    print(engine, &started.job, args.json);
    ui::mark(LineMark::Again, &format!("retry of {}", job.id));
    if started.job.new.sends_library_text() {
        let provider = started.job.new.profile.provider();
        ui::mark(LineMark::Step, &format!("text from local documents is sent to {provider} again"));
    }
    if let Some(run) = run {
        let (id, provider) = (&run.id, &run.provider);
        ui::remark(&match job.left_run_has_ended() {
            true => format!("  it fetches the report of run {id} at {provider}, and sends nothing"),
            false => format!(
                "  it goes on with run {id} at {provider}: only if that has failed is another begun"
            ),
        });
    }
    if let (Some(_), Checkpoint::Running(run)) = (job.journaled_run(), &started.job.checkpoint) {
        let id = &run.id;
        ui::remark(&format!("  it goes on with run {id}: no step of it is taken a second time"));
    }
    report_steps(session, &started.job).await?;
    go_on(session, &started.job).await?;
    DONE
}

/// Reports the steps that the retry of a command takes over, before a worker runs it.
async fn report_steps(session: &CommandSession<'_>, retry: &Job) -> CommandResult<()> {
    if !retry.new.request.is_workflow() {
        return Ok(());
    }
    let steps = session.engine.steps(&session.own(), &retry.id).await?;
    let of_command = steps.iter().filter(|step| step.kind == STEP_KIND);
    let named = of_command.filter_map(|step| Some((step_of_key(&step.key)?.0, step)));
    let (mut done, mut open) = (0, Vec::new());
    for (name, step) in named {
        match step.state {
            StepState::Done => done += 1,
            StepState::Sending if step.fence != Fence::NONE => open.push(name),
            StepState::Sending | StepState::Failed => {}
        }
    }
    if done > 0 {
        let steps = if done == 1 { "step" } else { "steps" };
        ui::remark(&format!("  it keeps {done} finished {steps}"));
    }
    for name in open {
        let id = short_id(retry);
        ui::remark(&format!(
            "  the step `{name}` was interrupted: unless the script has --rerun for it, it is refused until \
             `outlast step resolve {id} {name} --done` or `--rerun`"
        ));
    }
    Ok(())
}

/// Reports the existing retry: a job is retried only once.
fn tell_of_the_first(engine: &Engine, job: &Job, retry: &Job, as_json: bool) {
    print(engine, retry, as_json);
    let state = retry.state.kind().as_str();
    ui::remark(&format!("Job {} was retried as this one before; it is {state}.", job.id));
}

/// Returns the jobs that repeat this one, newest first.
pub(super) async fn retries_of(
    session: &CommandSession<'_>,
    job: &Job,
) -> CommandResult<Vec<JobId>> {
    if !matches!(job.state.kind(), StateKind::Failed | StateKind::Cancelled) {
        return Ok(Vec::new());
    }
    let search = Some(job.new.title.clone());
    let query = JobQuery { search, limit: LOOKED_AT, ..JobQuery::default() };
    let (engine, scope) = (&session.engine, session.own());
    let mut retries = Vec::new();
    for same in engine.list(&scope, &query).await?.jobs {
        let same = engine.job(&scope, &same.id).await?;
        retries.extend(same.filter(|same| retry_of(same) == Some(job.id)).map(|same| same.id));
    }
    Ok(retries)
}

/// Returns the error for a job in doubt, which needs more than a plain `retry`.
fn in_doubt(job: &Job) -> CommandError {
    let id = short_id(job);
    let (twice, begins) = if job.journaled_run().is_some() {
        ("a step of its run may be paid for a second time", "goes on at that step all the same")
    } else if job.may_be_charged() {
        ("a new run may be paid for a second time", "begins a new run all the same")
    } else {
        ("it may be done a second time", "runs it all the same")
    };
    let error = match job.stop_text() {
        Some(told) => anyhow::anyhow!("job {} was cancelled. {told}", job.id),
        None => anyhow::anyhow!("job {} failed with {}", job.id, why(job)),
    };
    CommandError::usage(error.context(twice), format!("`outlast jobs retry {id} --again` {begins}"))
}

/// Returns the job of a retry, with the settings that it takes from today's configuration.
fn again(job: &Job, config: &Config) -> NewJob {
    let providers = research_providers(config).unwrap_or_default();
    let profiles: Vec<Profile> = providers.into_iter().map(|(profile, _)| profile).collect();
    let settings = RetrySettings {
        profiles: &profiles,
        max_failures: config.perplexity.max_job_retries,
        attempt_timeout: config.perplexity.polling_timeout,
        life: config.perplexity.async_max_wait,
    };
    retry_job(job, &settings)
}

/// Makes sure that a worker continues the job, if this configuration has a suitable one.
pub(super) async fn go_on(session: &CommandSession<'_>, job: &Job) -> CommandResult<()> {
    let config = session.config;
    let providers = research_providers(config).unwrap_or_default();
    let fits = providers.iter().any(|(profile, _)| *profile == job.new.profile)
        || workflow_providers(config, None).is_ok_and(|all| all.contains_key(&job.new.profile));
    if fits || session.engine.has_worker(&job.new.profile).await? {
        let carrier = left_worker::ensure(session, &[], job).await?;
        left_worker::tell(&carrier, job);
        return Ok(());
    }
    let missing = match job.new.profile.provider() {
        Profile::LIBRARY => "the library's folders that it was first asked with".to_owned(),
        Profile::WORKFLOW => "the outlast.toml that has its workflow".to_owned(),
        Profile::RESEARCHER => {
            "researcher in OUTLAST_PROVIDERS, and the model, the search service and the keys that it was first asked with"
                .to_owned()
        }
        Profile::PERPLEXITY => "the key and base URL that it was first asked with".to_owned(),
        vendor => format!(
            "{vendor} in OUTLAST_PROVIDERS, and the key and base URL that it was first asked with"
        ),
    };
    ui::remark("  no live worker fits it, nor does this configuration; it waits in the queue:");
    ui::remark(&format!("  start `outlast worker --until-idle` with {missing}"));
    Ok(())
}
