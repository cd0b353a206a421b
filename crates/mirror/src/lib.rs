//! Conversations as files.
//!
//! The [`Mirror`] wraps the store and shows the local owner's conversations to people and scripts, for as long as they
//! look there. Files are written from the store and never read back: what a person changes in them is gone with the
//! conversation's next change. Folders that the store does not know, of older servers, can be read and are never touched.

mod mirror;
mod name;
mod documents;
mod folder;
mod turns;

mod follow;
mod backlog;
mod cursor;
mod forget;
mod trouble;

mod archive;

pub use archive::{ArchiveError, Archived};
pub use mirror::{Mirror, MirrorOptions};
