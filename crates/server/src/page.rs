//! The page at `/ui`: jobs, conversations and money in a browser, live (I1 to I6).
//!
//! This crate renders every view as HTML that is readable without JavaScript; `page.js` adds live updates and keyboard
//! shortcuts. Actions on the page go through the engine, as in every other interface.

mod options;
mod session;
mod form;
mod request;
mod layout;
mod list;
mod job;
mod timeline;
mod steps;
mod conversations;
mod spend;
mod asking;
mod actions;
mod several;
mod confirm;
mod events;
mod sign_in;
mod downloads;
mod routes;

pub(crate) use layout::secure;
pub use options::{Carry, PageEntry, PageOptions, PageResearch, PageView};
pub(crate) use routes::{SIGN_IN, is_page, is_public, router};
pub(crate) use session::{SignedOut, visitor};
pub(crate) use sign_in::{sign_in_form, too_many_sign_ins};
