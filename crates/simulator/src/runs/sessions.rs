//! Sessions of the Managed Agents API. A message in a session is a run with the name of the session.

use serde_json::Value;

use super::Runs;
use crate::anthropic::sessions::Objects;
use crate::anthropic::wire;
use crate::ask::Api;
use crate::errors::Refusal;
use crate::faults::Call;
use crate::run::Opening;
use crate::transport_faults::TransportFault;

impl Runs {
    /// Runs one step on the objects that are not runs.
    pub(crate) fn objects<T>(&self, step: impl FnOnce(&mut Objects) -> T) -> T {
        step(&mut self.lock().objects)
    }

    /// Returns the current response to a GET of the session, and its events.
    pub(crate) fn session(&self, id: &str) -> Result<(Value, Vec<Value>, TransportFault), Refusal> {
        let now = self.clock.now();
        let mut state = self.lock();
        let state = &mut *state;
        let Some(place) = state.places.get(id).copied() else {
            let session = state.objects.session(id)?;
            if let Some(fault) = session.scenario.fault(Call::Look, 0) {
                return Err(Refusal::scripted(fault));
            }
            let shown = wire::session(session, &state.objects, None);
            return Ok((shown, Vec::new(), TransportFault::default()));
        };
        state.stats.polls += 1;
        let allowance = state.take_for(id, &self.clock)?;
        // A deleted session makes its run unreachable.
        state.objects.session(id)?;
        let run = state.runs.get_mut(place).ok_or_else(Refusal::not_found)?;
        let (seen, transport) = run.poll(&self.clock)?;
        let transport = TransportFault { allowance, ..transport };
        let hidden = run.scenario.late_list.map(|ms| self.clock.scaled(ms as f64));
        let hidden = hidden.is_some_and(|hidden| run.age(now) < hidden);
        let session = state.objects.session(id)?;
        let shown = (!hidden).then_some((&*run, seen));
        let events = shown.map(|(run, seen)| wire::listed(run, seen)).unwrap_or_default();
        Ok((wire::session(session, &state.objects, shown), events, transport))
    }

    /// Opens a stream of future events; `None` if the session has no message yet.
    pub(crate) fn attach_now(&self, id: &str) -> Result<Option<Opening>, Refusal> {
        let next = {
            let state = self.lock();
            state.objects.session(id)?;
            match state.run(id) {
                Some(run) => run.seen(self.clock.now()),
                None => return Ok(None),
            }
        };
        self.attach(Api::Anthropic, id, next).map(Some)
    }

    /// Stops the run of a session; succeeds for an idle session too.
    pub(crate) fn interrupt(&self, id: &str) -> Result<(), Refusal> {
        let idle = {
            let state = self.lock();
            let now = self.clock.now();
            state.run(id).is_none_or(|run| run.last(run.seen(now)).is_terminal())
        };
        match idle {
            true => {
                self.lock().stats.cancels += 1;
                Ok(())
            }
            false => self.cancel(Api::Anthropic, id).map(|_| ()),
        }
    }
}
