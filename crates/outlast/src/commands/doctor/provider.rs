//! Checks of the research provider, and of the clock by what it says the time is.

use std::path::Path;
use std::time::Duration;

use outlast_core::{Clock as _, ProviderError, Timestamp, Trouble};
use outlast_provider::vendor::KeyState;
use outlast_store::SystemClock;
use tokio::time::Instant;

use super::check::{CHECK_LIMIT, Check, Verdict};
use crate::config::{Config, Secret};
use crate::ui;
use crate::wire;

const NAME: &str = "provider";
const CLOCK: &str = "clock";

/// No clock that is right shows an earlier time: 2026-01-01.
const EARLIEST: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// How far this machine's clock may be from the provider's before people are misled by the times they read.
const SKEW: Duration = Duration::from_secs(120);

/// The provider answers and takes the key, or the library can be read; and this machine's time is the provider's.
pub(super) async fn provider_and_clock(config: Option<&Config>) -> (Check, Check) {
    let Some(config) = config else { return (Check::unconfigured(NAME), clock(None)) };
    let Some(key) = &config.perplexity.api_key else { return (library(config), clock(None)) };
    let (check, clock) = perplexity(config, key).await;
    if config.library.is_empty() { (check, clock) } else { (beside_library(check, config), clock) }
}

/// With a key and a library set, says which one answers (P2).
fn beside_library(check: Check, config: &Config) -> Check {
    let library = library(config);
    if check.verdict == Verdict::Pass && library.verdict != Verdict::Pass {
        let line = format!("perplexity {}; but {}", check.line, library.line);
        return Check::warn(NAME, line, library.fix.unwrap_or_default());
    }
    let line = format!(
        "perplexity {}; it is asked, and the library goes on with its own conversations alone",
        check.line
    );
    Check { line, ..check }
}

async fn perplexity(config: &Config, key: &Secret) -> (Check, Check) {
    let begun = Instant::now();
    // A little less than a check may take, so that the answer is its own.
    let checked = wire::check_perplexity(config, key, CHECK_LIMIT.mul_f32(0.9)).await;
    let took = ui::ago(begun.elapsed());
    match checked {
        Err(failed) => {
            let fix = failed.next_step().unwrap_or("check the configuration").to_owned();
            (Check::fail(NAME, failed.to_string(), fix), clock(None))
        }
        Ok(Err(error)) => (trouble(&error), clock(None)),
        Ok(Ok(checked)) => {
            let check = match checked.key {
                KeyState::Taken => Check::pass(NAME, format!("answers and takes the key ({took})")),
                KeyState::Unknown => Check::warn(
                    NAME,
                    format!(
                        "answers ({took}), but has no list of models that says whether the key is right"
                    ),
                    "check that PERPLEXITY_BASE_URL is right; then `outlast research QUESTION` will show it",
                ),
            };
            (check, clock(checked.server_time))
        }
    }
}

/// Why there was no good answer. One that cannot be reached answers nothing, whatever the reason.
fn trouble(error: &ProviderError) -> Check {
    let (line, fix) = match error.sentence.split_once("; ") {
        Some((line, fix)) => (line, fix),
        None => (error.sentence.as_str(), "try again later"),
    };
    match error.trouble {
        Trouble::Unreachable | Trouble::TimedOut => {
            Check::fail(NAME, format!("{line}; is this machine offline?"), fix)
        }
        Trouble::RateLimited { .. } | Trouble::Unavailable { .. } => Check::warn(NAME, line, fix),
        _ => Check::fail(NAME, line, fix),
    }
}

fn library(config: &Config) -> Check {
    let unreadable = config.library.iter().find(|folder| std::fs::read_dir(folder).is_err());
    match (config.library.len(), unreadable) {
        (0, _) if !config.workflows.is_empty() => {
            Check::skipped(NAME, "none is configured; the workflows need none")
        }
        (0, _) => {
            let fix = "set PERPLEXITY_API_KEY, or OUTLAST_LIBRARY to a folder of documents, or try `outlast demo`";
            Check::fail(NAME, wire::no_provider().to_string(), fix)
        }
        (_, Some(folder)) => {
            let line = format!("the library's folder {} cannot be read", folder.display());
            Check::fail(NAME, line, "set OUTLAST_LIBRARY to folders that can")
        }
        (1, None) => Check::pass(NAME, "the library: one folder of documents, no key"),
        (folders, None) => {
            Check::pass(NAME, format!("the library: {folders} folders of documents, no key"))
        }
    }
}

/// Whether the programs are installed that read the PDFs and office files of a library.
pub(super) fn converters(config: Option<&Config>) -> [Check; 2] {
    let Some(converters) = config.and_then(|config| wire::converters(config).ok()) else {
        return ["pdftotext", "pandoc"].map(Check::unconfigured);
    };
    let check = |name, program: &Path, otherwise: &str| match converters.locate(program) {
        Some(file) => Check::pass(name, file.display().to_string()),
        None => {
            Check::skipped(name, format!("{} is not installed; {otherwise}", program.display()))
        }
    };
    [
        check(
            "pdftotext",
            &converters.pdftotext,
            "PDFs of a library are left out until poppler-utils is",
        ),
        check("pandoc", &converters.pandoc, "office files of a library are left out until it is"),
    ]
}

fn clock(server_time: Option<Timestamp>) -> Check {
    judged(SystemClock.now(), server_time)
}

fn judged(now: Timestamp, server_time: Option<Timestamp>) -> Check {
    let fix = "set the time, best by a time service (NTP)";
    if now < EARLIEST {
        return Check::fail(CLOCK, format!("it is {now} here, which cannot be"), fix);
    }
    let Some(there) = server_time else {
        return Check::pass(CLOCK, format!("{now}, with nothing to compare it with"));
    };
    let apart = now.since(there).max(there.since(now));
    if apart > SKEW {
        let line = format!("{now} here is {} from the provider's time", ui::ago(apart));
        return Check::warn(CLOCK, line, fix);
    }
    Check::pass(
        CLOCK,
        format!("{now}, the same as the provider's to within {} s", apart.as_secs() + 1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_judged_by_the_provider_s_and_by_what_can_be() {
        let now = EARLIEST.after(Duration::from_secs(1_000_000));
        let cases = [
            (EARLIEST.before(Duration::from_secs(1)), None, Verdict::Fail),
            (now, None, Verdict::Pass),
            (now, Some(now.after(Duration::from_secs(60))), Verdict::Pass),
            (now, Some(now.after(Duration::from_secs(121))), Verdict::Warn),
            (now, Some(now.before(Duration::from_secs(121))), Verdict::Warn),
        ];
        for (now, there, verdict) in cases {
            assert_eq!(judged(now, there).verdict, verdict, "{now} {there:?}");
        }
    }
}
