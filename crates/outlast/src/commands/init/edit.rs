//! One entry in a JSON document: put in, brought up to date, taken out. Every other byte stays as it is. The parser could
//! add members too, but would take blank lines out of the object and break an object on one line into many.

use jsonc_parser::cst::{CstNode, CstObject, CstRootNode};

use super::entry::{Entry, Field};
use super::json::{Refusal, member, parse, span};
use super::layout::Layout;

/// The name of our entry.
pub(super) const NAME: &str = "outlast";

/// Puts the entry into the object called `container`, or brings the one that is there up to date: what it lacks is
/// added, what runs this program is replaced, everything else in it stays.
pub(super) fn put(text: &str, container: &str, entry: &Entry) -> Result<String, Refusal> {
    let mut done = put_new(text, container, &|layout: &Layout| layout.entry(entry))?;
    if done != text {
        return Ok(done);
    }
    for (name, field) in &entry.fields {
        let root = parse(&done)?;
        let Some(ours) = ours(&root, container).and_then(|ours| ours.as_object()) else { break };
        done = match (member(&ours, name), field) {
            (None, _) => add(&done, &root, &ours, name, &|layout: &Layout| layout.field(field)),
            (Some(node), Field::Map(wanted)) if node.as_object().is_some() => {
                add_missing(&done, container, name, wanted, entry.given)?
            }
            (Some(node), _) if node.to_serde_value() == Some(field.value()) => done,
            (Some(node), _) => {
                let layout = Layout::around(&done, &root, span(&node).start);
                replaced(&done, &node, &layout.field(field))
            }
        };
    }
    Ok(done)
}

/// Puts an entry in that is text already, where none is; `None` when the document has no place for it.
pub(super) fn put_raw(text: &str, container: &str, raw: &str) -> Option<String> {
    let done = put_new(text, container, &|_: &Layout| raw.to_owned()).ok()?;
    (done != text).then_some(done)
}

/// The entry, if there is one.
pub(super) fn ours(root: &CstRootNode, container: &str) -> Option<CstNode> {
    member(&member(&root.object_value()?, container)?.as_object()?, NAME)
}

/// Takes the entry out; `None` when there is none.
pub(super) fn take(text: &str, container: &str) -> Result<Option<String>, Refusal> {
    let mut done = None;
    loop {
        let text = done.as_deref().unwrap_or(text);
        let root = parse(text)?;
        let place = root.object_value().and_then(|root| member(&root, container)?.as_object());
        match place.and_then(|place| taken(text, &place)) {
            Some(without) => done = Some(without),
            None => return Ok(done),
        }
    }
}

/// The text without the object's last member of our name. Comments in front of the member stay, which the parser's own
/// removal takes out.
fn taken(text: &str, object: &CstObject) -> Option<String> {
    let members = object.properties();
    let at = members.iter().rposition(|found| found.decoded_name().as_deref() == Some(NAME))?;
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
            // What follows must not become part of a line's comment.
            let line_ends =
                text[end..].split('\n').next().is_some_and(|rest| rest.trim().is_empty());
            let next_line = text[start..].find('\n').map_or(start, |line| start + line + 1);
            if comment.is_line_comment() && !line_ends { next_line } else { start }
        }
    };
    let mut done = format!("{}{}", &text[..start], &text[end..]);
    // The comma in front was ours, unless one stood behind as well.
    if let (None, Some(comma)) = (comma_behind, comma_before) {
        done.remove(comma.start);
    }
    Some(done)
}

type Render<'a> = &'a dyn Fn(&Layout) -> String;

/// Puts the entry in where none is. The same text where one is an object already.
fn put_new(text: &str, container: &str, render: Render<'_>) -> Result<String, Refusal> {
    let root = parse(text)?;
    let Some(value) = root.value() else {
        let layout = Layout::fresh(text);
        let eol = layout.eol();
        let gap = if text.trim_start_matches('\u{feff}').is_empty() || text.ends_with('\n') {
            ""
        } else {
            eol
        };
        let document = layout.nested(container, &|layout| layout.nested(NAME, render));
        return Ok(format!("{text}{gap}{document}{eol}"));
    };
    let refused = |node: &CstNode, why: String| Refusal::at(text, span(node).start, why);
    let Some(object) = value.as_object() else {
        return Err(refused(&value, "`{` is expected: the file must hold an object".to_owned()));
    };
    let Some(place) = member(&object, container) else {
        return Ok(add(text, &root, &object, container, &|layout| layout.nested(NAME, render)));
    };
    let Some(object) = place.as_object() else {
        return Err(refused(&place, format!("`{container}` must be an object")));
    };
    Ok(match member(&object, NAME) {
        None => add(text, &root, &object, NAME, render),
        Some(ours) if ours.as_object().is_none() => {
            let layout = Layout::around(text, &root, span(&ours).start);
            replaced(text, &ours, &render(&layout))
        }
        Some(_) => text.to_owned(),
    })
}

fn add_missing(
    text: &str,
    container: &str,
    field: &str,
    wanted: &[(&'static str, String)],
    given: Option<&str>,
) -> Result<String, Refusal> {
    let mut done = text.to_owned();
    for (name, value) in wanted {
        let root = parse(&done)?;
        let place = ours(&root, container).and_then(|ours| member(&ours.as_object()?, field));
        let Some(place) = place.and_then(|place| place.as_object()) else { continue };
        match member(&place, name) {
            None => done = add(&done, &root, &place, name, &|_| Layout::quoted(value)),
            Some(node) if given == Some(*name) => {
                done = replaced(&done, &node, &Layout::quoted(value));
            }
            Some(_) => {}
        }
    }
    Ok(done)
}

/// Adds a member to the end of an object. The comma goes to the value before it, the member behind its comments.
fn add(
    text: &str,
    root: &CstRootNode,
    object: &CstObject,
    name: &str,
    render: Render<'_>,
) -> String {
    let layout = Layout::inside(text, root, object);
    let member = format!("{}: {}", Layout::quoted(name), render(&layout));
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
