//! Conversations as files, with the real SQLite store and the real disk, in real time: a test waits for the
//! contents of a file, with a limit.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench stops the test at the first thing that is not as promised"
)]

mod bench;
mod log_lines;

mod lifecycle;
mod hidden;
mod following;
mod in_turn;
mod deleting;
mod unwritable;
mod archives;

mod child;
mod killed;
mod crowd;
