//! The MCP interface: tool sets over stdio and HTTP. Interfaces render; they call the engine and decide nothing.
//!
//! Only this crate and the client know rmcp. Each tool is one module: its arguments, its call and its answer.

mod tools;
pub use tools::instructions::{DEEP_RESEARCH, research_instructions};
pub use tools::jobs::{InputSchema, Jobs, JobsMode, JobsOptions, WorkKind, Workflow};
pub use tools::perplexity::{Perplexity, PerplexityOptions};
pub use tools::recipient::{Disclaimer, WAYS_TO_A_PROVIDER, how_to_configure};
pub use tools::research::{DocumentSharing, Research, ResearchMode, ResearchOptions, ResearchSet};
pub use tools::research_jobs::{ResearchJobs, ResearchJobsOptions};
pub use tools::{ToolSet, Tools, UnknownToolSet};

mod audit;
pub use audit::{AuditEvent, AuditLog};
mod face;
pub use face::Face;
mod server;
pub use server::Server;

mod stdio;
pub use stdio::{MAX_UNANSWERED, ServeError, serve_stdio};

mod http;
pub use http::{
    BadToken, Callers, Hosts, HttpOptions, NotAName, Origins, Rates, ResourceServer, Room, Routes,
    ScopeNames, Token, Tokens, TrustedProxies, serve_handler, serve_http,
};

mod page;
pub use page::{Carry, PageEntry, PageOptions, PageResearch, PageView};

mod citations;
pub use citations::{citation_check, has_web_sources};

mod retry;
pub use retry::{RetrySettings, retry_job, retry_key, retry_of};

mod paid_runs;
mod research_details;
mod step_totals;
pub use paid_runs::PaidRun;
pub use research_details::{ResearchDetails, TakenStep};
pub use step_totals::StepTotals;

mod export;
pub use export::{
    Transcript, Turn, TurnAnswer, cost_text, html_page, markdown_document, markdown_sources,
    question_of, yaml_string,
};

mod metrics;
pub use metrics::{Database, DatabaseFigures, Metrics};

mod app;
mod notified;
mod resources;
mod caller;
mod tasks;
mod tasks_2025;
mod questions;
mod wait;
mod held;
mod identity;
mod receipt;
mod external_tools;

mod tool_names;
mod icons;
mod arguments;
mod malformed;
mod reply;
mod quoted;
mod text;
mod json_size;
