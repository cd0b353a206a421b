//! The page at `/ui` on the real binary over real sockets. `scripts/ui` tries it in a browser.

pub(crate) mod browser;

mod acting;
mod answering;
mod checking;
mod command;
mod reading;
mod safety;
