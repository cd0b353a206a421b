//! Anthropic's Managed Agents: agents, environments and sessions, which cost nothing, and the message inside a session,
//! which is a run.

pub(crate) mod handlers;
pub(crate) mod sessions;
pub(crate) mod wire;
