//! The agent and the environment that an account needs before it can do research. Each is looked up by its name, which
//! holds a digest of its definition, before it is made, and kept in the store (G3).

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use outlast_core::{ProviderError, ProviderErrorKind, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::calls::CreateError;
use super::wire::{self, NamedResource};
use crate::vendor::{Service, object, with_likely_address};
use crate::with_detail;

/// Longer lists are not searched to their end: a second agent of the same name does no harm.
const MAX_PAGES: usize = 10;

/// The ids that sessions are made with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Ids {
    pub(super) agent: String,
    pub(super) environment: String,
}

/// The agent and the environment of one account: known to this process, else to the store, else to the vendor.
#[derive(Clone)]
pub(super) struct Account {
    model: Arc<str>,
    ids: Arc<Mutex<KnownIds>>,
    store: Arc<OnceLock<Arc<dyn Store>>>,
}

#[derive(Clone, Default)]
struct KnownIds {
    ids: Arc<OnceCell<Ids>>,
    /// These were refused, wherever they are kept.
    refused: Option<Ids>,
}

impl Account {
    pub(super) fn new(model: &str) -> Self {
        Self { model: model.into(), ids: Arc::default(), store: Arc::default() }
    }

    /// Keeps the ids in the store for other processes.
    pub(super) fn keep_in(&self, store: &Arc<dyn Store>) {
        self.store.get_or_init(|| Arc::clone(store));
    }

    /// The ids, looked up or made if neither this process nor the store knows them.
    pub(super) async fn ids(&self, service: &Service) -> Result<Ids, CreateError> {
        let KnownIds { ids, refused } =
            self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let find = async || {
            let agent = wire::agent_definition(&self.model);
            let environment = wire::environment_definition();
            let name = self.stored_name(service, &[&agent, &environment]);
            if let Some(kept) =
                self.read_stored(&name).await.filter(|kept| Some(kept) != refused.as_ref())
            {
                return Ok(kept);
            }
            let agent = self.find(service, "agents", agent).await?;
            let environment = self.find(service, "environments", environment).await?;
            let ids = Ids { agent, environment };
            self.store_ids(&name, &ids).await;
            Ok(ids)
        };
        ids.get_or_try_init(find).await.cloned()
    }

    /// Forgets ids that were refused: the agent or the environment may have been archived.
    pub(super) fn forget(&self, refused: &Ids) {
        let mut known = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if known.ids.get() == Some(refused) {
            *known = KnownIds { ids: Arc::default(), refused: Some(refused.clone()) };
        }
    }

    /// The name of the ids in the store: another service, key or definition has its own ids.
    fn stored_name(&self, service: &Service, definitions: &[&Value]) -> String {
        let digests: Vec<String> = definitions.iter().map(|it| digest(it)).collect();
        format!("{} {}", service.profile(super::Anthropic::NAME).as_str(), digests.join(" "))
    }

    /// Reads the ids from the store. They can be looked up again, so an error of the store does not stop the work.
    async fn read_stored(&self, name: &str) -> Option<Ids> {
        let kept = self.store.get()?.get_setting(name).await;
        let kept = kept.inspect_err(|error| tracing::warn!(%error, "failed to read the ids of Anthropic's agent and environment from the store; looking them up"));
        serde_json::from_str(&kept.ok()??).ok()
    }

    async fn store_ids(&self, name: &str, ids: &Ids) {
        let (Some(store), Ok(text)) = (self.store.get(), serde_json::to_string(ids)) else {
            return;
        };
        if let Err(error) = store.put_setting(name, &text).await {
            tracing::warn!(%error, "failed to store the ids of Anthropic's agent and environment");
        }
    }

    /// The id of what has this definition: found by name, else made.
    async fn find(
        &self,
        service: &Service,
        kind: &str,
        mut definition: Value,
    ) -> Result<String, CreateError> {
        let name = format!("outlast-research-{}", digest(&definition));
        if let Some(id) = self.find_or_create(service, kind, &name).await? {
            return Ok(id);
        }
        definition["name"] = name.into();
        let body = match service.create(&["v1", kind], &definition).await {
            Err(CreateError::Failed(error))
                if error.kind == ProviderErrorKind::Rejected && kind == "agents" =>
            {
                return Err(CreateError::Failed(self.unknown_model(service, error).await));
            }
            made => made?,
        };
        let id = object::<NamedResource>(&body).and_then(|made| made.id.0);
        id.ok_or_else(|| CreateError::Lost(service.no_id(&body)))
    }

    async fn find_or_create(
        &self,
        service: &Service,
        kind: &str,
        name: &str,
    ) -> Result<Option<String>, ProviderError> {
        let mut found = None;
        let take = |page: Vec<NamedResource>| {
            found = page.into_iter().find(|named| named.is_live(name)).and_then(|found| found.id.0);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let read = service.pages(&["v1", kind], &[], MAX_PAGES, take).await?;
        let to_error = |answer| {
            with_likely_address(service.vendor(), &answer, service.provider_error(&answer))
        };
        read.map_err(to_error)?;
        Ok(found)
    }

    /// A refused agent whose model the provider does not list: the ones it lists are named.
    async fn unknown_model(&self, service: &Service, refusal: ProviderError) -> ProviderError {
        let model = &self.model;
        let mut names = Vec::new();
        let take = |page: Vec<NamedResource>| {
            names.extend(page.into_iter().filter_map(|named| named.id.0));
            ControlFlow::Break(())
        };
        // Without the list the refusal is returned as it came.
        drop(service.pages(&["v1", "models"], &[], 1, take).await);
        if names.is_empty() || names.iter().any(|name| **name == **model) {
            return refusal;
        }
        let names = names.join(", ");
        let sentence = format!(
            "Anthropic has no model `{model}`; set the model of [anthropic] to one that it lists: {names}"
        );
        with_detail(ProviderErrorKind::Misconfigured, sentence, refusal.detail.unwrap_or_default())
    }
}

fn digest(definition: &Value) -> String {
    let digest = Sha256::digest(definition.to_string());
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
