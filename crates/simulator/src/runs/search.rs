//! Searches: counted and billed like runs.

use super::Runs;
use crate::errors::Refusal;
use crate::faults::Channel;
use crate::ids::fnv1a64;
use crate::scenario::{Ending, Scenario};
use crate::transport_faults::TransportFault;

impl Runs {
    /// Counts and bills a search, unless the scenario responds with an error.
    pub(crate) fn count_search(
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
        if let Ending::Fail { code, times, .. } = &scenario.ending
            && times.is_none_or(|times| nth < times)
        {
            return Err(Refusal::run_failed(code));
        }
        state.stats.searches += 1;
        state.stats.spent_nanos += nanos;
        Ok(TransportFault {
            malformed: scenario.malformation(Channel::Whole, nth),
            slow: scenario.slow,
            cut: scenario.drop.filter(|cut| nth < cut.times),
            allowance,
        })
    }

    /// The random number generator for the results of this text.
    pub(crate) fn search_rng(&self, text: &str) -> fastrand::Rng {
        fastrand::Rng::with_seed(fnv1a64(&[&self.seed.to_le_bytes(), b"search", text.as_bytes()]))
    }
}
