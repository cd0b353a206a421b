//! `outlast check`: compares the sentences of a Markdown file with the pages that they cite (J1, J2). Nothing is
//! stored: a check that is interrupted begins again.

use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use outlast_core::Clock as _;
use outlast_sources::{
    Check, CheckedClaim, CheckedSource, CitationCheck, ClaimVerdict, FetchOptions, Fetcher,
    PdfReader, Report, SourceVerdict,
};
use serde_json::Value;

use crate::cli::{CheckArgs, Global};
use crate::config::{CitationChecks, Config};
use crate::error::{CommandResult, DONE, OrUsage as _, refuse};
use crate::{ui, wire};

/// The longest document, in bytes.
const MAX_DOCUMENT: usize = 4 << 20;

pub(super) async fn run(global: &Global, args: CheckArgs) -> CommandResult {
    let config = super::load_config(global, &[])?;
    super::start_quiet_log(global, &config)?;
    if config.citations.check == CitationChecks::Never {
        let hint = "set citations.check (OUTLAST_CHECK_CITATIONS) to on-request";
        return refuse("citation checks are switched off", hint);
    }
    let text = read(&args.file)?;
    let fetcher = Fetcher::new(FetchOptions {
        allow_private: config.citations.allow_private,
        through_proxy: config.citations.through_proxy,
        respect_robots: config.citations.respect_robots,
        proxy: config.proxy.clone(),
        ..FetchOptions::default()
    })?;
    let mut check = Check::new(Report::parse(&text));
    let all = check.pending().len();
    let progress = |_: &_, left: usize| {
        if !args.json {
            ui::print_waiting(&format!("{} of {all} sources", all - left));
        }
    };
    check.run(Arc::new(fetcher), Some(pdf_reader(&config)?), progress).await;
    let done = check.finish(config.clock.now().to_string());
    match args.json {
        true => ui::json(&serde_json::to_value(&done)?),
        false => show(&done),
    }
    let is_named = |name: &str| args.fail_on.iter().any(|listed| listed == name);
    let fails = done.claims.iter().any(|claim| is_named(&word(claim.verdict)))
        || done.sources.iter().any(|source| is_named(&word(source.verdict)));
    if fails { Ok(ExitCode::FAILURE) } else { DONE }
}

fn read(file: &Path) -> CommandResult<String> {
    let mut bytes = Vec::new();
    let limit = MAX_DOCUMENT as u64 + 1;
    if file == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        let hint = "give a Markdown file with links or numbered sources";
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

/// Returns the library's converter of PDFs, with its limits.
fn pdf_reader(config: &Config) -> CommandResult<PdfReader> {
    let converters = wire::converters(config)?;
    Ok(Arc::new(move |body| {
        let mut file = tempfile::tempfile().ok()?;
        file.write_all(body).ok()?;
        file.rewind().ok()?;
        converters.pdf_paragraphs(file)
    }))
}

/// Returns a verdict as JSON writes it.
fn word(verdict: impl serde::Serialize) -> String {
    match serde_json::to_value(verdict) {
        Ok(Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}

fn show(done: &CitationCheck) {
    for claim in &done.claims {
        if !matches!(claim.verdict, ClaimVerdict::Supported | ClaimVerdict::NoFacts) {
            show_claim(claim);
        }
    }
    let bad = done.sources.iter().filter(|source| source.verdict != SourceVerdict::Ok);
    for source in bad {
        show_source(source);
    }
    let totals = &done.totals;
    let counts = [
        (totals.supported, "supported"),
        (totals.partly, "partly"),
        (totals.differs, "differ"),
        (totals.not_found, "not found"),
        (totals.no_facts, "without facts"),
        (totals.unchecked, "unchecked"),
    ];
    let counts: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(n, name)| format!("{n} {name}"))
        .collect();
    let claims = ui::count(done.claims.len(), "claim", "claims");
    let sources = ui::count(done.sources.len(), "source", "sources");
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    ui::line(&format!("{claims} with {sources}{counts}"));
    if !done.complete {
        ui::remark("The check reached its limit of time or bytes; some sources were not fetched.");
    }
}

fn show_claim(claim: &CheckedClaim) {
    let numbers: Vec<_> = claim.citations.iter().map(|number| format!("[{number}]")).collect();
    let verdict = word(claim.verdict).replace('_', " ");
    ui::text(&format!("{verdict}  {} {}", claim.text, numbers.concat()));
    if let Some(found) = &claim.found {
        ui::text(&format!("  the source has: {found}"));
    } else if !claim.missing.is_empty() {
        ui::text(&format!("  not found: {}", claim.missing.join("; ")));
    }
    if let Some(passage) = &claim.passage {
        ui::text(&format!("  [{}] {}", passage.n, passage.text));
    }
    if let Some(reason) = claim.reason {
        ui::text(&format!("  reason: {}", word(reason).replace('_', " ")));
    }
}

fn show_source(source: &CheckedSource) {
    let status = source.http_status.filter(|status| *status != 200);
    let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
    let verdict = word(source.verdict);
    ui::text(&format!("{verdict}  [{}] {}{status}", source.n, source.url));
    if let Some(detail) = &source.detail {
        ui::text(&format!("  {detail}"));
    }
}
