//! The status of a conversation, in words that a model can act on (B5, B10).

use outlast_mirror::{ErrorEntry, ProgressShape, StatusFile, StatusWord};

use super::ResearchSet;
use super::render::TextLines as _;
use crate::text::count_noun;
use crate::tool_names::research::HISTORY;

/// Renders the status block.
pub(super) fn describe_standing(
    set: ResearchSet,
    status: &StatusFile,
    progress: Option<&ProgressShape>,
    stop_text: Option<&str>,
) -> String {
    let continued = format!("{}.", set.followups());
    match status.status {
        StatusWord::Pending => describe_unfinished("Pending", status, progress),
        StatusWord::InProgress => describe_unfinished("In Progress", status, progress),
        StatusWord::Completed => format!("**Status: Completed**\nContinue with {continued}"),
        StatusWord::Failed => {
            let tries = count_noun(status.attempts, "attempt", "attempts");
            let mut text = format!("**Status: Failed** after {tries}");
            if let Some(error) = &status.error {
                text.line(&format!("Error: {}: {}", error.code, error.message));
            }
            if status.attempts > 1 {
                errors(&mut text, &status.error_history);
            }
            text.line(&format!("The conversation can be continued with {continued}"));
            text
        }
        StatusWord::Cancelled => {
            let mut text = "**Status: Cancelled**".to_owned();
            text.line("The last question was cancelled by its owner; a follow-up may be asked.");
            if let Some(told) = stop_text {
                text.line(told);
            }
            text
        }
    }
}

fn describe_unfinished(
    word: &str,
    status: &StatusFile,
    progress: Option<&ProgressShape>,
) -> String {
    let percent = progress.map_or(0, |progress| progress.percentage);
    let mut text = format!("**Status: {word}** ({percent} %)");
    if let Some(progress) = progress {
        text.line(&progress.message);
        text.line(&format!("Elapsed: {} s", progress.elapsed_ms / 1000));
    }
    // B10: the number of the attempt if it is not the first, and the earlier errors.
    if status.attempts > 0 {
        text.line(&format!("Retry Attempt: {}", status.attempts + 1));
        errors(&mut text, &status.error_history);
    }
    text.line(&format!(
        "Call `{HISTORY}` again in half a minute; do not ask the same question again meanwhile."
    ));
    text
}

fn errors(text: &mut String, history: &[ErrorEntry]) {
    text.line("Earlier errors:");
    for (at, error) in history.iter().enumerate() {
        text.line(&format!("{}. [{}] {}", at + 1, error.code, error.message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: ResearchSet = ResearchSet::Perplexity;

    fn status(word: StatusWord, codes: &[&str]) -> StatusFile {
        let errors = codes.iter().map(|code| ErrorEntry {
            code: (*code).to_owned(),
            message: "so and so".to_owned(),
            timestamp: Some(String::new()),
        });
        StatusFile {
            conversation_id: "c".to_owned(),
            job_id: None,
            status: word,
            tool_name: "perplexity_deep_research".to_owned(),
            started_at: String::new(),
            updated_at: String::new(),
            completed_at: None,
            attempts: codes.len(),
            progress: None,
            error: None,
            error_history: errors.collect(),
        }
    }

    /// B10: a retrying job reports the number of the attempt and lists earlier errors.
    #[test]
    fn b10_a_retry_says_its_number_and_what_went_wrong_before() {
        for word in [StatusWord::Pending, StatusWord::InProgress] {
            let text =
                describe_standing(SET, &status(word, &["TIMEOUT", "RATE_LIMITED"]), None, None);
            assert!(text.contains("\nRetry Attempt: 3\n"), "{text}");
            assert!(text.contains("1. [TIMEOUT] so and so\n2. [RATE_LIMITED] so and so"), "{text}");
            let first = describe_standing(SET, &status(word, &[]), None, None);
            assert!(!first.contains("Retry Attempt"), "{first}");
        }
    }
}
