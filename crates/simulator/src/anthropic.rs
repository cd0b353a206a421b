//! Anthropic's Managed Agents: agents, environments and sessions, which are free, and messages in a session,
//! each of which starts a run.

pub(crate) mod handlers;
pub(crate) mod sessions;
pub(crate) mod wire;
