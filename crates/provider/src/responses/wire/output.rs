//! The output of a run: messages, of which the report is made, and search results. Perplexity shows a search as
//! its results, OpenAI as a call with an action.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::vendor::lenient::{Items, Lenient, items, long_text};

/// However many items there are, all that was written: it is what was paid for.
pub(super) fn output_items<'de, D: Deserializer<'de>>(
    list: D,
) -> Result<Option<Vec<OutputItem>>, D::Error> {
    items(list, || None, Some(OutputItem::on_overflow))
}

fn content_parts<'de, D: Deserializer<'de>>(list: D) -> Result<Option<Vec<ContentPart>>, D::Error> {
    items(list, || None, Some(ContentPart::on_overflow))
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct OutputItem {
    r#type: Lenient<String>,
    role: Lenient<String>,
    phase: Lenient<String>,
    #[serde(default, deserialize_with = "content_parts")]
    pub(super) content: Option<Vec<ContentPart>>,
    pub(super) results: Items<OpenedPage>,
    contents: Items<OpenedPage>,
    queries: Items<String>,
    pub(super) action: Lenient<Action>,
}

impl OutputItem {
    /// Returns true if the assistant wrote it.
    pub(super) fn is_message(&self) -> bool {
        self.r#type.as_deref() == Some("message")
            && self.role.as_deref().is_none_or(|role| role == "assistant")
    }

    /// Keeps the text of an item that a full list has no room for: the report is the last of all, and is added to
    /// what was written before it.
    fn on_overflow(list: &mut Vec<Self>, item: &RawValue) {
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
        item.content = Some(vec![ContentPart::of(text)]);
        list.push(item);
    }

    /// Returns true if it was said on the way to the report.
    pub(super) fn is_commentary(&self) -> bool {
        self.phase.as_deref() == Some("commentary")
    }

    /// Returns true if there is anything of a report in it.
    pub(super) fn says_something(&self) -> bool {
        let parts = self.content.iter().flatten().filter_map(ContentPart::report_text);
        parts.into_iter().any(|text| !text.trim().is_empty())
    }

    /// The words by which the model refused to write.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.content.iter().flatten().find_map(|part| part.refusal.as_deref())
    }

    /// Its parts of the report.
    pub(super) fn parts(&mut self) -> impl Iterator<Item = &mut ContentPart> {
        self.content.iter_mut().flatten().filter(|part| part.report_text().is_some())
    }

    pub(super) fn is_web_search(&self) -> bool {
        self.r#type.as_deref().is_none_or(|kind| kind == "search_results")
    }

    /// Returns true if it is a call of the web search that asked for something.
    pub(super) fn is_search_call(&self) -> bool {
        is_search_call(self.r#type.as_deref()) && self.action.as_ref().is_none_or(Action::is_search)
    }

    /// The number of queries it asked.
    pub(super) fn count_queries(&self) -> usize {
        let called =
            self.is_search_call().then(|| self.action.as_ref().map_or(1, Action::count_queries));
        self.queries.as_ref().map_or(0, Vec::len) + called.unwrap_or(0)
    }

    /// The pages it read, and the results of tools other than the web search.
    pub(super) fn read(&self) -> impl Iterator<Item = &OpenedPage> {
        let others = self.results.iter().flatten().filter(|_| !self.is_web_search());
        let sources = self.action.iter().flat_map(|action| action.sources.iter().flatten());
        self.contents.iter().flatten().chain(others).chain(sources)
    }
}

/// Returns true if an item of this type is a call of the web search.
pub(super) fn is_search_call(kind: Option<&str>) -> bool {
    kind == Some("web_search_call")
}

/// The action of a web search call.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Action {
    r#type: Lenient<String>,
    queries: Items<String>,
    /// The results of a search.
    pub(super) sources: Items<OpenedPage>,
    /// The page that was opened.
    url: Lenient<String>,
}

impl Action {
    fn is_search(&self) -> bool {
        self.r#type.as_deref().is_none_or(|kind| kind == "search")
    }

    /// The number of queries a search asked.
    pub(super) fn count_queries(&self) -> usize {
        match self.is_search() {
            true => self.queries.as_ref().map_or(1, |queries| queries.len().max(1)),
            false => 0,
        }
    }

    /// The page that was opened, if one was.
    pub(super) fn opened_page(&self) -> Option<&str> {
        self.url.as_deref().filter(|_| self.r#type.as_deref() == Some("open_page"))
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ContentPart {
    r#type: Lenient<String>,
    #[serde(default, deserialize_with = "long_text")]
    text: Option<String>,
    refusal: Lenient<String>,
    annotations: Items<Annotation>,
}

impl ContentPart {
    fn of(text: String) -> Self {
        Self { text: Some(text), ..Self::default() }
    }

    /// The text if it is part of the report; thoughts and refusals are not.
    pub(super) fn report_text(&self) -> Option<&str> {
        let kind = self.r#type.as_deref().unwrap_or("output_text");
        self.text.as_deref().filter(|_| matches!(kind, "output_text" | "text"))
    }

    /// Keeps the text of a part that a full list has no room for.
    fn on_overflow(list: &mut Vec<Self>, part: &RawValue) {
        let part: Option<Self> = serde_json::from_str(part.get()).ok();
        if let Some(text) = part.and_then(|mut part| part.take_written()) {
            Self::add(list, text);
        }
    }

    /// Adds to what was written last.
    fn add(list: &mut Vec<Self>, text: String) {
        match list.last_mut().filter(|last| last.report_text().is_some()) {
            Some(last) => last.text.get_or_insert_default().push_str(&text),
            None => list.push(Self::of(text)),
        }
    }

    fn take_written(&mut self) -> Option<String> {
        self.report_text()?;
        self.text.take()
    }

    /// Takes out its text, and the citations in it.
    pub(super) fn take(&mut self) -> (String, Vec<Annotation>) {
        let mut citations = self.annotations.take().unwrap_or_default();
        citations.retain(Annotation::is_citation);
        (self.take_written().unwrap_or_default(), citations)
    }
}

/// A citation of a page, and its place in the text: characters, the end not included.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Annotation {
    r#type: Lenient<String>,
    pub(crate) url: Lenient<String>,
    pub(crate) title: Lenient<String>,
    pub(crate) start_index: Lenient<usize>,
    pub(crate) end_index: Lenient<usize>,
}

impl Annotation {
    fn is_citation(&self) -> bool {
        self.r#type.as_deref() == Some("url_citation")
    }

    /// The same citation, this many characters later.
    pub(super) fn after(self, before: usize) -> Self {
        let later =
            |place: Lenient<usize>| Lenient(place.map(|place| place.saturating_add(before)));
        Self { start_index: later(self.start_index), end_index: later(self.end_index), ..self }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct OpenedPage {
    pub(crate) id: Lenient<u32>,
    pub(crate) url: Lenient<String>,
    pub(crate) title: Lenient<String>,
    pub(crate) date: Lenient<String>,
}

impl OpenedPage {
    pub(crate) fn has_address(&self) -> bool {
        self.url.as_deref().is_some_and(|url| !url.is_empty())
    }
}
