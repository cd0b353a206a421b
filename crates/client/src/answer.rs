use rmcp::model::CallToolResult;
use serde_json::Value;

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolAnswer {
    /// All text blocks, joined by newlines.
    pub text: String,
    /// Every block, unchanged: text, images, sounds, resources.
    pub content: Vec<Value>,
    /// The structured form, if there is one.
    pub structured: Option<Value>,
    /// True if the tool marks its answer as an error.
    pub is_error: bool,
    /// Metadata about the answer, such as an error code.
    pub meta: Option<Value>,
}

impl From<CallToolResult> for ToolAnswer {
    fn from(result: CallToolResult) -> Self {
        let texts = result.content.iter().filter_map(|block| block.as_text());
        let texts: Vec<&str> = texts.map(|text| text.text.as_str()).collect();
        // Blocks were just parsed from JSON, so they can be serialised.
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
