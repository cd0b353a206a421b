//! The MCP face: tool sets over stdio. Faces render; they call the engine and decide nothing.
//!
//! Only this crate and the client know rmcp. A tool is read in one place: its arguments, its call, its answer.

mod tools;
pub use tools::research::{Disclaimer, Research, ResearchMode, ResearchOptions};
pub use tools::research_jobs::{ResearchJobs, ResearchJobsOptions};
pub use tools::{ToolSet, Tools, UnknownToolSet};

mod server;
pub use server::{Face, Server};

mod stdio;
pub use stdio::{ServeError, serve_stdio};

mod caller;
mod wait;
mod receipt;

mod arguments;
mod reply;
mod text;
