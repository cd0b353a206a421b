//! Stopping a run: its state is read first, because a cancel of an unknown run and of a finished one may get the same
//! answer.

use outlast_core::{ProviderError, RemoteRun, RemoteStop};
use reqwest::StatusCode;
use serde_json::json;

use super::errors::{self, HttpAnswer};
use super::service::Service;

impl Service {
    /// Stops the run that these names lead to, and which was looked at just `before`. Safe to repeat.
    ///
    /// `already` are the answers to a cancel that say that a run has ended.
    pub(crate) async fn stop(
        &self,
        run: &RemoteRun,
        names: &[&str],
        before: &HttpAnswer,
        has_ended: impl FnOnce(&[u8]) -> bool,
        already: &[StatusCode],
        trouble: impl Fn(&HttpAnswer) -> ProviderError,
    ) -> Result<RemoteStop, ProviderError> {
        let is_known = before.status != StatusCode::NOT_FOUND;
        if !is_known && !self.is_settled(run) {
            return Err(errors::not_yet());
        }
        if is_known && !before.status.is_success() {
            return Err(trouble(before));
        }
        if is_known && has_ended(&before.body) {
            return Ok(RemoteStop::Done);
        }
        // One that is not found may only be hidden for a while, so it is told all the same.
        let names = [names, &["cancel"]].concat();
        let answer = self.tell(self.stop_limit(), &names, &json!({})).await?;
        match answer.status {
            status if status.is_success() => Ok(RemoteStop::Done),
            // It ended between the two calls.
            status if is_known && already.contains(&status) => Ok(RemoteStop::Done),
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND if !is_known => {
                Ok(RemoteStop::Unsupported)
            }
            _ => Err(trouble(&answer)),
        }
    }
}
