//! `outlast research`: one question, from the terminal to a report. The job is durable like any other: whoever loses
//! patience here finds it again with `outlast jobs`.

mod file;

use std::process::ExitCode;

use outlast_core::conversation::Conversation;
use outlast_core::{
    ConversationId, Effort, Job, JobState, Message, NewJob, Profile, ResearchAsk, Role, Scope,
    Visibility,
};
use outlast_engine::{Engine, Providers, Stop, Takes, Until, Worker};

use super::jobs;
use super::signals::stop_on_signals;
use crate::cli::{Global, ResearchArgs, ResearchEffort};
use crate::config::Config;
use crate::failed::Failed;
use crate::ui::{self, Bar, Mark};
use crate::wire::{OpenStore, library_provider, research_provider};

/// What the shell sees when the person left before the end.
const INTERRUPTED: u8 = 130;

pub(super) async fn run(global: &Global, args: ResearchArgs) -> Result<ExitCode, Failed> {
    if args.question.trim().is_empty() {
        let error = anyhow::anyhow!("the question is empty");
        return Err(Failed::usage(error, "outlast research \"How does a job survive a crash?\""));
    }
    let config = super::configured(global, Vec::new())?;
    super::start_quiet_log(global, &config)?;
    let (profile, provider) = match args.library.as_slice() {
        [] => research_provider(&config, None)?,
        folders => library_provider(&config, folders.to_vec())?,
    };

    let stop = Stop::new();
    let store = OpenStore::open(&config.store)?;
    let providers = Providers::from([(profile.clone(), provider)]);
    let (engine, follower) = store.engine(&config, providers, stop.clone()).await?;
    let worker = tokio::spawn(Worker::new(&engine, Takes::HeldCallsOnly).run(Until::Asked));
    tokio::spawn(stop_on_signals(stop.clone())?);

    let done = ask_and_show(&engine, &config, profile, &args).await;

    stop.ask();
    drop(worker.await);
    drop(follower.await);
    store.close().await;
    done
}

async fn ask_and_show(
    engine: &Engine,
    config: &Config,
    profile: Profile,
    args: &ResearchArgs,
) -> Result<ExitCode, Failed> {
    let job = new_job(engine, config, profile, args).await?;
    let job = engine.start(job, None).await?.job;
    engine.carry(&job.id);
    let scope = Scope::Owner(config.owner.clone());
    let job = followed(engine, &scope, job).await?;
    if args.json {
        ui::line(&jobs::json::job(&job, engine.now()));
    }
    match &job.state {
        JobState::Succeeded { output, .. } => {
            if let Some(path) = &args.output {
                file::write(path, &job, output)?;
                ui::mark(Mark::Good, &format!("written to {}", path.display()));
            } else if !args.json {
                jobs::show::report(&output.body);
            }
            ui::remark(&ui::dim(&epilogue(&job, engine)));
            Ok(ExitCode::SUCCESS)
        }
        JobState::Failed { .. } => {
            let why = job.failures.last().map_or_else(
                || "for no known reason".to_owned(),
                |failure| format!("{}: {}", failure.code, failure.message),
            );
            let failed = Failed::from(anyhow::anyhow!("the research failed: {why}"));
            Err(failed.hint(format!("`outlast jobs show {}` has the details", job.id)))
        }
        JobState::Cancelled { .. } => {
            Err(Failed::from(anyhow::anyhow!("the research was cancelled by somebody else")))
        }
        JobState::Queued { .. } | JobState::Running { .. } => {
            ui::mark(Mark::Step, &format!("left before the end; the job is kept: {}", job.id));
            ui::remark("  `outlast worker --until-idle` goes on with it");
            ui::remark(&format!("  `outlast jobs show {}` shows where it stands", job.id));
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// The job, when it has ended or the person has left; shows how it comes on.
async fn followed(engine: &Engine, scope: &Scope, job: Job) -> Result<Job, Failed> {
    let Some((mut reading, mut watch)) = engine.watch(scope, &job.id).await? else {
        return Ok(job);
    };
    let mut bar = Bar::start();
    while !reading.job.state.kind().is_terminal() {
        if let Some(progress) = &reading.job.progress {
            let percent = progress.percent.map_or(0, u64::from);
            let attempt = reading.job.failures.len() + 1;
            let message = ui::short(&progress.message, 100);
            bar.at(
                percent,
                &if attempt > 1 { format!("{message} (attempt {attempt})") } else { message },
            );
        }
        tokio::select! {
            changed = watch.changed() => match changed? {
                Some(changed) => reading = changed,
                None => break,
            },
            () = engine.leaving() => break,
        }
    }
    bar.end();
    Ok(reading.job)
}

async fn new_job(
    engine: &Engine,
    config: &Config,
    profile: Profile,
    args: &ResearchArgs,
) -> Result<NewJob, Failed> {
    let question = args.question.trim();
    let (conversation, mut messages) = match &args.follow_up {
        Some(given) => {
            let earlier = conversation(engine, config, given).await?;
            (earlier.id.clone(), earlier.context())
        }
        None => (ConversationId::new(uuid::Uuid::new_v4().simple().to_string()), Vec::new()),
    };
    messages.push(Message { role: Role::User, content: question.to_owned() });
    let effort = Some(match args.effort {
        ResearchEffort::Low => Effort::Low,
        ResearchEffort::Medium => Effort::Medium,
        ResearchEffort::High => Effort::High,
    });
    let ask = ResearchAsk { messages, effort, ..ResearchAsk::default() };
    Ok(NewJob {
        owner: config.owner.clone(),
        conversation: Some(conversation),
        profile,
        workflow: "deep_research".to_owned(),
        title: ui::short(question, 200),
        ask: serde_json::to_value(&ask)?,
        priority: 0,
        visibility: Visibility::Promised,
        max_failures: config.perplexity.max_job_retries,
        attempt_timeout: config.perplexity.polling_timeout,
        life: None,
        keep: None,
    })
}

async fn conversation(
    engine: &Engine,
    config: &Config,
    given: &str,
) -> Result<Conversation, Failed> {
    let found = engine.conversation(&config.owner, &ConversationId::new(given)).await?;
    found.ok_or_else(|| {
        let error = anyhow::anyhow!("there is no conversation `{}`", ui::short(given, 64));
        Failed::usage(error, "`outlast jobs list --json` shows the conversations of your jobs")
    })
}

/// What it took, in one line.
fn epilogue(job: &Job, engine: &Engine) -> String {
    let JobState::Succeeded { output, .. } = &job.state else { return String::new() };
    let mut facts = vec![job.id.to_string()];
    facts.extend(output.model.clone());
    facts.push(jobs::show::cost(output.cost));
    facts.push(format!("{:.1} s", job.elapsed(engine.now()).as_secs_f64()));
    if let Some(conversation) = &job.new.conversation {
        facts.push(format!("--follow-up {}", conversation.as_str()));
    }
    facts.join(" \u{b7} ")
}
