//! Sessions of the Managed Agents API: what one shows, and what is done to it. A message in it is a run of its name.

use serde_json::Value;

use super::Runs;
use crate::anthropic::sessions::Objects;
use crate::anthropic::wire;
use crate::ask::Api;
use crate::errors::Refusal;
use crate::faults::{Call, Channel};
use crate::run::Opening;
use crate::transport_faults::TransportFault;

impl Runs {
    /// One step on what is no run.
    pub(crate) fn objects<T>(&self, step: impl FnOnce(&mut Objects) -> T) -> T {
        step(&mut self.lock().objects)
    }

    /// What a GET of the session shows now, and its events.
    pub(crate) fn session(&self, id: &str) -> Result<(Value, Vec<Value>, TransportFault), Refusal> {
        let now = self.clock.now();
        let mut state = self.lock();
        let state = &mut *state;
        let Some(place) = state.places.get(id).copied() else {
            let session = state.objects.session(id)?;
            let fault = session.scenario.fault(Call::Look, 0).map(Refusal::scripted);
            if let Some(refusal) = fault {
                return Err(refusal);
            }
            let session = state.objects.sessions.iter().find(|session| session.id == id);
            let session = session.ok_or_else(Refusal::not_found)?;
            let shown = wire::session(session, &state.objects, None);
            return Ok((shown, Vec::new(), TransportFault::default()));
        };
        state.stats.polls += 1;
        let allowance = state.take_for(id, &self.clock)?;
        // A session that was deleted takes its run with it.
        state.objects.session(id)?;
        let run = state.runs.get_mut(place).ok_or_else(Refusal::not_found)?;
        run.counts.polls += 1;
        run.meet(Call::Poll, run.counts.polls)?;
        run.readable(&self.clock)?;
        let mut seen = run.seen(now);
        if run.last(seen).is_terminal() {
            run.counts.last_polls += 1;
            let nth = run.counts.last_polls;
            if run.scenario.stale.is_some_and(|stale| stale.hides(nth)) {
                seen -= 1;
            }
        }
        let transport = TransportFault { allowance, ..run.transport(Channel::Poll) };
        let hidden = run.scenario.late_list.map(|ms| self.clock.scaled(ms as f64));
        let hidden = hidden.is_some_and(|hidden| run.age(now) < hidden);
        let session = state.objects.sessions.iter().find(|session| session.id == id);
        let session = session.ok_or_else(Refusal::not_found)?;
        let run = &state.runs[place];
        let shown = (!hidden).then_some((run, seen));
        let events = shown.map(|(run, seen)| wire::listed(run, seen)).unwrap_or_default();
        Ok((wire::session(session, &state.objects, shown), events, transport))
    }

    /// Opens a stream of what happens from now on; `None` where nothing was sent into the session.
    pub(crate) fn attach_now(&self, id: &str) -> Result<Option<Opening>, Refusal> {
        let next = {
            let mut state = self.lock();
            state.objects.session(id)?;
            match state.run(id) {
                Some(run) => run.seen(self.clock.now()),
                None => return Ok(None),
            }
        };
        self.attach(Api::Anthropic, id, next).map(Some)
    }

    /// Stops what a session does; one that does nothing takes it too.
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
