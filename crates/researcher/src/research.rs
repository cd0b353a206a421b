//! The phases of a run, in their order.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outlast_core::{ProviderError, ProviderErrorKind, Request, ResearchKind, RunJournal, Step};
use outlast_sources::{FetchLimits, FetchOptions, Fetcher};

use crate::SharedState;
use crate::approval::{Approval, ask_for_approval};
use crate::collect::collect;
use crate::engine_channel::EngineChannel;
use crate::limits::Limits;
use crate::plan::make_plan;
use crate::report::{to_output, write_out};
use crate::results::list_results;
use crate::settings::SearchBackend;
use crate::steps::Steps;
use crate::work::RunContext;
use crate::write::write;

/// The bytes that the pages of one run may have, as received.
const MAX_FETCHED: u64 = 1 << 30;

/// Takes the steps of a run, or finds their recorded results, and returns the report, or the step with which the run stops
/// before it.
pub(crate) async fn research(
    shared: Arc<SharedState>,
    request: &Request,
    journal: RunJournal,
    handle: Arc<OnceLock<Arc<Steps>>>,
    reports: Arc<EngineChannel>,
) -> Result<Step, ProviderError> {
    let ask = request.research().cloned().unwrap_or_default();
    let limits = Limits::of(request, &shared.settings);
    let steps = Steps::open(journal, &shared.settings, Arc::clone(&reports)).await?;
    let steps = Arc::new(steps);
    drop(handle.set(Arc::clone(&steps)));
    if ask.kind == ResearchKind::Results {
        let output = list_results(&shared, &ask, &steps).await?;
        return Ok(Step::Done { output: Box::new(output), raw: None });
    }
    let fetcher = fetcher(&shared)?;
    if !steps.has_ended("header") {
        check_library(&shared).await?;
    }
    let work = RunContext::open(shared, ask, limits, steps, reports).await?;
    let plan = make_plan(&work).await?;
    if work.ask.approve_plan {
        match ask_for_approval(&work, &plan).await? {
            Approval::Given => {}
            Approval::Pending => return Ok(Step::Wait),
            Approval::Declined => return Ok(Step::Cancel),
        }
    }
    let found = collect(&work, &plan, &fetcher).await?;
    let show = |draft: &_| work.show(write_out(&plan, &found, draft, false).text);
    let draft = write(&work, &plan, &found, show).await?;
    work.report(98, "Assembling the report");
    let output = to_output(&work, write_out(&plan, &found, &draft, true));
    Ok(Step::Done { output: Box::new(output), raw: None })
}

/// Refuses a library without text before the model is asked.
async fn check_library(shared: &SharedState) -> Result<(), ProviderError> {
    let SearchBackend::Library(library) = &shared.settings.search else { return Ok(()) };
    let library = library.clone();
    let checked = tokio::task::spawn_blocking(move || library.has_text()).await;
    // A library that cannot be read is reported by the search.
    if !matches!(checked, Ok(Ok(false))) {
        return Ok(());
    }
    let sentence = "the folders of the library have no text that can be read; put documents into them, or correct OUTLAST_LIBRARY";
    Err(ProviderError::new(ProviderErrorKind::Misconfigured, sentence))
}

fn fetcher(shared: &SharedState) -> Result<Fetcher, ProviderError> {
    let options = shared.settings.fetch.clone();
    let minutes = u64::from(shared.settings.max_minutes.max(1));
    let limits = FetchLimits {
        check: Duration::from_secs(minutes * 75),
        check_bytes: MAX_FETCHED,
        ..options.limits
    };
    Fetcher::new(FetchOptions { limits, ..options }).map_err(|error| {
        let sentence = "pages cannot be fetched: check network.proxy";
        let detail = Some(error.to_string());
        ProviderError { detail, ..ProviderError::new(ProviderErrorKind::Misconfigured, sentence) }
    })
}
