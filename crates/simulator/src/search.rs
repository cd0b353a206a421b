//! The Search API, and the pages its results and the cited sources may point at.

pub(crate) mod handlers;
pub(crate) mod request;
