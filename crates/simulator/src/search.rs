//! The Search API: its requests and responses.

pub(crate) mod handlers;
pub(crate) mod request;
