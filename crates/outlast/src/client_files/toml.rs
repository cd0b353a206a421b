//! Codex's TOML file: parsing, the lines of one server's tables, and changes to those lines alone.

use std::ops::Range;

use serde_json::Value;
use toml_edit::{Document, DocumentMut, InlineTable, Item, Key, TableLike, Value as TomlValue};

use super::json::EditRefusal;
use super::layout::EntryField;
use super::place::Change;

/// The table that contains the entry's table.
pub(crate) const CONTAINER: &str = "mcp_servers";

/// Parses a document.
fn parse(text: &str) -> Result<DocumentMut, EditRefusal> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let at = error.span().map_or(text.len(), |span| span.start);
        let why = error.message().lines().next().unwrap_or("this is not TOML").to_owned();
        EditRefusal::at(text, at, why)
    })
}

/// Returns the meaning of a text, as JSON.
pub(crate) fn meaning(text: &str) -> Result<Value, EditRefusal> {
    parse(text)?;
    let table: toml::Table =
        text.parse().map_err(|_| EditRefusal::at(text, 0, "this is not TOML"))?;
    serde_json::to_value(table).map_err(|error| EditRefusal::at(text, 0, error.to_string()))
}

/// Returns the lines of the entry, without the end of the last one; `None` if there is no entry.
pub(crate) fn span(text: &str, path: &[String]) -> Result<Option<Range<usize>>, EditRefusal> {
    let Ok(document) = Document::parse(text) else {
        return parse(text).map(|_| None);
    };
    let mut parts = Parts { ours: Vec::new(), others: Vec::new() };
    parts.read(document.as_table(), Some(path));
    let start = parts.ours.iter().map(|part| part.start).min();
    let end = parts.ours.iter().map(|part| part.end).max();
    let (Some(start), Some(end)) = (start, end) else { return Ok(None) };
    let start = text[..start].rfind('\n').map_or(0, |line| line + 1);
    let end = text[end..].find('\n').map_or(text.len(), |line| end + line);
    let end = if text[..end].ends_with('\r') { end - 1 } else { end };
    if parts.others.iter().any(|other| other.start < end && start < other.end) {
        let why = "this entry is not on its own lines";
        return Err(EditRefusal::at(text, start, why));
    }
    Ok(Some(start..end))
}

/// The positions of the parts of the entry, and of all others.
struct Parts {
    ours: Vec<Range<usize>>,
    others: Vec<Range<usize>>,
}

impl Parts {
    /// Collects the parts of this table. `path` leads from it to the entry; it is empty inside the entry and `None` if
    /// it leads elsewhere.
    fn read(&mut self, table: &dyn TableLike, path: Option<&[String]>) {
        for (name, item) in table.iter() {
            let path = match path {
                Some([first, rest @ ..]) if first == name => Some(rest),
                Some([]) => path,
                Some(_) | None => None,
            };
            let key = table.key(name).and_then(Key::span);
            // The key of a table is part of its header, unless it is a separate key.
            let key = key.filter(|_| !matches!(item, Item::Table(_)) || path != Some(&[]));
            let is_way = path.is_some_and(|path| !path.is_empty());
            let place = if path == Some(&[]) { &mut self.ours } else { &mut self.others };
            match item {
                Item::Table(inner) => {
                    if !is_way || !inner.is_implicit() {
                        place.extend(inner.span().filter(|_| !inner.is_dotted()));
                    }
                    self.read(inner, path);
                }
                Item::Value(value) if is_way => {
                    place.extend(key);
                    if let Some(inner) = value.as_inline_table() {
                        self.read(inner, path);
                    }
                }
                Item::None | Item::Value(_) | Item::ArrayOfTables(_) => {
                    place.extend(key);
                    place.extend(item.span());
                }
            }
        }
    }
}

/// Returns the text with these changes inside the entry.
pub(crate) fn change(
    text: &str,
    path: &[String],
    changes: &[Change],
) -> Result<String, EditRefusal> {
    let Some(span) = span(text, path)? else { return Ok(text.to_owned()) };
    // The lines of one entry are a document by themselves, so no other line goes through the library.
    let lines = &text[span.clone()];
    let mut document = parse(&lines.replace("\r\n", "\n"))?;
    let Some(table) = entry(&mut document, path) else {
        return Err(EditRefusal::at(text, span.start, "this entry must be a table"));
    };
    for change in changes {
        carry_out(table, change);
    }
    let lines = with_line_ends_of(text, document.to_string());
    // The end of the last line already follows the entry.
    let lines = lines.trim_end_matches(['\r', '\n']);
    Ok(format!("{}{lines}{}", &text[..span.start], &text[span.end..]))
}

/// Adds an entry as a table at the end.
pub(crate) fn append(text: &str, name: &str, entry: &EntryField) -> Result<String, EditRefusal> {
    parse(text)?;
    let gap = match (text.is_empty(), text.ends_with('\n')) {
        (true, _) => "",
        (false, true) => "\n",
        (false, false) => "\n\n",
    };
    let block = block(&format!("{CONTAINER}.{name}"), entry);
    let done = format!("{text}{}", with_line_ends_of(text, format!("{gap}{block}")));
    // A table of that name may be written in a way to which nothing can be added.
    parse(&done).map(|_| done).map_err(|_| {
        let why = format!(
            "no [{CONTAINER}.{name}] can be added, because `{CONTAINER}` is written on one line"
        );
        EditRefusal::at(text, text.len(), why)
    })
}

/// Returns the table at this path as text.
fn block(path: &str, table: &EntryField) -> String {
    let mut lines = format!("[{path}]\n");
    let EntryField::Map(members) = table else { return lines };
    for (name, field) in members {
        lines.push_str(&match field {
            EntryField::Text(_) | EntryField::List(_) => format!("{name} = {}\n", value(field)),
            // Comes last, so that its header does not absorb the other members.
            EntryField::Map(_) => format!("\n{}", block(&format!("{path}.{name}"), field)),
        });
    }
    lines
}

/// Removes the table of this name from the table at this path.
pub(crate) fn remove(text: &str, path: &[&str], name: &str) -> Result<String, EditRefusal> {
    let mut document = exact(text)?;
    let table = path.iter().try_fold(document.as_item_mut(), |item, part| item.get_mut(part));
    if let Some(table) = table.and_then(Item::as_table_like_mut) {
        table.remove(name);
    }
    Ok(with_line_ends_of(text, document.to_string()))
}

fn carry_out(table: &mut dyn TableLike, Change { within, name, to }: &Change) {
    if let Some(member) = within {
        if to.is_some() && table.get(member).and_then(Item::as_table_like).is_none() {
            table.insert(member, InlineTable::new().into());
        }
        if let Some(inner) = table.get_mut(member).and_then(Item::as_table_like_mut) {
            assign_or_remove(inner, name, to.as_ref());
        }
        return;
    }
    assign_or_remove(table, name, to.as_ref());
}

fn assign_or_remove(table: &mut dyn TableLike, name: &str, to: Option<&EntryField>) {
    match to {
        Some(to) => assign(table, name, to),
        None => drop(table.remove(name)),
    }
}

/// Returns the entry in a document with only its lines: by its whole path, or by its name under an earlier header.
fn entry<'a>(document: &'a mut DocumentMut, path: &[String]) -> Option<&'a mut dyn TableLike> {
    let (name, above) = path.split_last()?;
    let is_whole = above.first().is_some_and(|first| document.contains_key(first));
    let mut item = document.as_item_mut();
    for part in if is_whole { above } else { &[] } {
        item = item.get_mut(part)?;
    }
    item.get_mut(name)?.as_table_like_mut()
}

/// Parses the document for editing. A document that would not be written as it was read is left unchanged.
fn exact(text: &str) -> Result<DocumentMut, EditRefusal> {
    let document = parse(&text.replace("\r\n", "\n"))?;
    if with_line_ends_of(text, document.to_string()) == text {
        return Ok(document);
    }
    Err(EditRefusal::at(text, 0, "this file cannot be changed without touching other lines of it"))
}

/// Converts our text to the line ends of the file. The library writes one kind only.
fn with_line_ends_of(file: &str, text: String) -> String {
    if file.contains("\r\n") { text.replace('\n', "\r\n") } else { text }
}

/// Sets the value of a table's member.
fn assign(table: &mut dyn TableLike, name: &str, field: &EntryField) {
    match table.get_mut(name) {
        Some(item) => bring_up_to_date(item, field),
        None => drop(table.insert(name, value(field).into())),
    }
}

fn bring_up_to_date(item: &mut Item, field: &EntryField) {
    let wanted = value(field);
    let same = |found: &TomlValue| match (found, field) {
        (TomlValue::String(found), EntryField::Text(wanted)) => found.value() == wanted,
        (TomlValue::Array(found), EntryField::List(wanted)) => {
            found.iter().map(TomlValue::as_str).eq(wanted.iter().map(|text| Some(text.as_str())))
        }
        _ => false,
    };
    match item.as_value_mut() {
        Some(found) if same(found) => {}
        Some(found) => {
            let decor = found.decor().clone();
            *found = wanted;
            *found.decor_mut() = decor;
        }
        None => *item = wanted.into(),
    }
}

/// Returns a value as the library writes it.
fn value(field: &EntryField) -> TomlValue {
    match field {
        EntryField::Text(text) => text.as_str().into(),
        EntryField::List(items) => items.iter().map(String::as_str).collect(),
        EntryField::Map(members) => {
            TomlValue::InlineTable(members.iter().map(|(name, it)| (*name, value(it))).collect())
        }
    }
}
