//! One entry in a JSON document: put in, brought up to date, taken out. Every other byte stays as it is.

use std::ops::Range;

use super::entry::{Entry, Field};
use super::json::{Kind, LineComment, Node, Refusal, last_comment, parse};
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
        let root = object(&done, parse(&done)?)?;
        let Some(ours) = root.member(container).and_then(|node| node.member(NAME)) else { break };
        done = match (ours.member(name), field) {
            (None, _) => add(&done, &root, ours, name, &|layout: &Layout| layout.field(field)),
            (Some(node), Field::Map(wanted)) if node.members().is_some() => {
                add_missing(&done, container, name, wanted, entry.given)?
            }
            (Some(node), _) if is(node, field) => done,
            (Some(node), _) => {
                let layout = Layout::around(&done, &root, node.span.start);
                replaced(&done, &node.span, &layout.field(field))
            }
        };
    }
    parse(&done)?;
    Ok(done)
}

/// Puts an entry in that is text already, where none is; `None` when the document has no place for it.
pub(super) fn put_raw(text: &str, container: &str, raw: &str) -> Option<String> {
    let done = put_new(text, container, &|_: &Layout| raw.to_owned()).ok()?;
    (done != text).then_some(done)
}

/// The entry as it stands there.
pub(super) fn raw<'a>(text: &'a str, container: &str) -> Option<&'a str> {
    let root = parse(text).ok()??;
    text.get(root.member(container)?.member(NAME)?.span.clone())
}

/// Takes the entry out; `None` when there is none.
pub(super) fn take(text: &str, container: &str) -> Result<Option<String>, Refusal> {
    let mut done = None;
    loop {
        let text = done.as_deref().unwrap_or(text);
        let Some(root) = parse(text)? else { return Ok(done) };
        let place = root.member(container);
        match place.and_then(|place| taken(text, place)) {
            Some(without) => done = Some(without),
            None => return Ok(done),
        }
    }
}

type Render<'a> = &'a dyn Fn(&Layout) -> String;

/// Puts the entry in where none is. The same text where one is an object already.
fn put_new(text: &str, container: &str, render: Render<'_>) -> Result<String, Refusal> {
    let Some(root) = parse(text)? else {
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
    let root = object(text, Some(root))?;
    let done = match root.member(container) {
        None => add(text, &root, &root, container, &|layout| layout.nested(NAME, render)),
        Some(place) if place.members().is_none() => {
            let why = format!("`{container}` must be an object");
            return Err(Refusal::at(text, place.span.start, why));
        }
        Some(place) => match place.member(NAME) {
            None => add(text, &root, place, NAME, render),
            Some(ours) if ours.members().is_none() => {
                let layout = Layout::around(text, &root, ours.span.start);
                replaced(text, &ours.span, &render(&layout))
            }
            Some(_) => text.to_owned(),
        },
    };
    parse(&done)?;
    Ok(done)
}

fn object(text: &str, root: Option<Node>) -> Result<Node, Refusal> {
    match root {
        Some(root) if root.members().is_some() => Ok(root),
        Some(root) => {
            Err(Refusal::at(text, root.span.start, "`{` is expected: the file must hold an object"))
        }
        None => Err(Refusal::at(text, text.len(), "`{` is expected")),
    }
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
        let root = object(&done, parse(&done)?)?;
        let place = root.member(container).and_then(|node| node.member(NAME)?.member(field));
        let Some(place) = place else { continue };
        match place.member(name) {
            None => done = add(&done, &root, place, name, &|_| Layout::quoted(value)),
            Some(node) if given == Some(*name) && node.text() != Some(value) => {
                done = replaced(&done, &node.span, &Layout::quoted(value));
            }
            Some(_) => {}
        }
    }
    Ok(done)
}

/// Adds a member to the end of an object. The comma goes to the value before it, the member behind its comments.
fn add(text: &str, root: &Node, object: &Node, name: &str, render: Render<'_>) -> String {
    let members = object.members().unwrap_or_default();
    let close = object.span.end - 1;
    let layout = Layout::inside(text, root, object);
    let member = format!("{}: {}", Layout::quoted(name), render(&layout));
    let (before, comma, from) = match members.last() {
        None => (object.span.start + 1, "", object.span.start + 1),
        Some(last) => match last.comma {
            Some(comma) => (comma + 1, "", comma + 1),
            None => (last.value.span.end, ",", last.value.span.end),
        },
    };
    let behind = last_comment(text, from..close).map_or(before, |(end, _)| end);
    let (gap, tail) = layout.around_member(text, behind..close, members.is_empty());
    format!(
        "{}{comma}{}{gap}{member}{tail}{}",
        &text[..before],
        &text[before..behind],
        &text[behind..]
    )
}

fn replaced(text: &str, span: &Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}

/// Whether the value says what the field says.
fn is(node: &Node, field: &Field) -> bool {
    match (&node.kind, field) {
        (Kind::Text(text), Field::Text(wanted)) => text == wanted,
        (Kind::Array(items), Field::List(wanted)) => {
            items.iter().map(Node::text).eq(wanted.iter().map(|text| Some(text.as_str())))
        }
        _ => false,
    }
}

/// The text without the object's last member of our name.
fn taken(text: &str, object: &Node) -> Option<String> {
    let members = object.members()?;
    let at = members.iter().rposition(|member| member.name == NAME)?;
    let (ours, before) = (&members[at], at.checked_sub(1).map(|before| &members[before]));
    let from = before.and_then(|before| before.comma).map_or(object.span.start, |comma| comma) + 1;
    let end = ours.comma.map_or(ours.value.span.end, |comma| comma + 1);
    let start = match last_comment(text, from..ours.start) {
        None => from,
        Some((start, LineComment::No)) => start,
        Some((start, LineComment::Yes)) => {
            // What follows must not become part of the comment.
            let line_ends =
                text[end..].split('\n').next().is_some_and(|rest| rest.trim().is_empty());
            let next_line = text[start..].find('\n').map_or(start, |line| start + line + 1);
            if line_ends { start } else { next_line }
        }
    };
    let mut done = replaced(text, &(start..end), "");
    // The comma in front was ours, unless one stood behind as well.
    if let (None, Some(comma)) = (ours.comma, before.and_then(|before| before.comma)) {
        done.remove(comma);
    }
    Some(done)
}
