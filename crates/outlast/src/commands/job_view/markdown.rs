//! Parts of a Markdown document about research: values of its front matter, and what a report cites.

use outlast_core::Source;
use serde_json::Value;

/// A YAML string: JSON's are.
pub(in crate::commands) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// What a report cites, under a heading; nothing where it cites nothing.
pub(in crate::commands) fn sources(sources: &[Source]) -> String {
    if sources.is_empty() {
        return String::new();
    }
    let lines = sources.iter().map(|source| {
        let title = source.title.as_deref().unwrap_or(&source.url);
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{}. {title} <{}>\n", source.number, source.url)
    });
    format!("\n## Sources\n\n{}", lines.collect::<String>())
}
