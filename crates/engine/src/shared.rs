//! What the parts of one engine share: its store, its providers and its options.

use std::sync::Arc;

use outlast_core::{Cost, Job, NanoUsd, NewJob, Profile, ResearchAsk, Reservation, Store};
use serde_json::Value;

use crate::options::{Options, Providers};
use crate::shutdown::Shutdown;
use crate::wakeups::Wakeups;

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) providers: Providers,
    pub(crate) options: Options,
    pub(crate) wakeups: Arc<Wakeups>,
    pub(crate) stop: Shutdown,
}

/// What is known of a request before it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The model that will answer it.
    pub model: Option<String>,
    /// What it usually costs.
    pub cost: Cost,
    /// What its caller is told of its budget, where the provider does not stop a run at it (G6).
    pub budget_note: Option<String>,
}

impl Shared {
    pub(crate) fn expects(&self, profile: &Profile, ask: &Value) -> Expected {
        let provider = self.providers.get(profile);
        let is_capped = provider.is_some_and(|provider| provider.caps());
        let cost = provider.map_or(Cost::Unknown, |provider| provider.typical_cost(ask));
        let is_free = cost.amount() == Some(NanoUsd(0));
        let budget = ResearchAsk::stored_budget(ask).filter(|_| !is_capped && !is_free);
        Expected {
            budget_note: budget.map(|budget| {
                format!("A run usually costs less than its budget of {budget}, but it cannot be stopped there: this provider has no limit for a run.")
            }),
            model: provider.and_then(|provider| provider.expected_model(ask)),
            cost,
        }
    }

    /// What is set aside for a job, and what may be (G6); `None` for one that is free.
    pub(crate) fn reservation(&self, new: &NewJob) -> Option<Reservation> {
        if !new.may_be_charged() {
            return None;
        }
        let Expected { model, cost, .. } = self.expects(&new.profile, &new.ask);
        Some(Reservation {
            provider: new.profile.provider().to_owned(),
            model,
            typical: cost.amount(),
            budget: ResearchAsk::stored_budget(&new.ask),
            provider_caps: self.providers.get(&new.profile).is_some_and(|found| found.caps()),
            limits: self.options.spend_limits,
        })
    }

    /// Warns of a question that is likely to cost much (C10), before anything is spent.
    pub(crate) fn warn_of_cost(&self, job: &Job) {
        let expected = self.expects(&job.new.profile, &job.new.ask);
        if let Some(cost) = expected.cost.over_a_dollar() {
            tracing::warn!(job.id = %job.id, conversation.id = job.new.conversation_id(), estimate = %cost, "this question is likely to cost over $1");
        }
    }
}
