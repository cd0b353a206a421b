//! JSON as clients keep it, with comments and trailing commas: what is where, so that text can be changed in place.

use std::ops::Range;

/// Deeper than any configuration; a bound for the stack.
const DEEPEST: usize = 128;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text(String),
    /// A number, `true`, `false` or `null`.
    Other,
}

/// A name and its value.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    /// Where the name begins.
    pub(super) start: usize,
    pub(super) value: Node,
    /// Where the comma after it stands, if there is one.
    pub(super) comma: Option<usize>,
}

impl Node {
    /// The members, if it is an object.
    pub(super) fn members(&self) -> Option<&[Member]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            Kind::Array(_) | Kind::Text(_) | Kind::Other => None,
        }
    }

    /// The member of this name; of several the last, as clients read it.
    pub(super) fn member(&self, name: &str) -> Option<&Node> {
        let found = self.members()?.iter().rfind(|member| member.name == name);
        found.map(|member| &member.value)
    }

    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Object(_) | Kind::Array(_) | Kind::Other => None,
        }
    }
}

/// Why a text cannot be changed, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub(super) struct Refusal {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) why: String,
}

impl Refusal {
    /// At this byte.
    pub(super) fn at(text: &str, at: usize, why: impl Into<String>) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
        Self { line, column, why: why.into() }
    }
}

/// Reads a document; `None` when nothing but space and comments is in it.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Refusal> {
    let mut reader = Reader { text, at: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.trivia()?;
    if reader.at == text.len() {
        return Ok(None);
    }
    let root = reader.value(0)?;
    reader.trivia()?;
    match reader.peek() {
        None => Ok(Some(root)),
        Some(_) => Err(reader.refuse("nothing is expected after the end")),
    }
}

/// The end of the last comment between two places where only space and comments are; and whether it ends its line.
pub(super) fn last_comment(text: &str, between: Range<usize>) -> Option<(usize, LineComment)> {
    let mut reader = Reader { text: text.get(..between.end)?, at: between.start };
    let mut last = None;
    loop {
        reader.space();
        let kind = if reader.rest().starts_with("//") { LineComment::Yes } else { LineComment::No };
        match reader.comment() {
            Ok(true) => last = Some((reader.at, kind)),
            Ok(false) | Err(_) => return last,
        }
    }
}

/// Whether a comment runs to the end of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineComment {
    Yes,
    No,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn refuse(&self, why: &str) -> Refusal {
        let why = if self.at == self.text.len() {
            format!("{why}, but the file ends")
        } else {
            why.to_owned()
        };
        Refusal::at(self.text, self.at, why)
    }

    fn space(&mut self) {
        self.at +=
            self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn comment(&mut self) -> Result<bool, Refusal> {
        let rest = self.rest();
        if rest.starts_with("//") {
            let line = rest.find('\n').unwrap_or(rest.len());
            self.at += rest[..line].trim_end_matches('\r').len();
            return Ok(true);
        }
        if let Some(inside) = rest.strip_prefix("/*") {
            let end = inside.find("*/").ok_or_else(|| self.refuse("this comment has no end"))?;
            self.at += end + "/**/".len();
            return Ok(true);
        }
        Ok(false)
    }

    fn trivia(&mut self) -> Result<(), Refusal> {
        self.space();
        while self.comment()? {
            self.space();
        }
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node, Refusal> {
        if depth > DEEPEST {
            return Err(self.refuse("this is nested too deeply"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some('{') => Kind::Object(self.object(depth)?),
            Some('[') => Kind::Array(self.array(depth)?),
            Some('"') => Kind::Text(self.string()?),
            _ => self.word()?,
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Member>, Refusal> {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.trivia()?;
            match self.peek() {
                Some('}') => {
                    self.at += 1;
                    return Ok(members);
                }
                Some('"') => {}
                _ => return Err(self.refuse("a name in quotes or `}` is expected")),
            }
            let start = self.at;
            let name = self.string()?;
            self.trivia()?;
            if self.peek() != Some(':') {
                return Err(self.refuse("`:` is expected"));
            }
            self.at += 1;
            self.trivia()?;
            let value = self.value(depth + 1)?;
            let comma = self.comma('}')?;
            members.push(Member { name, start, value, comma });
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Node>, Refusal> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.trivia()?;
            if self.peek() == Some(']') {
                self.at += 1;
                return Ok(items);
            }
            items.push(self.value(depth + 1)?);
            self.comma(']')?;
        }
    }

    /// The comma after an item, unless the end of the list comes next.
    fn comma(&mut self, close: char) -> Result<Option<usize>, Refusal> {
        let after = self.at;
        self.trivia()?;
        match self.peek() {
            Some(',') => {
                self.at += 1;
                Ok(Some(self.at - 1))
            }
            Some(next) if next == close => {
                self.at = after;
                Ok(None)
            }
            _ => Err(self.refuse(&format!("`,` or `{close}` is expected"))),
        }
    }

    fn string(&mut self) -> Result<String, Refusal> {
        let mut escaped = false;
        let end = self.rest().char_indices().skip(1).find(|(_, character)| {
            let ends = *character == '"' && !escaped;
            escaped = *character == '\\' && !escaped;
            ends
        });
        let (end, _) = end.ok_or_else(|| self.refuse("this text has no closing quote"))?;
        let read = serde_json::from_str(&self.rest()[..=end]);
        let text = read.map_err(|_| self.refuse("this text in quotes is not valid"))?;
        self.at += end + 1;
        Ok(text)
    }

    fn word(&mut self) -> Result<Kind, Refusal> {
        let inside = |character: char| {
            character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.')
        };
        let end = self.rest().find(|character| !inside(character)).unwrap_or(self.rest().len());
        let word = &self.rest()[..end];
        if serde_json::from_str::<serde_json::Value>(word).is_err() {
            return Err(self.refuse("a value is expected"));
        }
        self.at += end;
        Ok(Kind::Other)
    }
}
