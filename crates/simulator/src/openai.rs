//! The OpenAI Responses API under `/openai/v1`: the same runs as in the Agent API, in OpenAI's format.

pub(crate) mod handlers;
pub(crate) mod request;
pub(crate) mod wire;

mod citations;
pub(crate) mod prices;
