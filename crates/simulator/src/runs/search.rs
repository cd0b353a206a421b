//! Searches, and the pages that sources point at when those are local.

use super::Runs;
use crate::errors::Refusal;
use crate::faults::Channel;
use crate::ids::fnv1a64;
use crate::scenario::{Ending, Scenario};
use crate::sources::{Site, Source};
use crate::transport_faults::TransportFault;

impl Runs {
    /// Counts and bills a search, unless the scenario answers with an error first.
    pub(crate) fn searched(
        &self,
        input: &str,
        scenario: &Scenario,
        nanos: u64,
    ) -> Result<TransportFault, Refusal> {
        let mut state = self.lock();
        let allowance = state.count_try(input, scenario, &self.clock)?;
        let answered = state.inputs.entry(input.to_owned()).or_default();
        let nth = answered.runs;
        answered.runs += 1;
        if let Ending::Failed { code, times, .. } = &scenario.ending
            && times.covers(nth)
        {
            return Err(Refusal::run_failed(code));
        }
        state.stats.searches += 1;
        state.stats.spent_nanos += nanos;
        Ok(TransportFault {
            malformed: scenario.malformation(Channel::Whole, nth),
            slow: scenario.slow,
            cut: scenario.cut.filter(|cut| nth < cut.times),
            allowance,
        })
    }

    /// What a search for this text draws from, and where its results are.
    pub(crate) fn site(&self, text: &str) -> (fastrand::Rng, Site) {
        let seed = fnv1a64(&[&self.seed.to_le_bytes(), b"search", text.as_bytes()]);
        (fastrand::Rng::with_seed(seed), Site::of(self.pages.as_deref(), seed))
    }

    /// Remembers what the local pages of these sources say.
    pub(crate) fn keep_pages<'a>(&self, sources: impl Iterator<Item = &'a Source>) {
        self.lock().keep_pages(self.pages.as_deref(), sources);
    }

    /// The page that a local source points at.
    pub(crate) fn page(&self, name: &str) -> Option<String> {
        self.lock().pages.get(name).cloned()
    }
}
