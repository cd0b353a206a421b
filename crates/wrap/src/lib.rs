//! `outlast wrap`: runs between an MCP server and its client. It relays every message byte for byte. It hands off a
//! tool call that takes longer than the client waits, and stores its result.
//!
//! The [`front`] is the process on the client's pipe. The [`host`] is the host process: a separate process that owns
//! the wrapped server, so that a call outlives the client. The two communicate over a local socket (`frame`).

pub mod front;
pub mod host;

mod call;
mod canonical;
mod handoff;
mod incoming;
mod journal;
mod outgoing;
mod result_tool;
mod rows;
mod server;
mod session;
mod tool_changes;
mod web;

mod frame;
mod line;
mod message;
mod paths;
mod settings;

pub use host::{HostIdentity, HostOptions};
pub use rows::{CallRows, end_calls, killed_hosts};
pub use settings::{OnCancel, ToolPolicy, WrapSettings};
pub use tool_changes::{ToolChange, recent_tool_changes};
