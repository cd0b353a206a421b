//! The calls that follow and stop a run, and the list of agents.

use std::ops::Deref;
use std::time::Duration;

use outlast_core::ProviderError;
use reqwest::StatusCode;

use super::{errors, wire};
use crate::http::send;
use crate::vendor::{Checked, EventStream, HttpAnswer, Service, is_event_stream};

/// How long a stream may take to open: a check must not wait for what is only progress.
const ATTACH_LIMIT: Duration = Duration::from_secs(10);

/// The service, with the calls of this API. Cheap to clone.
#[derive(Clone)]
pub(super) struct Api(pub(super) Service);

impl Deref for Api {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.0
    }
}

impl Api {
    /// The run's state; one that is not there is a 404, however the service says so.
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
    pub(super) async fn attach(&self, id: &str, after: Option<&str>) -> Attached {
        let attaching = self.try_attach(id, after);
        let attached = tokio::time::timeout(ATTACH_LIMIT.min(self.timeout()), attaching).await;
        match attached {
            Ok(Ok(attached)) => attached,
            Ok(Err(_)) | Err(_) => Attached::NotNow,
        }
    }

    async fn try_attach(&self, id: &str, after: Option<&str>) -> Result<Attached, ProviderError> {
        let mut url = self.address(["interactions", id]);
        url.query_pairs_mut().append_pair("stream", "true");
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("last_event_id", after);
        }
        let request = self.calls()?.get(url).header("accept", "text/event-stream");
        let response =
            send(self.authorised(request)).await.map_err(|error| self.no_answer(&error))?;
        let status = response.status();
        if status == StatusCode::OK && is_event_stream(&response) {
            return Ok(Attached::Stream(Box::new(EventStream::new(response))));
        }
        let is_final = status.is_success() || matches!(status.as_u16(), 400 | 405 | 410 | 422);
        Ok(if is_final { Attached::Refused } else { Attached::NotNow })
    }

    /// Asks for a run to be stopped.
    pub(super) async fn cancel(&self, id: &str) -> Result<HttpAnswer, ProviderError> {
        let request = self.calls()?.post(self.address(["interactions", id, "cancel"]));
        let request = request.timeout(self.stop_limit()).json(&serde_json::json!({}));
        self.answer(self.authorised(request)).await
    }

    /// Whether the service answers and takes the key, and the agents that it lists.
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

/// What came of asking for a stream.
pub(super) enum Attached {
    /// It is there.
    Stream(Box<EventStream>),
    /// It cannot be had now, and may be later.
    NotNow,
    /// This run has none; asking again is of no use.
    Refused,
}
