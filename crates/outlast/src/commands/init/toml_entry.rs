//! The entry of this program in Codex's TOML file: a table at the end if it is new, changed in place later.

use toml_edit::{DocumentMut, Item, TableLike};

use super::clients::old_name;
use super::json_entry::{EntryValue, NAME};
use crate::client_files::json::JsonRefusal;
use crate::client_files::layout::EntryField;
use crate::client_files::toml::{CONTAINER, assign, exact, parse, value, with_line_ends_of};

/// Adds the entry, or updates the existing one.
pub(super) fn put(text: &str, entry: &EntryValue) -> Result<String, JsonRefusal> {
    if ours(&parse(text)?).is_none() {
        let block = block(&format!("{CONTAINER}.{NAME}"), &entry.value);
        let added = with_line_ends_of(text, format!("{}{block}", gap(text)));
        let done = format!("{text}{added}");
        // A table of that name may be written in a way to which nothing can be added.
        return parse(&done).map(|_| done).map_err(|_| {
            let why = format!("because `{CONTAINER}` is written on one line");
            JsonRefusal::at(
                text,
                text.len(),
                format!("no [{CONTAINER}.{NAME}] can be added, {why}"),
            )
        });
    }
    let mut document = exact(text)?;
    let table = document.get_mut(CONTAINER).and_then(|servers| servers.get_mut(NAME));
    let Some(table) = table.and_then(Item::as_table_like_mut) else {
        return Err(JsonRefusal::at(text, 0, format!("`{CONTAINER}.{NAME}` must be a table")));
    };
    put_into(table, &entry.value, entry.given, false);
    Ok(with_line_ends_of(text, document.to_string()))
}

/// Updates a table. A variable that a person set to another value stays, unless a new value is given.
fn put_into(
    table: &mut dyn TableLike,
    wanted: &EntryField,
    given: Option<&str>,
    are_variables: bool,
) {
    let EntryField::Map(members) = wanted else { return };
    for (name, field) in members {
        let is_there =
            table.contains_key(name) || old_name(name).is_some_and(|old| table.contains_key(old));
        match (table.get_mut(name).and_then(Item::as_table_like_mut), field) {
            (Some(inner), EntryField::Map(_)) => put_into(inner, field, given, true),
            _ if is_there && are_variables && given != Some(*name) => {}
            _ => assign(table, name, field),
        }
    }
}

/// Removes the entry; `None` if there is none.
pub(super) fn take(text: &str) -> Result<Option<String>, JsonRefusal> {
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
pub(super) fn command(text: &str) -> Result<Option<String>, JsonRefusal> {
    let document = parse(text)?;
    let command = ours(&document).map(|ours| ours.get("command").and_then(Item::as_str));
    Ok(command.map(|command| command.unwrap_or_default().to_owned()))
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

fn ours(document: &DocumentMut) -> Option<&dyn TableLike> {
    document.get(CONTAINER)?.as_table_like()?.get(NAME)?.as_table_like()
}

/// Returns a blank line before the added text, if it needs one.
fn gap(text: &str) -> &'static str {
    match (text.is_empty(), text.ends_with('\n')) {
        (true, _) => "",
        (false, true) => "\n",
        (false, false) => "\n\n",
    }
}
