//! Exports questions and answers as documents: Markdown, JSON and one HTML page. The page at `/ui` renders reports with the
//! same code.

mod transcript;
mod markdown;
mod addresses;
mod formulas;
mod claims;
mod report;
mod html;

pub use html::html_page;
pub use markdown::{markdown_document, markdown_sources, yaml_string};
pub use transcript::{Transcript, Turn, TurnAnswer, cost_text, question_of};

pub(crate) use claims::check_html;
pub(crate) use html::{REPORT_STYLE, answer_html, contents, has_contents, source_cards, with_code};
pub(crate) use report::{report, report_with_check};
