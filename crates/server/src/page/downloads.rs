//! Downloads of a conversation or of one job: Markdown, HTML or JSON.

use axum::extract::Path;
use axum::response::IntoResponse;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use maud::{Markup, html};
use outlast_core::conversation::Conversation;
use outlast_core::{ConversationId, printable};

use super::request::{PageRequest, PageResult};
use crate::export::{Transcript, html_page, markdown_document};

/// The id of a job or a conversation, and the format.
type DownloadRequest = Path<(String, String)>;

/// Returns the file of one job.
pub(super) async fn of_job(asked: PageRequest, Path((id, format)): DownloadRequest) -> PageResult {
    let id = asked.job_id(&id)?;
    let job = asked.require_found(asked.engine().job(&asked.visitor.scope(), &id).await)?;
    let id = id.to_string();
    let name = job.new.conversation.clone().unwrap_or_else(|| ConversationId::new(&id));
    let told = asked.require_found(Ok(Conversation::from_turns(name, vec![job])))?;
    file(&asked, &told, &id, &format).await
}

/// Returns the file of a conversation.
pub(super) async fn of_conversation(
    asked: PageRequest,
    Path((id, format)): DownloadRequest,
) -> PageResult {
    let found = asked.engine().conversation(&asked.visitor.owner, &ConversationId::new(&id)).await;
    file(&asked, &asked.require_found(found)?, &id, &format).await
}

/// Returns the links to the files of the job or conversation at this address.
pub(super) fn links(address: &str) -> Markup {
    let formats = [("md", "Markdown"), ("html", "HTML"), ("json", "JSON")];
    html! {
        @for (format, name) in formats {
            a .button href={ (address) "/export/" (format) } download title={ "Save as " (name) } { (name) }
        }
    }
}

async fn file(asked: &PageRequest, told: &Conversation, name: &str, format: &str) -> PageResult {
    let told =
        Transcript::from_stored(told).with_checks(asked.engine(), &asked.visitor.scope()).await;
    let told = &asked.read(told)?;
    let (kind, text) = match format {
        "md" => ("text/markdown; charset=utf-8", markdown_document(told)),
        "html" => ("text/html; charset=utf-8", html_page(told)),
        "json" => match serde_json::to_string_pretty(told) {
            Ok(text) => ("application/json", text + "\n"),
            Err(_) => return Err(asked.not_found()),
        },
        _ => return Err(asked.not_found()),
    };
    let fits = |sign: &char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_');
    let name: String = name.chars().filter(fits).take(64).collect();
    let headers = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.{format}\"")),
        // The file is opened from a disk and has its own policy; here, nothing in it runs.
        (
            HeaderName::from_static("content-security-policy"),
            "default-src 'none'; sandbox".to_owned(),
        ),
    ];
    Ok((headers, printable(&text)).into_response())
}
