//! Reads both stores and compares the results with each other and with earlier results.

use outlast_core::{
    ConversationQuery, Day, Fence, Job, JobState, Profile, Rev, Scope, SpendBy, SpendQuery,
    StateKind, Store,
};

use super::{LOOK_ONCE, StorePair, as_it_is, both, everything};
use crate::model::TestedStore;
use crate::model::operation::{
    CONVERSATIONS, OWNERS, PAGES, PROFILES, conversation, owner, profile,
};
use crate::model::view::Ids;

impl<S: TestedStore> StorePair<'_, S> {
    /// Compares everything a reader can see: as the operator, and as one of the owners in turn.
    ///
    /// Not after every step, because reads take most of the time. The list that is compared after every step
    /// contains the state of each job, and another seed finds differences that were missed between two
    /// observations.
    pub(super) async fn observe(&mut self, other: usize) -> Result<(), String> {
        let scopes = [Scope::Operator, Scope::Owner(owner(self.steps % OWNERS))];
        self.list(other, &scopes[1], everything(), None).await?;
        self.read_jobs(other, &scopes).await?;
        let profiles: Vec<Profile> = (0..PROFILES).map(profile).collect();
        let limit = [100, 1][self.steps % 2];
        let owed = both!(self, other, |store| store.pending_stops(&profiles, limit));
        self.same("owed_stops", owed, Ids::owed)?;
        let twice = [profile(0), profile(self.steps % PROFILES), profile(0)];
        let queued = both!(self, other, |store| store.count_queued(&twice));
        self.same("queued", queued, as_it_is)?;
        let orphans = both!(self, other, |store| store.unclaimed_held_calls(&twice));
        self.same("orphans", orphans, Ids::lost)?;
        for by in [SpendBy::Day, SpendBy::Owner] {
            let query = SpendQuery { by, since: Day(0) };
            let spent = both!(self, other, |store| store.spend(&scopes[self.steps % 2], &query));
            self.same("spend", spent, as_it_is)?;
        }
        self.conversations(other).await?;
        for ids in self.model_ids.all().iter().zip(self.ids.all()) {
            let ahead = both!(self, other, ids, |store, id| store.queue_position(id));
            self.same("ahead", ahead, as_it_is)?;
        }
        self.journals(other, &scopes).await?;
        for profile in &profiles {
            let has = both!(self, other, |store| store.has_worker(profile));
            self.same("has_worker", has, as_it_is)?;
        }
        let all = both!(self, other, |store| store.changes(Rev::default(), LOOK_ONCE));
        let revs = match &all {
            (Ok(model), Ok(subject)) => (model.rev, subject.rev),
            _ => self.revs,
        };
        self.same("changes", all, Ids::changes)?;
        let revs = std::mem::replace(&mut self.revs, revs);
        let since = both!(self, other, revs, |store, rev| store.changes(rev, LOOK_ONCE));
        self.same("changes since the last step", since, Ids::changes)?;
        Ok(())
    }

    /// Compares the conversations of one owner in turn: as a list, in pages of two, and one of them completely.
    async fn conversations(&mut self, other: usize) -> Result<(), String> {
        let owner = owner(self.steps % OWNERS);
        let mut queries = (
            ConversationQuery { limit: 2, ..ConversationQuery::default() },
            ConversationQuery { limit: 2, ..ConversationQuery::default() },
        );
        if self.steps.is_multiple_of(3) {
            queries.0.states = vec![StateKind::Succeeded, StateKind::Queued];
            queries.1.states.clone_from(&queries.0.states);
        }
        loop {
            let pages = both!(self, other, (&queries.0, &queries.1), |store, query| store
                .conversations(&owner, query));
            let next = match &pages {
                (Ok(model), Ok(subject)) => (model.next, subject.next),
                _ => (None, None),
            };
            // Cursors are specific to each store; the existence of a next page is not.
            self.same("conversations", pages, |_, page| (page.conversations, page.next.is_some()))?;
            let (Some(model), Some(subject)) = next else { break };
            (queries.0.after, queries.1.after) = (Some(model), Some(subject));
        }
        let name = conversation(self.steps % CONVERSATIONS);
        let scope = if self.steps.is_multiple_of(2) {
            Scope::Operator
        } else {
            Scope::Owner(owner.clone())
        };
        let turns = both!(self, other, |store| store.turns(&scope, &name));
        self.same("turns", turns, |ids, jobs: Vec<Job>| {
            jobs.into_iter().map(|job| ids.job(job)).collect::<Vec<_>>()
        })?;
        Ok(())
    }

    /// Compares the steps of every job, the newest job about it, and the pages of every owner.
    async fn journals(&mut self, other: usize, scopes: &[Scope; 2]) -> Result<(), String> {
        let scope = &scopes[self.steps % 2];
        let states: &[StateKind] = [&[][..], &[StateKind::Succeeded]][self.steps / 2 % 2];
        for ids in self.model_ids.all().iter().zip(self.ids.all()) {
            let steps = both!(self, other, ids, |store, id| store.steps(scope, id));
            self.same("steps", steps, as_it_is)?;
            let outputs =
                both!(self, other, ids, |store, id| store.step_outputs(scope, id, &["read"]));
            self.same("step_outputs", outputs, as_it_is)?;
            let newest = both!(self, other, ids, |store, id| store.newest_about(scope, id, states));
            self.same("newest_about", newest, |ids, job| job.map(|job| ids.job(job)))?;
        }
        for (owner, digest) in (0..OWNERS).flat_map(|of| (0..PAGES).map(move |at| (owner(of), at)))
        {
            let page = both!(self, other, |store| store.page(&owner, &[digest; 32]));
            self.same("page", page, as_it_is)?;
        }
        Ok(())
    }

    /// Compares all fields of every job.
    async fn read_jobs(&mut self, via: usize, scopes: &[Scope]) -> Result<(), String> {
        for number in 0..self.ids.all().len() {
            let ids = (self.model_ids.all()[number], self.ids.all()[number]);
            for scope in scopes {
                let read = both!(self, via, ids, |store, id| store.job(scope, &id));
                let job = self.same("job", read, |ids, job| job.map(|job| ids.job(job)))?;
                if let Some(job) = job.flatten() {
                    self.goes_forward(job)?;
                }
            }
        }
        Ok(())
    }

    /// Checks that a job has one terminal transition, a constant result, and a fence that only rises.
    fn goes_forward(&mut self, job: Job) -> Result<(), String> {
        if let Some(before) = self.seen.insert(job.id, job.clone()) {
            let kept = match (&before.state, &job.state) {
                (JobState::Queued { .. } | JobState::Running { .. }, _) => true,
                // The state of the remote run may still change.
                (JobState::Cancelled { at, .. }, JobState::Cancelled { at: now, .. }) => at == now,
                (ended, now) => ended == now,
            };
            if !kept {
                return Err(format!(
                    "a final state changed: {:?} became {:?}",
                    before.state, job.state
                ));
            }
            if job.fence < before.fence || (job.fence == Fence::NONE && before.was_claimed()) {
                return Err(format!("a fence fell: {:?} became {:?}", before.fence, job.fence));
            }
        }
        Ok(())
    }
}
