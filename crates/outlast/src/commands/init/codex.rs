//! The entry in Codex's TOML file: a table at the end if it is new, changed in place later.

use toml_edit::{DocumentMut, Item, TableLike, Value};

use super::clients::old_name;
use super::edit::{Entry, NAME};
use super::json::Refusal;
use super::layout::Field;

/// The table that contains the entry's table.
pub(crate) const CONTAINER: &str = "mcp_servers";

/// Adds the entry, or updates the existing one.
pub(super) fn put(text: &str, entry: &Entry) -> Result<String, Refusal> {
    if ours(&parse(text)?).is_none() {
        let block = block(&format!("{CONTAINER}.{NAME}"), &entry.value);
        let added = with_line_ends_of(text, format!("{}{block}", gap(text)));
        let done = format!("{text}{added}");
        // A table of that name may be written in a way to which nothing can be added.
        return parse(&done).map(|_| done).map_err(|_| {
            let why = format!("because `{CONTAINER}` is written on one line");
            Refusal::at(text, text.len(), format!("no [{CONTAINER}.{NAME}] can be added, {why}"))
        });
    }
    let mut document = exact(text)?;
    let table = document.get_mut(CONTAINER).and_then(|servers| servers.get_mut(NAME));
    let Some(table) = table.and_then(Item::as_table_like_mut) else {
        return Err(Refusal::at(text, 0, format!("`{CONTAINER}.{NAME}` must be a table")));
    };
    put_into(table, &entry.value, entry.given, false);
    Ok(with_line_ends_of(text, document.to_string()))
}

/// Updates a table. A variable that a person set to another value stays, unless a new value is given.
fn put_into(table: &mut dyn TableLike, wanted: &Field, given: Option<&str>, are_variables: bool) {
    let Field::Map(members) = wanted else { return };
    for (name, field) in members {
        let is_there =
            table.contains_key(name) || old_name(name).is_some_and(|old| table.contains_key(old));
        match (table.get_mut(name).and_then(Item::as_table_like_mut), field) {
            (Some(inner), Field::Map(_)) => put_into(inner, field, given, true),
            _ if is_there && are_variables && given != Some(*name) => {}
            _ => assign(table, name, field),
        }
    }
}

/// Removes the entry; `None` if there is none.
pub(super) fn take(text: &str) -> Result<Option<String>, Refusal> {
    if ours(&parse(text)?).is_none() {
        return Ok(None);
    }
    let mut document = exact(text)?;
    let servers = document.get_mut(CONTAINER).and_then(Item::as_table_like_mut);
    servers.and_then(|servers| servers.remove(NAME));
    Ok(Some(with_line_ends_of(text, document.to_string())))
}

/// Returns true if the text is `before` with only our entry after it.
pub(super) fn is_only_added(before: &str, text: &str) -> bool {
    let Some(added) = text.strip_prefix(before) else { return false };
    let Ok(Ok(added)) = parse(added).map(|added| added.to_string().parse::<toml::Table>()) else {
        return false;
    };
    let only = |table: &toml::Table, name: &str| table.len() == 1 && table.contains_key(name);
    let servers = added.get(CONTAINER).and_then(toml::Value::as_table);
    only(&added, CONTAINER) && servers.is_some_and(|servers| only(servers, NAME))
}

/// Returns the command of the entry, if there is one.
pub(super) fn command(text: &str) -> Result<Option<String>, Refusal> {
    let document = parse(text)?;
    let command = ours(&document).map(|ours| ours.get("command").and_then(Item::as_str));
    Ok(command.map(|command| command.unwrap_or_default().to_owned()))
}

/// Returns the table at this path as text.
fn block(path: &str, table: &Field) -> String {
    let mut lines = format!("[{path}]\n");
    let Field::Map(members) = table else { return lines };
    for (name, field) in members {
        lines.push_str(&match field {
            Field::Text(_) | Field::List(_) => format!("{name} = {}\n", value(field)),
            // Comes last, so that its header does not absorb the other members.
            Field::Map(_) => format!("\n{}", block(&format!("{path}.{name}"), field)),
        });
    }
    lines
}

pub(crate) fn parse(text: &str) -> Result<DocumentMut, Refusal> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let at = error.span().map_or(text.len(), |span| span.start);
        let why = error.message().lines().next().unwrap_or("this is not TOML").to_owned();
        Refusal::at(text, at, why)
    })
}

fn ours(document: &DocumentMut) -> Option<&dyn TableLike> {
    document.get(CONTAINER)?.as_table_like()?.get(NAME)?.as_table_like()
}

/// Parses the document for editing. A document that would not be written as it was read is left unchanged.
fn exact(text: &str) -> Result<DocumentMut, Refusal> {
    let document = parse(&text.replace("\r\n", "\n"))?;
    if with_line_ends_of(text, document.to_string()) == text {
        return Ok(document);
    }
    Err(Refusal::at(text, 0, "this file cannot be changed without touching other lines of it"))
}

/// Converts our text to the line ends of the file. The library writes one kind only.
pub(crate) fn with_line_ends_of(file: &str, text: String) -> String {
    if file.contains("\r\n") { text.replace('\n', "\r\n") } else { text }
}

/// Sets the value of a table's member.
pub(crate) fn assign(table: &mut dyn TableLike, name: &str, field: &Field) {
    match table.get_mut(name) {
        Some(item) => bring_up_to_date(item, field),
        None => drop(table.insert(name, value(field).into())),
    }
}

fn bring_up_to_date(item: &mut Item, field: &Field) {
    let wanted = value(field);
    let same = |found: &Value| match (found, field) {
        (Value::String(found), Field::Text(wanted)) => found.value() == wanted,
        (Value::Array(found), Field::List(wanted)) => {
            found.iter().map(Value::as_str).eq(wanted.iter().map(|text| Some(text.as_str())))
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

fn value(field: &Field) -> Value {
    match field {
        Field::Text(text) => text.as_str().into(),
        Field::List(items) => items.iter().map(String::as_str).collect(),
        Field::Map(members) => {
            Value::InlineTable(members.iter().map(|(name, it)| (*name, value(it))).collect())
        }
    }
}

/// Returns a blank line before the added text, if it needs one.
fn gap(text: &str) -> &'static str {
    match (text.is_empty(), text.ends_with('\n')) {
        (true, _) => "",
        (false, true) => "\n",
        (false, false) => "\n\n",
    }
}
