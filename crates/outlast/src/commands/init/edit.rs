//! Adds, updates and removes one entry in a JSON document. Every other byte stays unchanged. The parser could add
//! members too, but would remove blank lines from the object and split an object on one line into many.

use jsonc_parser::cst::{CstNode, CstObject, CstRootNode};

use super::clients::old_name;
use super::json::{Refusal, member, parse, span};
use super::layout::{Field, Layout};

/// The name of our entry.
pub(super) const NAME: &str = "outlast";
/// The depth of the entry's variables in a document: in the container, in the entry, in its `env`.
const PATH_OF_VARIABLES: usize = 3;

/// The entry of this program.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Field,
    /// The variable that was given on the command line: it replaces the existing one.
    pub(super) given: Option<&'static str>,
}

/// Adds the entry to the object called `container`, or updates the existing one: adds missing members, replaces the
/// members that run this program, and keeps all others.
pub(super) fn put(text: &str, container: &'static str, entry: &Entry) -> Result<String, Refusal> {
    let members = [(container, Field::Map(vec![(NAME, entry.value.clone())]))];
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
            Err(Refusal::at(text, span(&value).start, why))
        }
        Some(_) => put_into(text.to_owned(), &[], &members, entry.given),
    }
}

/// Updates the object at this path.
fn put_into(
    mut text: String,
    path: &[&str],
    members: &[(&'static str, Field)],
    given: Option<&str>,
) -> Result<String, Refusal> {
    for (name, field) in members {
        let root = parse(&text)?;
        let Some(object) = object_at(&root, path) else { break };
        text = match (member(&object, name), field) {
            (Some(node), Field::Map(inner)) if node.as_object().is_some() => {
                put_into(text, &[path, &[name]].concat(), inner, given)?
            }
            (Some(node), _) if path.is_empty() => {
                let why = format!("`{name}` must be an object");
                return Err(Refusal::at(&text, span(&node).start, why));
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
    let word = Field::Text(NAME.to_owned());
    let put = put(before, container, &Entry { value: word.clone(), given: None });
    put.is_ok_and(|put| put == replaced(text, &entry, &word.value().to_string()))
}

/// Returns the entry, if there is one.
pub(super) fn ours(root: &CstRootNode, container: &str) -> Option<CstNode> {
    member(&object_at(root, &[container])?, NAME)
}

pub(crate) fn object_at(root: &CstRootNode, path: &[&str]) -> Option<CstObject> {
    path.iter().try_fold(root.object_value()?, |object, name| member(&object, name)?.as_object())
}

/// Removes the entry; `None` if there is none.
pub(super) fn take(text: &str, container: &str) -> Result<Option<String>, Refusal> {
    let mut done = None;
    loop {
        let text = done.as_deref().unwrap_or(text);
        let root = parse(text)?;
        match object_at(&root, &[container]).and_then(|place| taken(text, &place, NAME)) {
            Some(without) => done = Some(without),
            None => return Ok(done),
        }
    }
}

/// Sets the value of a member of the object at this path. Creates missing objects.
pub(crate) fn set(text: &str, path: &[&str], name: &str, field: &Field) -> Result<String, Refusal> {
    let root = parse(text)?;
    let Some(object) = object_at(&root, path) else {
        let Some((last, above)) = path.split_last() else {
            return Err(Refusal::at(text, 0, "the file must hold an object"));
        };
        let text = set(text, above, last, &Field::Map(Vec::new()))?;
        return set(&text, path, name, field);
    };
    Ok(match member(&object, name) {
        None => add(text, &root, &object, name, field),
        Some(node) if node.to_serde_value() == Some(field.value()) => text.to_owned(),
        Some(node) => {
            let layout = Layout::around(text, &root, span(&node).start);
            replaced(text, &node, &layout.rendered(field))
        }
    })
}

/// Removes the member from the object at this path, if it exists.
pub(crate) fn remove(text: &str, path: &[&str], name: &str) -> Result<String, Refusal> {
    let root = parse(text)?;
    let without = object_at(&root, path).and_then(|object| taken(text, &object, name));
    Ok(without.unwrap_or_else(|| text.to_owned()))
}

/// Returns the text without the object's last member of this name. Keeps comments before the member, which the parser's
/// own removal would remove.
fn taken(text: &str, object: &CstObject, name: &str) -> Option<String> {
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
fn add(text: &str, root: &CstRootNode, object: &CstObject, name: &str, field: &Field) -> String {
    let layout = Layout::inside(text, root, object);
    let member = format!("{}: {}", Layout::quoted(name), layout.rendered(field));
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

fn replaced(text: &str, node: &CstNode, with: &str) -> String {
    let span = span(node);
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}
