//! The citations of a piece of text.

use serde::Deserialize;

use crate::vendor::lenient::Known;

/// A citation of a page, a place or a file; each has its own names for the same things.
#[derive(Clone, Debug, Default, Deserialize)]
pub(in crate::gemini) struct Citation {
    url: Known<String>,
    document_uri: Known<String>,
    source: Known<String>,
    title: Known<String>,
    name: Known<String>,
    file_name: Known<String>,
    /// Bytes of the text; the end is exclusive.
    pub(in crate::gemini) start_index: Known<usize>,
    pub(in crate::gemini) end_index: Known<usize>,
}

impl Citation {
    /// The address of the cited page. The addresses of the vendor's search are redirects; they are kept as they are.
    pub(in crate::gemini) fn address(&self) -> Option<&str> {
        first(&[&self.url, &self.document_uri, &self.source])
    }

    /// Its title.
    pub(in crate::gemini) fn called(&self) -> Option<&str> {
        first(&[&self.title, &self.name, &self.file_name])
    }
}

fn first<'a>(fields: &[&'a Known<String>]) -> Option<&'a str> {
    fields.iter().filter_map(|field| field.as_deref()).find(|text| !text.is_empty())
}
