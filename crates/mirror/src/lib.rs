//! Conversations as files.
//!
//! The [`Mirror`] wraps the store and shows the local owner's conversations to people and scripts, for as long as they
//! look there. Files are written from the store and never read back: what a person changes in them is gone with the
//! conversation's next change. Folders that the store does not know, of older servers, can be read and are never touched.

mod mirror;
mod documents;
mod shapes;

mod file_bytes;
mod folder_name;
mod folder;
mod lane_locks;

mod follower;
mod backlog;
mod cursor;
mod deletion;
mod unwritten;

mod archive;

pub use archive::{ArchiveError, ArchivedConversation, ArchivedFolder};
pub use documents::{
    ConversationFile, ErrorEntry, JobFile, JobParams, ProgressShape, StatusFile, StatusWord,
};
pub use mirror::{Mirror, MirrorOptions};
pub use shapes::{CostShape, SearchResult, UsageShape, search_results};
