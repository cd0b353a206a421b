//! JSON as clients keep it, with comments and trailing commas: parsing, the positions of its parts, and changes to one
//! member. Every other byte stays unchanged. The parser could add members too, but would remove blank lines from the
//! object and split an object on one line into many.

use std::ops::Range;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstContainerNode, CstNode, CstObject, CstRootNode};

use super::layout::{EntryField, Layout};
use crate::config::line_and_column;

/// A byte order mark, which the parser does not know.
const BOM: &str = "\u{feff}";
/// Spaces of the same length as the mark, so that positions in the text stay the same.
const BOM_AS_SPACE: &str = "   ";

/// The reason why a text cannot be changed, and the position.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub(crate) struct EditRefusal {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) why: String,
}

impl EditRefusal {
    /// Creates the refusal for this byte.
    pub(crate) fn at(text: &str, at: usize, why: impl Into<String>) -> Self {
        let (line, column) = line_and_column(text, at);
        Self { line, column, why: why.into() }
    }
}

/// Parses a document.
pub(crate) fn parse(text: &str) -> Result<CstRootNode, EditRefusal> {
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
        .map_err(|error| EditRefusal::at(text, error.range().start, error.kind().to_string()))
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

/// Returns the object at this path.
pub(crate) fn object_at(root: &CstRootNode, path: &[&str]) -> Option<CstObject> {
    path.iter().try_fold(root.object_value()?, |object, name| member(&object, name)?.as_object())
}

/// Sets a member of the object called `container`, which it creates if it is missing, as it does the document's.
pub(crate) fn insert(
    text: &str,
    container: &'static str,
    name: &'static str,
    entry: &EntryField,
) -> Result<String, EditRefusal> {
    let members = [(container, EntryField::Map(vec![(name, entry.clone())]))];
    let root = parse(text)?;
    let Some(value) = root.value() else {
        let layout = Layout::fresh(text);
        let is_empty = text.trim_start_matches('\u{feff}').is_empty();
        let gap = if is_empty || text.ends_with('\n') { "" } else { layout.eol };
        return Ok(format!("{text}{gap}{}{}", layout.object(&members), layout.eol));
    };
    let Some(object) = value.as_object() else {
        let why = "`{` is expected: the file must hold an object";
        return Err(EditRefusal::at(text, span(&value).start, why));
    };
    let [(container, servers)] = &members;
    match member(&object, container) {
        Some(node) if node.as_object().is_some() => set(text, &[container], name, entry),
        Some(node) => {
            let why = format!("`{container}` must be an object");
            Err(EditRefusal::at(text, span(&node).start, why))
        }
        None => set(text, &[], container, servers),
    }
}

/// Sets the value of a member of the object at this path. Creates missing objects.
pub(crate) fn set(
    text: &str,
    path: &[&str],
    name: &str,
    field: &EntryField,
) -> Result<String, EditRefusal> {
    let root = parse(text)?;
    let Some(object) = object_at(&root, path) else {
        let Some((last, above)) = path.split_last() else {
            return Err(EditRefusal::at(text, 0, "the file must hold an object"));
        };
        let text = set(text, above, last, &EntryField::Map(Vec::new()))?;
        return set(&text, path, name, field);
    };
    Ok(match member(&object, name) {
        None => add(text, &root, &object, name, field),
        Some(node) if node.to_serde_value() == Some(field.value()) => text.to_owned(),
        Some(node) => {
            let layout = Layout::around(text, &root, span(&node).start);
            with_value(text, &node, &layout.render(field))
        }
    })
}

/// Removes the member from the object at this path, if it exists.
pub(crate) fn remove(text: &str, path: &[&str], name: &str) -> Result<String, EditRefusal> {
    let root = parse(text)?;
    let without = object_at(&root, path).and_then(|object| without_member(text, &object, name));
    Ok(without.unwrap_or_else(|| text.to_owned()))
}

/// Returns the text without the object's last member of this name. Keeps comments before the member, which the parser's
/// own removal would remove.
fn without_member(text: &str, object: &CstObject, name: &str) -> Option<String> {
    let members = object.properties();
    let at = members.iter().rposition(|found| found.decoded_name().as_deref() == Some(name))?;
    let ours = span(&members[at].clone().into());
    let comma_of = |at: usize| members[at].trailing_comma().map(|comma| span(&comma.into()));
    let comma_before = at.checked_sub(1).and_then(comma_of);
    let comma_behind = comma_of(at);
    let object_start = span(&object.clone().into()).start;
    let from = comma_before.as_ref().map_or(object_start + 1, |comma| comma.end);
    let end = comma_behind.as_ref().map_or(ours.end, |comma| comma.end);
    let is_between = |node: &CstNode| (from..ours.start).contains(&span(node).start);
    let comment = object
        .children()
        .into_iter()
        .filter(is_between)
        .filter_map(|node| node.as_comment())
        .last();
    let start = match comment {
        None => from,
        Some(comment) => {
            let start = span(&comment.clone().into()).end;
            // The text that follows must not become part of a line comment.
            let line_ends =
                text[end..].split('\n').next().is_some_and(|rest| rest.trim().is_empty());
            let next_line = text[start..].find('\n').map_or(start, |line| start + line + 1);
            if comment.is_line_comment() && !line_ends { next_line } else { start }
        }
    };
    let mut done = format!("{}{}", &text[..start], &text[end..]);
    // The comma before the member belonged to it, unless there was one after it as well.
    if let (None, Some(comma)) = (comma_behind, comma_before) {
        done.remove(comma.start);
    }
    Some(done)
}

/// Adds a member to the end of an object. The comma follows the value before it, the member follows that value's
/// comments.
fn add(
    text: &str,
    root: &CstRootNode,
    object: &CstObject,
    name: &str,
    field: &EntryField,
) -> String {
    let layout = Layout::inside(text, root, object);
    let member = format!("{}: {}", Layout::quote(name), layout.render(field));
    let close = span(&object.clone().into()).end - 1;
    let is_space = |node: &CstNode| node.is_whitespace() || node.is_newline();
    let mut before_close = object.children().into_iter().rev().skip(1);
    let behind = before_close.find(|node| !is_space(node)).map_or(close, |node| span(&node).end);
    let last = object.properties().pop();
    let (comma_at, comma) = match &last {
        Some(last) if last.trailing_comma().is_none() => (span(&last.clone().into()).end, ","),
        Some(_) | None => (behind, ""),
    };
    let (gap, tail) = layout.around_member(&text[behind..close], last.is_none());
    format!(
        "{}{comma}{}{gap}{member}{tail}{}",
        &text[..comma_at],
        &text[comma_at..behind],
        &text[behind..]
    )
}

pub(crate) fn with_value(text: &str, node: &CstNode, with: &str) -> String {
    let span = span(node);
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}
