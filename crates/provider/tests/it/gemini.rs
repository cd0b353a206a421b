//! Gemini's deep-research agents: the same faults and scenarios as the other dialects, and what is this vendor's own.

pub(crate) mod bench;

mod cuts;
mod fault_table;
mod follow;
mod requests;
mod scenarios;
mod secrets;
mod stop;
mod strange;
