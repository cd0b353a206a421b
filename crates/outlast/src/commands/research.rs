//! `outlast research`: one question, from the terminal to a report. The job is as durable as any other: a person who
//! leaves early finds it again with `outlast jobs`.

mod asking;
mod file;
mod plan;

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use outlast_core::{Job, JobState, NewJob, Output, Profile};
use outlast_engine::{Engine, Providers};

use super::engine::{CommandSession, with_engine};
use super::job_view::outcome::unsuccessful;
use super::job_view::{json, show};
use super::left_worker::{self, short_id};
use super::{MirrorTask, start};
use crate::cli::{Global, ResearchArgs};
use crate::config::CitationChecks;
use crate::error::{CommandResult, DONE, OrUsage as _, refuse};
use crate::open_store::OpenStore;
use crate::ui::{self, LineMark};

/// The limit of the tools.
const MAX_QUESTION_CHARS: usize = 10_000;

pub(super) async fn run(global: &Global, args: ResearchArgs) -> CommandResult {
    let question = question(&args.question)?;
    check(&question, &args)?;
    let config = super::load_config(global, &[])?;
    super::start_quiet_log(global, &config)?;
    start::check_detach(args.detach, &config)?;
    start::check_notify(args.notify, &config)?;
    let providers = asking::providers(&config, &args)?;
    let profiles: Vec<Profile> = providers.iter().map(|(profile, _)| profile.clone()).collect();
    if args.plan {
        return plan::show(global, &config, &profiles, &question, &args).await;
    }

    let store = OpenStore::open(&config).await?;
    let providers: Providers = providers.into_iter().collect();
    with_engine(global, &config, store, providers, async |session| {
        let job = asking::new_job(session, &profiles, &question, &args).await?;
        if args.detach {
            let job = start::start(&session.engine, job).await?;
            return start::detach(session, &args.library, &job, args.json).await;
        }
        let mirror_task = MirrorTask::spawn(session.mirror.as_ref());
        let done = attend(session, job, &args).await;
        mirror_task.finish().await;
        done
    })
    .await
}

/// Checks for all mistakes that can be found before anything is paid for.
fn check(question: &str, args: &ResearchArgs) -> CommandResult<()> {
    let example = "outlast research \"How does a job survive a crash?\"";
    match question.chars().count() {
        0 => return refuse("the question is empty", example),
        1..=MAX_QUESTION_CHARS => {}
        length => {
            let why = format!("the question has {length} characters");
            return refuse(why, format!("ask in {MAX_QUESTION_CHARS} at most"));
        }
    }
    match &args.output {
        Some(path) if is_stdout(path) && args.json => {
            refuse("--json and `-o -` both write to standard output", "give one of them")
        }
        Some(path) => writable(path),
        None => Ok(()),
    }
}

/// Returns the question as typed, quoted or not; `-` is read from standard input.
fn question(words: &[String]) -> CommandResult<String> {
    if words != ["-"] {
        return Ok(words.join(" ").trim().to_owned());
    }
    ui::print_waiting("Type the question, then Ctrl-D.");
    let mut question = String::new();
    let most = 4 * MAX_QUESTION_CHARS as u64 + 1024;
    let read = std::io::stdin().take(most).read_to_string(&mut question);
    read.context("read the question from standard input")
        .or_usage("give the question as text in UTF-8, or as an argument")?;
    Ok(question.trim().to_owned())
}

/// Returns true if this "file" is standard output.
pub(super) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Checks that a file can be created there, as far as this is known beforehand.
pub(super) fn writable(path: &Path) -> CommandResult<()> {
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
    let why = format!("{} cannot be written: {why}", path.display());
    refuse(why, "give -o the path of a file in a directory that exists")
}

/// Starts the job, runs it in this process, and shows its result.
async fn attend(session: &CommandSession<'_>, job: NewJob, args: &ResearchArgs) -> CommandResult {
    let start = async |engine: &Engine| start::start(engine, job).await;
    let job = start::start_and_follow(session, start).await?;
    if !job.state.kind().is_terminal() {
        return start::leave(session, &args.library, &job).await;
    }
    leave_check(session, &job).await?;
    report_end(&session.engine, args, &job)
}

/// Leaves the check that follows a report (`citations.check = always`) to a worker.
async fn leave_check(session: &CommandSession<'_>, report: &Job) -> CommandResult<()> {
    if session.config.citations.check != CitationChecks::Always {
        return Ok(());
    }
    if let Some(check) = session.engine.newest_check(&session.own(), &report.id).await?
        && !check.state.kind().is_terminal()
    {
        left_worker::ensure(session, &[], &check).await?;
    }
    Ok(())
}

fn report_end(engine: &Engine, args: &ResearchArgs, job: &Job) -> CommandResult {
    if args.json {
        ui::json(&json::job(job, engine.now()));
    }
    let JobState::Succeeded { output, .. } = &job.state else {
        return Err(unsuccessful("research", job));
    };
    if args.output.as_deref().is_some_and(is_stdout) {
        ui::text(file::text(job, output).trim_end());
    } else if let Some(path) = &args.output {
        file::write(path, job, output)?;
        ui::mark(LineMark::Good, &format!("written to {}", path.display()));
    } else if !args.json {
        show::report(&output.body);
    }
    ui::remark("");
    ui::remark(&ui::dim(&epilogue(job, output, engine)));
    if let Some(warning) = output.cost.warning() {
        ui::remark(&warning);
    }
    DONE
}

/// Returns the cost of the job, and the way to continue, in one line.
fn epilogue(job: &Job, output: &Output, engine: &Engine) -> String {
    let mut facts = vec![short_id(job)];
    facts.extend(output.model.clone());
    facts.push(outlast_server::cost_text(output.cost));
    facts.push(ui::took(job.elapsed(engine.now())));
    if let Some(conversation) = &job.new.conversation {
        let id: String = conversation.as_str().chars().take(8).collect();
        facts.push(format!("ask on with --follow-up {id}"));
    }
    facts.join(" \u{b7} ")
}
