//! The researcher against a scripted model, search and web.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of tests stops at the first thing that is not as promised"
)]

mod approving;
mod bench;
mod following;
mod grounding;
mod resuming;
mod running;
mod waiting;
