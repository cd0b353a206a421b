//! A report as it grows.

/// Blocks of text with a blank line between them.
#[derive(Default)]
pub(super) struct ReportPage {
    pub(super) text: String,
}

impl ReportPage {
    pub(super) fn add(&mut self, block: impl AsRef<str>) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(block.as_ref());
    }
}

/// At most so many characters, cut between words.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(longest) else { return text.to_owned() };
    let cut = text[..end].rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", text[..cut].trim_end())
}
