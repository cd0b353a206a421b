//! JSON as clients keep it, with comments and trailing commas: read, and asked where its parts stand.

use std::ops::Range;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstContainerNode, CstNode, CstObject, CstRootNode};

use crate::config::line_and_column;

/// A byte order mark, which the parser does not know.
const BOM: &str = "\u{feff}";
/// As long as the mark, so that places in the text stay the same.
const BOM_AS_SPACE: &str = "   ";

/// Why a text cannot be changed, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub(crate) struct Refusal {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) why: String,
}

impl Refusal {
    /// At this byte.
    pub(crate) fn at(text: &str, at: usize, why: impl Into<String>) -> Self {
        let (line, column) = line_and_column(text, at);
        Self { line, column, why: why.into() }
    }
}

/// Reads a document.
pub(crate) fn parse(text: &str) -> Result<CstRootNode, Refusal> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let readable = match text.strip_prefix(BOM) {
        Some(rest) => &format!("{BOM_AS_SPACE}{rest}"),
        None => text,
    };
    CstRootNode::parse(readable, &options)
        .map_err(|error| Refusal::at(text, error.range().start, error.kind().to_string()))
}

/// The value of this name; of several the last, as clients read it.
pub(crate) fn member(object: &CstObject, name: &str) -> Option<CstNode> {
    let named = |found: Option<String>| found.as_deref() == Some(name);
    object.properties().into_iter().rfind(|member| named(member.decoded_name()))?.value()
}

/// Where a part of a document stands in its text.
pub(crate) fn span(node: &CstNode) -> Range<usize> {
    let start = start(node.clone());
    start..start + node.to_string().len()
}

fn start(node: CstNode) -> usize {
    let before: usize = node.previous_siblings().map(|node| node.to_string().len()).sum();
    let parent = node.parent().filter(|parent| !matches!(parent, CstContainerNode::Root(_)));
    before + parent.map_or(0, |parent| start(CstNode::Container(parent)))
}
