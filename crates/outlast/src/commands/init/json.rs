//! JSON as clients keep it, with comments and trailing commas: parsing, and the positions of its parts.

use std::ops::Range;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstContainerNode, CstNode, CstObject, CstRootNode};

use crate::config::line_and_column;

/// A byte order mark, which the parser does not know.
const BOM: &str = "\u{feff}";
/// Spaces of the same length as the mark, so that positions in the text stay the same.
const BOM_AS_SPACE: &str = "   ";

/// The reason why a text cannot be changed, and the position.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub(crate) struct Refusal {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) why: String,
}

impl Refusal {
    /// Creates the refusal for this byte.
    pub(crate) fn at(text: &str, at: usize, why: impl Into<String>) -> Self {
        let (line, column) = line_and_column(text, at);
        Self { line, column, why: why.into() }
    }
}

/// Parses a document.
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

/// Returns the value of this name; the last one of several, as clients do.
pub(crate) fn member(object: &CstObject, name: &str) -> Option<CstNode> {
    let named = |found: Option<String>| found.as_deref() == Some(name);
    object.properties().into_iter().rfind(|member| named(member.decoded_name()))?.value()
}

/// Returns the byte range of a part of a document.
pub(crate) fn span(node: &CstNode) -> Range<usize> {
    let start = start(node.clone());
    start..start + node.to_string().len()
}

fn start(node: CstNode) -> usize {
    let before: usize = node.previous_siblings().map(|node| node.to_string().len()).sum();
    let parent = node.parent().filter(|parent| !matches!(parent, CstContainerNode::Root(_)));
    before + parent.map_or(0, |parent| start(CstNode::Container(parent)))
}
