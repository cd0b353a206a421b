//! The OpenAI Responses API, under `/openai/v1`: the same runs as the Agent API's, in OpenAI's words.

pub(crate) mod handlers;
pub(crate) mod request;
pub(crate) mod wire;

mod citations;
pub(crate) mod prices;
