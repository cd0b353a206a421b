//! The Search API: what it accepts and what it says.

pub(crate) mod handlers;
pub(crate) mod request;
