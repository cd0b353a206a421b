//! Looking at both stores, and comparing what is seen with each other and with what was seen before.

use outlast_core::{
    ConversationQuery, Fence, Job, JobState, Profile, Rev, Scope, StateKind, Store,
};

use super::{LOOK_ONCE, World, as_it_is, everything};
use crate::model::Subject;
use crate::model::operation::{CONVERSATIONS, OWNERS, PROFILES, conversation, owner, profile};
use crate::model::view::Ids;

impl<S: Subject> World<'_, S> {
    /// Compares everything a reader can see: as the operator, and as one of the owners in turn.
    ///
    /// Not after every step, because reads are what a case spends its time on; the list compared after every step says
    /// where each job stands, and what is missed between two looks another seed finds.
    pub(super) async fn observe(&mut self, other: usize) -> Result<(), String> {
        let scopes = [Scope::Operator, Scope::Owner(owner(self.steps % OWNERS))];
        self.list(other, &scopes[1], everything(), None).await?;
        self.read_jobs(other, &scopes).await?;
        let profiles: Vec<Profile> = (0..PROFILES).map(profile).collect();
        let limit = [100, 1][self.steps % 2];
        let owed = (
            self.model.owed_stops(&profiles, limit).await,
            self.handles[other].owed_stops(&profiles, limit).await,
        );
        self.same("owed_stops", owed, Ids::owed)?;
        let twice = [profile(0), profile(self.steps % PROFILES), profile(0)];
        let queued = (self.model.queued(&twice).await, self.handles[other].queued(&twice).await);
        self.same("queued", queued, as_it_is)?;
        let orphans = (self.model.orphans(&twice).await, self.handles[other].orphans(&twice).await);
        self.same("orphans", orphans, Ids::lost)?;
        self.conversations(other).await?;
        for (model, subject) in
            self.model_ids.all().to_vec().into_iter().zip(self.ids.all().to_vec())
        {
            let ahead = (self.model.ahead(&model).await, self.handles[other].ahead(&subject).await);
            self.same("ahead", ahead, as_it_is)?;
        }
        for profile in &profiles {
            let has = (
                self.model.has_worker(profile).await,
                self.handles[other].has_worker(profile).await,
            );
            self.same("has_worker", has, as_it_is)?;
        }
        let all = (
            self.model.changes(Rev::default(), LOOK_ONCE).await,
            self.handles[other].changes(Rev::default(), LOOK_ONCE).await,
        );
        let revs = match &all {
            (Ok(model), Ok(subject)) => (model.rev, subject.rev),
            _ => self.revs,
        };
        self.same("changes", all, Ids::changes)?;
        let (model, subject) = std::mem::replace(&mut self.revs, revs);
        let since = (
            self.model.changes(model, LOOK_ONCE).await,
            self.handles[other].changes(subject, LOOK_ONCE).await,
        );
        self.same("changes since the last step", since, Ids::changes)?;
        Ok(())
    }

    /// Compares the conversations of one owner in turn: as a list, in pages of two, and one of them whole.
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
            let pages = (
                self.model.conversations(&owner, &queries.0).await,
                self.handles[other].conversations(&owner, &queries.1).await,
            );
            let next = match &pages {
                (Ok(model), Ok(subject)) => (model.next, subject.next),
                _ => (None, None),
            };
            // Cursors are each store's own; that there is a next page is not.
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
        let turns =
            (self.model.turns(&scope, &name).await, self.handles[other].turns(&scope, &name).await);
        self.same("turns", turns, |ids, jobs: Vec<Job>| {
            jobs.into_iter().map(|job| ids.job(job)).collect::<Vec<_>>()
        })?;
        Ok(())
    }

    /// Compares every job, whole.
    async fn read_jobs(&mut self, via: usize, scopes: &[Scope]) -> Result<(), String> {
        for number in 0..self.ids.all().len() {
            let (model, subject) = (self.model_ids.all()[number], self.ids.all()[number]);
            for scope in scopes {
                let read = (
                    self.model.job(scope, &model).await,
                    self.handles[via].job(scope, &subject).await,
                );
                let job = self.same("job", read, |ids, job| job.map(|job| ids.job(job)))?;
                if let Some(job) = job.flatten() {
                    self.goes_forward(job)?;
                }
            }
        }
        Ok(())
    }

    /// One terminal transition, a result that never changes, a fence that only rises.
    fn goes_forward(&mut self, job: Job) -> Result<(), String> {
        if let Some(before) = self.seen.insert(job.id, job.clone()) {
            let kept = match (&before.state, &job.state) {
                (JobState::Queued { .. } | JobState::Running { .. }, _) => true,
                // What is known of the remote run may still change.
                (JobState::Cancelled { at, .. }, JobState::Cancelled { at: now, .. }) => at == now,
                (ended, now) => ended == now,
            };
            if !kept {
                return Err(format!("an end changed: {:?} became {:?}", before.state, job.state));
            }
            if job.fence < before.fence || (job.fence == Fence::NONE && before.was_claimed()) {
                return Err(format!("a fence fell: {:?} became {:?}", before.fence, job.fence));
            }
        }
        Ok(())
    }
}
