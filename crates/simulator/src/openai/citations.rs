//! Citations in OpenAI's format: a link in parentheses, and an annotation with its position in characters.

use serde_json::{Value, json};

use crate::script::Script;

/// Returns an annotation for each link in the text that points to a source.
pub(super) fn annotations(script: &Script) -> Vec<Value> {
    let text = &script.text;
    let mut annotations = Vec::new();
    let (mut at, mut place) = (0, 0);
    while let Some(start) = text[at..].find("([").map(|start| at + start) {
        place += text[at..start].chars().count();
        let Some(end) = text[start..].find("))").map(|end| start + end + 2) else { break };
        let shown = &text[start..end];
        let length = shown.chars().count();
        let url = shown.rsplit_once("](").map_or("", |(_, url)| url.trim_end_matches(')'));
        if let Some(source) = script.sources().find(|source| source.url == url) {
            annotations.push(json!({
                "type": "url_citation", "url": source.url, "title": source.title,
                "start_index": place, "end_index": place + length,
            }));
        }
        place += length;
        at = end;
    }
    annotations
}
