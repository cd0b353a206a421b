//! The result of a job as the workflow returned it (E10); a long one in parts.

use outlast_core::{Body, Job, Output, Source, rules};
use outlast_mirror::{CostShape, UsageShape};
use serde::Serialize;
use serde_json::{Value, json};

use crate::reply::Refusal;
use crate::text::printable;

/// The size in bytes of compact JSON above which a result is returned in parts.
const PART_BYTES: usize = 256 * 1024;

/// The position of a part within a result, in bytes of its JSON.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ResultPage {
    pub(super) offset: u64,
    pub(super) total_bytes: u64,
    pub(super) next_offset: Option<u64>,
}

/// Returns the result of a job that succeeded; for a long one, the part that starts at `offset`, with its position.
pub(super) fn result(
    job: &Job,
    output: &Output,
    offset: u64,
) -> Result<(Value, Option<ResultPage>), Refusal> {
    let result = whole(job, output);
    let text = serde_json::to_string(&result).map_err(|error| {
        tracing::error!(job.id = %job.id, %error, "a result cannot be shown");
        Refusal::internal()
    })?;
    if text.len() <= PART_BYTES {
        return Ok((result, None));
    }
    let (part, page) = part(&text, offset);
    Ok((Value::String(part.to_owned()), Some(page)))
}

pub(super) fn whole(job: &Job, output: &Output) -> Value {
    match &output.body {
        Body::Tool { content, structured, is_error } => {
            let mut result = json!({ "content": content, "isError": is_error });
            if let Some(structured) = structured {
                result["structuredContent"] = structured.clone();
            }
            result
        }
        Body::Report { text, sources, .. } => {
            let mut result = json!({
                "text": printable(text),
                "sources": show_sources(sources),
                "usage": UsageShape::from(&output.usage),
                "cost": CostShape::new(output.cost, rules::maybe_spent(job)),
            });
            if let Some(conversation) = &job.new.conversation {
                result["conversationId"] = conversation.as_str().into();
            }
            result
        }
    }
}

/// Returns the printable sources of a report.
fn show_sources(sources: &[Source]) -> Vec<Source> {
    let shown = sources.iter().map(|source| Source {
        url: printable(&source.url),
        title: source.title.as_deref().map(printable),
        date: source.date.as_deref().map(printable),
        snippet: source.snippet.as_deref().map(printable),
        number: source.number,
        digest: None,
    });
    shown.collect()
}

/// Returns the part that starts at the character containing `offset`; never splits a character.
fn part(text: &str, offset: u64) -> (&str, ResultPage) {
    let start = text.floor_char_boundary(usize::try_from(offset).unwrap_or(usize::MAX));
    let end = text.floor_char_boundary(start.saturating_add(PART_BYTES));
    let page = ResultPage {
        offset: start as u64,
        total_bytes: text.len() as u64,
        next_offset: (end < text.len()).then_some(end as u64),
    };
    (&text[start..end], page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E10: parts are cut between characters, and together they are the whole result.
    #[test]
    fn e10_parts_joined_are_the_result() {
        let text = "\u{20ac}".repeat(PART_BYTES);
        let (mut joined, mut next) = (String::new(), Some(0));
        while let Some(offset) = next {
            let (piece, page) = part(&text, offset);
            assert!(piece.len() <= PART_BYTES && page.offset == offset);
            assert_eq!(page.total_bytes, text.len() as u64);
            joined.push_str(piece);
            next = page.next_offset;
        }
        assert_eq!(joined, text);
    }

    #[test]
    fn an_offset_of_the_callers_own_is_brought_to_a_character() {
        let text = "\u{20ac}".repeat(PART_BYTES);
        assert_eq!(part(&text, 4).1.offset, 3);
        let (piece, page) = part(&text, u64::MAX);
        assert_eq!((piece, page.next_offset), ("", None));
    }
}
