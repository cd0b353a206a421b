//! The phases of a run, in their order.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outlast_core::{Output, ProviderError, ProviderErrorKind, Request, RunJournal};
use outlast_sources::{FetchLimits, FetchOptions, Fetcher};

use crate::Shared;
use crate::collect::collect;
use crate::limits::Limits;
use crate::plan::make_plan;
use crate::report::{to_output, write_out};
use crate::steps::Steps;
use crate::work::{Reports, Work};
use crate::write::write;

/// The bytes that the pages of one run may have, as received.
const MAX_FETCHED: u64 = 1 << 30;

/// Takes the steps of a run, or finds their recorded results, and returns the report.
pub(crate) async fn research(
    shared: Arc<Shared>,
    request: &Request,
    journal: RunJournal,
    handle: Arc<OnceLock<Arc<Steps>>>,
    reports: Reports,
) -> Result<Output, ProviderError> {
    let ask = request.research().cloned().unwrap_or_default();
    let limits = Limits::of(request, &shared.settings);
    let steps = Arc::new(Steps::open(journal, shared.settings.max_resend).await?);
    drop(handle.set(Arc::clone(&steps)));
    let fetcher = fetcher(&shared)?;
    let work = Work::open(shared, ask, limits, steps, reports).await?;
    let plan = make_plan(&work).await?;
    let found = collect(&work, &plan, &fetcher).await?;
    let show = |draft: &_| work.show(write_out(&plan, &found, draft, false).text);
    let draft = write(&work, &plan, &found, show).await?;
    work.report(98, "Assembling the report");
    Ok(to_output(&work, write_out(&plan, &found, &draft, true)))
}

fn fetcher(shared: &Shared) -> Result<Fetcher, ProviderError> {
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
