//! The Agent API: its requests and responses.

pub(crate) mod request;
pub(crate) mod wire;
