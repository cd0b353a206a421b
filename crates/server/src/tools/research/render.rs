//! Text fragments that several answers share.

use outlast_core::{Body, Cost, Job, NanoUsd, Output, address_line, without_hidden};
use outlast_engine::ReportCheck;
use outlast_mirror::{CostShape, UsageShape};

use crate::quoted::TextBlocks;
use crate::text::printable;

/// A text that grows line by line.
pub(super) trait TextLines {
    fn line(&mut self, line: &str);

    /// Adds the path of the files, if the caller may know it.
    fn path(&mut self, path: Option<&str>) {
        if let Some(path) = path {
            self.line(&format!("Location: {}", printable(path)));
        }
    }

    /// Adds a note if earlier messages went to a provider other than the conversation's original one (P1).
    fn follow(&mut self, job: &Job) {
        if let Some(text) = job.new.move_text() {
            self.line(&format!("Note: {text}."));
        }
    }

    /// Adds remarks for the reader of a report and for the person who pays for it.
    fn remarks(&mut self, check: Option<&ReportCheck>, cost: Cost) {
        if let Some(warning) = cost.warning() {
            self.line(&format!("Note: {warning}"));
        }
        let Some(check) = check else { return };
        if let Some(least) = check.min_words.filter(|_| check.is_short()) {
            self.line(&format!(
                "Note: the report has {} words, fewer than the {least} that were asked for at this effort.",
                check.words
            ));
        }
        if !check.dangling_citations.is_empty() {
            let numbers: Vec<String> =
                check.dangling_citations.iter().map(|number| format!("[{number}]")).collect();
            self.line(&format!("Note: no source was given for {}.", numbers.join(", ")));
        }
    }
}

impl TextLines for String {
    fn line(&mut self, line: &str) {
        self.push('\n');
        self.push_str(line);
    }
}

impl TextLines for TextBlocks {
    fn line(&mut self, line: &str) {
        Self::line(self, line);
    }
}

/// Renders the sources of a report, after a blank line; an empty string if there are none. Titles are the words of pages, so
/// this belongs in the block of the report.
pub(super) fn sources(output: &Output) -> String {
    let Body::Report { sources, .. } = &output.body else { return String::new() };
    let mut text = String::new();
    if !sources.is_empty() {
        text.line("");
        text.line("Sources:");
    }
    for source in sources {
        let title = without_hidden(source.title.as_deref().unwrap_or(&source.url));
        let url = address_line(&source.url);
        text.line(&format!("[{}] {}: {url}", source.number, one_line(&title)));
    }
    text
}

/// Renders a text after the thinking that led to it.
pub(super) fn render_thinking(thinking: &str, text: &str) -> String {
    format!("<think>\n{}\n</think>\n\n{}", printable(thinking.trim()), printable(text))
}

/// Renders the usage and the cost.
pub(super) fn usage(usage: &UsageShape, cost: &CostShape, model: &str) -> String {
    let searches =
        usage.num_search_queries.map_or_else(String::new, |count| format!(", {count} searches"));
    format!(
        "Usage: {} tokens ({} in, {} out){searches} | Cost: {} | Model: {model}",
        usage.total_tokens,
        usage.prompt_tokens,
        usage.completion_tokens,
        money(cost)
    )
}

/// Renders the expected cost of a question.
pub(super) fn estimate(cost: &CostShape) -> String {
    match cost.usd {
        None => "Estimated cost: unknown.".to_owned(),
        Some(usd) => format!("Estimated cost: about {}.", dollars(usd)),
    }
}

fn money(cost: &CostShape) -> String {
    let known = match cost.usd {
        None => "unknown".to_owned(),
        Some(usd) => format!("{} ({})", dollars(usd), cost.kind),
    };
    match cost.maybe_spent_usd.filter(|usd| *usd > 0.0) {
        Some(usd) => format!("{known}; {} may have been spent", dollars(usd)),
        None => known,
    }
}

fn dollars(usd: f64) -> String {
    NanoUsd::from_usd(usd).map_or_else(|| format!("${usd}"), |amount| amount.to_string())
}

fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
