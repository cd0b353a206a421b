//! The Sonar API, which the vendor retired in September 2026: its requests and responses.

pub(crate) mod handlers;
pub(crate) mod request;
pub(crate) mod wire;

pub(crate) mod prices;
