//! The entry of this program in a client's JSON file: adds, updates and removes it.

use jsonc_parser::cst::{CstNode, CstRootNode};

use super::clients::old_name;
use crate::client_files::json::{
    JsonRefusal, member, object_at, parse, set, span, with_value, without_member,
};
use crate::client_files::layout::{EntryField, Layout};

/// The name of our entry.
pub(super) const NAME: &str = "outlast";
/// The depth of the entry's variables in a document: in the container, in the entry, in its `env`.
const PATH_OF_VARIABLES: usize = 3;

/// The entry of this program.
#[derive(Clone, Debug)]
pub(super) struct EntryValue {
    pub(super) value: EntryField,
    /// The variable that was given on the command line: it replaces the existing one.
    pub(super) given: Option<&'static str>,
}

/// Adds the entry to the object called `container`, or updates the existing one: adds missing members, replaces the
/// members that run this program, and keeps all others.
pub(super) fn put(
    text: &str,
    container: &'static str,
    entry: &EntryValue,
) -> Result<String, JsonRefusal> {
    let members = [(container, EntryField::Map(vec![(NAME, entry.value.clone())]))];
    let root = parse(text)?;
    match root.value() {
        None => {
            let layout = Layout::fresh(text);
            let is_empty = text.trim_start_matches('\u{feff}').is_empty();
            let gap = if is_empty || text.ends_with('\n') { "" } else { layout.eol };
            Ok(format!("{text}{gap}{}{}", layout.object(&members), layout.eol))
        }
        Some(value) if value.as_object().is_none() => {
            let why = "`{` is expected: the file must hold an object";
            Err(JsonRefusal::at(text, span(&value).start, why))
        }
        Some(_) => put_into(text.to_owned(), &[], &members, entry.given),
    }
}

/// Updates the object at this path.
fn put_into(
    mut text: String,
    path: &[&str],
    members: &[(&'static str, EntryField)],
    given: Option<&str>,
) -> Result<String, JsonRefusal> {
    for (name, field) in members {
        let root = parse(&text)?;
        let Some(object) = object_at(&root, path) else { break };
        text = match (member(&object, name), field) {
            (Some(node), EntryField::Map(inner)) if node.as_object().is_some() => {
                put_into(text, &[path, &[name]].concat(), inner, given)?
            }
            (Some(node), _) if path.is_empty() => {
                let why = format!("`{name}` must be an object");
                return Err(JsonRefusal::at(&text, span(&node).start, why));
            }
            // A variable that a person set to another value stays, unless a new value is given.
            (Some(_), _) if path.len() == PATH_OF_VARIABLES && given != Some(*name) => text,
            (None, _) if old_name(name).is_some_and(|old| member(&object, old).is_some()) => text,
            (Some(_) | None, _) => set(&text, path, name, field)?,
        };
    }
    Ok(text)
}

/// Returns true if the text is `before` with only our entry added.
pub(super) fn is_only_added(before: &str, text: &str, container: &'static str) -> bool {
    let (Ok(old), Ok(new)) = (parse(before), parse(text)) else { return false };
    let had_entry = ours(&old, container).is_some_and(|entry| entry.as_object().is_some());
    let (false, Some(entry)) = (had_entry, ours(&new, container)) else { return false };
    // The entry's content does not matter: the same word replaces it in both.
    let word = EntryField::Text(NAME.to_owned());
    let put = put(before, container, &EntryValue { value: word.clone(), given: None });
    put.is_ok_and(|put| put == with_value(text, &entry, &word.value().to_string()))
}

/// Returns the entry, if there is one.
pub(super) fn ours(root: &CstRootNode, container: &str) -> Option<CstNode> {
    member(&object_at(root, &[container])?, NAME)
}

/// Removes the entry; `None` if there is none.
pub(super) fn take(text: &str, container: &str) -> Result<Option<String>, JsonRefusal> {
    let mut done = None;
    loop {
        let text = done.as_deref().unwrap_or(text);
        let root = parse(text)?;
        match object_at(&root, &[container]).and_then(|place| without_member(text, &place, NAME)) {
            Some(without) => done = Some(without),
            None => return Ok(done),
        }
    }
}
