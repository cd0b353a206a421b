//! Anthropic's Managed Agents: the session first, then the question, which costs money.

mod bench;
mod ends;
mod faults;
mod following;
mod sessions;
mod steps;
mod stop;
