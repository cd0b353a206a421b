//! What the page is told of the configuration, for `outlast serve --http` and `outlast ui`.

use outlast_core::Profile;
use outlast_server::{Carry, PageOptions, PageResearch, PageView};

use crate::config::Config;

/// The page of one owner after the other, who sign in with their tokens.
pub(super) fn options(config: &Config, profiles: &[Profile], carry: Carry) -> PageOptions {
    let research = (!profiles.is_empty()).then(|| PageResearch {
        profiles: profiles.to_vec(),
        max_failures: config.perplexity.max_job_retries,
        attempt_timeout: config.perplexity.polling_timeout,
        life: config.perplexity.async_max_wait,
        carry,
    });
    PageOptions { research, limits: config.spend_limits, view: PageView::Own, entry: None }
}
