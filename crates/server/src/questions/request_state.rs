//! The signed state of a question that was the answer to a call: the client returns it with the user's answer. It is bound to
//! job, question, owner, tool, arguments and deadline, and no server needs to remember it.

use outlast_core::{JobId, OwnerId, StoreError};
use outlast_engine::Engine;
use rmcp::ErrorData;
use rmcp::model::{JsonObject, RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};

use super::AskedQuestion;

/// The name of the setting that holds the key, which all servers of a store share.
const KEY: &str = "request_state_key";

/// The call that a state belongs to.
#[derive(Clone, Debug)]
pub(crate) struct CallBinding(Vec<u8>);

impl CallBinding {
    /// Binds to an owner, a tool and its arguments. The order of the arguments does not count.
    pub(crate) fn new(owner: &OwnerId, tool: &str, arguments: &JsonObject) -> Self {
        let arguments = serde_json::to_string(arguments).unwrap_or_default();
        Self([owner.as_str(), tool, &arguments].join("\0").into_bytes())
    }
}

/// The payload of a state.
#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    job: String,
    question: String,
}

/// A question that a state names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatedQuestion {
    pub(crate) job: JobId,
    pub(crate) question: String,
    /// True if the call that brought the state brought no answer that the question takes.
    pub(crate) asks_again: bool,
}

impl StatedQuestion {
    /// Seals the state of a question until its deadline.
    pub(crate) async fn seal(
        engine: &Engine,
        asked: &AskedQuestion,
        binding: &CallBinding,
    ) -> Result<String, StoreError> {
        let stated = Payload { job: asked.job.to_string(), question: asked.question.id.clone() };
        let payload = serde_json::to_vec(&stated).unwrap_or_default();
        let left = asked.question.deadline.since(engine.now());
        let options = SealOptions::new().associated_data(&binding.0).ttl(left);
        Ok(codec(engine).await?.seal_with(&payload, &options))
    }

    /// Opens a state. One that is changed, expired, or of another owner or call is refused.
    pub(crate) async fn open(
        engine: &Engine,
        state: &str,
        binding: &CallBinding,
    ) -> Result<Result<Self, ErrorData>, StoreError> {
        let opened = codec(engine).await?.open_json_with(state, &binding.0);
        let refused = || {
            let sentence = "requestState is not valid for this call, or has expired; make the call again without it";
            ErrorData::invalid_params(sentence, None)
        };
        let opened = opened.map_err(|error| {
            tracing::info!(%error, "request state refused");
            refused()
        });
        Ok(opened.and_then(|Payload { job, question }| {
            job.parse().map(|job| Self { job, question, asks_again: false }).map_err(|_| refused())
        }))
    }
}

/// Returns the codec with the key of the store, which the first question creates.
async fn codec(engine: &Engine) -> Result<RequestStateCodec, StoreError> {
    let key = match engine.get_setting(KEY).await? {
        Some(key) => key,
        None => {
            let [one, two] = [(); 2].map(|()| uuid::Uuid::new_v4().simple());
            // Another server may create a key at the same moment: the first one is valid for both.
            engine.create_setting(KEY, &format!("{one}{two}")).await?
        }
    };
    RequestStateCodec::try_new(key.into_bytes())
        .map_err(|error| StoreError::Corrupt { at: format!("setting {KEY}: {error}") })
}
