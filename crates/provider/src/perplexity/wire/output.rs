//! What a run put out: messages, of which the report is made, and what its searches found.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::vendor::lenient::{Known, items, known_items, long_text};

/// However many items there are, all that was written: it is what was paid for.
pub(super) fn output_items<'de, D: Deserializer<'de>>(
    list: D,
) -> Result<Option<Vec<OutputItem>>, D::Error> {
    items(list, || None, Some(OutputItem::beyond))
}

fn content_parts<'de, D: Deserializer<'de>>(list: D) -> Result<Option<Vec<ContentPart>>, D::Error> {
    items(list, || None, Some(ContentPart::beyond))
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputItem {
    r#type: Known<String>,
    role: Known<String>,
    #[serde(deserialize_with = "content_parts")]
    pub(super) content: Option<Vec<ContentPart>>,
    #[serde(deserialize_with = "known_items")]
    pub(super) results: Option<Vec<Page>>,
    #[serde(deserialize_with = "known_items")]
    pub(super) contents: Option<Vec<Page>>,
    #[serde(deserialize_with = "known_items")]
    pub(super) queries: Option<Vec<String>>,
}

impl OutputItem {
    /// Whether it is what the assistant wrote.
    pub(super) fn is_message(&self) -> bool {
        self.r#type.as_deref() == Some("message")
            && self.role.as_deref().is_none_or(|role| role == "assistant")
    }

    /// What a list that is full keeps of one more: the report is the last of all, and is added to what was written
    /// before it.
    fn beyond(list: &mut Vec<Self>, item: &RawValue) {
        let item = serde_json::from_str(item.get()).ok();
        let Some(mut item) = item.filter(Self::is_message) else { return };
        let parts = item.content.iter_mut().flatten();
        let text: String = parts.filter_map(ContentPart::take_written).collect();
        if text.is_empty() {
            return;
        }
        if let Some(last) = list.last_mut().filter(|last| last.is_message()) {
            let parts = last.content.get_or_insert_default();
            let text = if parts.is_empty() { text } else { format!("\n\n{text}") };
            return ContentPart::add(parts, text);
        }
        item.content = Some(vec![ContentPart { r#type: Known(None), text: Some(text) }]);
        list.push(item);
    }

    pub(super) fn is_web_search(&self) -> bool {
        self.r#type.as_deref().is_none_or(|kind| kind == "search_results")
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContentPart {
    r#type: Known<String>,
    #[serde(deserialize_with = "long_text")]
    text: Option<String>,
}

impl ContentPart {
    /// What is part of the report; thoughts and refusals are not.
    pub(super) fn written(&self) -> Option<&str> {
        let kind = self.r#type.as_deref().unwrap_or("output_text");
        self.text.as_deref().filter(|_| matches!(kind, "output_text" | "text"))
    }

    /// What a list that is full keeps of one more: its text.
    fn beyond(list: &mut Vec<Self>, part: &RawValue) {
        let part: Option<Self> = serde_json::from_str(part.get()).ok();
        if let Some(text) = part.and_then(|mut part| part.take_written()) {
            Self::add(list, text);
        }
    }

    /// Adds to what was written last.
    fn add(list: &mut Vec<Self>, text: String) {
        match list.last_mut().filter(|last| last.written().is_some()) {
            Some(last) => last.text.get_or_insert_default().push_str(&text),
            None => list.push(Self { r#type: Known(None), text: Some(text) }),
        }
    }

    pub(super) fn take_written(&mut self) -> Option<String> {
        self.written()?;
        self.text.take()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct Page {
    pub(in crate::perplexity) id: Known<u32>,
    pub(in crate::perplexity) url: Known<String>,
    pub(in crate::perplexity) title: Known<String>,
    pub(in crate::perplexity) date: Known<String>,
}

impl Page {
    pub(in crate::perplexity) fn has_address(&self) -> bool {
        self.url.as_deref().is_some_and(|url| !url.is_empty())
    }
}
