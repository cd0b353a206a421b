//! Text for clients: without control characters, and of limited length.

use std::time::Duration;

pub(crate) use outlast_core::printable;
use outlast_core::{Source, address_line, is_shown, is_terminal_control, without_hidden};
use serde_json::Value;

/// Returns an id for an error message: at most 64 characters, without control characters.
pub(crate) fn echo_id(id: &str) -> String {
    id.chars().take(64).filter(|character| !is_terminal_control(*character)).collect()
}

/// Returns one line for lists: the start of the question, without hidden characters.
pub(crate) fn title(question: &str) -> String {
    let clean = without_hidden(&printable(question));
    let line: String = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(200).collect()
}

/// Formats a time in RFC 3339 for people, with or without seconds: `17 November 2026, 01:02 UTC`; returns invalid input
/// unchanged.
pub(crate) fn readable_time(time: &str, format: &str) -> String {
    match chrono::DateTime::parse_from_rfc3339(time) {
        Ok(time) => time.to_utc().format(format).to_string(),
        Err(_) => time.to_owned(),
    }
}

/// Formats seconds in their two largest units.
pub(crate) fn took(seconds: u64) -> String {
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Formats a count with its noun.
pub(crate) fn count_noun(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Converts a duration to minutes with one decimal, rounded up.
pub(crate) fn minutes(duration: Duration) -> f64 {
    (duration.as_secs_f64() / 6.0).ceil() / 10.0
}

/// Returns the printable texts of a tool's content.
pub(crate) fn block_texts(content: &[Value]) -> String {
    let texts = content.iter().filter_map(|block| block.get("text")?.as_str());
    printable(&texts.collect::<Vec<_>>().join("\n"))
}

/// Returns a printable report and, after a blank line, the sources of its citations. An owned report is not copied.
pub(crate) fn with_citations(text: impl Into<String>, sources: &[Source]) -> String {
    let mut citations = String::new();
    if !sources.is_empty() {
        citations.push_str("\n\nCitations:");
        for source in sources {
            citations.push_str(&format!("\n[{}] {}", source.number, address_line(&source.url)));
        }
    }
    let mut cited = text.into();
    cited.retain(is_shown);
    // Exactly this much: a buffer that grows by doubling takes twice the size of the report.
    cited.reserve_exact(citations.len());
    cited.push_str(&citations);
    cited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(with_citations("a\x1b[31mb\0\n\tc", &[]), "a[31mb\n\tc");
        assert_eq!(printable("a\x1b[31mb\0\n\tc"), "a[31mb\n\tc");
        let source =
            Source { number: 1, url: "https://a.example/\n[2] b".to_owned(), ..Source::default() };
        assert!(with_citations("a", &[source]).ends_with("\n[1] https://a.example/%0A[2] b"));
        assert_eq!(title("a\u{202e}\u{200b}\u{2060}\u{feff}\u{e0041} b\n c"), "a b c");
        assert_eq!(echo_id(&"\u{1F600}\x07".repeat(100)).chars().count(), 32);
    }
}
