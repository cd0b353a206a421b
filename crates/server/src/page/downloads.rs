//! A conversation, or one job, as a file: Markdown, HTML or JSON.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use outlast_core::conversation::Conversation;
use outlast_core::{ConversationId, JobId, printable};
use outlast_engine::Engine;

use super::layout;
use super::session::Visitor;
use crate::export::{Transcript, html_page, markdown_document};

/// Of one job alone.
pub(super) async fn of_job(engine: &Engine, visitor: &Visitor, id: &str, format: &str) -> Response {
    let Ok(id) = id.parse::<JobId>() else { return layout::not_found(visitor) };
    match engine.job(&visitor.scope(), &id).await {
        Ok(Some(job)) => {
            let name =
                job.new.conversation.clone().unwrap_or_else(|| ConversationId::new(id.to_string()));
            match Conversation::of(name, vec![job]) {
                Some(told) => file(visitor, &Transcript::stored(&told), &id.to_string(), format),
                None => layout::not_found(visitor),
            }
        }
        Ok(None) => layout::not_found(visitor),
        Err(error) => layout::unreadable(visitor, &error),
    }
}

/// Of a conversation.
pub(super) async fn of_conversation(
    engine: &Engine,
    visitor: &Visitor,
    id: &str,
    format: &str,
) -> Response {
    match engine.conversation(&visitor.owner, &ConversationId::new(id)).await {
        Ok(Some(told)) => file(visitor, &Transcript::stored(&told), id, format),
        Ok(None) => layout::not_found(visitor),
        Err(error) => layout::unreadable(visitor, &error),
    }
}

fn file(visitor: &Visitor, told: &Transcript, name: &str, format: &str) -> Response {
    let (kind, text) = match format {
        "md" => ("text/markdown; charset=utf-8", markdown_document(told)),
        "html" => ("text/html; charset=utf-8", html_page(told)),
        "json" => match serde_json::to_string_pretty(told) {
            Ok(text) => ("application/json", text + "\n"),
            Err(_) => return layout::not_found(visitor),
        },
        _ => return layout::not_found(visitor),
    };
    let fits = |sign: &char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_');
    let name: String = name.chars().filter(fits).take(64).collect();
    let headers = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.{format}\"")),
        // It is opened from a disk, with a policy of its own; from here nothing of it runs.
        (
            HeaderName::from_static("content-security-policy"),
            "default-src 'none'; sandbox".to_owned(),
        ),
    ];
    (headers, printable(&text)).into_response()
}
