//! The Sonar API, which the vendor retired in September 2026: what it accepted and what it said.

pub(crate) mod handlers;
pub(crate) mod request;
pub(crate) mod wire;

pub(crate) mod prices;
