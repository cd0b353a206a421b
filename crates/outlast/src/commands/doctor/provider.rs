//! Checks of the research providers, and of the clock against the providers' time.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use outlast_core::{Clock as _, Profile, ProviderError, ProviderErrorKind, Timestamp};
use outlast_provider::vendor::{CheckedAnswer, KeyState};
use outlast_server::WAYS_TO_A_PROVIDER;
use outlast_store::SystemClock;
use tokio::time::Instant;

use super::check::{CHECK_LIMIT, Check, Verdict};
use crate::config::{
    CitationChecks, Config, ResearchProvider, ResearcherSettings, VendorName, VendorSettings,
};
use crate::ui;
use crate::wire;

/// The earliest time of a correct clock: 2026-01-01.
const EARLIEST: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// The difference between this machine's clock and the provider's beyond which displayed times mislead people.
const SKEW: Duration = Duration::from_secs(120);

/// Checks that each provider that may be asked answers and accepts its key, or can be read, and that this machine's
/// time is the providers' time.
pub(super) async fn providers_and_clock(config: Option<&Config>) -> (Vec<Check>, Check) {
    let Some(config) = config else { return (vec![Check::skip_unconfigured()], clock(None)) };
    if config.providers.is_empty() {
        return (vec![none(config)], clock(None));
    }
    let checked = config.providers.iter().map(async |provider| match provider {
        ResearchProvider::Vendor(settings) => vendor(config, settings).await,
        ResearchProvider::Researcher(settings) => (researcher(config, settings), None),
        ResearchProvider::Library => (library(config), None),
    });
    let checked = join_all(checked).await;
    let time = checked.iter().find_map(|(_, time)| *time);
    let checks = checked.into_iter().enumerate();
    (checks.map(|(place, (check, _))| in_line(config, place, check)).collect(), clock(time))
}

/// Adds the provider's role, if several may be asked (P2).
fn in_line(config: &Config, place: usize, check: Check) -> Check {
    let names: Vec<&str> = config.providers.iter().map(ResearchProvider::name).collect();
    let line = match names.get(place) {
        // It names itself.
        Some(&Profile::LIBRARY) | None => check.line,
        Some(name) => format!("{name} {}", check.line),
    };
    let line = match (place, names.as_slice()) {
        (_, [_]) => line,
        (0, [_, others @ ..]) => {
            format!("{line}; new questions go to it, unless they name {}", others.join(", "))
        }
        _ => format!("{line}; goes on with its own conversations"),
    };
    let verdict = match check.verdict {
        // The user did not ask for this one: only its conversations have to wait.
        Verdict::Fail if place > 0 && !config.providers_are_named => Verdict::Warn,
        verdict => verdict,
    };
    Check { line, verdict, ..check }
}

/// Checks that a vendor answers, and returns the vendor's time.
async fn vendor(config: &Config, settings: &VendorSettings) -> (Check, Option<Timestamp>) {
    let begun = Instant::now();
    // A little less than the limit of a check, so that this timeout comes first.
    let checked = wire::check_vendor(config, settings, CHECK_LIMIT.mul_f32(0.9)).await;
    let took = ui::ago(begun.elapsed());
    match checked {
        Err(failed) => {
            let fix = failed.next_step().unwrap_or("check the configuration").to_owned();
            (Check::fail(failed.to_string(), fix), None)
        }
        Ok(Err(error)) => (provider_error(&error), None),
        Ok(Ok(checked)) => (check_answer(settings.name, &checked, &took), checked.server_time),
    }
}

/// Returns a vendor's verdict on the key, and its warnings, such as the day on which a model is retired.
fn check_answer(vendor: VendorName, checked: &CheckedAnswer, took: &str) -> Check {
    match checked.key {
        KeyState::Unknown => {
            let base_url = vendor.vendor().base_url_variable;
            Check::warn(
                format!(
                    "answers ({took}), but has no list of models that says whether the key is right"
                ),
                format!(
                    "check that {base_url} is right; then `outlast research QUESTION` will show it"
                ),
            )
        }
        KeyState::Taken if !checked.warnings.is_empty() => {
            let warnings = checked.warnings.join("; ");
            let table = vendor.as_str();
            let fix = format!("update outlast, or set model under [{table}] in outlast.toml");
            Check::warn(format!("answers and takes the key ({took}); {warnings}"), fix)
        }
        KeyState::Taken => Check::pass(format!("answers and takes the key ({took})")),
    }
}

/// Returns the finding for a failed request. An unreachable provider answers nothing, whatever the reason.
fn provider_error(error: &ProviderError) -> Check {
    let (line, fix) = match error.sentence.split_once("; ") {
        Some((line, fix)) => (line, fix),
        None => (error.sentence.as_str(), "try again later"),
    };
    match error.kind {
        ProviderErrorKind::Unreachable | ProviderErrorKind::TimedOut => {
            Check::fail(format!("{line}; is this machine offline?"), fix)
        }
        ProviderErrorKind::RateLimited { .. } | ProviderErrorKind::Unavailable { .. } => {
            Check::warn(line, fix)
        }
        _ => Check::fail(line, fix),
    }
}

/// Returns the finding for a missing provider.
fn none(config: &Config) -> Check {
    if !config.workflows.is_empty() {
        return Check::skip("none is configured; the workflows need none");
    }
    let line = "none is configured; research is refused until one is";
    Check::warn(line, format!("{WAYS_TO_A_PROVIDER}; or try `outlast demo`"))
}

fn researcher(config: &Config, settings: &ResearcherSettings) -> Check {
    match settings.find_missing(&config.library) {
        Some((what, hint)) => Check::fail(what, hint),
        None => Check::pass(format!("is configured with {}", settings.model)),
    }
}

/// Checks the folders of the library.
pub(super) fn library(config: &Config) -> Check {
    let unreadable = config.library.iter().find(|folder| std::fs::read_dir(folder).is_err());
    match (config.library.len(), unreadable) {
        (0, _) => Check::fail("the library: no folders", "set OUTLAST_LIBRARY to some"),
        (_, Some(folder)) => {
            let line = format!("the library's folder {} cannot be read", folder.display());
            Check::fail(line, "set OUTLAST_LIBRARY to folders that can")
        }
        (_, None) if config.library.iter().all(|folder| is_empty(folder)) => {
            let folders: Vec<_> =
                config.library.iter().map(|folder| folder.display().to_string()).collect();
            let line = format!("the library is empty: no file in {}", folders.join(", "));
            Check::warn(
                line,
                "put documents there, or set OUTLAST_LIBRARY to folders that have some",
            )
        }
        (1, None) => Check::pass("the library: one folder of documents, no key"),
        (folders, None) => {
            Check::pass(format!("the library: {folders} folders of documents, no key"))
        }
    }
}

/// Returns true if there is no file in the folder that a library would read: hidden ones are not.
fn is_empty(folder: &Path) -> bool {
    let mut folders = vec![folder.to_owned()];
    // Folders without files are few; a large tree has a file soon.
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                _ if entry.file_name().as_encoded_bytes().starts_with(b".") => {}
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) => return false,
                Err(_) => {}
            }
        }
    }
    true
}

/// Checks that the programs are installed that read the PDFs and office files of a library.
pub(super) fn converters(config: Option<&Config>) -> [Check; 2] {
    let Some(converters) = config.and_then(|config| wire::converters(config).ok()) else {
        return [Check::skip_unconfigured(), Check::skip_unconfigured()];
    };
    let check = |program: &Path, otherwise: &str| match converters.locate(program) {
        Some(file) => Check::pass(file.display().to_string()),
        None => Check::skip(format!("{} is not installed; {otherwise}", program.display())),
    };
    [
        check(&converters.pdftotext, "PDFs of a library are left out until poppler-utils is"),
        check(&converters.pandoc, "office files of a library are left out until it is"),
    ]
}

/// Checks that cited pages can be fetched and read.
pub(super) fn citations(config: Option<&Config>) -> Check {
    let Some(config) = config else { return Check::skip_unconfigured() };
    let citations = &config.citations;
    if citations.check == CitationChecks::Never {
        return Check::skip("checks are switched off (citations.check)");
    }
    if config.proxy.is_some() && !citations.through_proxy {
        let line = "behind the proxy no source is fetched, because the addresses of names cannot be checked there";
        let fix =
            "OUTLAST_CITATIONS_THROUGH_PROXY=true, if the proxy keeps requests out of your network";
        return Check::warn(line, fix);
    }
    let converters = wire::converters(config).ok();
    let can_read_pdf = converters.is_some_and(|it| it.locate(&it.pdftotext).is_some());
    let mut parts = vec!["sources are fetched when you ask for a check".to_owned()];
    if citations.allow_private {
        parts.push("private networks too (citations.allow_private)".to_owned());
    }
    if !can_read_pdf {
        parts.push("cited PDFs cannot be read without pdftotext".to_owned());
    }
    Check::pass(parts.join("; "))
}

fn clock(server_time: Option<Timestamp>) -> Check {
    judge_clock(SystemClock.now(), server_time)
}

fn judge_clock(now: Timestamp, server_time: Option<Timestamp>) -> Check {
    let fix = "set the time, best by a time service (NTP)";
    if now < EARLIEST {
        return Check::fail(format!("it is {now} here, which cannot be"), fix);
    }
    let Some(there) = server_time else {
        return Check::pass(format!("{now}, with nothing to compare it with"));
    };
    let apart = now.since(there).max(there.since(now));
    if apart > SKEW {
        let line = format!("{now} here is {} from the provider's time", ui::ago(apart));
        return Check::warn(line, fix);
    }
    Check::pass(format!("{now}, the same as the provider's to within {} s", apart.as_secs() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G2: a model with an end date is a warning, before it is an error.
    #[test]
    fn g2_a_warning_of_a_vendor_is_reported() {
        let warned = |key, warnings: &[&str]| {
            let warnings = warnings.iter().map(|text| (*text).to_owned()).collect();
            let checked = CheckedAnswer { key, server_time: None, warnings };
            check_answer(VendorName::Gemini, &checked, "5 ms")
        };
        assert_eq!(warned(KeyState::Taken, &[]).verdict, Verdict::Pass);
        let check = warned(KeyState::Taken, &["the agent x is shut down on 2027-01-01"]);
        assert_eq!(check.verdict, Verdict::Warn);
        assert!(check.line.contains("2027-01-01"), "{check:?}");
        assert!(check.fix.unwrap().contains("[gemini]"));
        let check = warned(KeyState::Unknown, &[]);
        assert!(check.fix.unwrap().contains("GEMINI_BASE_URL"));
    }

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
            assert_eq!(judge_clock(now, there).verdict, verdict, "{now} {there:?}");
        }
    }
}
