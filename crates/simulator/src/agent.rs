//! The Agent API: what it accepts and what it says.

pub(crate) mod request;
pub(crate) mod wire;
