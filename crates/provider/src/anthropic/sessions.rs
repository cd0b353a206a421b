//! Making the session of a job, which costs nothing. One that was made and whose answer was lost is found by its key
//! before another is made (G4).

use std::ops::ControlFlow;
use std::time::Duration;

use outlast_core::{
    BeginError, ProviderError, ProviderErrorKind, Request, RequestNote, ResearchRequest,
};

use super::Anthropic;
use super::account::Ids;
use super::calls::CreateError;
use super::wire::{self, AgentSession};
use crate::vendor::{Checks, object};

/// The age up to which a session of the same key is looked for. A session that is missed costs nothing, so this only
/// needs to cover what a server that was down may miss.
const LOOK_BACK: Duration = Duration::from_secs(24 * 3600);

/// Longer lists are not searched to their end.
const MAX_PAGES: usize = 10;

/// The number of repetitions of a free request after its answer was lost.
const LOST_ANSWERS: u32 = 3;

impl Anthropic {
    /// The session of this key: the one there is already, else a new one. An answer that was lost on the way there costs
    /// no try of the job: what it made is looked up by its name or key, or created again.
    ///
    /// Whatever goes wrong here, nothing that costs money was sent, so no error leaves anything in doubt.
    pub(super) async fn session(
        &self,
        request: &Request,
        ask: &ResearchRequest,
        key: &str,
    ) -> Result<String, BeginError> {
        let checks = Checks::after(self.service.waits(), 0);
        let mut lost = 0;
        loop {
            match self.find_or_create_session(request, ask, key).await {
                Ok(id) => return Ok(id),
                Err(CreateError::Lost(error)) if lost < LOST_ANSWERS => {
                    lost += 1;
                    tracing::warn!(%error, lost, "lost the answer to a free request; looking for what it created");
                    tokio::time::sleep_until(checks.soon()).await;
                }
                Err(CreateError::Lost(error) | CreateError::Failed(error)) => {
                    return Err(BeginError::Refused(without_timeout(error)));
                }
            }
        }
    }

    async fn find_or_create_session(
        &self,
        request: &Request,
        ask: &ResearchRequest,
        key: &str,
    ) -> Result<String, CreateError> {
        let ids = self.account.ids(&self.service).await?;
        if let Some(id) = self.find_earlier_session(request, &ids, key).await? {
            return Ok(id);
        }
        match self.create_session(&ids, ask, key).await {
            // An agent or environment that was archived is refused, and not found by its name any more.
            Err(CreateError::Failed(error)) if error.kind == ProviderErrorKind::Rejected => {
                self.account.forget(&ids);
                let renewed = self.account.ids(&self.service).await?;
                match renewed == ids {
                    true => Err(CreateError::Failed(error)),
                    false => self.create_session(&renewed, ask, key).await,
                }
            }
            made => made,
        }
    }

    async fn create_session(
        &self,
        ids: &Ids,
        ask: &ResearchRequest,
        key: &str,
    ) -> Result<String, CreateError> {
        let definition = wire::session_definition(ids, ask, key);
        let body = self.service.create(&["v1", "sessions"], &definition).await?;
        let id = object::<AgentSession>(&body).and_then(AgentSession::into_id);
        id.ok_or_else(|| CreateError::Lost(self.service.no_id(&body)))
    }

    /// The session that was made under this key before, if the list shows one; further ones are archived.
    async fn find_earlier_session(
        &self,
        request: &Request,
        ids: &Ids,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        // The key of an earlier job may be of any age.
        let since = match request.note(RequestNote::RetryKey) == Some(key) {
            true => None,
            false => Some(self.service.now().before(LOOK_BACK).to_string()),
        };
        let mut query = vec![("agent_id", ids.agent.as_str())];
        query.extend(since.as_deref().map(|since| ("created_at[gte]", since)));
        let mut found = Vec::new();
        let take = |page: Vec<AgentSession>| {
            let same = page.into_iter().filter(|session| session.has_key(key));
            found.extend(same.filter_map(AgentSession::into_id));
            ControlFlow::Continue(())
        };
        let read = self.service.pages(&["v1", "sessions"], &query, MAX_PAGES, take).await?;
        read.map_err(|answer| self.service.provider_error(&answer))?;
        let mut found = found.into_iter();
        let first = found.next();
        for spare in found {
            self.service.archive(&spare).await;
        }
        Ok(first)
    }
}

/// The same error, without a timeout in it: a job that timed out in a send counts as one that may have been paid for.
fn without_timeout(error: ProviderError) -> ProviderError {
    if error.kind != ProviderErrorKind::TimedOut {
        return error;
    }
    let sentence = format!("{}; try again later", error.sentence);
    ProviderError { kind: ProviderErrorKind::Unavailable { retry_after: None }, sentence, ..error }
}
