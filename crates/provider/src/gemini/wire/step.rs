//! One step of a run: a thought, a call of a tool, what it brought, or output.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::citation::Citation;
use crate::vendor::lenient::{Items, Known, items, long_text};

/// However many steps there are, the last output: it is what was paid for.
pub(super) fn steps<'de, D: Deserializer<'de>>(list: D) -> Result<Option<Vec<Step>>, D::Error> {
    items(list, || None, Some(Step::beyond))
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Step {
    r#type: Known<String>,
    pub(super) content: Items<TextPart>,
    arguments: Known<Arguments>,
    result: Items<ToolResult>,
}

impl Step {
    pub(super) fn is_output(&self) -> bool {
        self.r#type.as_deref() == Some("model_output")
    }

    pub(super) fn is_thought(&self) -> bool {
        self.r#type.as_deref() == Some("thought")
    }

    pub(super) fn has_text(&self) -> bool {
        let mut texts = self.content.iter().flatten().filter_map(TextPart::written);
        texts.any(|text| !text.is_empty())
    }

    /// The number of queries it asks.
    pub(super) fn queries(&self) -> usize {
        self.arguments.as_ref().map_or(0, Arguments::queries)
    }

    /// The number of pages it read.
    pub(super) fn pages(&self) -> usize {
        self.result.iter().flatten().filter(|result| result.is_page()).count()
    }

    /// Keeps the output of a step that a full list has no room for: it is added to the output before it.
    fn beyond(list: &mut Vec<Self>, step: &RawValue) {
        let step: Option<Self> = serde_json::from_str(step.get()).ok();
        let Some(step) = step.filter(|step| step.is_output() && step.has_text()) else { return };
        match list.last_mut().filter(|last| last.is_output()) {
            Some(last) => {
                last.content.get_or_insert_default().extend(step.content.0.into_iter().flatten())
            }
            None => list.push(step),
        }
    }
}

/// The arguments of a tool call.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Arguments {
    queries: Items<String>,
}

impl Arguments {
    pub(super) fn queries(&self) -> usize {
        self.queries.as_ref().map_or(0, Vec::len)
    }
}

/// A result of a tool.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ToolResult {
    url: Known<String>,
}

impl ToolResult {
    pub(super) fn is_page(&self) -> bool {
        self.url.is_some()
    }
}

/// A piece of text and what it cites.
#[derive(Clone, Debug, Default, Deserialize)]
pub(in crate::gemini) struct TextPart {
    r#type: Known<String>,
    #[serde(default, deserialize_with = "long_text")]
    text: Option<String>,
    pub(in crate::gemini) annotations: Items<Citation>,
}

impl TextPart {
    /// The text if it is part of the report; thoughts and pictures are not.
    pub(in crate::gemini) fn written(&self) -> Option<&str> {
        let is_text = self.r#type.as_deref().is_none_or(|kind| kind == "text");
        self.text.as_deref().filter(|_| is_text)
    }

    /// The text, moved out of it.
    pub(in crate::gemini) fn take_text(&mut self) -> String {
        self.text.take().unwrap_or_default()
    }
}
