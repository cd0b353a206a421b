//! What the parts of one engine share: its store, its providers and its options.

use std::sync::Arc;

use outlast_core::{Cost, Job, Profile, Store};
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
}

impl Shared {
    pub(crate) fn expects(&self, profile: &Profile, ask: &Value) -> Expected {
        let provider = self.providers.get(profile);
        Expected {
            model: provider.and_then(|provider| provider.expected_model(ask)),
            cost: provider.map_or(Cost::Unknown, |provider| provider.typical_cost(ask)),
        }
    }

    /// Warns of a question that is likely to cost much (C10), before anything is spent.
    pub(crate) fn warn_of_cost(&self, job: &Job) {
        let expected = self.expects(&job.new.profile, &job.new.ask);
        if let Some(cost) = expected.cost.over_a_dollar() {
            tracing::warn!(job.id = %job.id, conversation.id = job.new.conversation_id(), estimate = %cost, "this question is likely to cost over $1");
        }
    }
}
