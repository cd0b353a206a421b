//! Checks of the researcher (K11): its model, its search service, and where the data of a run goes.

use outlast_core::ProviderError;
use outlast_researcher::{JsonState, ModelState, Researcher, SearchState, WindowState};

use super::check::{CHECK_LIMIT, Check, Verdict};
use super::provider;
use crate::config::{
    Config, ResearchProvider, ResearcherSettings, SearchService, is_loopback, without_credentials,
};
use crate::wire;

/// The smallest window for which the prompts are made.
const SMALLEST_WINDOW: u32 = 4_096;
/// The number of models that are listed.
const MAX_LISTED: usize = 8;

/// Returns the checks of a configured researcher, with their names.
pub(super) async fn checks(config: Option<&Config>) -> Vec<(&'static str, Check)> {
    let Some(config) = config else { return Vec::new() };
    let found = config.providers.iter().enumerate().find_map(|(place, it)| match it {
        ResearchProvider::Researcher(settings) => Some((place, settings)),
        ResearchProvider::Vendor(_) | ResearchProvider::Library => None,
    });
    let Some((place, settings)) = found else { return Vec::new() };
    if settings.find_missing(&config.library).is_some() {
        // The check of the provider names it.
        return Vec::new();
    }
    let researcher = match wire::researcher(config) {
        Ok(Some(researcher)) => researcher,
        Ok(None) => return Vec::new(),
        Err(failed) => {
            let fix = failed.next_step().unwrap_or("check the configuration").to_owned();
            return vec![("model", Check::fail(failed.to_string(), fix))];
        }
    };
    // A little less than the limit of a check, so that these limits come first.
    let limit = CHECK_LIMIT.mul_f32(0.9);
    let (model, search) =
        tokio::join!(researcher.inspect_model(limit), check_search(config, settings, &researcher),);
    let model = match model {
        Ok(state) => check_model(settings, &state),
        Err(error) => failed(&error),
    };
    let sends = Check::pass(describe_flow(settings));
    let is_asked_for = place == 0 || config.providers_are_named;
    let checks = [("model", model), ("search", search), ("data flow", sends)];
    checks.map(|(name, check)| (name, if is_asked_for { check } else { soften(check) })).into()
}

/// A provider that nobody has asked for is not a failure.
fn soften(check: Check) -> Check {
    let verdict = match check.verdict {
        Verdict::Fail => Verdict::Warn,
        verdict => verdict,
    };
    Check { verdict, ..check }
}

fn failed(error: &ProviderError) -> Check {
    let (line, fix) =
        error.sentence.split_once("; ").unwrap_or((error.sentence.as_str(), "try again later"));
    Check::fail(line, fix)
}

fn check_model(settings: &ResearcherSettings, state: &ModelState) -> Check {
    let model = &settings.model;
    if state.is_listed == Some(false) && !matches!(state.window, WindowState::Stated(_)) {
        let mut listed: Vec<_> = state.models.iter().map(String::as_str).take(MAX_LISTED).collect();
        if state.models.len() > MAX_LISTED {
            listed.push("...");
        }
        let line = format!("the server has no model {model}; it has {}", listed.join(", "));
        let fix = format!("set OUTLAST_MODEL to one of them, or load it (`ollama pull {model}`)");
        return Check::fail(line, fix);
    }
    let window = match state.window {
        WindowState::Configured(window) => format!("window {window} (researcher.context_tokens)"),
        WindowState::Stated(window) => format!("window {window}"),
        WindowState::NotLoaded => "not loaded; Ollama states its window once it is".to_owned(),
        WindowState::Assumed(window) => format!("window {window} assumed, the server states none"),
    };
    let json = match state.json {
        JsonState::Schema => "keeps to JSON schemas",
        JsonState::Object => "has a JSON mode without schemas",
        JsonState::Words => "has no JSON mode, so it is asked in words",
        JsonState::Priced => "JSON mode not asked, because answers have a price",
        JsonState::NoAnswer => "JSON mode not asked, or not answered in time",
    };
    let line = format!("{model} answers; {window}; {json}");
    match state.window {
        WindowState::Configured(window) | WindowState::Stated(window)
            if window < SMALLEST_WINDOW =>
        {
            let fix = format!(
                "give the model a window of {SMALLEST_WINDOW} tokens or more: OLLAMA_CONTEXT_LENGTH=16384 with Ollama, -c 16384 with llama.cpp"
            );
            Check::warn(line, fix)
        }
        _ => Check::pass(line),
    }
}

async fn check_search(
    config: &Config,
    settings: &ResearcherSettings,
    researcher: &Researcher,
) -> Check {
    match &settings.search {
        SearchService::Library => provider::library(config),
        SearchService::Tool { upstream, tool } => {
            Check::skip(format!("the tool {tool} of {upstream} is not called by a check"))
        }
        SearchService::Searxng(_) => {
            match researcher.inspect_search(CHECK_LIMIT.mul_f32(0.9)).await {
                Ok(SearchState::Answers(0)) => Check::warn(
                    "SearXNG answers, and finds nothing",
                    "look at the engines of SearXNG; those that block it are named on its page of statistics",
                ),
                Ok(SearchState::Answers(hits)) => {
                    Check::pass(format!("SearXNG answers with JSON, {hits} hits for a word"))
                }
                Ok(SearchState::Priced | SearchState::NotAsked) => {
                    Check::skip("not asked, because a search has a price")
                }
                Err(error) => failed(&error),
            }
        }
    }
}

/// Returns what a run sends where (K9).
fn describe_flow(settings: &ResearcherSettings) -> String {
    let place = |address: &str| match is_loopback(address) {
        true => "on this machine",
        false => "on another machine",
    };
    let model = match (settings.is_local(), is_loopback(&settings.model_url)) {
        (true, true) => "on this machine",
        (true, false) => "declared yours by researcher.local",
        (false, true) => "which runs elsewhere, as its name ends in cloud",
        (false, false) => "on another machine",
    };
    let asked = format!(
        "question, passages and drafts go to {} at {} ({model})",
        settings.model,
        without_credentials(&settings.model_url)
    );
    let search = match &settings.search {
        SearchService::Library if settings.is_local() && is_loopback(&settings.model_url) => {
            "searches read your folders; nothing leaves this machine".to_owned()
        }
        SearchService::Library => {
            "searches read your folders, whose text goes to the model".to_owned()
        }
        SearchService::Searxng(url) => format!(
            "queries go to SearXNG at {} ({}); the pages that it finds are fetched from their sites",
            without_credentials(url),
            place(url)
        ),
        SearchService::Tool { upstream, tool } => format!(
            "queries go to the tool {tool} of {upstream}; the pages that it finds are fetched from their sites"
        ),
    };
    format!("{asked}; {search}")
}
