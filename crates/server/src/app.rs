//! The view inside the chat (MCP Apps, I7): pages that a client shows next to the tools that start, poll and research, and a
//! tool that such a page calls itself, without the model. Clients that do not declare the extension see none of it.

mod job_view;
mod link;
mod page;

use rmcp::model::{MetaObject, ReadResourceResult, Resource, ResourceContents, Tool};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::json;

use crate::tool_names::{deep_research, jobs, perplexity, research, research_jobs};
pub(crate) use job_view::{SHOW, tool};
pub(crate) use link::{page_of_job, with_link};

/// The extension by which clients declare that they show such pages.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/ui";
const MIME_TYPE: &str = "text/html;profile=mcp-app";
const JOB: &str = "ui://outlast/job";
const REPORT: &str = "ui://outlast/report";

/// Returns true if the client shows pages next to tools.
pub(crate) fn is_shown_to(context: &RequestContext<RoleServer>) -> bool {
    let declared = context.client_capabilities().and_then(|client| client.extensions);
    declared.is_some_and(|extensions| extensions.contains_key(EXTENSION))
}

/// Adds the page that is shown next to the tool's calls, if there is one.
pub(crate) fn with_page(mut tool: Tool) -> Tool {
    if let Some(page) = page_of(&tool.name) {
        let ui = json!({ "resourceUri": page, "visibility": ["model", "app"] });
        tool.meta.get_or_insert_default().insert("ui".to_owned(), ui);
    }
    tool
}

fn page_of(tool: &str) -> Option<&'static str> {
    match tool {
        research::DEEP_RESEARCH
        | research::DEEP_RESEARCH_FOLLOWUP
        | deep_research::DEEP_RESEARCH
        | deep_research::DEEP_RESEARCH_FOLLOWUP
        | perplexity::RESEARCH => Some(REPORT),
        research_jobs::START | research_jobs::POLL | jobs::GET => Some(JOB),
        tool if tool.starts_with(jobs::STARTS) => Some(JOB),
        _ => None,
    }
}

pub(crate) fn pages() -> [Resource; 2] {
    let page = |uri: &str, name: &str, title: &str| {
        let mut page = Resource::new(uri, name).with_mime_type(MIME_TYPE).with_title(title);
        page.meta = Some(meta());
        page
    };
    [
        page(JOB, "job", "A job: how far it has come, and its result"),
        page(REPORT, "report", "Research: how far it has come, and its report"),
    ]
}

/// Returns the page with this address, if there is one.
pub(crate) fn read(uri: &str) -> Option<ReadResourceResult> {
    [JOB, REPORT].contains(&uri).then(|| {
        ReadResourceResult::new(vec![ResourceContents::TextResourceContents {
            uri: uri.to_owned(),
            mime_type: Some(MIME_TYPE.to_owned()),
            text: page::html(),
            meta: Some(meta()),
        }])
    })
}

/// Returns the metadata that allows a page to load nothing and to connect to nothing except its host.
fn meta() -> MetaObject {
    let mut meta = MetaObject::default();
    let csp = json!({ "connectDomains": [], "resourceDomains": [] });
    meta.insert("ui".to_owned(), json!({ "csp": csp, "prefersBorder": true }));
    meta
}
