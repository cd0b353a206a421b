//! `outlast wrap`: stands between an MCP server and its client. Every message passes byte for byte; a tool call that takes
//! longer than the client waits is handed off, and its result is stored.
//!
//! The [`front`] is the process on the client's pipe. The [`keeper`] is a process of its own that owns the wrapped server,
//! so that a call outlives the client. They speak over a local socket (`frame`).

pub mod front;
pub mod keeper;

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

pub use keeper::{Identity, KeeperOptions};
pub use rows::CallRows;
pub use settings::{OnCancel, ToolPolicy, WrapSettings};
pub use tool_changes::{ToolChange, recent_tool_changes};
