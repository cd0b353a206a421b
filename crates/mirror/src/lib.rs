//! Conversations as files.
//!
//! The [`Mirror`] wraps the store and shows the local owner's conversations to people and scripts that look in
//! that folder. Files are written from the store and never read back: a person's edits are overwritten by the
//! conversation's next change. Folders of older servers, which are not in the store, can be read and are never
//! changed.

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
pub use shapes::{CostShape, QuestionShape, SearchResult, UsageShape, search_results};
