//! The state that the parts of one engine share: its store, its providers and its options.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Cost, Job, Lease, NanoUsd, NewJob, Profile, Request, Reservation, RunJournal, SpendTerms,
    Store, rules,
};

use crate::asking::AskingStore;
use crate::options::{Options, Providers};
use crate::shutdown::Shutdown;
use crate::wakeups::Wakeups;
use crate::wind_downs::WindDowns;

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) providers: Providers,
    pub(crate) options: Options,
    pub(crate) wakeups: Arc<Wakeups>,
    pub(crate) stop: Shutdown,
    pub(crate) wind_downs: WindDowns,
}

/// The facts known about a request before it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestForecast {
    /// The model that will answer it.
    pub model: Option<String>,
    /// Its usual cost.
    pub cost: Cost,
    /// The note on its budget for the caller, if the provider does not stop a run at the budget (G6).
    pub budget_note: Option<String>,
}

impl Shared {
    pub(crate) fn expects(&self, profile: &Profile, request: &Request) -> RequestForecast {
        let provider = self.providers.get(profile);
        let is_capped = provider.is_some_and(|provider| provider.default_cap(request).is_some());
        let cost = provider.map_or(Cost::Unknown, |provider| provider.typical_cost(request));
        let is_free = cost.amount() == Some(NanoUsd(0));
        let budget = request.budget();
        let cost = match (cost, budget) {
            // A run that is stopped at its budget costs no more.
            (Cost::Estimate(typical), Some(budget)) if is_capped => {
                Cost::Estimate(typical.min(budget))
            }
            (cost, _) => cost,
        };
        RequestForecast {
            budget_note: budget.filter(|_| !is_capped && !is_free).map(|budget| {
                format!("A run usually costs less than its budget of {budget}, but it cannot be stopped there: this provider has no limit for a run.")
            }),
            model: provider.and_then(|provider| provider.expected_model(request)),
            cost,
        }
    }

    /// Returns the amount to reserve for a job, and the amount that may be spent (G6); `None` for a free job.
    pub(crate) fn reservation(&self, new: &NewJob) -> Option<Reservation> {
        if !new.may_be_charged() {
            return None;
        }
        let provider = self.providers.get(&new.profile);
        let cost = provider.map(|provider| provider.typical_cost(&new.request));
        if cost == Some(Cost::Computed(NanoUsd(0))) {
            return None;
        }
        Some(Reservation {
            provider: new.profile.provider().to_owned(),
            model: provider.and_then(|provider| provider.expected_model(&new.request)),
            terms: self.spend_terms(&new.profile, &new.request),
        })
    }

    /// Returns the time limit of an attempt, if the job's provider states one.
    pub(crate) fn attempt_time(&self, new: &NewJob) -> Option<Duration> {
        self.providers.get(&new.profile)?.attempt_time(&new.request)
    }

    fn spend_terms(&self, profile: &Profile, request: &Request) -> SpendTerms {
        let provider = self.providers.get(profile);
        SpendTerms {
            typical: provider.and_then(|provider| provider.typical_cost(request).amount()),
            budget: request.budget(),
            default_cap: provider.and_then(|provider| provider.default_cap(request)),
            limits: self.options.spend_limits,
        }
    }

    /// Returns the request as its provider receives it. If the provider stops a run at a sum, the budget in the
    /// request is the run's cap. The cap is the stored one. A job that an older version inserted has none; it gets
    /// the lowest cap that the settings allow.
    pub(crate) fn capped_request<'a>(&self, job: &'a Job) -> Cow<'a, Request> {
        let request = &job.new.request;
        let cap = match &job.allowance {
            Some(allowance) => allowance.cap,
            None => rules::lowest_cap(&self.spend_terms(&job.new.profile, request)),
        };
        cap.map_or(Cow::Borrowed(request), |cap| Cow::Owned(request.with_budget(cap)))
    }

    /// Returns the journal of the attempt that has this lease.
    pub(crate) fn journal(&self, lease: &Lease) -> RunJournal {
        let (store, observers) = (Arc::clone(&self.store), self.options.observers.clone());
        let store = Arc::new(AskingStore { store, observers });
        RunJournal::new(store, lease.clone(), self.options.max_bytes)
    }

    /// Warns of a question that is likely to cost much (C10), before anything is spent.
    pub(crate) fn warn_of_cost(&self, job: &Job) {
        let expected = self.expects(&job.new.profile, &job.new.request);
        if let Some(cost) = expected.cost.over_a_dollar() {
            tracing::warn!(job.id = %job.id, conversation.id = job.new.conversation_id(), estimate = %cost, "this question is likely to cost over $1");
        }
    }
}

/// Logs an event of a job.
pub(crate) fn log_job(job: &Job, event: &'static str) {
    let (conversation, tool) = (job.new.conversation_id(), job.new.tool());
    tracing::info!(job.id = %job.id, conversation.id = conversation, tool, "{event}");
}
