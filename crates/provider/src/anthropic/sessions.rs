//! Making the session of a job, which costs nothing. One that was made and whose answer was lost is found by its key
//! before another is made (G4).

use std::ops::ControlFlow;
use std::time::Duration;

use outlast_core::rules::RETRY_KEY;
use outlast_core::{BeginError, ProviderError, ResearchAsk, Trouble};
use serde_json::Value;

use super::Anthropic;
use super::account::Ids;
use super::wire::{self, Session};
use crate::provider_error::provider_error;
use crate::vendor::object;

/// How far back a session of the same key is looked for. Not found it costs nothing, so no more is needed than what a
/// server that was down may miss.
const LOOK_BACK: Duration = Duration::from_secs(24 * 3600);

/// Longer lists are not searched to their end.
const MAX_PAGES: usize = 10;

impl Anthropic {
    /// The session of this key: the one there is already, else a new one.
    ///
    /// Whatever goes wrong here, nothing that costs money was sent, so no error leaves anything in doubt.
    pub(super) async fn session(
        &self,
        ask: &Value,
        request: &ResearchAsk,
        key: &str,
    ) -> Result<String, BeginError> {
        let ids = self.account.ids(&self.service).await.map_err(free)?;
        if let Some(id) =
            self.earlier(ask, &ids, key).await.map_err(BeginError::Refused).map_err(free)?
        {
            return Ok(id);
        }
        match self.make_session(&ids, request, key).await {
            // An agent or environment that was archived is refused, and not found by its name any more.
            Err(BeginError::Refused(error)) if error.trouble == Trouble::Rejected => {
                self.account.forget(&ids);
                let renewed = self.account.ids(&self.service).await.map_err(free)?;
                match renewed == ids {
                    true => Err(BeginError::Refused(error)),
                    false => self.make_session(&renewed, request, key).await.map_err(free),
                }
            }
            made => made.map_err(free),
        }
    }

    async fn make_session(
        &self,
        ids: &Ids,
        request: &ResearchAsk,
        key: &str,
    ) -> Result<String, BeginError> {
        let body = wire::session_definition(ids, request, key);
        let made = self.service.tell(self.service.timeout(), &["v1", "sessions"], &body).await;
        let answer = made.map_err(BeginError::Refused)?;
        if !answer.status.is_success() {
            return Err(BeginError::Refused(self.service.trouble(&answer)));
        }
        let id = object::<Session>(&answer.body).and_then(Session::into_id);
        id.ok_or_else(|| BeginError::Refused(self.service.no_id(&answer.body)))
    }

    /// The session that was made under this key before, if the list shows one; further ones are archived.
    async fn earlier(
        &self,
        ask: &Value,
        ids: &Ids,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        // The key of an earlier job may be of any age.
        let since = match ask.get(RETRY_KEY).and_then(Value::as_str) == Some(key) {
            true => None,
            false => Some(self.service.now().before(LOOK_BACK).to_string()),
        };
        let mut query = vec![("agent_id", ids.agent.as_str())];
        query.extend(since.as_deref().map(|since| ("created_at[gte]", since)));
        let mut found = Vec::new();
        let take = |page: Vec<Session>| {
            let same = page.into_iter().filter(|session| session.has_key(key));
            found.extend(same.filter_map(Session::into_id));
            ControlFlow::Continue(())
        };
        let read = self.service.pages(&["v1", "sessions"], &query, MAX_PAGES, take).await?;
        read.map_err(|answer| self.service.trouble(&answer))?;
        let mut found = found.into_iter();
        let first = found.next();
        for spare in found {
            self.service.archive(&spare).await;
        }
        Ok(first)
    }
}

/// The same error, without a timeout in it: a job that timed out in a send is taken for one that may have been paid for.
fn free(error: BeginError) -> BeginError {
    match error {
        BeginError::Refused(error) if error.trouble == Trouble::TimedOut => {
            let trouble = Trouble::Unavailable { retry_after: None };
            let detail = error.detail;
            let error = provider_error(trouble, format!("{}; try again later", error.sentence));
            BeginError::Refused(ProviderError { detail, ..error })
        }
        error => error,
    }
}
