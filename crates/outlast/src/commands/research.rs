//! `outlast research`: one question, from the terminal to a report. The job is durable like any other: whoever loses
//! patience here finds it again with `outlast jobs`.

mod asking;
mod file;

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use outlast_core::{Job, JobState, NewJob, Profile, Scope, StoreError, Waits};
use outlast_engine::{Engine, Providers, Shutdown, Takes, Until, Worker};

use super::detached_worker::{self, Carrier, Flags, short_id};
use super::signals::stop_on_signals;
use super::{detach, jobs};
use crate::cli::{Global, ResearchArgs};
use crate::config::StoreUrl;
use crate::error::CommandError;
use crate::ui::{self, Bar, Mark};
use crate::wire::OpenStore;

/// What the shell sees when the person left before the end.
pub(super) const INTERRUPTED: u8 = 130;
/// As long as the tools allow.
const LONGEST_QUESTION: usize = 10_000;
/// How late a try that has become due may be begun.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

pub(super) async fn run(global: &Global, args: ResearchArgs) -> Result<ExitCode, CommandError> {
    let question = question(&args.question)?;
    check(&question, &args)?;
    let config = super::configured(global, Vec::new())?;
    super::start_quiet_log(global, &config)?;
    if args.detach && config.store == StoreUrl::Memory {
        let error = anyhow::anyhow!("a job in a memory store ends with this command");
        return Err(CommandError::usage(error, "leave out --detach, or name a store with --store"));
    }
    let providers = asking::providers(&config, &args)?;
    let profiles: Vec<Profile> = providers.iter().map(|(profile, _)| profile.clone()).collect();

    let stop = Shutdown::new();
    let store = OpenStore::open(&config.store)?;
    let providers: Providers = providers.into_iter().collect();
    let opened = store.engine(&config, providers, stop.clone()).await?;
    let engine = &opened.engine;
    let flags = Flags { global, config: &config, library: &args.library };
    let asked = asking::Asked { profiles: &profiles, question: &question };
    let done = match asking::new_job(&opened, &config, asked, &args).await {
        Ok(job) if args.detach => match started(engine, job).await {
            Ok(job) => detach::run(engine, &flags, &job, args.json).await,
            Err(failed) => Err(failed),
        },
        Ok(job) => {
            tokio::spawn(stop_on_signals(stop.clone())?);
            let mirror_task = super::MirrorTask::spawn(opened.mirror.as_ref());
            let done = attended(engine, &flags, job, &args, &stop).await;
            mirror_task.finish().await;
            done
        }
        Err(failed) => Err(failed),
    };
    stop.ask();
    drop(opened.follower.await);
    store.close().await;
    done
}

/// What can be known to be wrong before anything is paid for.
fn check(question: &str, args: &ResearchArgs) -> Result<(), CommandError> {
    let example = "outlast research \"How does a job survive a crash?\"";
    match question.chars().count() {
        0 => return Err(CommandError::usage(anyhow::anyhow!("the question is empty"), example)),
        1..=LONGEST_QUESTION => {}
        length => {
            let error = anyhow::anyhow!("the question has {length} characters");
            return Err(CommandError::usage(error, format!("ask in {LONGEST_QUESTION} at most")));
        }
    }
    match &args.output {
        Some(path) if is_stdout(path) && args.json => {
            let error = anyhow::anyhow!("--json and `-o -` both write to standard output");
            Err(CommandError::usage(error, "give one of them"))
        }
        Some(path) => writable(path),
        None => Ok(()),
    }
}

/// The question as it was typed, quoted or not; `-` is read from standard input.
fn question(words: &[String]) -> Result<String, CommandError> {
    if words != ["-"] {
        return Ok(words.join(" ").trim().to_owned());
    }
    ui::waiting("Type the question, then Ctrl-D.");
    let mut question = String::new();
    let most = 4 * LONGEST_QUESTION as u64 + 1024;
    let read = std::io::stdin().take(most).read_to_string(&mut question);
    read.context("read the question from standard input").map_err(|error| {
        CommandError::usage(error, "give the question as text in UTF-8, or as an argument")
    })?;
    Ok(question.trim().to_owned())
}

/// Whether this "file" is standard output.
pub(super) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether a file can be made there, as far as that is known beforehand.
pub(super) fn writable(path: &Path) -> Result<(), CommandError> {
    if is_stdout(path) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let why = if path.is_dir() {
        "it is a directory"
    } else if folder.is_some_and(|folder| !folder.is_dir()) {
        "its directory does not exist"
    } else {
        return Ok(());
    };
    let error = anyhow::anyhow!("{} cannot be written: {why}", path.display());
    Err(CommandError::usage(error, "give -o the path of a file in a directory that exists"))
}

/// Starts the job, carries it in this process, and shows what comes of it.
async fn attended(
    engine: &Engine,
    flags: &Flags<'_>,
    job: NewJob,
    args: &ResearchArgs,
    stop: &Shutdown,
) -> Result<ExitCode, CommandError> {
    let worker = tokio::spawn(Worker::new(engine, Takes::HeldCallsOnly).run(Until::Asked));
    let job = match started(engine, job).await {
        Ok(job) => followed(engine, job).await,
        Err(failed) => Err(failed),
    };
    // Whatever is unfinished is given back before anybody else is asked to go on with it.
    stop.ask();
    drop(worker.await);
    match job {
        Ok(job) if job.state.kind().is_terminal() => ended(engine, args, &job),
        Ok(job) => left(engine, flags, &job).await,
        Err(failed) => Err(failed),
    }
}

/// The person has left; the job goes on.
async fn left(engine: &Engine, flags: &Flags<'_>, job: &Job) -> Result<ExitCode, CommandError> {
    let carrier = flags.ensure_worker(engine, job).await?;
    let words = match carrier {
        Carrier::Nobody => "left before the end",
        Carrier::Present | Carrier::LeftBehind { .. } => "left before the end; the job goes on",
    };
    ui::mark(Mark::Step, &format!("{words}: {}", job.id));
    detached_worker::tell(&carrier, job);
    Ok(ExitCode::from(INTERRUPTED))
}

fn ended(engine: &Engine, args: &ResearchArgs, job: &Job) -> Result<ExitCode, CommandError> {
    if args.json {
        ui::line(&jobs::json::job(job, engine.now()));
    }
    match &job.state {
        JobState::Succeeded { output, .. } => {
            if args.output.as_deref().is_some_and(is_stdout) {
                ui::text(file::text(job, output).trim_end());
            } else if let Some(path) = &args.output {
                file::write(path, job, output)?;
                ui::mark(Mark::Good, &format!("written to {}", path.display()));
            } else if !args.json {
                jobs::show::report(&output.body);
            }
            ui::remark("");
            ui::remark(&ui::dim(&epilogue(job, engine)));
            if let Some(warning) = output.cost.warning() {
                ui::remark(&warning);
            }
            Ok(ExitCode::SUCCESS)
        }
        JobState::Cancelled { .. } => {
            let told = job.stop_text().map_or_else(String::new, |told| format!(". {told}"));
            let failed = CommandError::from(anyhow::anyhow!("the research was cancelled{told}"));
            Err(failed.hint(format!("`outlast jobs retry {}` asks again", short_id(job))))
        }
        JobState::Failed { .. } | JobState::Queued { .. } | JobState::Running { .. } => {
            let error = anyhow::anyhow!("the research failed: {}", jobs::show::why(job));
            let id = short_id(job);
            let again = match job.run_left() {
                Some(_) => "` goes on with the provider's run, which may still finish",
                None if job.needs_consent() => {
                    " --again` begins a new run, which may be paid for a second time"
                }
                None => "` asks again",
            };
            let mut hint = format!(
                "`outlast jobs show {id}` has the details, `outlast jobs retry {id}{again}"
            );
            if let Some(failure) = job.failures.last() {
                hint.push_str(&format!("; `outlast explain {}` says more", failure.code));
            }
            Err(CommandError::from(error).hint(hint))
        }
    }
}

/// The job, when it has ended or the person has left; shows how it comes on.
async fn followed(engine: &Engine, job: Job) -> Result<Job, CommandError> {
    let scope = Scope::Owner(job.new.owner.clone());
    engine.carry(&job.id);
    let Some((mut reading, mut watch)) = engine.watch(&scope, &job.id).await? else {
        return Ok(job);
    };
    let mut bar = Bar::since(Duration::ZERO);
    let mut tick = tokio::time::interval(LOOK_AGAIN);
    while !reading.job.state.kind().is_terminal() {
        // This process carries it, whatever workers there are.
        reading.waits = match reading.job.state {
            JobState::Queued { run_at } if run_at > reading.now => Some(Waits::Until(run_at)),
            _ => None,
        };
        let (percent, message) = jobs::watch::standing(&reading);
        bar.show(percent, &message);
        tokio::select! {
            changed = watch.changed() => match changed? {
                Some(changed) => reading = changed,
                None => break,
            },
            // A try after a failed one is carried like the first, once its time has come.
            _ = tick.tick() => if is_due(&reading.job, engine) { engine.carry(&reading.job.id) },
            () = engine.leaving() => break,
        }
    }
    bar.end();
    let now = engine.job(&scope, &job.id).await?;
    Ok(now.unwrap_or(reading.job))
}

fn is_due(job: &Job, engine: &Engine) -> bool {
    matches!(job.state, JobState::Queued { run_at } if run_at <= engine.now())
}

async fn started(engine: &Engine, job: NewJob) -> Result<Job, CommandError> {
    match engine.start(job, None).await {
        Ok(started) => Ok(started.job),
        Err(error) => Err(refused(error)),
    }
}

/// Why a job was not accepted, with what can be done about it.
pub(super) fn refused(error: StoreError) -> CommandError {
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
        StoreError::Full => "make room on the disk".to_owned(),
        _ => return CommandError::from(error),
    };
    CommandError::from(error).hint(hint)
}

/// What it took, and how to go on, in one line.
fn epilogue(job: &Job, engine: &Engine) -> String {
    let JobState::Succeeded { output, .. } = &job.state else { return String::new() };
    let mut facts = vec![short_id(job)];
    facts.extend(output.model.clone());
    facts.push(jobs::show::cost(output.cost));
    facts.push(ui::took(job.elapsed(engine.now())));
    if let Some(conversation) = &job.new.conversation {
        let id: String = conversation.as_str().chars().take(8).collect();
        facts.push(format!("ask on with --follow-up {id}"));
    }
    facts.join(" \u{b7} ")
}
