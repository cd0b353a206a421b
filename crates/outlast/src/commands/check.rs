//! `outlast check`: compares the sentences of a report, or of a Markdown file, with the pages that they cite (J1). The
//! check is a job: one that is interrupted goes on, and the result of a report's check is kept with the report.

mod show;

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use outlast_core::{CallMode, FetchConsent, Job, JobState, NewJob};
use outlast_engine::Engine;
use outlast_server::{citation_check, has_web_sources};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::engine::{CommandSession, with_engine};
use super::find::{self, FoundConversation};
use super::job_view::outcome::unsuccessful;
use super::left_worker::short_id;
use super::start;
use crate::cli::{CheckArgs, Global};
use crate::error::{CommandError, CommandResult, DONE, OrUsage as _, refuse};
use crate::open_store::OpenStore;
use crate::{ui, wire};

/// The longest document, in bytes.
const MAX_DOCUMENT: usize = 4 << 20;

/// The name of this command in the record of a job.
const TOOL: &str = "outlast check";

/// The subject of a check.
enum Target {
    /// A report in the store, by its id or a unique prefix.
    Id(String),
    /// The text of a file.
    Document { title: String, text: String },
}

pub(super) async fn run(global: &Global, args: CheckArgs) -> CommandResult {
    let config = super::load_config(global, &[])?;
    super::start_quiet_log(global, &config)?;
    start::check_detach(args.detach, &config)?;
    let Some(checker) = wire::citation_checks(&config, &args.library)? else {
        let hint = "set citations.check (OUTLAST_CHECK_CITATIONS) to on-request";
        return refuse("citation checks are switched off", hint);
    };
    let target = target(&args.target)?;
    let store = OpenStore::open(&config).await?;
    let providers = [checker].into_iter().collect();
    with_engine(global, &config, store, providers, async |session| match target {
        Target::Id(id) => check_report(session, &id, &args).await,
        Target::Document { title, text } => {
            let owner = session.config.owner.clone();
            let digest = Sha256::digest(&text).into();
            let job = NewJob::check_of_text(owner, &title, text).with_tool(TOOL);
            let job = job.with_traceparent(session.config.trace.as_ref());
            start_and_follow(session, &args, async |engine| {
                let started = engine.start_document_check(job, digest).await;
                Ok(started.map_err(start::explain_refusal)?.job)
            })
            .await
        }
    })
    .await
}

/// Returns the text of a file, or the id if it can only be one.
fn target(given: &str) -> CommandResult<Target> {
    let is_id = (8..=64).contains(&given.len())
        && given.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        && !Path::new(given).exists();
    if is_id {
        return Ok(Target::Id(given.to_owned()));
    }
    if !given.contains(['.', '/']) && given != "-" && !Path::new(given).exists() {
        return Err(unknown_target(given, CommandError::wrong));
    }
    let name = if given == "-" { "standard input".to_owned() } else { ui::short(given, 100) };
    Ok(Target::Document { title: name, text: read(Path::new(given))? })
}

/// Returns the error for a word that names neither a report nor a file.
fn unknown_target(given: &str, error: fn(String, String) -> CommandError) -> CommandError {
    let given = ui::short(given, 64);
    let hint = "`outlast jobs list` shows the ids of your jobs";
    error(format!("there is no job `{given}`, and no file of that name"), hint.to_owned())
}

fn read(file: &Path) -> CommandResult<String> {
    let mut bytes = Vec::new();
    let limit = MAX_DOCUMENT as u64 + 1;
    if file == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        let hint = "give the id of a report, or a Markdown file with links or numbered sources";
        let open = std::fs::File::open(file);
        let open = open.with_context(|| format!("open {}", file.display())).or_usage(hint)?;
        let read = open.take(limit).read_to_end(&mut bytes);
        read.with_context(|| format!("read {}", file.display())).or_usage(hint)?;
    }
    if bytes.len() > MAX_DOCUMENT {
        return refuse("the document is longer than 4 MiB", "check it in parts");
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn check_report(session: &CommandSession<'_>, id: &str, args: &CheckArgs) -> CommandResult {
    let report = report(session, id).await?;
    let engine = &session.engine;
    if report.new.request.is_citation_check() {
        return start_and_follow(session, args, async |_| Ok(report)).await;
    }
    if !args.fresh
        && let Some(check) = engine.finished_check(&session.own(), &report.id).await?
    {
        return ended(args, &check);
    }
    let Some(consent) = consent(&report, args)? else {
        ui::remark("Nothing was fetched.");
        return DONE;
    };
    let mode = if args.fresh { CallMode::Fresh } else { CallMode::Attach };
    start_and_follow(session, args, async |engine| {
        let started = engine.start_check(&report, TOOL, consent, mode).await;
        let started = started.map_err(start::explain_refusal)?;
        started.map(|started| started.job).ok_or_else(|| no_report(&report))
    })
    .await
}

/// Asks for the consent to fetch the web sources of a report with text of local documents: their addresses could reveal
/// that text (J4). Without it, the files of the library are still compared; `None` if the report cites none.
fn consent(report: &Job, args: &CheckArgs) -> CommandResult<Option<FetchConsent>> {
    if !report.holds_library_text() || args.yes {
        return Ok(Some(FetchConsent::Given));
    }
    if !has_web_sources(report) {
        return Ok(Some(FetchConsent::NotGiven));
    }
    let question = "The report has text of local documents. Fetch its web sources, which reveals their addresses?";
    if ui::can_ask() && ui::confirm(question) {
        return Ok(Some(FetchConsent::Given));
    }
    let can_ask = ui::can_ask();
    if report.is_of_library() {
        let hint = if can_ask { "" } else { "; --yes fetches them" };
        ui::remark(&format!("Only the files of the library are read{hint}."));
        return Ok(Some(FetchConsent::NotGiven));
    }
    if can_ask {
        return Ok(None);
    }
    refuse(
        "the report has text of local documents: its sources are fetched only with your consent",
        "--yes fetches them",
    )
}

/// Returns the job with this id, or the last job with a report of the conversation with this id.
async fn report(session: &CommandSession<'_>, id: &str) -> CommandResult<Job> {
    match find::job_if_any(session, id).await? {
        Some(job) if job.output().is_some() || job.new.request.is_citation_check() => {
            return Ok(job);
        }
        Some(job) => return Err(no_report(&job)),
        None => {}
    }
    match find::conversation_if_any(session, id).await? {
        Some(FoundConversation::Stored(found)) => {
            let last = found.turns().filter(|turn| turn.has_report()).last();
            last.cloned().ok_or_else(|| {
                CommandError::failed(
                    format!("conversation {} has no report yet", found.id),
                    "`outlast jobs list` shows its state",
                )
            })
        }
        Some(FoundConversation::Archived(_)) => refuse(
            "the conversation is only in files",
            format!(
                "`outlast conversations export {id} -o report.md`, then `outlast check report.md`"
            ),
        ),
        None => Err(unknown_target(id, CommandError::failed)),
    }
}

fn no_report(job: &Job) -> CommandError {
    let why = format!("job {} has no report", job.id);
    CommandError::failed(why, format!("`outlast jobs show {}` shows what it has", short_id(job)))
}

/// Starts the check, and follows it to its end unless it is detached.
async fn start_and_follow(
    session: &CommandSession<'_>,
    args: &CheckArgs,
    start: impl AsyncFnOnce(&Engine) -> CommandResult<Job>,
) -> CommandResult {
    if args.detach {
        let job = start(&session.engine).await?;
        return start::detach(session, &args.library, &job, args.json).await;
    }
    let job = start::start_and_follow(session, start).await?;
    match job.state.kind().is_terminal() {
        true => ended(args, &job),
        false => start::leave(session, &args.library, &job).await,
    }
}

fn ended(args: &CheckArgs, job: &Job) -> CommandResult {
    let JobState::Succeeded { .. } = &job.state else {
        return Err(unsuccessful("check", job));
    };
    let done = citation_check(job).context("read the result of the check")?;
    match args.json {
        true => ui::json(&json!(done)),
        false => show::show(&done),
    }
    let is_named = |name: &str| args.fail_on.iter().any(|listed| listed == name);
    let fails = done.claims.iter().any(|claim| is_named(claim.verdict.as_str()))
        || done.sources.iter().any(|source| is_named(source.verdict.as_str()));
    if fails { Ok(ExitCode::FAILURE) } else { DONE }
}
