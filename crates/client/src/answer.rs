//! What a tool answered.

use rmcp::model::CallToolResult;
use serde_json::Value;

/// What a tool answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolAnswer {
    /// All text blocks, joined by newlines.
    pub text: String,
    /// Every block as it came: text, images, sounds, resources.
    pub content: Vec<Value>,
    /// The structured form, if there is one.
    pub structured: Option<Value>,
    /// Whether the tool calls its own answer an error.
    pub is_error: bool,
    /// What the server says about the answer, such as a code of the error.
    pub meta: Option<Value>,
}

impl From<CallToolResult> for ToolAnswer {
    fn from(result: CallToolResult) -> Self {
        let texts = result.content.iter().filter_map(|block| block.as_text());
        let texts: Vec<&str> = texts.map(|text| text.text.as_str()).collect();
        // Blocks came from JSON a moment ago, so that they can be written as JSON.
        let content = result.content.iter().filter_map(|block| serde_json::to_value(block).ok());
        Self {
            text: texts.join("\n"),
            content: content.collect(),
            structured: result.structured_content,
            is_error: result.is_error.unwrap_or(false),
            meta: result.meta.and_then(|meta| serde_json::to_value(meta).ok()),
        }
    }
}
