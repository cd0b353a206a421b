//! A door for the fuzz target.

use super::pdf::parse;

/// Reads the bytes as a PDF; says what cannot have come of them.
pub fn pdf(bytes: &[u8]) -> Result<(), String> {
    let Ok(document) = parse(bytes, &|| true) else { return Ok(()) };
    match document.passages.iter().find(|passage| passage.text.trim().is_empty()) {
        Some(_) => Err("a passage without a word".to_owned()),
        None if document.passages.is_empty() => Err("a document without a passage".to_owned()),
        None => Ok(()),
    }
}
