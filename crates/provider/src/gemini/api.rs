//! The calls that follow and stop a run, and the list of agents.

use std::time::Duration;

use outlast_core::ProviderError;
use reqwest::StatusCode;
use tokio::time::timeout;

use super::{errors, wire};
use crate::vendor::{Checked, EventStream, HttpAnswer, Service, silent};

/// The time a stream may take to open: a check must not wait for something that only shows progress.
const ATTACH_LIMIT: Duration = Duration::from_secs(10);

impl Service {
    /// The run's state; a missing run is a 404, in whatever form the service reports it.
    pub(super) async fn look(
        &self,
        id: &str,
        limit: Duration,
    ) -> Result<HttpAnswer, ProviderError> {
        let mut answer = self.get_within(limit, &["interactions", id]).await?;
        if errors::is_not_found(&answer) {
            answer.status = StatusCode::NOT_FOUND;
        }
        Ok(answer)
    }

    /// Takes up a run's event stream after this event, or from its beginning.
    pub(super) async fn attach_after(
        &self,
        id: &str,
        after: Option<&str>,
    ) -> Result<Option<EventStream>, ProviderError> {
        let mut url = self.address(["interactions", id]);
        url.query_pairs_mut().append_pair("stream", "true");
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("last_event_id", after);
        }
        let limit = ATTACH_LIMIT.min(self.timeout());
        timeout(limit, self.attach(url)).await.unwrap_or_else(|_| Err(silent(limit)))
    }

    /// Checks that the service answers and accepts the key; returns the agents that it lists.
    pub(super) async fn check_agents(
        &self,
        limit: Duration,
    ) -> Result<(Checked, Vec<String>), ProviderError> {
        let mut list = self.address(["models"]);
        list.query_pairs_mut().append_pair("pageSize", "1000");
        let trouble = |answer: &HttpAnswer| self.refused_look(answer);
        let (checked, body) = self.check_list(list, limit, trouble).await?;
        Ok((checked, wire::listed_agents(&body)))
    }
}
