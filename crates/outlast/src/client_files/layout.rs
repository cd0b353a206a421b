//! The layout of a document, so that added text looks like the rest of it.

use jsonc_parser::cst::{CstObject, CstRootNode};
use serde_json::Value;

use super::json::span;

/// The layout of new text at one place.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// True if members share a line, instead of having a line each.
    is_one_line: bool,
    pub(crate) eol: &'static str,
    /// The indent of one level.
    unit: String,
    /// The white space before a member here.
    indent: String,
}

impl Layout {
    /// Returns the layout of a document that is still to be written, after this text.
    pub(crate) fn fresh(text: &str) -> Self {
        Self { is_one_line: false, eol: eol(text), unit: "  ".to_owned(), indent: String::new() }
    }

    /// Returns the layout of a new member of this object.
    pub(crate) fn inside(text: &str, root: &CstRootNode, object: &CstObject) -> Self {
        let start = span(&object.clone().into()).start;
        let members = object.properties();
        let is_one_line = match (members.is_empty(), root.object_value()) {
            (false, _) => !object.to_string().contains('\n'),
            // An empty object has no layout; the document has.
            (true, Some(root)) => !root.properties().is_empty() && !root.to_string().contains('\n'),
            (true, None) => false,
        };
        let around = Self::around(text, root, start);
        let starts = members.iter().rev().map(|member| span(&member.clone().into()).start);
        let indent = starts.into_iter().find_map(|start| own_line(text, start));
        let indent =
            indent.map_or_else(|| format!("{}{}", around.indent, around.unit), str::to_owned);
        Self { is_one_line, indent, ..around }
    }

    /// Returns the layout of an existing value here.
    pub(crate) fn around(text: &str, root: &CstRootNode, at: usize) -> Self {
        let value = root.value().map(|value| value.to_string()).unwrap_or_default();
        let indent = line_indent(text, at).to_owned();
        Self { is_one_line: !value.contains('\n'), eol: eol(text), unit: unit(text, root), indent }
    }

    /// Returns the white space before and after a new last member; `rest` is the space up to the closing brace.
    pub(crate) fn around_member(&self, rest: &str, only_member: bool) -> (String, String) {
        if self.is_one_line {
            return (if only_member { "" } else { " " }.to_owned(), String::new());
        }
        let gap = format!("{}{}", self.eol, self.indent);
        let closed = !only_member || rest.contains('\n');
        let outer = self.indent.strip_suffix(&self.unit).unwrap_or_default();
        (gap, if closed { String::new() } else { format!("{}{outer}", self.eol) })
    }

    /// Formats a value as text.
    pub(crate) fn render(&self, field: &EntryField) -> String {
        match field {
            EntryField::Text(text) => Self::quote(text),
            EntryField::List(items) => {
                let items: Vec<String> = items.iter().map(|item| Self::quote(item)).collect();
                format!("[{}]", items.join(", "))
            }
            EntryField::Map(members) => self.object(members),
        }
    }

    /// Formats an object as text.
    pub(crate) fn object(&self, members: &[(&str, EntryField)]) -> String {
        let Self { eol, unit, indent, .. } = self;
        let inner = Self { indent: format!("{indent}{unit}"), ..self.clone() };
        let members: Vec<String> = members
            .iter()
            .map(|(name, field)| format!("{}: {}", Self::quote(name), inner.render(field)))
            .collect();
        if self.is_one_line || members.is_empty() {
            return format!("{{{}}}", members.join(", "));
        }
        let members = members.join(&format!(",{eol}{indent}{unit}"));
        format!("{{{eol}{indent}{unit}{members}{eol}{indent}}}")
    }

    /// Formats a text in quotes.
    pub(crate) fn quote(text: &str) -> String {
        serde_json::Value::from(text).to_string()
    }
}

fn eol(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Returns the indent of one level in this document.
fn unit(text: &str, root: &CstRootNode) -> String {
    let Some(root) = root.object_value() else { return "  ".to_owned() };
    let mut starts = root.properties().into_iter().map(|member| span(&member.into()).start);
    let first = starts.find_map(|start| own_line(text, start));
    let outer = line_indent(text, span(&root.into()).start);
    let unit = first.map(|indent| indent.strip_prefix(outer).unwrap_or(indent));
    unit.filter(|unit| !unit.is_empty()).unwrap_or("  ").to_owned()
}

/// Returns the white space before this position, if nothing else is on its line before it.
fn own_line(text: &str, at: usize) -> Option<&str> {
    let line = text[..at].rfind('\n')? + 1;
    let before = &text[line..at];
    before.chars().all(|character| matches!(character, ' ' | '\t')).then_some(before)
}

/// Returns the white space at the start of this position's line.
fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
    let length = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..length]
}

#[derive(Clone, Debug)]
pub(crate) enum EntryField {
    Text(String),
    List(Vec<String>),
    /// Names and values, in the order people expect.
    Map(Vec<(&'static str, EntryField)>),
}

impl EntryField {
    /// Returns its meaning as JSON.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::List(items) => items.as_slice().into(),
            Self::Map(members) => members.iter().map(|(name, it)| (*name, it.value())).collect(),
        }
    }
}
